//! A leased key in Redis, of whichever kind its limit is.

use tidegate_redis::{LEASE_WINDOW, ScriptCall};

use super::bucket::SharedBucket;
use super::window::SharedWindow;

/// What Redis has of one key. Each script has a state of its own.
#[derive(Clone, Debug, Default)]
pub struct SharedKey {
    /// Of a token bucket.
    pub bucket: SharedBucket,
    /// Of a fixed window.
    pub window: SharedWindow,
}

impl SharedKey {
    /// Runs a call of either script at a time in microseconds.
    pub fn call(&mut self, now_micros: u64, call: &ScriptCall) -> [i64; 7] {
        if *call.script == LEASE_WINDOW {
            self.window.call(now_micros, call)
        } else {
            self.bucket.call(now_micros, call)
        }
    }

    /// Whether what was noted at a call adds up: a window notes nothing that could not.
    pub fn is_sound(&self, call: &ScriptCall) -> bool {
        *call.script == LEASE_WINDOW || self.bucket.is_sound(call)
    }
}
