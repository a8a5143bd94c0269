//! One shard of a keyed store: an ordered hash table.
//!
//! Slots are in order of hash. A key's home is `hash * homes / 2^64`, which never falls as the
//! hash rises, so linear probing can keep the whole array sorted: a look-up, also one that finds
//! nothing, ends at the first larger hash; growing is one pass from left to right; and removing
//! shifts back what follows, without tombstones. An entry is hash and state and nothing else.

use super::keyed::{Entry, Lines, Overflow};
use crate::Timestamp;
use crate::key_hash::KeyHash;
use crate::meter::State;

/// Low bits of a hash's lower half that hold the meter's number instead.
pub(super) const METER_BITS: u32 = 24;
const METER_MASK: u64 = (1 << METER_BITS) - 1;

/// Filled to 7/8, then grown by a quarter.
const FILL: (usize, usize) = (7, 8);
/// The smallest array.
const MIN_HOMES: usize = 8;
/// Slots after the last home, for keys that are pushed past it.
const TAIL: usize = 8;
/// How many entries an eviction looks at.
pub(super) const EVICTION_WINDOW: usize = 16;

/// A key's slot: empty where `hi` is 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot<S> {
    pub(super) hi: u64,
    pub(super) lo: u64,
    pub(super) state: S,
}

impl<S> Slot<S> {
    pub(super) fn new(hash: KeyHash, meter: u32, state: S) -> Self {
        let KeyHash { hi, lo } = hash;
        let mut slot = Self { hi, lo, state };
        slot.set_meter(meter);
        slot
    }

    const fn is_empty(&self) -> bool {
        self.hi == 0
    }

    const fn order(&self) -> (u64, u64) {
        (self.hi, self.lo & !METER_MASK)
    }

    pub(super) const fn meter(&self) -> u32 {
        (self.lo & METER_MASK) as u32
    }

    pub(super) fn set_meter(&mut self, meter: u32) {
        self.lo = self.lo & !METER_MASK | u64::from(meter);
    }

    /// The hash, less the bits that the meter's number took.
    pub(super) const fn hash(&self) -> KeyHash {
        KeyHash {
            hi: self.hi,
            lo: self.lo & !METER_MASK,
        }
    }
}

const fn order(hash: KeyHash) -> (u64, u64) {
    (hash.hi, hash.lo & !METER_MASK)
}

#[derive(Debug)]
pub(super) struct Shard<S> {
    slots: Vec<Slot<S>>,
    homes: usize,
    len: usize,
    /// The latest time that this shard was asked at: a step back counts as no time passed.
    latest: Timestamp,
    /// Whether the states of the store before this one have been taken over.
    pub(super) adopted: bool,
    /// Whether a store after this one has taken its states over: nothing is counted here any more.
    pub(super) handed_over: bool,
    /// Whether somebody wants to know when nobody is inside.
    pub(super) vacating: bool,
    /// Where keys meet that found no room among entries that must not be forgotten.
    pub(super) overflow: Option<Box<Overflow<S>>>,
    /// Those who wait for permits to come back.
    lines: Option<Box<Lines>>,
}

