//! The little of RFC 9651 (structured fields) that rate limit headers need.
//!
//! Written for every request, so without `fmt` and, at usual lengths, without the heap.

use http::HeaderValue;

/// The largest integer that a structured field can carry: 15 digits.
pub(crate) const MAX_INTEGER: u64 = 999_999_999_999_999;

/// A field that is being written.
#[derive(Debug)]
pub(crate) struct Field {
    short: [u8; Self::SHORT],
    length: usize,
    /// All of it, once it is longer.
    long: Vec<u8>,
}

impl Field {
    const SHORT: usize = 128;

    pub(crate) const fn new() -> Self {
        Self {
            short: [0; Self::SHORT],
            length: 0,
            long: Vec::new(),
        }
    }

    fn bytes(&self) -> &[u8] {
        if self.long.is_empty() {
            &self.short[..self.length]
        } else {
            &self.long
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Appends what is plain syntax.
    #[inline]
    pub(crate) fn push(&mut self, syntax: &'static str) {
        self.push_bytes(syntax.as_bytes());
    }

    #[inline]
    fn push_bytes(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        match self.short.get_mut(self.length..end) {
            Some(room) if self.long.is_empty() => {
                room.copy_from_slice(bytes);
                self.length = end;
            }
            _ => self.push_long(bytes),
        }
    }

    #[cold]
    fn push_long(&mut self, bytes: &[u8]) {
        if self.long.is_empty() {
            self.long.extend_from_slice(&self.short[..self.length]);
        }
        self.long.extend_from_slice(bytes);
    }

    /// Appends `text` as a String. It can hold printable ASCII only; any other byte is written
    /// as `%XX`, so that two names stay two.
    pub(crate) fn push_string(&mut self, text: &str) {
        let is_plain = |byte: u8| matches!(byte, 0x20..=0x7e) && byte != b'"' && byte != b'\\';
        self.push("\"");
        if text.bytes().all(is_plain) {
            self.push_bytes(text.as_bytes());
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
                b'"' | b'\\' => self.push_bytes(&[b'\\', byte]),
                0x20..=0x7e => self.push_bytes(&[byte]),
                _ => {
                    let [high, low] = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
                    self.push_bytes(&[b'%', high, low]);
                }
            }
        }
    }

    /// Appends `number` behind `key`, which comes with its signs (`;r=`); capped at
    /// [`MAX_INTEGER`].
    #[inline]
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
        self.push_bytes(&digits[at..]);
    }

    pub(crate) fn finish(&self) -> HeaderValue {
        HeaderValue::from_bytes(self.bytes()).expect("strings are escaped, all else is plain ASCII")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, wire: &str) {
        let mut field = Field::new();
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
        let mut field = Field::new();
        field.push_integer(";r=", u64::MAX);
        field.push_integer(";t=", 0);
        field.push_integer(";q=", 1_000_000);
        assert_eq!(field.finish(), ";r=999999999999999;t=0;q=1000000");
    }
}
