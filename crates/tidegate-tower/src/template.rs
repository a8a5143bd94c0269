//! Texts with places in them that are filled in for each answer.

use bytes::Bytes;

/// A text with places to fill in: `{limit}`, `{retry_after}` and, where that is wanted, `{uri}`.
/// All other braces are text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Bytes),
    Place(Place),
}

/// What a place is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The name of the limit that refused.
    Limit,
    /// The seconds until the request may come again; empty where nobody knows.
    RetryAfter,
    /// What was asked for.
    Uri,
}

const PLACES: [(&[u8], Place); 3] = [
    (b"{limit}", Place::Limit),
    (b"{retry_after}", Place::RetryAfter),
    (b"{uri}", Place::Uri),
];

impl Template {
    /// Finds the places of `text`.
    pub(crate) fn new(text: impl Into<Bytes>) -> Self {
        let mut rest: Bytes = text.into();
        let mut pieces = Vec::new();
        let mut from = 0;
        while let Some(at) = rest[from..].iter().position(|&byte| byte == b'{') {
            let at = from + at;
            let known = PLACES.iter().find(|(name, _)| rest[at..].starts_with(name));
            let Some(&(name, place)) = known else {
                from = at + 1;
                continue;
            };
            let before = rest.split_to(at);
            if !before.is_empty() {
                pieces.push(Piece::Text(before));
            }
            drop(rest.split_to(name.len()));
            pieces.push(Piece::Place(place));
            from = 0;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest));
        }
        Self { pieces }
    }

    /// The text, with what `write` writes at each place. One without places is not copied.
    pub(crate) fn fill(&self, mut write: impl FnMut(Place, &mut Vec<u8>)) -> Bytes {
        match self.pieces.as_slice() {
            [] => Bytes::new(),
            [Piece::Text(text)] => text.clone(),
            pieces => {
                let mut out = Vec::new();
                for piece in pieces {
                    match piece {
                        Piece::Text(text) => out.extend_from_slice(text),
                        Piece::Place(place) => write(*place, &mut out),
                    }
                }
                Bytes::from(out)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &'static str, filled: &str) {
        let template = Template::new(text);
        let out =
            template.fill(|place, out| out.extend_from_slice(format!("<{place:?}>").as_bytes()));
        assert_eq!(out, filled);
    }

    #[test]
    fn places_are_filled_and_other_braces_stay() {
        check("", "");
        check("plain", "plain");
        check("{limit}", "<Limit>");
        check(
            "in {retry_after} s: {limit}{uri}!",
            "in <RetryAfter> s: <Limit><Uri>!",
        );
        check(
            "p { color: red } {{limit}} {limits} {",
            "p { color: red } {<Limit>} {limits} {",
        );
    }
}
