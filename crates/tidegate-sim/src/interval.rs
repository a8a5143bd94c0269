//! How much passed in any interval, counted by hand.

/// Permits that passed at a time, or, below zero, were given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Unix nanoseconds.
    pub at: u64,
    /// Permits.
    pub permits: i128,
}

/// The first interval (from one pass to another, both counted) in which more passed than
/// `allowed` says for one of its length, in nanoseconds: `allowed` is a fraction, `(numerator,
/// denominator)`. Permits that were given back within the interval are taken off.
///
/// Intervals that begin or end between passes hold no more than these.
pub fn first_excess(
    passes: &[Pass],
    allowed: impl Fn(u64) -> (i128, i128),
) -> Option<(Pass, Pass, i128)> {
    let mut sorted = passes.to_vec();
    sorted.sort_by_key(|pass| pass.at);
    for first in 0..sorted.len() {
        let mut passed = 0;
        for last in first..sorted.len() {
            passed += sorted[last].permits;
            let length = sorted[last].at - sorted[first].at;
            let (numerator, denominator) = allowed(length);
            if passed * denominator > numerator {
                return Some((sorted[first], sorted[last], passed));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(at: u64, permits: i128) -> Pass {
        Pass { at, permits }
    }

    #[test]
    fn finds_the_one_interval_that_holds_too_much() {
        let passes = [pass(0, 1), pass(10, 1), pass(11, 1), pass(30, 1)];
        // One, and one more for each 2 ns.
        let allowed = |length| (2 + i128::from(length), 2);
        let (first, last, passed) = first_excess(&passes, allowed).expect("two within 1 ns");
        assert_eq!((first.at, last.at, passed), (10, 11, 2));
        assert_eq!(
            first_excess(&passes, |length| (1 + i128::from(length), 1)),
            None
        );
    }

    #[test]
    fn what_was_given_back_makes_room() {
        let passes = [pass(0, 5), pass(1, -5), pass(1, 5)];
        assert_eq!(first_excess(&passes, |_| (5, 1)), None);
    }
}
