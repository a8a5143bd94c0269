//! Two counts.

use std::collections::BTreeMap;

use super::{Args, ScriptModel, reply};

/// The state of `double_window.lua`.
#[derive(Clone, Debug, Default)]
pub struct DoubleWindowModel {
    counts: BTreeMap<u64, u64>,
}

impl DoubleWindowModel {
    /// What a newcomer would be compared with the limit by.
    pub fn inside(&self, now_us: u64, window_us: u64) -> u64 {
        let window = self.window(now_us, window_us);
        self.counts
            .range(window.saturating_sub(1)..)
            .map(|(_, count)| count)
            .sum()
    }

    /// How many windows are kept.
    pub fn windows(&self) -> usize {
        self.counts.len()
    }

    fn window(&self, now: u64, width: u64) -> u64 {
        let newest = self
            .counts
            .last_key_value()
            .map_or(0, |(window, _)| *window);
        newest.max(now / width)
    }

    fn count(&self, window: u64) -> u64 {
        self.counts.get(&window).copied().unwrap_or(0)
    }

    fn set(&mut self, window: u64, count: u64) {
        self.counts.insert(window, count);
        self.counts.retain(|_, count| *count > 0);
    }

    fn leave(&mut self, window: u64, counted: u64, places: u64) {
        if counted == window || counted + 1 == window {
            self.set(counted, self.count(counted).saturating_sub(places));
        }
    }
}

impl ScriptModel for DoubleWindowModel {
    fn call(&mut self, now: u64, args: &[Vec<u8>]) -> Vec<i64> {
        let mut args = Args::of(args);
        let (limit, width) = (args.number(), args.number());
        let window = self.window(now, width);
        let (left, moved) = (args.pairs(), args.pairs());
        let mut wrote = !left.is_empty() || !moved.is_empty();
        for (counted, places) in left {
            self.leave(window, counted, places);
        }
        for (counted, places) in moved {
            if counted == window {
                self.set(window, self.count(window).max(places));
            } else {
                self.leave(window, counted, places);
                self.set(window, self.count(window) + places);
            }
        }
        let mut flags = Vec::new();
        while !args.is_empty() {
            let places = args.number();
            let inside = self.count(window) + self.count(window - 1);
            let got = inside + places <= limit;
            if got {
                self.set(window, self.count(window) + places);
                wrote = true;
            }
            flags.push(u64::from(got));
        }
        let counts = [self.count(window), self.count(window - 1)];
        // A call that changes nothing writes nothing: what is over stays until the next that does.
        if wrote {
            self.counts.retain(|counted, _| counted + 1 >= window);
        }
        reply([window, now].into_iter().chain(counts).chain(flags))
    }

    fn snapshot(&self) -> Box<dyn ScriptModel> {
        Box::new(self.clone())
    }
}
