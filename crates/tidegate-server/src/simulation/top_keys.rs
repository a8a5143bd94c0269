//! The keys that were limited most, in bounded memory.
//!
//! The space-saving sketch (Metwally, Agrawal, El Abbadi 2005): of the counters kept, the
//! smallest is given to a key that has none, with its count as the error. A key that came more
//! often than 1 in [`CAPACITY`] is surely among them, and no count is above the truth by more
//! than its error.

use std::collections::HashMap;

/// Counters kept.
const CAPACITY: usize = 1_000;

/// Counts of the most frequent keys.
#[derive(Clone, Debug, Default)]
pub struct TopKeys {
    counts: HashMap<String, Count>,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    count: u64,
    error: u64,
}

impl TopKeys {
    pub(super) fn add(&mut self, key: String) {
        if let Some(count) = self.counts.get_mut(&key) {
            count.count += 1;
            return;
        }
        let mut error = 0;
        if self.counts.len() >= CAPACITY {
            let least = self
                .counts
                .iter()
                .min_by_key(|(key, count)| (count.count, *key));
            if let Some((least, count)) = least.map(|(key, count)| (key.clone(), count.count)) {
                self.counts.remove(&least);
                error = count;
            }
        }
        self.counts.insert(
            key,
            Count {
                count: error + 1,
                error,
            },
        );
    }

    /// The `n` keys that came most, most first, with how often at most; among equals in order.
    pub fn most(&self, n: usize) -> Vec<(&str, u64)> {
        let mut all: Vec<_> = self
            .counts
            .iter()
            .map(|(key, count)| (key.as_str(), count.count, count.error))
            .collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        all.into_iter()
            .take(n)
            .map(|(key, count, _)| (key, count))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_keys_stay_among_rotating_ones() {
        let mut top = TopKeys::default();
        for n in 0..20_000 {
            top.add(format!("once-{n}"));
            if n % 50 == 0 {
                top.add("often".to_owned());
            }
        }
        assert!(top.counts.len() <= CAPACITY);
        let (key, count) = top.most(1)[0];
        assert_eq!(key, "often");
        assert!((400..450).contains(&count), "{count}");
    }
}
