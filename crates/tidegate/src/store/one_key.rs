//! The store of one key.

use super::{SingleStore, StateCell};
use crate::meter::{Meter, State, Taken};
use crate::{Ask, Decision, Timestamp};

/// One meter and its one state.
#[derive(Debug)]
pub struct OneKey<M: Meter> {
    meter: M,
    cell: <M::State as State>::Cell,
}

impl<M: Meter> OneKey<M> {
    /// A store of a fresh key, first seen at `now`.
    pub fn new(meter: M, now: Timestamp) -> Self {
        let cell = StateCell::new(meter.fresh(now));
        Self { meter, cell }
    }

    /// The meter.
    pub const fn meter(&self) -> &M {
        &self.meter
    }

    /// The same key under `meter`: what was used stays used.
    #[must_use]
    pub fn migrated(&self, meter: M, now: Timestamp) -> Self {
        let mut state = self.cell.hold(|state| state.clone());
        self.meter.migrate(&meter, &mut state, now);
        Self {
            meter,
            cell: StateCell::new(state),
        }
    }
}

impl<M: Meter> SingleStore for OneKey<M> {
    #[inline]
    fn check(&self, now: Timestamp, ask: &Ask) -> (Decision, Option<Taken>) {
        self.cell.check(&self.meter, now, ask)
    }

    fn peek(&self, now: Timestamp, ask: &Ask) -> Decision {
        self.cell.hold(|state| peek(&self.meter, state, now, ask))
    }

    fn reset(&self, now: Timestamp) -> bool {
        self.cell.hold(|state| {
            let free = self.meter.at_stake(state, now).is_some();
            if free {
                *state = self.meter.fresh(now);
            }
            free
        })
    }

    fn undo(&self, taken: &Taken, now: Timestamp) {
        self.cell.hold(|state| self.meter.undo(state, taken, now));
    }

    fn hold(
        &self,
        now: Timestamp,
        ask: &Ask,
        rest: &mut dyn FnMut(Decision) -> bool,
    ) -> Option<Taken> {
        self.cell
            .hold(|state| hold(&self.meter, state, now, ask, rest))
    }
}

/// The verdict on `ask`, with what remains now.
pub(super) fn peek<M: Meter>(meter: &M, state: &M::State, now: Timestamp, ask: &Ask) -> Decision {
    let verdict = meter.plan(state, now, ask).decision.verdict;
    Decision {
        verdict,
        ..meter.plan(state, now, &Ask::new(0)).decision
    }
}

/// Plans, shows the answer to `rest`, and commits if the answer is allowed and `rest` agrees.
pub(super) fn hold<M: Meter>(
    meter: &M,
    state: &mut M::State,
    now: Timestamp,
    ask: &Ask,
    rest: &mut dyn FnMut(Decision) -> bool,
) -> Option<Taken> {
    let plan = meter.plan(state, now, ask);
    let agreed = rest(plan.decision);
    plan.change
        .filter(|_| agreed)
        .map(|change| meter.commit(state, change))
}
