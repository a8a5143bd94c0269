//! Several keys in one call: their entries come from memory side by side.
//!
//! One by one, each look-up waits for its own entry: in a large store that is most of what it
//! costs. Here the entry at which each begins is looked at first, under its shard's lock, and
//! only then is anything decided. Nobody holds more than one shard.

use core::hint::black_box;

use super::{Keyed, Registered};
use crate::check_all::Answer;
use crate::key_hash::KeyHash;
use crate::meter::Meter;
use crate::sync::lock;
use crate::{Ask, Timestamp};

/// Keys that are looked at before the first of them is decided: so many lines are surely still in
/// the cache then.
pub(crate) const TOGETHER: usize = 16;

impl<M: Meter> Keyed<M> {
    /// Takes what is asked of each of these keys if it is allowed, as if they were checked one by
    /// one in this order, and adds the answers to `answers`.
    pub fn check_batch(
        &self,
        meter: &Registered<M>,
        keys: &[KeyHash],
        now: Timestamp,
        ask: &Ask,
        answers: &mut Vec<Answer>,
    ) {
        answers.reserve(keys.len());
        for few in keys.chunks(TOGETHER) {
            let looked_at = few.iter().fold(0, |looked_at, key| {
                looked_at ^ lock(&self.shards[self.index_of(*key)]).home_of(*key)
            });
            // So that nobody takes the looking for useless.
            black_box(looked_at);
            for key in few {
                let (decision, receipt) = self.check(meter, *key, now, ask);
                answers.push(Answer { decision, receipt });
            }
        }
    }
}
