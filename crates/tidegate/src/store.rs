//! Where states are kept: one key ([`OneKey`]), or many in bounded memory ([`Keyed`]).

mod keyed;
mod one_gate;
mod one_key;
mod shard;
mod state_cell;
mod stripe;
mod striped_key;
mod vacated;

pub(crate) use self::keyed::TOGETHER;
pub use self::keyed::{
    Drain, Drained, Era, HandedOver, Keyed, MAX_KEYS, Registered, SavePoint, StoreStats,
};
pub(crate) use self::one_gate::OneGate;
pub use self::one_key::OneKey;
pub use self::state_cell::{AtomicCell, AtomicState, MutexCell, StateCell};
pub(crate) use self::stripe::Striped;
pub(crate) use self::striped_key::StripedKey;
pub use self::vacated::Vacated;

use crate::meter::Taken;
use crate::{Ask, Decision, Timestamp};

/// A store of one key.
pub trait SingleStore: core::fmt::Debug + Send + Sync {
    /// Takes what is asked if it is allowed, and says what to give back if it comes to that.
    fn check(&self, now: Timestamp, ask: &Ask) -> (Decision, Option<Taken>);

    /// What a check would answer. Takes nothing; `remaining` and `reset_after` are those of now.
    fn peek(&self, now: Timestamp, ask: &Ask) -> Decision;

    /// Makes the key as good as new. False, and nothing done, while a guard of it is alive.
    fn reset(&self, now: Timestamp) -> bool;

    /// Gives back what one check took.
    fn undo(&self, taken: &Taken, now: Timestamp);

    /// Plans, shows the answer to `rest` while the state is held still, and commits if the answer
    /// is allowed and `rest` agrees. How several limits are decided as one.
    fn hold(
        &self,
        now: Timestamp,
        ask: &Ask,
        rest: &mut dyn FnMut(Decision) -> bool,
    ) -> Option<Taken>;
}

#[cfg(all(test, loom))]
mod loom_cells;
#[cfg(all(test, shuttle))]
pub(crate) mod shuttle_keyed;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
