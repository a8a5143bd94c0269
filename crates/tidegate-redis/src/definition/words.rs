//! A definition as whole numbers, in an order in which the stricter of two comes first.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate::{Algorithm, CalendarUnit, LeaseScheme, Quota, Sharing};

/// What stands before an algorithm's own numbers: rate, most at once, sharing, algorithm.
const HEAD: usize = 4;

/// The numbers of a limit that can be shared; `None` of one that cannot.
pub(super) fn of(algorithm: &Algorithm, sharing: Sharing) -> Option<Vec<u64>> {
    let (code, numbers) = match *algorithm {
        Algorithm::TokenBucket(quota) => (1, of_quota(quota)?.to_vec()),
        Algorithm::SmoothBursty { quota, max_debt } => {
            (2, [&of_quota(quota)?[..], &[nanos(max_debt)?]].concat())
        }
        Algorithm::IntervalBucket { quota, aligned } => {
            (3, [&of_quota(quota)?[..], &[aligned.into()]].concat())
        }
        Algorithm::FixedWindow { permits, window } => (4, vec![permits, nanos(window)?]),
        Algorithm::WindowFromFirst { permits, window } => (5, vec![permits, nanos(window)?]),
        Algorithm::CalendarWindow { permits, unit } => (6, vec![permits, of_unit(unit)]),
        Algorithm::SlidingCounter { permits, window } => (7, vec![permits, nanos(window)?]),
        Algorithm::SlidingLog { permits, window } => (8, vec![permits, nanos(window)?]),
        Algorithm::SlidingWindow {
            permits,
            window,
            parts,
        } => (9, vec![permits, nanos(window)?, parts.get().into()]),
        Algorithm::Concurrency { max } => (10, vec![max]),
        _ => return None,
    };
    let mut words = vec![
        // In permits each hour, to a millionth of one.
        rate_rank(algorithm),
        algorithm.permits_at_once(),
        of_sharing(sharing)?,
        code,
    ];
    words.extend(numbers);
    Some(words)
}

/// The limit of these numbers; `None` where this version does not know such.
pub(super) fn read(words: &[u64]) -> Option<(Algorithm, Sharing)> {
    let (head, numbers) = words.split_at_checked(HEAD)?;
    let window = |nanos: &u64| Duration::from_nanos(*nanos);
    let algorithm = match (head[3], numbers) {
        (1, quota) => Algorithm::TokenBucket(quota_of(quota)?),
        (2, [quota @ .., debt]) => Algorithm::SmoothBursty {
            quota: quota_of(quota)?,
            max_debt: Duration::from_nanos(*debt),
        },
        (3, [quota @ .., aligned]) => Algorithm::IntervalBucket {
            quota: quota_of(quota)?,
            aligned: *aligned == 1,
        },
        (4, [permits, nanos]) => Algorithm::FixedWindow {
            permits: *permits,
            window: window(nanos),
        },
        (5, [permits, nanos]) => Algorithm::WindowFromFirst {
            permits: *permits,
            window: window(nanos),
        },
        (6, [permits, unit]) => Algorithm::CalendarWindow {
            permits: *permits,
            unit: *UNITS.get(usize::try_from(*unit).ok()?)?,
        },
        (7, [permits, nanos]) => Algorithm::SlidingCounter {
            permits: *permits,
            window: window(nanos),
        },
        (8, [permits, nanos]) => Algorithm::SlidingLog {
            permits: *permits,
            window: window(nanos),
        },
        (9, [permits, nanos, parts]) => Algorithm::SlidingWindow {
            permits: *permits,
            window: window(nanos),
            parts: NonZeroU32::new(u32::try_from(*parts).ok()?)?,
        },
        (10, [max]) => Algorithm::Concurrency { max: *max },
        _ => return None,
    };
    let sharing = sharing_of(head[2])?;
    // Numbers of another's making: what they say in front has to be what they are.
    (of(&algorithm, sharing)? == words && algorithm.validate().is_ok())
        .then_some((algorithm, sharing))
}

fn of_quota(quota: Quota) -> Option<[u64; 4]> {
    Some([
        quota.permits(),
        nanos(quota.period())?,
        quota.burst_permits(),
        quota.initial_permits(),
    ])
}

fn quota_of(numbers: &[u64]) -> Option<Quota> {
    let [permits, nanos, burst, initial] = *numbers else {
        return None;
    };
    let mut quota = Quota::new(permits, Duration::from_nanos(nanos));
    // What is so without being said is not said.
    if quota.burst_permits() != burst {
        quota = quota.burst(burst);
    }
    if quota.initial_permits() != initial {
        quota = quota.initial(initial);
    }
    Some(quota)
}

fn nanos(time: Duration) -> Option<u64> {
    u64::try_from(time.as_nanos()).ok()
}

const UNITS: [CalendarUnit; 4] = [
    CalendarUnit::Day,
    CalendarUnit::Week,
    CalendarUnit::Month,
    CalendarUnit::Year,
];

fn of_unit(unit: CalendarUnit) -> u64 {
    match unit {
        CalendarUnit::Day => 0,
        CalendarUnit::Week => 1,
        CalendarUnit::Month => 2,
        CalendarUnit::Year => 3,
    }
}

const SHARINGS: [Sharing; 8] = [
    Sharing::Exact,
    Sharing::Leased(LeaseScheme::Strict),
    Sharing::Leased(LeaseScheme::Optimistic),
    Sharing::Auto(LeaseScheme::Strict),
    Sharing::Auto(LeaseScheme::Optimistic),
    Sharing::NodeShare,
    Sharing::Slots,
    Sharing::DoubleWindow,
];

fn of_sharing(sharing: Sharing) -> Option<u64> {
    let at = SHARINGS.iter().position(|one| *one == sharing)?;
    Some(at as u64 + 1)
}

fn sharing_of(code: u64) -> Option<Sharing> {
    let at = usize::try_from(code).ok()?.checked_sub(1)?;
    SHARINGS.get(at).copied()
}

/// In permits each hour, to a millionth of one: by this two limits are compared. 0 for places.
fn rate_rank(algorithm: &Algorithm) -> u64 {
    let (permits, time) = match *algorithm {
        Algorithm::TokenBucket(quota)
        | Algorithm::SmoothBursty { quota, .. }
        | Algorithm::IntervalBucket { quota, .. } => (quota.permits(), quota.period()),
        Algorithm::FixedWindow { permits, window }
        | Algorithm::WindowFromFirst { permits, window }
        | Algorithm::SlidingCounter { permits, window }
        | Algorithm::SlidingLog { permits, window }
        | Algorithm::SlidingWindow {
            permits, window, ..
        } => (permits, window),
        Algorithm::CalendarWindow { permits, unit } => (permits, unit.longest()),
        _ => return 0,
    };
    let hours = u128::from(permits) * 3_600_000_000_000 * 1_000_000;
    u64::try_from(hours / time.as_nanos().max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
