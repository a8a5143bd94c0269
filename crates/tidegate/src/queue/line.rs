//! A line of callers, in order.

use core::cmp::Reverse;
use core::task::Waker;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Waiter;
use super::waiter::Served;
use crate::enforce::Receipt;
use crate::key_hash::KeyHash;
use crate::{Ask, Decision};

/// Who waits for one key. Guarded by the lock of the key's state.
///
/// The higher priority goes first, among equals who came first. The first one is waited for
/// whatever it takes, so that one who asks for much is not passed for ever by those who ask for
/// little.
#[derive(Debug, Default)]
pub(crate) struct Line {
    waiters: BTreeMap<Turn, Arc<Waiter>>,
    /// The permits that all of them ask for.
    permits: u64,
    joined: u64,
    /// Of the line of a shared entry: how many wait for each key.
    keys: HashMap<KeyHash, u64>,
}

type Turn = (Reverse<u8>, u64);

fn turn(waiter: &Waiter) -> Turn {
    (Reverse(waiter.ask().place()), waiter.number())
}

impl Line {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Whether this ask still fits into a line of so many permits.
    pub(crate) const fn has_room(&self, ask: &Ask, length: u64) -> bool {
        self.permits.saturating_add(ask.permits()) <= length
    }

    /// Puts a waiter in its place; whether that is the first. A first one of a higher priority may
    /// fit where the one that was first does not: the line is to be [served](Self::serve) then.
    pub(crate) fn join(&mut self, waiter: Arc<Waiter>) -> bool {
        waiter.set_number(self.joined);
        self.joined += 1;
        self.permits += waiter.ask().permits();
        if waiter.is_shared() {
            *self.keys.entry(waiter.key()).or_default() += 1;
        }
        let turn = turn(&waiter);
        self.waiters.insert(turn, waiter);
        self.waiters
            .first_key_value()
            .is_some_and(|(first, _)| *first == turn)
    }

    /// Takes a waiter out who goes away; nothing where it is out already.
    pub(crate) fn leave(&mut self, waiter: &Waiter) {
        if self.waiters.remove(&turn(waiter)).is_some() {
            self.left(waiter);
        }
    }

    /// One waiter less.
    fn left(&mut self, waiter: &Waiter) {
        self.permits -= waiter.ask().permits();
        if let Some(waiters) = self.keys.get_mut(&waiter.key()) {
            *waiters -= 1;
            if *waiters == 0 {
                self.keys.remove(&waiter.key());
            }
        }
    }

    /// Whether somebody waits for a key in the line of a shared entry.
    pub(crate) fn has(&self, key: KeyHash) -> bool {
        self.keys.contains_key(&key)
    }

    /// Lets in whoever is first, until one has to go on waiting: `take` decides on each. Who is to
    /// be [woken](wake) is added to `woken`.
    pub(crate) fn serve(
        &mut self,
        woken: &mut Vec<Waker>,
        mut take: impl FnMut(&Waiter) -> (Decision, Option<Receipt>),
    ) {
        while let Some(first) = self.waiters.first_entry() {
            let waiter = first.get();
            match waiter.serve(|| take(waiter)) {
                Served::GoesOnWaiting => return,
                Served::Decided(waker) => woken.extend(waker),
                Served::Gone => {}
            }
            let waiter = first.remove();
            self.left(&waiter);
        }
    }
}

/// Wakes them. Not under a lock: a waker may do anything, also give up and come back here.
pub(crate) fn wake(woken: Vec<Waker>) {
    for waker in woken {
        waker.wake();
    }
}
