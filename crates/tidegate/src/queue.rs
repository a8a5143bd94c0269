//! Waiting in line for permits that have to come back.
//!
//! A limit whose permits come back with time needs no line: it takes them ahead of time, and its
//! answer is how long to wait. Here nobody knows how long that is. Who does not fit stands in
//! line, and whoever leaves hands what it had to the first there, in one step: no newcomer gets
//! in between, and a caller that has given up meanwhile hands it on.

mod line;
mod waiter;
mod waiting;

pub(crate) use self::line::{Line, wake};
pub use self::waiter::Waiter;
pub use self::waiting::{Joined, Waiting};

/// How many permits wait in a line unless its limit says otherwise.
pub const DEFAULT_QUEUE_LENGTH: u64 = 100_000;

#[cfg(all(test, loom))]
mod loom_lines;
#[cfg(all(test, shuttle))]
mod shuttle_lines;
