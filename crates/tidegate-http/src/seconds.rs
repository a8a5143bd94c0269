//! Seconds on the wire.

use std::time::Duration;

/// Whole seconds, rounded up: a client that comes back after this many has waited long enough.
///
/// The one place where tidegate turns a time into seconds for a header or a reply. 0 only for
/// a duration of zero, so a wait is never told as "now".
///
/// ```
/// use std::time::Duration;
/// use tidegate_http::whole_seconds_up;
///
/// assert_eq!(whole_seconds_up(Duration::ZERO), 0);
/// assert_eq!(whole_seconds_up(Duration::from_millis(1)), 1);
/// assert_eq!(whole_seconds_up(Duration::from_secs(2)), 2);
/// assert_eq!(whole_seconds_up(Duration::new(2, 1)), 3);
/// ```
pub const fn whole_seconds_up(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_add((duration.subsec_nanos() != 0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_never_0_and_never_too_short() {
        for nanos in [
            1,
            999_999,
            1_000_000,
            999_999_999,
            1_000_000_000,
            1_000_000_001,
        ] {
            let wait = Duration::from_nanos(nanos);
            let told = Duration::from_secs(whole_seconds_up(wait));
            assert!(
                told >= wait && told < wait + Duration::from_secs(1),
                "{wait:?}: {told:?}"
            );
        }
        assert_eq!(whole_seconds_up(Duration::MAX), u64::MAX);
    }
}
