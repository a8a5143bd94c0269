//! The algorithms that count what is inside, and take back what leaves.

mod concurrency;

pub use self::concurrency::{Concurrency, Inside};

use crate::Meter;

/// A [`Meter`] whose permits must come back: nothing but [`undo`](Meter::undo) frees them, and
/// a denial says [`Retry::OnRelease`](crate::Retry::OnRelease). Stores hand out its permits only
/// within a guard.
pub trait Gate: Meter {}