impl<S: State> Shard<S> {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            homes: 0,
            len: 0,
            latest: Timestamp::EPOCH,
            adopted: true,
            handed_over: false,
            vacating: false,
            overflow: None,
            lines: None,
        }
    }

    /// A key's own entry, or the one that keys share; `None` where it is not there.
    pub(super) fn entry(&mut self, key: KeyHash, shared: bool) -> Option<Entry<'_, S>> {
        let (slot, guards) = if shared {
            let Overflow { slot, guards } = self.overflow.as_deref_mut()?;
            (slot, Some(guards))
        } else {
            let at = self.find(key).ok()?;
            (&mut self.slots[at], None)
        };
        let lines = self.lines.get_or_insert_default();
        Some(Entry {
            slot,
            guards,
            lines,
        })
    }

    /// The entries that somebody waits for.
    pub(super) fn waited_for(&self) -> Vec<Option<KeyHash>> {
        let lines = self.lines.iter().flat_map(|lines| lines.keys());
        lines.copied().collect()
    }

    /// Whether a key has guards from the shared entry, or waits for some.
    pub(super) fn overflow_has(&self, key: KeyHash) -> bool {
        let line = || self.lines.as_deref()?.get(&None);
        let shared = self.overflow.as_deref();
        shared.is_some_and(|shared| {
            shared.has_guards_of(key) || line().is_some_and(|line| line.has(key))
        })
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.latest = self.latest.max(now);
        self.latest
    }

    fn home(&self, hi: u64) -> usize {
        ((u128::from(hi) * self.homes as u128) >> 64) as usize
    }

    /// What is where a look-up of this key begins: to have it in the cache when it does.
    pub(super) fn home_of(&self, hash: KeyHash) -> u64 {
        let home = self.slots.get(self.home(hash.hi));
        home.map_or(0, |slot| slot.hi)
    }

    /// Where the key is, or else where it belongs.
    pub(super) fn find(&self, hash: KeyHash) -> Result<usize, usize> {
        let target = order(hash);
        let mut at = self.home(hash.hi);
        while let Some(slot) = self.slots.get(at) {
            if slot.is_empty() || slot.order() > target {
                return Err(at);
            }
            if slot.order() == target {
                return Ok(at);
            }
            at += 1;
        }
        Err(at)
    }

    pub(super) fn slot(&self, at: usize) -> &Slot<S> {
        &self.slots[at]
    }

    pub(super) fn slot_mut(&mut self, at: usize) -> &mut Slot<S> {
        &mut self.slots[at]
    }

    /// Puts in a key that is not there, growing where it must.
    pub(super) fn insert(&mut self, hash: KeyHash, meter: u32, state: S) {
        if (self.len + 1) * FILL.1 > self.homes * FILL.0 {
            self.rebuild(self.homes + self.homes / 4 + MIN_HOMES);
        }
        let slot = Slot::new(hash, meter, state);
        loop {
            let (Ok(at) | Err(at)) = self.find(hash);
            if let Some(gap) = self.first_empty(at) {
                self.slots[gap] = slot;
                self.slots[at..=gap].rotate_right(1);
                self.len += 1;
                return;
            }
            // The tail is full of keys pushed past the last home: rare, and growing cures it.
            self.rebuild(self.homes + self.homes / 4 + MIN_HOMES);
        }
    }

    fn first_empty(&self, from: usize) -> Option<usize> {
        self.slots
            .get(from..)?
            .iter()
            .position(Slot::is_empty)
            .map(|at| from + at)
    }

    /// Takes an entry out; what was pushed past its home moves back.
    pub(super) fn remove(&mut self, at: usize) -> Slot<S> {
        let mut end = at + 1;
        while end < self.slots.len()
            && !self.slots[end].is_empty()
            && self.home(self.slots[end].hi) != end
        {
            end += 1;
        }
        self.slots[at..end].rotate_left(1);
        self.len -= 1;
        core::mem::take(&mut self.slots[end - 1])
    }

    /// All entries, the shared one last.
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot<S>> {
        let shared = self.overflow.as_deref().map(|shared| &shared.slot);
        let own = self.slots.iter().filter(|slot| !slot.is_empty());
        own.chain(shared)
    }

    /// The entries after this key's, in order; all without one, but not the shared one.
    pub(super) fn slots_after(&self, key: Option<KeyHash>) -> impl Iterator<Item = &Slot<S>> {
        let start = match key.map(|key| self.find(key)) {
            None => 0,
            Some(Ok(at)) => at + 1,
            Some(Err(at)) => at,
        };
        let slots = self.slots.get(start..).unwrap_or_default();
        slots.iter().filter(|slot| !slot.is_empty())
    }

    /// How many entries are like this.
    pub(super) fn count(&self, like: impl Fn(&Slot<S>) -> bool) -> usize {
        self.slots
            .iter()
            .filter(|slot| !slot.is_empty() && like(slot))
            .count()
    }

    /// Drops what `keep` lets go of.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Slot<S>) -> bool) {
        for slot in &mut self.slots {
            if !slot.is_empty() && !keep(slot) {
                *slot = Slot::default();
                self.len -= 1;
            }
        }
        self.rebuild(self.homes);
    }

    /// Whether the next insertion will have to grow the shard.
    pub(super) const fn is_full(&self) -> bool {
        (self.len + 1) * FILL.1 > self.homes * FILL.0
    }

    fn rebuild(&mut self, homes: usize) {
        let old = core::mem::take(&mut self.slots);
        self.homes = homes;
        self.slots.reserve_exact(homes + TAIL);
        for slot in old.into_iter().filter(|slot| !slot.is_empty()) {
            let home = self.home(slot.hi);
            while self.slots.len() < home {
                self.slots.push(Slot::default());
            }
            self.slots.push(slot);
        }
        let whole = self.slots.len().max(homes + TAIL);
        self.slots.resize_with(whole, Slot::default);
    }

    /// Up to [`EVICTION_WINDOW`] entries about where the hash belongs.
    pub(super) fn near(&self, hash: KeyHash) -> impl Iterator<Item = usize> {
        let start = self.home(hash.hi);
        (start..self.slots.len())
            .chain(0..start)
            .filter(|at| !self.slots[*at].is_empty())
            .take(EVICTION_WINDOW)
    }

    /// Takes out all entries whose hashes' lower halves lie in this range.
    pub(super) fn extract(&mut self, lo: core::ops::RangeInclusive<u64>) -> Vec<Slot<S>> {
        let mut out = Vec::new();
        for slot in &mut self.slots {
            if !slot.is_empty() && lo.contains(&(slot.lo & !METER_MASK)) {
                out.push(core::mem::take(slot));
                self.len -= 1;
            }
        }
        self.rebuild(if self.len == 0 { 0 } else { self.homes });
        out
    }

    /// Bytes that the shard has allocated, without what states point to.
    pub(super) const fn allocated(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<S>>()
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn assert_ordered(&self) {
        let mut last = (0, 0);
        let mut len = 0;
        for (at, slot) in self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| !slot.is_empty())
        {
            assert!(slot.order() > last, "sorted");
            last = slot.order();
            len += 1;
            let home = self.home(slot.hi);
            assert!(home <= at, "no key before its home");
            assert!(
                self.slots[home..at].iter().all(|slot| !slot.is_empty()),
                "no gap to home"
            );
        }
        assert_eq!(len, self.len);
    }
}
