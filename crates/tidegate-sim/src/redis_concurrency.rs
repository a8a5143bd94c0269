//! The Lua scripts of shared concurrency limits, once more in Rust: without Redis, for many
//! simulated hours a second. That they do the same is tested with real Redis servers.

mod double_window;
mod node_share;
mod slots;

pub use self::double_window::DoubleWindowModel;
pub use self::node_share::NodeShareModel;
pub use self::slots::SlotsModel;

use std::fmt;

/// One key of Redis, and the script that is run on it.
pub trait ScriptModel: fmt::Debug {
    /// One call, by the arguments that the script has, at a time of Redis's clock.
    fn call(&mut self, now_us: u64, args: &[Vec<u8>]) -> Vec<i64>;

    /// The same state once more: what a replica has that is then promoted.
    fn snapshot(&self) -> Box<dyn ScriptModel>;
}

/// Arguments, read one after another. What is missing or no number is 0, as a script's own tests
/// send no such thing.
#[derive(Debug)]
struct Args<'a> {
    rest: &'a [Vec<u8>],
}

impl Args<'_> {
    const fn of(args: &[Vec<u8>]) -> Args<'_> {
        Args { rest: args }
    }

    const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn text(&mut self) -> String {
        let Some((first, rest)) = self.rest.split_first() else {
            return String::new();
        };
        self.rest = rest;
        String::from_utf8_lossy(first).into_owned()
    }

    fn number(&mut self) -> u64 {
        self.text().parse().unwrap_or(0)
    }

    fn pairs(&mut self) -> Vec<(u64, u64)> {
        let count = self.number();
        (0..count).map(|_| (self.number(), self.number())).collect()
    }
}

fn reply(numbers: impl IntoIterator<Item = u64>) -> Vec<i64> {
    let whole = |number| i64::try_from(number).unwrap_or(i64::MAX);
    numbers.into_iter().map(whole).collect()
}
