//! The meters that a store knows: a limit, its overrides, and their earlier versions.

use std::collections::HashMap;
use std::sync::PoisonError;

use super::Keyed;
use crate::Timestamp;
use crate::meter::{Meter, State};
use crate::on_change::OnChange;
use crate::store::shard::{METER_BITS, Slot};

/// A meter that a store knows, with the number by which its entries name it.
#[derive(Clone, Debug)]
pub struct Registered<M> {
    pub(super) meter: M,
    pub(super) id: u32,
    era: Era,
}

/// From when on numbers hold: those that are registered together replace all before them.
#[derive(Clone, Copy, Debug)]
pub struct Era {
    number: u64,
    since: Timestamp,
    on_change: OnChange,
}

impl<M> Registered<M> {
    /// The meter.
    pub const fn meter(&self) -> &M {
        &self.meter
    }

    /// The number by which entries name it.
    pub const fn id(&self) -> u32 {
        self.id
    }
}

#[derive(Debug)]
pub(super) struct Meters<M> {
    pub(super) by_id: Vec<Known<M>>,
    pub(super) ids: HashMap<M, u32>,
    eras: u64,
    /// The last era that began with every key as good as new.
    last_reset: u64,
}

#[derive(Debug)]
pub(super) struct Known<M> {
    pub(super) meter: M,
    /// When it was last registered.
    era: Era,
}

impl<M> Default for Meters<M> {
    fn default() -> Self {
        Self {
            by_id: Vec::new(),
            ids: HashMap::new(),
            eras: 0,
            last_reset: 0,
        }
    }
}

impl<M: Meter> Keyed<M> {
    /// Begins anew at `now`: meters that are registered for this era replace those before, and
    /// `on_change` says what stays of what keys have used.
    pub fn begin(&self, now: Timestamp, on_change: OnChange) -> Era {
        let mut meters = self.meters.write().unwrap_or_else(PoisonError::into_inner);
        meters.eras += 1;
        if on_change == OnChange::Reset {
            meters.last_reset = meters.eras;
        }
        Era {
            number: meters.eras,
            since: now,
            on_change,
        }
    }

    /// Makes a meter known. `None` when the store has known 2^24 different ones: a new store then
    /// has to take this one's place.
    pub fn register(&self, meter: M, era: Era) -> Option<Registered<M>> {
        let mut meters = self.meters.write().unwrap_or_else(PoisonError::into_inner);
        let known = meters.ids.get(&meter).copied();
        // A key of numbers that come back after others has changed twice.
        let known = known.filter(|id| {
            let last = meters.by_id[*id as usize].era.number;
            era.on_change == OnChange::KeepUsed || last + 1 >= era.number
        });
        let id = known.or_else(|| {
            let id = u32::try_from(meters.by_id.len()).ok();
            id.filter(|id| *id < 1 << METER_BITS)
        })?;
        let entry = Known {
            meter: meter.clone(),
            era,
        };
        match meters.by_id.get_mut(id as usize) {
            Some(before) => *before = entry,
            None => meters.by_id.push(entry),
        }
        meters.ids.insert(meter.clone(), id);
        Some(Registered { meter, id, era })
    }

    pub(super) fn with_meter<R>(&self, id: u32, f: impl FnOnce(&M) -> R) -> R {
        let meters = self.meters.read().unwrap_or_else(PoisonError::into_inner);
        f(&meters.by_id[id as usize].meter)
    }

    /// Brings a state under this meter's numbers.
    #[inline]
    pub(super) fn bring_up(
        &self,
        slot: &mut Slot<M::State>,
        meter: &Registered<M>,
        now: Timestamp,
    ) {
        if slot.meter() != meter.id {
            self.migrate(slot, meter, now);
        }
    }

    /// The meter that has taken the place of an earlier one for every key; `None` where that is
    /// the newest, and where some keys have other numbers.
    pub(super) fn newest(&self, meter: &Registered<M>) -> Option<Registered<M>> {
        let meters = self.meters.read().unwrap_or_else(PoisonError::into_inner);
        if meter.era.number == meters.eras {
            return None;
        }
        let known = (0..).zip(&meters.by_id);
        let mut newest = known.filter(|(_, known)| known.era.number == meters.eras);
        let (id, only) = newest.next()?;
        let Known { meter, era } = only;
        newest.next().is_none().then(|| Registered {
            meter: meter.clone(),
            id,
            era: *era,
        })
    }

    /// Where the old numbers were replaced, they hold until then and no longer, whenever the key
    /// is next asked. Where both hold (a key moves from a limit to its override), until now.
    #[cold]
    fn migrate(&self, slot: &mut Slot<M::State>, meter: &Registered<M>, now: Timestamp) {
        let meters = self.meters.read().unwrap_or_else(PoisonError::into_inner);
        meters.migrate(slot, meter, now);
    }
}

impl<M: Meter> Meters<M> {
    /// Whether these numbers have been replaced by others.
    pub(super) fn are_replaced(&self, id: u32) -> bool {
        self.by_id[id as usize].era.number < self.eras
    }

    /// Brings a state under `meter`'s numbers.
    pub(super) fn migrate(&self, slot: &mut Slot<M::State>, meter: &Registered<M>, now: Timestamp) {
        let old = &self.by_id[slot.meter() as usize];
        // Those who wait, wait under the new numbers: who still asks under earlier ones does not
        // bring them back.
        if M::State::HAS_LINES && old.era.number > meter.era.number {
            return;
        }
        let at = if old.era.number < meter.era.number {
            meter.era.since.min(now)
        } else {
            now
        };
        let on_change = if old.era.number >= meter.era.number {
            OnChange::KeepUsed
        } else if old.era.number < self.last_reset && self.last_reset <= meter.era.number {
            OnChange::Reset
        } else {
            meter.era.on_change
        };
        on_change.migrate(&old.meter, &meter.meter, &mut slot.state, at);
        slot.set_meter(meter.id);
    }
}
