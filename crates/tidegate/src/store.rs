//! Where states are kept: one key ([`OneKey`]), or many in bounded memory ([`Keyed`]).

mod keyed;
mod one_gate;
mod one_key;
mod shard;
mod state_cell;
mod vacated;

pub(crate) use self::keyed::TOGETHER;
pub use self::keyed::{Drain, Drained, Era, Keyed, MAX_KEYS, Registered, StoreStats};
pub(crate) use self::one_gate::OneGate;
pub use self::one_key::OneKey;
pub use self::state_cell::{AtomicCell, AtomicState, MutexCell, StateCell};
pub use self::vacated::Vacated;

#[cfg(all(test, loom))]
mod loom_cells;
#[cfg(all(test, shuttle))]
pub(crate) mod shuttle_keyed;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
