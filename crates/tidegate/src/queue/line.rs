//! A line of callers, in order.

use core::cmp::Reverse;
use core::task::Waker;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Waiter;
use super::waiter::Served;
use crate::enforce::Receipt;
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
        let turn = turn(&waiter);
        self.waiters.insert(turn, waiter);
        self.waiters
            .first_key_value()
            .is_some_and(|(first, _)| *first == turn)
    }

    /// Takes a waiter out who goes away; nothing where it is out already.
    pub(crate) fn leave(&mut self, waiter: &Waiter) {
        if self.waiters.remove(&turn(waiter)).is_some() {
            self.permits -= waiter.ask().permits();
        }
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
            self.permits -= waiter.ask().permits();
        }
    }
}

/// Wakes them. Not under a lock: a waker may do anything, also give up and come back here.
pub(crate) fn wake(woken: Vec<Waker>) {
    for waker in woken {
        waker.wake();
    }
}
