//! The little of RFC 9651 (structured fields) that rate limit headers need.

use std::fmt::Write;

/// The largest integer that a structured field can carry: 15 digits.
pub(crate) const MAX_INTEGER: u64 = 999_999_999_999_999;

/// Appends `text` as a String. It can hold printable ASCII only; any other byte is written as
/// `%XX`, so that two names stay two.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            0x20..=0x7e => out.push(char::from(byte)),
            _ => write!(out, "%{byte:02X}").expect("writing to a String cannot fail"),
        }
    }
    out.push('"');
}

/// Appends `;key=number`, capped at [`MAX_INTEGER`].
pub(crate) fn push_integer(out: &mut String, key: &str, number: u64) {
    out.push(';');
    out.push_str(key);
    out.push('=');
    push_decimal(out, number.min(MAX_INTEGER));
}

/// Appends a number; several times as fast as through `fmt`, and this runs for each request.
pub(crate) fn push_decimal(out: &mut String, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend(digits[at..].iter().map(|&digit| char::from(digit)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, wire: &str) {
        let mut out = String::new();
        push_string(&mut out, text);
        assert_eq!(out, wire);
    }

    #[test]
    fn strings_are_escaped() {
        check("per-client", r#""per-client""#);
        check(r#"a"b\c"#, r#""a\"b\\c""#);
        check("", r#""""#);
        check("é\n\u{7f}", r#""%C3%A9%0A%7F""#);
    }

    #[test]
    fn integers_have_at_most_15_digits() {
        let mut out = String::new();
        push_integer(&mut out, "r", u64::MAX);
        push_integer(&mut out, "t", 0);
        push_integer(&mut out, "q", 1_000_000);
        assert_eq!(out, ";r=999999999999999;t=0;q=1000000");
    }
}
