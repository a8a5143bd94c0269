//! What a node has to tell.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// How often the count of calls is told, in microseconds.
const CALLS_EVERY: u64 = 20_000;

/// Lines that are yet to be printed. Printing is nobody's wait but the one's who does it.
pub(crate) struct Journal(Mutex<Lines>);

struct Lines {
    text: String,
    calls_told: u64,
}

impl Journal {
    pub(crate) fn new() -> Self {
        let lines = Lines {
            text: String::new(),
            calls_told: 0,
        };
        Self(Mutex::new(lines))
    }

    /// A request that was made at one time, and allowed at another.
    pub(crate) fn passed(&self, asked: u64, answered: u64) {
        self.note(format_args!("passed {asked} {answered}"));
    }

    /// Something that happens now.
    pub(crate) fn now(&self, what: &str) {
        self.note(format_args!("{what} {}", micros()));
    }

    fn note(&self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.lines().text, "{line}");
    }

    pub(crate) fn flush(&self, calls: u64) {
        let mut lines = self.lines();
        let now = micros();
        if now >= lines.calls_told + CALLS_EVERY {
            lines.calls_told = now;
            let _ = writeln!(lines.text, "calls {now} {calls}");
        }
        let text = std::mem::take(&mut lines.text);
        drop(lines);
        // Who reads it may have gone: then this ends with its standard input.
        let _ = std::io::stdout().lock().write_all(text.as_bytes());
        let _ = std::io::stdout().lock().flush();
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Unix time.
pub(crate) fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}
