//! How long a client may keep the gateway waiting for it, in all.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The slowest that a client may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinRate {
    /// 0: as slow as it likes.
    pub(crate) bytes_per_second: u64,
    /// What it is given in advance.
    pub(crate) grace: Duration,
    /// Most that it is given, however much it has sent or taken before.
    pub(crate) most: Duration,
}

impl MinRate {
    /// The time in which so many bytes should have moved.
    fn time_for(&self, bytes: usize) -> Duration {
        let nanos = u128::from(bytes as u64) * 1_000_000_000 / u128::from(self.bytes_per_second);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn most(&self) -> Duration {
        self.most.max(self.grace)
    }
}

/// What is left of a client's time. Only the time counts in which the gateway waits for it; each
/// byte gives back what it takes at the slowest rate.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    left: Cell<Duration>,
    waits_since: Cell<Option<Instant>>,
}

impl Patience {
    /// A new request, or a new answer.
    pub(crate) fn begin(&self, rate: &MinRate) {
        self.left.set(rate.grace);
        self.waits_since.set(None);
    }

    /// The client has not moved; says until when it may go on so, unless that is known.
    pub(crate) fn wait(&self, now: Instant, rate: &MinRate) -> Option<Instant> {
        if rate.bytes_per_second == 0 || self.waits_since.get().is_some() {
            return None;
        }
        self.waits_since.set(Some(now));
        self.deadline()
    }

    /// It has moved so many bytes.
    pub(crate) fn moved(&self, now: Instant, bytes: usize, rate: &MinRate) {
        if self.pause(now) {
            let left = self.left.get().saturating_add(rate.time_for(bytes));
            self.left.set(left.min(rate.most()));
        }
    }

    /// For the time being nobody waits for it; whether somebody did. What it has taken counts.
    pub(crate) fn pause(&self, now: Instant) -> bool {
        let since = self.waits_since.take();
        if let Some(since) = since {
            let left = self.left.get();
            self.left
                .set(left.saturating_sub(now.saturating_duration_since(since)));
        }
        since.is_some()
    }

    /// Nobody waits for it any more.
    pub(crate) fn end(&self) {
        self.waits_since.set(None);
    }

    /// Until when it has to move, if somebody waits for that.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waits_since.get()?.checked_add(self.left.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: MinRate = MinRate {
        bytes_per_second: 100,
        grace: Duration::from_secs(10),
        most: Duration::from_mins(1),
    };

    /// The seconds after which a client is given up that sends `bytes` each `period` seconds.
    fn lasts(bytes: usize, period: u64) -> Option<u64> {
        let start = Instant::now();
        let patience = Patience::default();
        patience.begin(&RATE);
        for round in 0..1_000 {
            let at = start + Duration::from_secs(round * period);
            patience.wait(at, &RATE);
            let deadline = patience.deadline().unwrap();
            if deadline < at + Duration::from_secs(period) {
                return Some((deadline - start).as_secs());
            }
            patience.moved(at + Duration::from_secs(period), bytes, &RATE);
        }
        None
    }

    #[test]
    fn who_keeps_the_rate_lasts_and_who_trickles_does_not() {
        assert_eq!(lasts(100, 1), None);
        assert_eq!(lasts(1_000, 10), None);
        assert_eq!(lasts(1, 1), Some(10));
        // Half the rate takes twice as long to use up what was given in advance.
        assert_eq!(lasts(50, 1), Some(19));
    }

    #[test]
    fn time_in_which_nobody_waits_is_free_and_speed_is_saved_up_within_bounds() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let patience = Patience::default();
        patience.begin(&RATE);
        assert_eq!(patience.deadline(), None);
        assert_eq!(patience.wait(after(100), &RATE), Some(after(110)));
        assert_eq!(patience.wait(after(105), &RATE), None, "it is known");
        patience.moved(after(105), 1_000_000, &RATE);
        assert_eq!(patience.deadline(), None);
        assert_eq!(patience.wait(after(200), &RATE), Some(after(260)));
        patience.end();
        assert_eq!(patience.deadline(), None);
    }

    #[test]
    fn a_pause_is_free_and_gives_nothing_back() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let patience = Patience::default();
        patience.begin(&RATE);
        assert_eq!(patience.wait(start, &RATE), Some(after(10)));
        assert!(patience.pause(after(4)));
        assert_eq!(patience.deadline(), None);
        assert!(!patience.pause(after(90)));
        assert_eq!(patience.wait(after(100), &RATE), Some(after(106)));
    }

    #[test]
    fn without_a_rate_nothing_is_asked_for() {
        let rate = MinRate {
            bytes_per_second: 0,
            ..RATE
        };
        let patience = Patience::default();
        patience.begin(&rate);
        assert_eq!(patience.wait(Instant::now(), &rate), None);
        patience.moved(Instant::now(), 5, &rate);
        assert_eq!(patience.deadline(), None);
    }
}
