//! nginx's `limit_rate`, number by number: one body, in steps of a second.
//!
//! As its write filter has it: at most `rate * (seconds since the request began + 1)` bytes, by a
//! clock of whole seconds, beyond those that are free; and after each write a pause as long as
//! what was written takes at the rate. The header counts too. A write here is what passes without
//! a gap: a file is there, and what comes over a network as fast as a file is not taken for slow
//! because the next packet is a moment behind.

use std::time::Duration;

use tidegate::Timestamp;

const SECOND_NANOS: u64 = 1_000_000_000;
const MILLI_NANOS: u64 = 1_000_000;
/// What comes no later than this after what came before is of the same write.
const GAP: Duration = Duration::from_millis(10);

/// One body under a `limit_rate`.
#[derive(Clone, Debug)]
pub(crate) struct NginxRate {
    /// Bytes per second; not 0.
    rate: u64,
    /// `limit_rate_after`.
    after: u64,
    /// The second in which the request began.
    start: u64,
    sent: u64,
    /// Whether anything of the body has passed.
    has_begun: bool,
    /// What had been sent when the write that goes on began.
    write_from: Option<u64>,
    /// Since when nothing has been there to be written.
    idle_since: Option<Timestamp>,
    /// The end of the pause after a write.
    pause_until: Timestamp,
    /// When the piece may pass that is asked about.
    ready: Timestamp,
}

impl NginxRate {
    pub(crate) fn new(rate: u64, after: u64, began: Timestamp) -> Self {
        Self {
            rate: rate.max(1),
            after,
            start: seconds(began),
            sent: 0,
            has_begun: false,
            write_from: None,
            idle_since: None,
            pause_until: Timestamp::EPOCH,
            ready: Timestamp::EPOCH,
        }
    }

    /// Other numbers from here on.
    pub(crate) fn renumber(&mut self, rate: u64, after: u64) {
        (self.rate, self.after) = (rate.max(1), after);
    }

    /// Counts the header, which is not held back itself: it goes with the first write.
    pub(crate) fn count_head(&mut self, bytes: u64) {
        self.write_from.get_or_insert(self.sent);
        self.sent += bytes;
    }

    /// How many bytes may pass as soon as any may.
    pub(crate) fn most(&mut self, now: Timestamp) -> u64 {
        if let Some(since) = self.idle_since.take()
            && now.since(since) > GAP
        {
            self.end_write(since);
        }
        let mut at = now.max(self.pause_until);
        let mut budget = self.budget(at);
        if budget <= 0 && self.has_begun && self.write_from.is_some() {
            self.end_write(now);
            at = now.max(self.pause_until);
            budget = self.budget(at);
        }
        while budget <= 0 {
            at = self.next_try(at, budget.unsigned_abs());
            budget = self.budget(at);
        }
        self.ready = at;
        u64::try_from(budget).unwrap_or(u64::MAX)
    }

    /// How long after `now` what [`most`](Self::most) said may pass.
    pub(crate) fn wait(&self, now: Timestamp) -> Duration {
        self.ready.since(now)
    }

    pub(crate) fn passed(&mut self, bytes: u64) {
        self.write_from.get_or_insert(self.sent);
        self.sent += bytes;
        self.has_begun = true;
    }

    /// Nothing is there to be written.
    pub(crate) fn idle(&mut self, now: Timestamp) {
        // The header waits for the first bytes of the body.
        if self.has_begun {
            self.idle_since.get_or_insert(now);
        }
    }

    /// The pause after a write begins.
    fn end_write(&mut self, now: Timestamp) {
        let Some(from) = self.write_from.take() else {
            return;
        };
        let charged = |sent: u64| u128::from(sent.saturating_sub(self.after));
        let bytes = charged(self.sent) - charged(from);
        let millis = bytes * 1000 / u128::from(self.rate);
        self.pause_until = now.after(millis_of(millis));
    }

