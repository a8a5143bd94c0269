//! A run of named steps: each is announced, timed and counted, and one that fails does not hide the
//! next.

use std::time::{Duration, Instant};

use crate::shell::Failure;

/// How one step ended when nothing went wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Passed,
    /// There was nothing to do, for this reason.
    Skipped(String),
}

#[derive(Debug)]
struct Ended {
    name: &'static str,
    result: Result<Done, String>,
    took: Duration,
}

/// The steps so far.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    ended: Vec<Ended>,
}

impl Steps {
    /// Runs one step. Answers whether the next may rely on it.
    pub(crate) fn step(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<Done, Failure>,
    ) -> bool {
        println!("\n=== {name}");
        let start = Instant::now();
        let result = work().map_err(|failure| failure.to_string());
        let took = start.elapsed();
        let ended = Ended { name, result, took };
        println!("=== {}", line(&ended));
        let passed = ended.result.is_ok();
        self.ended.push(ended);
        passed
    }

    /// Prints the table of all steps and the closing line.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        println!("\n=== summary");
        for ended in &self.ended {
            println!("{}", line(ended));
        }
        let all: Duration = self.ended.iter().map(|ended| ended.took).sum();
        println!("{:<12} {:>8.1} s", "in all", all.as_secs_f64());

        let failed: Vec<&str> = self
            .ended
            .iter()
            .filter(|e| e.result.is_err())
            .map(|e| e.name)
            .collect();
        let skipped = self
            .ended
            .iter()
            .filter(|e| matches!(e.result, Ok(Done::Skipped(_))))
            .count();
        let passed = self.ended.len() - failed.len() - skipped;
        println!(
            "steps: {passed} passed, {} failed, {skipped} skipped",
            failed.len()
        );
        if failed.is_empty() {
            return Ok(());
        }
        Err(Failure::Failed(format!("failed: {}", failed.join(", "))))
    }
}

fn line(ended: &Ended) -> String {
    let (name, seconds) = (ended.name, ended.took.as_secs_f64());
    let result = match &ended.result {
        Ok(Done::Passed) => "passed".to_owned(),
        Ok(Done::Skipped(reason)) => format!("skipped: {reason}"),
        Err(text) => format!("FAILED: {}", text.lines().next().unwrap_or_default()),
    };
    format!("{name:<12} {seconds:>8.1} s  {result}")
}

#[cfg(test)]
mod tests;
