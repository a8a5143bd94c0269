//! Limits that several machines share through one Redis.

mod call;
pub mod exact;
mod key;

pub use self::call::{Answer, Script, ScriptCall, Scripts, Unavailable};
pub use self::exact::{Exact, ExactLimiter, NotShared};
pub use self::key::{MAX_KEY_BYTES, Subject};
