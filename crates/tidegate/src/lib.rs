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
//! # Who takes, and by which verb
//!
//! The same verb is the same thing everywhere. Limits of many keys take the key first, [`Limits`]
//! a name before it; what is asked is an [`Ask`], or a number of permits.
//!
//! | verb | [`Limiter`] | [`KeyedLimiter`] | [`ConcurrencyLimiter`] | [`KeyedConcurrencyLimiter`] | [`Limits`] |
//! |---|---|---|---|---|---|
//! | `check` | [✓](Limiter::check) | [✓](KeyedLimiter::check) | | | [✓](Limits::check) |
//! | `check_ask` | [✓](Limiter::check_ask) | [✓](KeyedLimiter::check_ask) | | | [✓](Limits::check_ask) |
//! | `reserve` | [✓](Limiter::reserve) | [✓](KeyedLimiter::reserve) | | | [✓](Limits::reserve) |
//! | `check_batch` | | [✓](KeyedLimiter::check_batch) | | | [✓](Limits::check_batch) |
//! | `try_acquire` | | | [✓](ConcurrencyLimiter::try_acquire) | [✓](KeyedConcurrencyLimiter::try_acquire) | [`try_acquire_permit`](Limits::try_acquire_permit) |
//! | `peek` | [✓](Limiter::peek) | [✓](KeyedLimiter::peek) | [✓](ConcurrencyLimiter::peek) | [✓](KeyedConcurrencyLimiter::peek) | [✓](Limits::peek) |
//! | `give_back` | [✓](Limiter::give_back) | [✓](KeyedLimiter::give_back) | [guard](Permit) | [guard](Permit) | [✓](Limits::give_back) |
//! | `reset` | [✓](Limiter::reset) | [✓](KeyedLimiter::reset) | | | [✓](Limits::reset) |
//! | `acquire` | [✓](Limiter::acquire) | [✓](KeyedLimiter::acquire) | [✓](ConcurrencyLimiter::acquire) | [✓](KeyedConcurrencyLimiter::acquire) | [✓](Limits::acquire), [`acquire_permit`](Limits::acquire_permit) |
//! | `acquire_within` | [✓](Limiter::acquire_within) | [✓](KeyedLimiter::acquire_within) | [✓](ConcurrencyLimiter::acquire_within) | [✓](KeyedConcurrencyLimiter::acquire_within) | [✓](Limits::acquire_within), [`acquire_permit_within`](Limits::acquire_permit_within) |
//! | `acquire_async` | ✓ | ✓ | [✓](ConcurrencyLimiter::acquire_async) | [✓](KeyedConcurrencyLimiter::acquire_async) | ✓, [`acquire_permit_async`](Limits::acquire_permit_async) |
//! | `acquire_async_within` | ✓ | ✓ | ✓ | ✓ | ✓, `acquire_permit_async_within` |
//! | `ask` | [✓](Limiter::ask) | [✓](KeyedLimiter::ask) | [✓](ConcurrencyLimiter::ask) | [✓](KeyedConcurrencyLimiter::ask) | [✓](Limits::ask) |
//! | `set_limit` | | [✓](KeyedLimiter::set_limit) | | | [`define`](Limits::define) |
//! | `set_max` | | | [✓](ConcurrencyLimiter::set_max) | [✓](KeyedConcurrencyLimiter::set_max) | [`define`](Limits::define) |
//! | `close` | | | [✓](ConcurrencyLimiter::close) | [✓](KeyedConcurrencyLimiter::close) | [`define`](Limits::define), 0 places |
//! | `in_use` | | | [✓](ConcurrencyLimiter::in_use) | [✓](KeyedConcurrencyLimiter::in_use) | [✓](Limits::in_use) |
//! | `drained` | | | [✓](ConcurrencyLimiter::drained) | [✓](KeyedConcurrencyLimiter::drained) | [✓](Limits::drained) |
//! | `drained_within` | | | [✓](ConcurrencyLimiter::drained_within) | [✓](KeyedConcurrencyLimiter::drained_within) | [✓](Limits::drained_within) |
//! | `stats` | | [✓](KeyedLimiter::stats) | | [✓](KeyedConcurrencyLimiter::stats) | [✓](Limits::stats) |
//! | `allocated_bytes` | | [✓](KeyedLimiter::allocated_bytes) | | [✓](KeyedConcurrencyLimiter::allocated_bytes) | [✓](Limits::allocated_bytes) |
//!
//! The permits of a rate come back with time: it is checked, and answers with a [`Decision`]. Those
//! of a concurrency limit come back when their [guard](Permit) is dropped: it is acquired. Waiting
//! for a rate as a future takes a timer, and so does `acquire_async_within`: feature `tokio`.
//! Futures that are dropped have taken nothing.
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
//! | `tokio` | no | `acquire_async` of rates, `acquire_async_within` of all: they need a timer; `TokioClock`, `TokioTimer` |
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
mod keyed_concurrency_limiter;
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
mod timer;

#[cfg(feature = "std")]
pub use self::{
    check_all::{
        Answer, Asked, CheckAllError, Checked, MAX_LIMITS_PER_CHECK, check_all,
        check_all_with_receipts,
    },
    clock::{Clock, ManualClock, SystemClock},
    concurrency_limiter::{Acquire, ConcurrencyLimiter, Permit},
    enforce::{Enforce, EnforceKeyed, Enforcer, Receipt, SaveKeys, StoreId, changed, enforcers},
    key_hash::{KeyHash, KeyHasher},
    keyed_concurrency_limiter::KeyedConcurrencyLimiter,
    keyed_limiter::{KeyedLimiter, KeyedLimiterBuilder},
    limiter::Limiter,
    limits::{Defined, Definition, Limits, LimitsError},
    on_change::OnChange,
    queue::{DEFAULT_QUEUE_LENGTH, Joined, Waiter, Waiting},
    shared::{
        LeaseScheme, SharedAnswers, SharedAsk, SharedFuture, SharedLimit, SharedStore, SharedTaken,
        Sharing, Unavailable,
    },
    timer::Timer,
};

#[cfg(feature = "tokio")]
pub use self::{clock::TokioClock, timer::TokioTimer};
