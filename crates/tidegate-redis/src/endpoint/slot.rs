//! Which of a cluster's 16,384 slots a key is in.

/// How many there are.
pub(super) const SLOTS: u16 = 16_384;

/// CRC-16/XMODEM of each byte alone.
const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ (if crc & 0x8000 == 0 { 0 } else { 0x1021 });
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// A key's slot: by its hash tag, if it has one that is not empty.
pub(super) fn slot(key: &[u8]) -> u16 {
    let hashed = tag(key).unwrap_or(key);
    let crc = hashed.iter().fold(0_u16, |crc, byte| {
        let index = (crc >> 8) as u8 ^ byte;
        (crc << 8) ^ TABLE[usize::from(index)]
    });
    crc % SLOTS
}

/// What stands between the first `{` and the first `}` after it.
fn tag(key: &[u8]) -> Option<&[u8]> {
    let open = key.iter().position(|byte| *byte == b'{')?;
    let rest = &key[open + 1..];
    let close = rest.iter().position(|byte| *byte == b'}')?;
    (close > 0).then(|| &rest[..close])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `CLUSTER KEYSLOT` says (the first is of the specification, too).
    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(slot(b"123456789"), 0x31c3 % SLOTS);
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot(b""), 0);
        for (key, as_if) in [
            ("{foo}bar", "foo"),
            ("a{foo}b{bar}", "foo"),
            ("{{foo}}", "{foo"),
        ] {
            assert_eq!(slot(key.as_bytes()), slot(as_if.as_bytes()), "{key}");
        }
        assert_ne!(slot(b"{}foo"), slot(b""));
        assert_ne!(slot(b"{foo"), slot(b"foo"));
    }
}
