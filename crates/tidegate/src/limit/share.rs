//! One node's share of a limit that several nodes have.

use core::num::NonZeroU64;
use core::time::Duration;

use crate::{Algorithm, Quota};

pub(super) fn share_of(whole: Algorithm, nodes: u64) -> Option<Algorithm> {
    let nodes = NonZeroU64::new(nodes)?;
    let permits_of = |permits: u64| NonZeroU64::new(permits / nodes).map(NonZeroU64::get);
    Some(match whole {
        Algorithm::TokenBucket(quota) => Algorithm::TokenBucket(quota_share(quota, nodes)?),
        Algorithm::SmoothBursty { quota, max_debt } => Algorithm::SmoothBursty {
            quota: quota_share(quota, nodes)?,
            max_debt,
        },
        Algorithm::IntervalBucket { quota, aligned } => Algorithm::IntervalBucket {
            quota: Quota::new(permits_of(quota.permits())?, quota.period())
                .burst(permits_of(quota.burst_permits())?),
            aligned,
        },
        Algorithm::FixedWindow { permits, window } => Algorithm::FixedWindow {
            permits: permits_of(permits)?,
            window,
        },
        Algorithm::WindowFromFirst { permits, window } => Algorithm::WindowFromFirst {
            permits: permits_of(permits)?,
            window,
        },
        Algorithm::CalendarWindow { permits, unit } => Algorithm::CalendarWindow {
            permits: permits_of(permits)?,
            unit,
        },
        Algorithm::SlidingWindow {
            permits,
            window,
            parts,
        } => Algorithm::SlidingWindow {
            permits: permits_of(permits)?,
            window,
            parts,
        },
        Algorithm::SlidingCounter { permits, window } => Algorithm::SlidingCounter {
            permits: permits_of(permits)?,
            window,
        },
        Algorithm::SlidingLog { permits, window } => Algorithm::SlidingLog {
            permits: permits_of(permits)?,
            window,
        },
        Algorithm::Concurrency { max } => Algorithm::Concurrency {
            max: permits_of(max)?,
        },
        _ => return None,
    })
}

/// A period that is so many times longer is a rate that is so many times lower, exactly.
fn quota_share(quota: Quota, nodes: NonZeroU64) -> Option<Quota> {
    let period = quota.period().as_nanos() * u128::from(nodes.get());
    let period = Duration::from_nanos(u64::try_from(period).ok()?);
    let burst = NonZeroU64::new(quota.burst_permits() / nodes)?;
    let share = Quota::new(quota.permits(), period).burst(burst.get());
    Some(share.initial(quota.initial_permits() / nodes)).filter(|share| share.rate().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_no_more_than_the_whole() {
        let window = Duration::from_mins(1);
        let whole = Algorithm::TokenBucket(Quota::new(10, window).burst(7));
        let third = Quota::new(10, 3 * window).burst(2).initial(2);
        assert_eq!(whole.share_of(3), Some(Algorithm::TokenBucket(third)));
        let whole = Algorithm::FixedWindow {
            permits: 10,
            window,
        };
        let third = Algorithm::FixedWindow { permits: 3, window };
        assert_eq!(whole.share_of(3), Some(third));
        assert_eq!(whole.share_of(1), Some(whole));
        // Nothing for anybody, and no division by nobody.
        assert_eq!(whole.share_of(11), None);
        assert_eq!(whole.share_of(0), None);
        let places = Algorithm::Concurrency { max: 5 };
        assert_eq!(places.share_of(2), Some(Algorithm::Concurrency { max: 2 }));
    }
}
