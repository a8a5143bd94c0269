//! What becomes of what a key has used when its limit changes.

use crate::Meter;
use crate::meter::Used;
use crate::{Ask, Timestamp};

/// What stays the same for a key whose limit changes.
///
/// With 40 permits left of 100, a limit of 200 or of 20 leaves:
///
/// | | 200 | 20 |
/// |---|---|---|
/// | [`KeepUsed`](Self::KeepUsed) | 140 | -40 (a debt) |
/// | [`KeepRemaining`](Self::KeepRemaining) | 40 | 20 |
/// | [`Proportional`](Self::Proportional) | 80 | 8 |
/// | [`AddGrowth`](Self::AddGrowth) | 140 | 20 |
/// | [`Reset`](Self::Reset) | 200 | 20 |
///
/// All but the first are Bucket4j's, as its `TokensInheritanceStrategy` has them (`AS_IS`,
/// `PROPORTIONALLY`, `ADDITIVE`, `RESET`). Usage is exact to 2^-64 of a permit; what is lost is
/// rounded up. A key of which nothing is in use is a new one, before and after, whether it is
/// remembered or not. Changes that follow each other before a key is next asked count as one: a
/// reset among them is one, else the last says what stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnChange {
    /// What was used stays used, also where that is more than there is now.
    #[default]
    KeepUsed,
    /// What is left stays left, as far as the limit has so many.
    KeepRemaining,
    /// The same part of the limit is left.
    Proportional,
    /// What the limit has grown by is left too; where it has shrunk, what was left is.
    AddGrowth,
    /// The key is as good as new.
    Reset,
}

impl OnChange {
    /// Turns a state of `old` into one of `new`.
    pub(crate) fn migrate<M: Meter>(self, old: &M, new: &M, state: &mut M::State, now: Timestamp) {
        if self == Self::KeepUsed {
            old.migrate(new, state, now);
            return;
        }
        let limits = (limit_of(old, now), limit_of(new, now));
        *state = self.assume(old.used(state, now), limits.0, new, now);
    }

    /// A state of `new` for a key that has used so much of a limit of `limit` permits.
    pub(crate) fn assume<M: Meter>(
        self,
        used: Used,
        limit: u64,
        new: &M,
        now: Timestamp,
    ) -> M::State {
        let fresh = new.fresh(now);
        let is_new = used == Used::NOTHING && new.used(&fresh, now) == Used::NOTHING;
        if self == Self::Reset || (is_new && self != Self::KeepUsed) {
            return fresh;
        }
        new.assume(self.used(used, limit, limit_of(new, now)), now)
    }

    fn used(self, used: Used, old: u64, new: u64) -> Used {
        match self {
            Self::KeepUsed => used,
            Self::AddGrowth if new > old => used,
            Self::KeepRemaining | Self::AddGrowth => keep_remaining(used, old, new),
            Self::Proportional => used.times(new, old),
            Self::Reset => Used::NOTHING,
        }
    }
}

/// Where `old - used` are left, as many of `new`: `new - (old - used)` are used.
fn keep_remaining(used: Used, old: u64, new: u64) -> Used {
    used.plus(new).minus(old)
}

/// The most that a limit lets through at once.
pub(crate) fn limit_of<M: Meter>(meter: &M, now: Timestamp) -> u64 {
    let fresh = meter.fresh(now);
    meter.plan(&fresh, now, &Ask::new(0)).decision.limit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(on_change: OnChange, used: u64, old: u64, new: u64) -> i128 {
        let used = on_change.used(Used::permits(used), old, new);
        i128::from(new) - i128::from(used.permits_ceil())
    }

    // proves: B5 (change at run time)
    #[test]
    fn bucket4js_four_and_ours_by_the_table() {
        let table = [
            (OnChange::KeepUsed, 140, -40),
            (OnChange::KeepRemaining, 40, 20),
            (OnChange::Proportional, 80, 8),
            (OnChange::AddGrowth, 140, 20),
            (OnChange::Reset, 200, 20),
        ];
        for (on_change, grown, shrunk) in table {
            assert_eq!(left(on_change, 60, 100, 200), grown, "{on_change:?}");
            assert_eq!(left(on_change, 60, 100, 20), shrunk, "{on_change:?}");
        }
    }

    #[test]
    fn what_is_owed_stays_owed_and_nothing_is_won_from_nothing() {
        // 30 are owed of 100: as many of 200, twice as many in proportion.
        assert_eq!(left(OnChange::KeepRemaining, 130, 100, 200), -30);
        assert_eq!(left(OnChange::Proportional, 130, 100, 200), -60);
        // A limit that let nobody in has nothing left to keep a part of.
        assert_eq!(left(OnChange::Proportional, 0, 0, 10), 10);
        assert_eq!(left(OnChange::KeepRemaining, 0, 0, 10), 0);
        assert_eq!(left(OnChange::AddGrowth, 0, 0, 10), 10);
        // The largest there are.
        let most = crate::Quota::MAX_PERMITS;
        assert_eq!(
            left(OnChange::Proportional, most, 1, most),
            i128::from(most) - i128::from(u64::MAX)
        );
        assert_eq!(left(OnChange::KeepRemaining, 0, most, 1), 1);
    }
}
