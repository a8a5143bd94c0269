//! Pieces of a file in messages about it.

/// Most characters of a piece that a message repeats.
const MAX_CHARS: usize = 60;

/// `text` between backticks, cut where it is long, with what cannot be printed escaped.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::from("`");
    for (count, c) in text.chars().enumerate() {
        if count == MAX_CHARS {
            quoted.push('\u{2026}');
            break;
        }
        if c.is_control() {
            quoted.extend(c.escape_default());
        } else {
            quoted.push(c);
        }
    }
    quoted.push('`');
    quoted
}
