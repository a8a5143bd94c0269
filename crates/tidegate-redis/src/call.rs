//! A script, a call of it, and who carries calls to Redis.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A Lua script that decides in one atomic step. All of a call's keys are in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    /// What errors and metrics call it.
    pub name: &'static str,
    /// The text. It reads time from Redis alone, and answers with integers.
    pub text: &'static str,
}

/// One call of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptCall {
    /// Which.
    pub script: &'static Script,
    /// `KEYS`.
    pub keys: Vec<Vec<u8>>,
    /// `ARGV`.
    pub args: Vec<Vec<u8>>,
}

/// Why there is no answer. Whether the script has run is not known, unless it says so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// Not asked: the last calls failed, and the time to try again has not come.
    Open,
    /// No answer in time.
    TimedOut(Duration),
    /// No connection, or a lost one; or a server that cannot answer now (it loads, is a replica,
    /// is out of memory, its cluster is down).
    Server(String),
    /// An answer that is none of this script.
    BadAnswer(String),
    /// Not asked: so many callers wait for the same limits already.
    Crowded(usize),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("Redis is not asked: its last answers failed"),
            Self::TimedOut(after) => write!(f, "Redis has not answered within {after:?}"),
            Self::Server(why) => write!(f, "Redis cannot answer: {why}"),
            Self::BadAnswer(what) => write!(f, "Redis answered with something else: {what}"),
            Self::Crowded(callers) => write!(f, "{callers} callers wait for this already"),
        }
    }
}

impl std::error::Error for Unavailable {}

/// The answer that is to come.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Vec<i64>, Unavailable>> + Send + 'a>>;

/// Who carries calls to Redis.
pub trait Scripts: fmt::Debug + Send + Sync {
    /// Calls a script once, and waits for its integers for at most `budget`. It is never called
    /// again on its own account where it may have run: a second time it would take twice.
    fn call(&self, call: ScriptCall, budget: Duration) -> Answer<'_>;
}
