//! Limits that several machines share through one Redis.

mod call;
pub mod concurrency;

pub use self::call::{Answer, Script, ScriptCall, Scripts, Unavailable};
