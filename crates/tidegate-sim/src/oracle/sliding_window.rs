//! A list of who came when; the window reaches back from the start of the current part.

use std::num::NonZeroU32;
use std::time::Duration;

use super::admissions::{Admissions, Window};
use super::nanos;

/// At most so many in the current part and the whole window before it. Times are multiplied by
/// the number of parts, so that where a part begins is a whole number: an exact fraction.
#[derive(Clone, Debug)]
pub struct SlidingWindowOracle {
    permits: i128,
    window: i128,
    parts: i128,
    admissions: Admissions,
}

impl SlidingWindowOracle {
    /// Nobody has come yet.
    pub fn new(permits: u64, window: Duration, parts: NonZeroU32) -> Self {
        Self {
            permits: i128::from(permits),
            window: nanos(window),
            parts: i128::from(parts.get()),
            admissions: Admissions::default(),
        }
    }

    /// The same list under another limit. Who was out stays out, and who came in a part may have
    /// come at its very end.
    pub fn change(&mut self, new: &Self, now: u64) {
        self.admissions.latest = self.admissions.now(now);
        let (latest, window, parts) = (self.admissions.latest, self.window, self.parts);
        let window_began = self.window_began(now);
        self.admissions
            .list
            .retain(|admission| admission.at * parts >= window_began);
        for admission in &mut self.admissions.list {
            let next_part = (admission.at * parts / window + 1) * window;
            // The last whole nanosecond before it.
            admission.at = ((next_part - 1) / parts).min(latest);
        }
        (self.permits, self.window, self.parts) = (new.permits, new.window, new.parts);
    }

    /// When the window of `now` begins, in parts of a nanosecond: of those, a part of the window
    /// has as many as the window has nanoseconds.
    fn window_began(&self, now: u64) -> i128 {
        let now = self.admissions.now(now) * self.parts;
        let part_began = now - now % self.window;
        part_began - self.window * self.parts
    }
}

impl Window for SlidingWindowOracle {
    fn permits(&self) -> i128 {
        self.permits
    }

    fn admissions(&self) -> &Admissions {
        &self.admissions
    }

    fn admissions_mut(&mut self) -> &mut Admissions {
        &mut self.admissions
    }

    fn leaves(&self, at: i128) -> Option<i128> {
        // When the window of a part that begins then begins after it: a window after the end of
        // its own part.
        let next_part = (at * self.parts / self.window + 1) * self.window;
        let leaves = next_part + self.window * self.parts;
        Some((leaves + self.parts - 1) / self.parts)
    }

    fn counted(&self, now: u64) -> i128 {
        let window_began = self.window_began(now);
        self.admissions
            .list
            .iter()
            .filter(|admission| admission.at * self.parts >= window_began)
            .map(|admission| admission.permits)
            .sum()
    }
}
