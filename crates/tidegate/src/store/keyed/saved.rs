//! What a store remembers, as words: to be kept beyond the process, and read by another.
//!
//! A state is kept as it is, not as what it says is in use: windows go on where they were, and who
//! reads it later finds what a store that never stopped would have.

use core::fmt;
use std::sync::PoisonError;

use super::room::{Room, is_new};
use super::{Keyed, Registered};
use crate::Timestamp;
use crate::key_hash::KeyHash;
use crate::meter::{Meter, State};
use crate::sync::{Ordering, lock};

/// Words after which a shard is let go of: about 100 us. One state is never divided.
const WORDS_AT_ONCE: usize = 1 << 14;

/// How far the saving of a store has come. The default is its beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct SavePoint {
    shard: usize,
    after: Option<KeyHash>,
}

/// Another store has taken this one over, or part of it: what is left here is not all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandedOver;

impl fmt::Display for HandedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another store has taken over what was here")
    }
}

impl std::error::Error for HandedOver {}

impl<M: Meter> Keyed<M> {
    /// Shows `visit` what is remembered of some of the keys from `from` on: the key, the number of
    /// the meter whose numbers the state is in, and the state's words. Returns where to go on;
    /// `None` at the end. A key of which nothing is in use is left out, as if it had been let go
    /// of; one whose numbers have been replaced is shown under `own`.
    ///
    /// A shard is held while `visit` runs, but never for more than some thousand words, so that
    /// decisions can be made in between. Each key is shown as it is then; one that comes or goes
    /// meanwhile may be left out.
    ///
    /// # Errors
    /// [`HandedOver`] where another store has the states now.
    pub fn save(
        &self,
        own: &Registered<M>,
        from: SavePoint,
        now: Timestamp,
        visit: &mut dyn FnMut(KeyHash, u32, &[u64]),
    ) -> Result<Option<SavePoint>, HandedOver> {
        let Some(shard) = self.shards.get(from.shard) else {
            return Ok(None);
        };
        if self.adopting.load(Ordering::Acquire) {
            self.adopt(from.shard, now);
        }
        let mut shard = lock(shard);
        if shard.handed_over {
            return Err(HandedOver);
        }
        let now = shard.advance(now);
        let meters = self.meters.read().unwrap_or_else(PoisonError::into_inner);
        let (mut words, mut total) = (Vec::new(), 0);
        for slot in shard.slots_after(from.after) {
            words.clear();
            let id = if meters.are_replaced(slot.meter()) {
                let mut slot = slot.clone();
                meters.migrate(&mut slot, own, now);
                write(&own.meter, &slot.state, now, &mut words);
                own.id
            } else {
                let meter = &meters.by_id[slot.meter() as usize].meter;
                write(meter, &slot.state, now, &mut words);
                slot.meter()
            };
            if words.is_empty() {
                continue;
            }
            visit(slot.hash(), id, &words);
            total += words.len();
            if total >= WORDS_AT_ONCE {
                return Ok(Some(SavePoint {
                    after: Some(slot.hash()),
                    ..from
                }));
            }
        }
        let next = SavePoint {
            shard: from.shard + 1,
            after: None,
        };
        Ok((next.shard < self.shards.len()).then_some(next))
    }

    /// Remembers of a key what was saved at `saved_at`, under this meter. False where it is no
    /// state, or the key is there already.
    ///
    /// Time has passed for it until `now`. Where the clock says that it is earlier now, none has:
    /// what was in use is in use.
    pub fn load(
        &self,
        meter: &Registered<M>,
        key: KeyHash,
        words: &[u64],
        saved_at: Timestamp,
        now: Timestamp,
    ) -> bool {
        let Some(mut state) = M::State::from_words(words) else {
            return false;
        };
        if now < saved_at {
            state = meter.meter.assume(meter.meter.used(&state, saved_at), now);
        }
        if is_new(&meter.meter, &state, now) {
            return true;
        }
        self.prepare(key, now);
        let (mut shard, now) = self.enter(key, now);
        if shard.handed_over || shard.find(key).is_ok() {
            return false;
        }
        let room = self.room(&shard, key, now);
        if matches!(room, Room::None) {
            return true;
        }
        self.move_in(&mut shard, room, now);
        shard.insert(key, meter.id, state);
        true
    }
}

/// The words of a state of which something is in use.
fn write<M: Meter>(meter: &M, state: &M::State, now: Timestamp, words: &mut Vec<u64>) {
    if !is_new(meter, state, now) {
        state.write_words(words);
    }
}
