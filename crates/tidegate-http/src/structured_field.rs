//! The little of RFC 9651 (structured fields) that rate limit headers need.
//!
//! Written for every request, so without `fmt` and, at usual lengths, without the heap.

use http::HeaderValue;
use smallvec::SmallVec;

/// The largest integer that a structured field can carry: 15 digits.
pub(crate) const MAX_INTEGER: u64 = 999_999_999_999_999;

/// A field that is being written.
#[derive(Debug, Default)]
pub(crate) struct Field(SmallVec<[u8; 128]>);

impl Field {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends what is plain syntax.
    pub(crate) fn push(&mut self, syntax: &'static str) {
        self.0.extend_from_slice(syntax.as_bytes());
    }

    /// Appends `text` as a String. It can hold printable ASCII only; any other byte is written
    /// as `%XX`, so that two names stay two.
    pub(crate) fn push_string(&mut self, text: &str) {
        let is_plain = |byte: u8| matches!(byte, 0x20..=0x7e) && byte != b'"' && byte != b'\\';
        self.push("\"");
        if text.bytes().all(is_plain) {
            self.0.extend_from_slice(text.as_bytes());
        } else {
            self.push_escaped(text);
        }
        self.push("\"");
    }

    #[cold]
    fn push_escaped(&mut self, text: &str) {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        for byte in text.bytes() {
            match byte {
                b'"' | b'\\' => self.0.extend_from_slice(&[b'\\', byte]),
                0x20..=0x7e => self.0.push(byte),
                _ => {
                    let [high, low] = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
                    self.0.extend_from_slice(&[b'%', high, low]);
                }
            }
        }
    }

    /// Appends `number` behind `key`, which comes with its signs (`;r=`); capped at
    /// [`MAX_INTEGER`].
    pub(crate) fn push_integer(&mut self, key: &'static str, number: u64) {
        self.push(key);
        let mut number = number.min(MAX_INTEGER);
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
        self.0.extend_from_slice(&digits[at..]);
    }

    pub(crate) fn finish(&self) -> HeaderValue {
        HeaderValue::from_bytes(&self.0).expect("strings are escaped, all else is plain ASCII")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, wire: &str) {
        let mut field = Field::default();
        field.push_string(text);
        assert_eq!(field.finish(), wire);
    }

    #[test]
    fn strings_are_escaped() {
        check("per-client", r#""per-client""#);
        check(r#"a"b\c"#, r#""a\"b\\c""#);
        check("", r#""""#);
        check("é\n\u{7f}", r#""%C3%A9%0A%7F""#);
        check(
            &"long ".repeat(100),
            &format!("\"{}\"", "long ".repeat(100)),
        );
    }

    #[test]
    fn integers_have_at_most_15_digits() {
        let mut field = Field::default();
        field.push_integer(";r=", u64::MAX);
        field.push_integer(";t=", 0);
        field.push_integer(";q=", 1_000_000);
        assert_eq!(field.finish(), ";r=999999999999999;t=0;q=1000000");
    }
}
