//! Pieces of a file in messages about it.

/// Most characters of a piece that a message repeats.
const MAX_CHARS: usize = 60;

/// `text` between backticks, cut where it is long, with what cannot be printed escaped.
pub(crate) fn quote(text: &str) -> String {
    let text = without_logins(text);
    let mut quoted = String::from("`");
    match text.char_indices().nth(MAX_CHARS) {
        Some((cut, _)) => {
            quoted.push_str(&printable(&text[..cut]));
            quoted.push('\u{2026}');
        }
        None => quoted.push_str(&printable(&text)),
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

/// `text` with as many stars in the place of who logs in by a URL in it: what is said of a policy
/// is logged and sent around, and no password should be. Rather too much is hidden than too little.
pub(crate) fn without_logins(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = url_in(rest) {
        let (before, url) = rest.split_at(at);
        let end = url.find(['"', '\'']).unwrap_or(url.len());
        let login = match url[..end].rfind('@') {
            Some(login) => login,
            // Nothing but a password begins like this, or the `@` may have been cut off.
            None if url.starts_with(':') || url[..end].ends_with('\u{2026}') => end,
            None => 0,
        };
        hidden.push_str(before);
        // Of the same length in bytes, for what is marked by them.
        hidden.extend(std::iter::repeat_n('*', login));
        rest = &url[login..];
    }
    hidden + rest
}

/// Where in `text` the part of a URL begins that may say who logs in: also of one of Redis whose
/// slashes are wrong.
fn url_in(text: &str) -> Option<usize> {
    let slashes = text.find("://").map(|at| at + "://".len());
    let is_wrong = |after: &&str| {
        let is_url = after.starts_with(|next: char| !next.is_whitespace());
        is_url && !after.starts_with("//")
    };
    let named = ["redis:", "rediss:"].iter().filter_map(|name| {
        let after = text
            .match_indices(name)
            .map(|(at, _)| &text[at + name.len()..]);
        after
            .into_iter()
            .find(is_wrong)
            .map(|after| text.len() - after.len())
    });
    named.chain(slashes).min()
}

#[cfg(test)]
mod tests {
    use super::{quote, without_logins};

    #[test]
    fn no_password_of_a_url_is_quoted() {
        for (text, shown) in [
            (
                "[\"redis://:p@ss@a:1\", 'rediss://u:p\u{e9}@b']  # me@home",
                "[\"redis://*****@a:1\", 'rediss://*****@b']  # me@home",
            ),
            // It is not known where this one ends.
            ("redis://:pass@a, x: b@c", "redis://*************@c"),
            ("redis://:pass", "redis://*****"),
            ("redis://a:1/0", "redis://a:1/0"),
            ("redis://a:1\u{2026}", "redis://******"),
            ("redis:/:pass@a", "redis:******@a"),
            ("rediss:u:pass@a", "rediss:******@a"),
            (
                "redis: { url: \"redis:/:p@a\" }",
                "redis: { url: \"redis:***@a\" }",
            ),
        ] {
            let (is, shown) = (without_logins(text), shown.to_owned());
            assert!(is.starts_with(&shown), "{is}");
            assert_eq!(is.len(), text.len());
        }
        assert_eq!(quote("redis://:secret@a"), "`redis://*******@a`");
        let long = quote(&format!("redis://:{}@a", "p".repeat(200)));
        assert!(!long.contains("pp"), "{long}");
    }
}