    /// Bytes that may pass by now, less those that have.
    fn budget(&self, at: Timestamp) -> i128 {
        let steps = seconds(at).saturating_sub(self.start) + 1;
        i128::from(self.rate) * i128::from(steps) + i128::from(self.after) - i128::from(self.sent)
    }

    /// When nginx looks again, as often as it takes until another second has begun.
    fn next_try(&self, at: Timestamp, over: u128) -> Timestamp {
        let millis = over * 1000 / u128::from(self.rate) + 1;
        let step = u64::try_from(millis).map_or(u64::MAX, |ms| ms.saturating_mul(MILLI_NANOS));
        let rest_of_second = SECOND_NANOS - at.as_nanos() % SECOND_NANOS;
        let steps = rest_of_second.div_ceil(step);
        at.after(Duration::from_nanos(step.saturating_mul(steps)))
    }
}

const fn seconds(at: Timestamp) -> u64 {
    at.as_nanos() / SECOND_NANOS
}

fn millis_of(millis: u128) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When which pieces of a body that is all there pass, from `began_ms` on, in ms.
    fn writes(rate: u64, after: u64, began_ms: u64, head: u64, mut bytes: u64) -> Vec<(u64, u64)> {
        let began = Timestamp::EPOCH.after(Duration::from_millis(began_ms));
        let mut limit = NginxRate::new(rate, after, began);
        limit.count_head(head);
        let (mut now, mut writes) = (began, Vec::new());
        while bytes > 0 {
            let piece = limit.most(now).min(bytes);
            now = now.after(limit.wait(now));
            limit.passed(piece);
            bytes -= piece;
            writes.push((now.since(began).as_millis() as u64, piece));
        }
        writes
    }

    // proves: A3 (nginx)
    #[test]
    fn a_second_at_once_and_then_each_second() {
        // Wherever in a second of the clock it begins.
        for began in [0, 1, 500, 999] {
            assert_eq!(
                writes(1_000, 0, began, 0, 2_500),
                [(0, 1_000), (1_000, 1_000), (2_000, 500)],
                "from {began}"
            );
        }
        // The header is part of the first second, and the first part of the response is free.
        assert_eq!(writes(1_000, 0, 500, 200, 1_000), [(0, 800), (1_000, 200)]);
        assert_eq!(
            writes(1_000, 5_000, 0, 0, 7_500),
            [(0, 6_000), (1_000, 1_000), (2_000, 500)]
        );
    }

    #[test]
    fn a_pause_is_as_long_as_what_was_written_takes() {
        let began = Timestamp::from_secs(100);
        let after = |millis| began.after(Duration::from_millis(millis));
        let mut limit = NginxRate::new(1_000, 0, began);
        // Nothing of it has been written: there is no pause.
        limit.count_head(100);
        limit.idle(began);
        assert_eq!(limit.most(after(20)), 900);
        assert_eq!(limit.wait(after(20)), Duration::ZERO);
        limit.passed(150);
        // What comes a moment later is of the same write.
        limit.idle(after(20));
        limit.idle(after(25));
        assert_eq!(limit.most(after(30)), 750);
        assert_eq!(limit.wait(after(30)), Duration::ZERO);
        limit.passed(50);
        // What comes later than that has to wait, from the end of the write on.
        limit.idle(after(30));
        assert_eq!(limit.most(after(50)), 700);
        assert_eq!(limit.wait(after(50)), Duration::from_millis(280));
    }

    #[test]
    fn who_is_over_looks_again_until_another_second_has_begun() {
        // 1 ms past a second: the budget is used up, and the pause is over 1 ms into the second
        // that the clock does not count yet.
        let began = Timestamp::EPOCH.after(Duration::from_millis(1));
        let mut limit = NginxRate::new(1_000, 0, began);
        limit.count_head(1_500);
        // 500 over: a try each 501 ms, of which the second is in the next second; 500 left then.
        assert_eq!(limit.most(began), 500);
        assert_eq!(limit.wait(began), Duration::from_millis(1_002));
    }
}
