//! Those who wait in line for a key of a limit whose permits come back.
//!
//! Meters have no lines, and a shard without any does not pay for them. Who waits for a key that
//! shares an entry waits in the line of that entry.

use core::task::Waker;
use std::collections::HashMap;
use std::sync::Arc;

use super::overflow::Guards;
use super::{Keyed, Registered};
use crate::enforce::Receipt;
use crate::key_hash::KeyHash;
use crate::meter::{Meter, State};
use crate::queue::{Joined, Line, Waiter, wake};
use crate::store::shard::Slot;
use crate::sync::lock;
use crate::{Ask, Decision, Timestamp};

/// The lines of a shard, by the key of the entry that they are for; `None` is the shared entry.
pub(in crate::store) type Lines = HashMap<Option<KeyHash>, Line>;

/// An entry that somebody may wait for.
pub(in crate::store) struct Entry<'a, S> {
    pub(in crate::store) slot: &'a mut Slot<S>,
    /// Of the shared entry: how many guards each key has.
    pub(in crate::store) guards: Option<&'a mut Guards>,
    pub(in crate::store) lines: &'a mut Lines,
}

impl<S> Entry<'_, S> {
    const fn is_shared(&self) -> bool {
        self.guards.is_some()
    }

    fn name(&self) -> Option<KeyHash> {
        (!self.is_shared()).then(|| self.slot.hash())
    }
}

impl<M: Meter> Keyed<M> {
    /// Takes what is asked, or stands in line for it where it has to come back first and no more
    /// than `length` permits are waited for then.
    pub fn join(
        &self,
        meter: &Registered<M>,
        key: KeyHash,
        now: Timestamp,
        ask: &Ask,
        length: u64,
    ) -> Joined {
        self.prepare(key, now);
        let (mut shard, counted) = self.enter(key, now);
        let mut told = Decision::NOT_ASKED;
        let receipt = self.hold_in(&mut shard, meter, key, counted, ask, |decision| {
            told = decision;
            true
        });
        if !told.is_on_release() {
            return Joined::Decided(told.told_behind(counted.since(now)), receipt);
        }
        // Of a limit whose permits come back a key that is refused has an entry, or shares one.
        let shared = shard.find(key).is_err();
        let Some(entry) = shard.entry(key, shared) else {
            return Joined::Decided(told, receipt);
        };
        let name = entry.name();
        let line = entry.lines.entry(name).or_default();
        if !line.has_room(ask, length) {
            if line.is_empty() {
                entry.lines.remove(&name);
            }
            return Joined::Decided(told, receipt);
        }
        let waiter = Arc::new(Waiter::new(key, *ask, shared));
        // Who is not the first finds the state marked as waited for already.
        if line.join(Arc::clone(&waiter)) {
            let mut woken = Vec::new();
            // Who asks under numbers that have been replaced waits under those that hold now.
            if let Some(newest) = self.newest(meter) {
                self.bring_up(entry.slot, &newest, counted);
            }
            self.serve(entry, counted, &mut woken);
            drop(shard);
            wake(woken);
        }
        Joined::Waiting(waiter)
    }

    /// Takes one out of its line who goes away.
    pub fn leave(&self, waiter: &Waiter) {
        let mut woken = Vec::new();
        let (mut shard, now) = self.enter(waiter.key(), Timestamp::EPOCH);
        if let Some(entry) = shard.entry(waiter.key(), waiter.is_shared())
            && let Some(line) = entry.lines.get_mut(&entry.name())
        {
            line.leave(waiter);
            // Who was behind it may fit where it did not.
            self.serve(entry, now, &mut woken);
        }
        drop(shard);
        wake(woken);
    }

    /// Puts the keys that somebody waits for under these numbers, and lets those in who fit now:
    /// all keys, or those that have the numbers of `whose`.
    pub fn serve_lines(
        &self,
        meter: &Registered<M>,
        whose: Option<&Registered<M>>,
        now: Timestamp,
    ) {
        self.each_line(|entry, woken| {
            if whose.is_none_or(|whose| whose.id == entry.slot.meter()) {
                self.bring_up(entry.slot, meter, now);
                self.serve(entry, now, woken);
            }
        });
    }

    /// Refuses for good all who wait.
    pub fn dismiss(&self) {
        self.each_line(|entry, woken| {
            let name = entry.name();
            if let Some(mut line) = entry.lines.remove(&name) {
                line.serve(woken, |_| (Decision::NOT_ASKED, None));
            }
            entry.slot.state.set_waited_for(false);
        });
    }

    fn each_line(&self, mut then: impl FnMut(Entry<'_, M::State>, &mut Vec<Waker>)) {
        if !M::State::HAS_LINES {
            return;
        }
        for shard in &self.shards {
            let mut woken = Vec::new();
            let mut shard = lock(shard);
            for name in shard.waited_for() {
                let key = name.unwrap_or(KeyHash { hi: 1, lo: 0 });
                if let Some(entry) = shard.entry(key, name.is_none()) {
                    then(entry, &mut woken);
                }
            }
            drop(shard);
            wake(woken);
        }
    }

    /// Lets those in who are first in an entry's line, under the numbers that its state is in.
    pub(super) fn serve(
        &self,
        mut entry: Entry<'_, M::State>,
        now: Timestamp,
        woken: &mut Vec<Waker>,
    ) {
        let (name, shared) = (entry.name(), entry.is_shared());
        let Some(line) = entry.lines.get_mut(&name) else {
            return;
        };
        let id = entry.slot.meter();
        let state = &mut entry.slot.state;
        state.set_waited_for(false);
        self.with_meter(id, |meter| {
            line.serve(woken, |waiter| {
                let plan = meter.plan(state, now, waiter.ask());
                let Some(change) = plan.change else {
                    return (plan.decision, None);
                };
                let taken = meter.commit(state, change);
                if let Some(guards) = &mut entry.guards {
                    *guards.entry(waiter.key()).or_default() += 1;
                }
                let receipt = Receipt::new(taken, waiter.key(), self.id(), shared);
                (plan.decision, Some(receipt))
            });
        });
        state.set_waited_for(!line.is_empty());
        if line.is_empty() {
            entry.lines.remove(&name);
        }
    }
}
