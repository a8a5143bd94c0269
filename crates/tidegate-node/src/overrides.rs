//! Which override holds for a key, found without looking at each.

use std::collections::HashMap;

use smallvec::SmallVec;
use tidegate_policy::Override;

use crate::key_bytes::KeyBytes;

/// The overrides of one limit, filed by which parts they name.
///
/// A look-up costs one hash for each different set of named parts (at most 2^parts, in practice
/// one or two), however many overrides there are.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    named: SmallVec<[usize; 8]>,
    /// Named parts, each with its length before it, to the first override that has them.
    by_values: HashMap<Box<[u8]>, usize>,
}

impl Overrides {
    pub(crate) fn new(overrides: &[Override]) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for (index, one) in overrides.iter().enumerate() {
            let named: SmallVec<[usize; 8]> = (0..one.matches.len())
                .filter(|part| one.matches[*part].is_some())
                .collect();
            let mut values = Vec::new();
            for value in one.matches.iter().flatten() {
                let length = u32::try_from(value.len()).unwrap_or(u32::MAX - 1);
                values.extend_from_slice(&length.to_le_bytes());
                values.extend_from_slice(value);
            }
            let at = groups
                .iter()
                .position(|group| group.named == named)
                .unwrap_or_else(|| {
                    groups.push(Group {
                        named,
                        by_values: HashMap::new(),
                    });
                    groups.len() - 1
                });
            // The first match wins.
            groups[at]
                .by_values
                .entry(values.into_boxed_slice())
                .or_insert(index);
        }
        Self { groups }
    }

    /// The first override that matches.
    pub(crate) fn find(&self, key: &KeyBytes) -> Option<usize> {
        self.groups.iter().filter_map(|group| group.find(key)).min()
    }
}

impl Group {
    fn find(&self, key: &KeyBytes) -> Option<usize> {
        let mut values: SmallVec<[u8; 128]> = SmallVec::new();
        for &part in &self.named {
            values.extend_from_slice(key.part(part));
        }
        self.by_values.get(&values[..]).copied()
    }
}

#[cfg(test)]
mod tests {
    use tidegate::{Algorithm, Limit, Quota};

    use super::*;

    fn one(matches: &[Option<&str>]) -> Override {
        Override {
            matches: matches
                .iter()
                .map(|m| m.map(|m| Box::from(m.as_bytes())))
                .collect(),
            limit: Limit::new("l", Algorithm::TokenBucket(Quota::per_second(1))).unwrap(),
        }
    }

    #[test]
    fn the_first_match_wins_and_unnamed_parts_match_anything() {
        let overrides = Overrides::new(&[
            one(&[Some("vip"), Some("api")]),
            one(&[Some("vip"), None]),
            one(&[None, Some("slow")]),
            one(&[Some("vip"), None]),
        ]);
        let find =
            |a: &str, b: &str| overrides.find(&KeyBytes::of_values(&[a.as_bytes(), b.as_bytes()]));
        assert_eq!(find("vip", "api"), Some(0));
        assert_eq!(find("vip", "slow"), Some(1));
        assert_eq!(find("joe", "slow"), Some(2));
        assert_eq!(find("joe", "api"), None);
        // Lengths keep parts apart.
        assert_eq!(find("vi", "papi"), None);
    }
}
