//! *May this request go ahead now?*
//!
//! tidegate answers that for request rate and concurrency: exactly, in bounded memory, and for
//! several limits at once all-or-nothing.
//!
//! ```
//! # fn main() -> Result<(), tidegate::QuotaError> {
//! use tidegate::{Limiter, Quota};
//!
//! // At most 20 at once, and 100 per minute: in any minute at most 20 + 100.
//! let limiter = Limiter::new(Quota::per_minute(100).burst(20))?;
//! let decision = limiter.check();
//! assert!(decision.is_allowed());
//! assert_eq!(decision.remaining, 19);
//! # Ok(())
//! # }
//! ```
//!
//! One limit each for many keys, in bounded memory:
//!
//! ```
//! # fn main() -> Result<(), tidegate::QuotaError> {
//! use tidegate::{KeyedLimiter, Quota};
//!
//! let per_client = KeyedLimiter::builder(Quota::per_second(10)).max_keys(100_000).build()?;
//! assert!(per_client.check("192.0.2.1").is_allowed());
//! # Ok(())
//! # }
//! ```
//!
//! # How it is made
//!
//! An algorithm is a pure state machine: a [`Meter`] plans what it would answer and change, and
//! commits that, on a state and a [`Timestamp`] that it is given. Nothing here reads a clock but
//! [`SystemClock`], which the limiters hold. A [`store`] keeps states; a limiter asks.
//!
//! # Features
//!
//! | feature | default | what for |
//! |---|---|---|
//! | `std` | yes | stores, guards, clocks, limiters with blocking acquire, waiting in line as a future |
//! | `tokio` | no | `acquire_async` of rates, which needs a timer; `TokioClock` |
//!
//! Without `std` the pure state machines remain; they need only `alloc`.
#![cfg_attr(not(feature = "std"), no_std)]
// Pure but for clock.rs: time is an argument.
#![deny(clippy::disallowed_methods)]

extern crate alloc;

mod ask;
mod calendar;
mod decision;
pub mod gate;
mod limit;
pub mod meter;
mod quota;
mod time;

pub use ask::Ask;
pub use calendar::CalendarUnit;
pub use decision::{Decision, Retry, Verdict};
pub use gate::Gate;
pub use limit::{Algorithm, Limit};
pub use meter::Meter;
pub use quota::{Quota, QuotaError, Rate};
pub use time::Timestamp;

#[cfg(feature = "std")]
mod acquire;
#[cfg(feature = "std")]
mod check_all;
#[cfg(feature = "std")]
mod clock;
#[cfg(feature = "std")]
mod concurrency_limiter;
#[cfg(feature = "std")]
mod enforce;
#[cfg(feature = "std")]
mod key_hash;
#[cfg(feature = "std")]
mod keyed_limiter;
#[cfg(feature = "std")]
mod limiter;
#[cfg(feature = "std")]
mod limits;
#[cfg(feature = "std")]
mod on_change;
#[cfg(feature = "std")]
mod queue;
#[cfg(feature = "std")]
mod shared;
#[cfg(feature = "std")]
pub mod store;
#[cfg(feature = "std")]
mod sync;

#[cfg(feature = "std")]
pub use self::{
    check_all::{
        Answer, Asked, CheckAllError, Checked, MAX_LIMITS_PER_CHECK, check_all,
        check_all_with_receipts,
    },
    clock::{Clock, ManualClock, SystemClock},
    concurrency_limiter::{Acquire, ConcurrencyLimiter, KeyedConcurrencyLimiter, Permit},
    enforce::{Enforce, EnforceKeyed, Enforcer, Receipt, StoreId, changed, enforcers},
    key_hash::{KeyHash, KeyHasher},
    keyed_limiter::{KeyedLimiter, KeyedLimiterBuilder},
    limiter::Limiter,
    limits::{Defined, Definition, Limits, LimitsError},
    on_change::OnChange,
    queue::{DEFAULT_QUEUE_LENGTH, Joined, Waiter, Waiting},
    shared::{
        LeaseScheme, SharedAnswers, SharedAsk, SharedFuture, SharedLimit, SharedStore, SharedTaken,
        Sharing, Unavailable,
    },
};

#[cfg(feature = "tokio")]
pub use clock::TokioClock;
