//! *Did you mean ...?*

/// The one of `known` that `word` is most likely a misspelling of.
pub(crate) fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Long words are no misspellings, and would make this slow.
    if word.len() > MAX_WORD_BYTES {
        return None;
    }
    let folded = fold(word);
    let allowed = (folded.len() / 3).max(1);
    known
        .into_iter()
        .filter(|name| name.len().abs_diff(word.len()) <= allowed + 1)
        .map(|name| (distance(&folded, &fold(name)), name))
        .filter(|&(distance, name)| distance <= allowed && distance < name.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

const MAX_WORD_BYTES: usize = 64;

/// Case, and which of `-` and `_` it is, make no difference.
fn fold(word: &str) -> Vec<char> {
    word.chars()
        .map(|c| {
            if c == '-' {
                '_'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect()
}

/// Insertions, deletions, replacements and swaps of neighbours that make `a` from `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let width = b.len() + 1;
    // The last two rows of the table, and the one that is being made.
    let mut before = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; width];
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(a[i] != b[j]);
            row[j + 1] = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_is_near_and_another_word_is_not() {
        let keys = [
            "rate",
            "burst",
            "concurrency",
            "key",
            "max_keys",
            "on_missing",
        ];
        assert_eq!(closest("brust", keys), Some("burst"));
        assert_eq!(closest("max-keys", keys), Some("max_keys"));
        assert_eq!(closest("Rate", keys), Some("rate"));
        assert_eq!(closest("concurency", keys), Some("concurrency"));
        assert_eq!(closest("colour", keys), None);
        assert_eq!(closest("x", keys), None);
        assert_eq!(closest(&"x".repeat(100), keys), None);
    }
}
