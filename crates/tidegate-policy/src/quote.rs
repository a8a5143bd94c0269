//! Pieces of a file in messages about it.

/// Most characters of a piece that a message repeats.
const MAX_CHARS: usize = 60;

/// `text` between backticks, cut where it is long, with what cannot be printed escaped.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::from("`");
    match text.char_indices().nth(MAX_CHARS) {
        Some((cut, _)) => {
            quoted.push_str(&printable(&text[..cut]));
            quoted.push('\u{2026}');
        }
        None => quoted.push_str(&printable(text)),
    }
    quoted.push('`');
    quoted
}

/// The words between backticks: `a`, `b` or `c`.
pub(crate) fn one_of(words: &[&str]) -> String {
    let mut listed = String::new();
    for (index, word) in words.iter().enumerate() {
        listed.push_str(match index {
            0 => "",
            _ if index + 1 == words.len() => " or ",
            _ => ", ",
        });
        listed.push_str(&quote(word));
    }
    listed
}

/// `text` with what cannot be printed escaped.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            printable.extend(c.escape_default());
        } else {
            printable.push(c);
        }
    }
    printable
}
