//! What a case consists of.

use std::fmt;
use std::ops::{Range, RangeInclusive};

/// A policy, a trace, and what must come out.
#[derive(Clone, Debug)]
pub struct Script {
    /// A policy file with `limits:` only; a door adds what it needs.
    pub policy: String,
    /// Lines of a trace.
    pub trace: Vec<String>,
    /// What must come out.
    pub expected: Vec<Expected>,
}

/// Something that must come out. Requests are counted from 0, without reloads and releases.
#[derive(Clone, Debug)]
pub enum Expected {
    /// These requests are told exactly this (as far as it says).
    Each(Range<usize>, Told),
    /// So many of these requests pass.
    Passed(Range<usize>, RangeInclusive<usize>),
}

/// What a request is told. `None` is not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// What became of it.
    pub outcome: ToldOutcome,
    /// The limit it is told of.
    pub limit: Option<String>,
    /// What remains of that.
    pub remaining: Option<u64>,
    /// When it may come again.
    pub retry: Option<ToldRetry>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldOutcome {
    /// It went ahead at once.
    Allowed,
    /// It went ahead after so many nanoseconds.
    Delayed(u64),
    /// It was refused.
    Denied,
}

/// When a refused request may come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldRetry {
    /// After so many nanoseconds.
    AfterNanos(u64),
    /// After so many seconds, rounded up: what HTTP can say.
    AfterSeconds(u64),
    /// When somebody leaves.
    OnRelease,
    /// Never.
    Never,
}

impl ToldRetry {
    /// Whether a door that tells whole seconds means the same.
    fn agrees(self, told: Self) -> bool {
        match (self, told) {
            (Self::AfterNanos(nanos), Self::AfterSeconds(seconds)) => {
                nanos.div_ceil(1_000_000_000) == seconds
            }
            // HTTP has no word for it.
            (Self::OnRelease, Self::AfterSeconds(_)) => true,
            (expected, told) => expected == told,
        }
    }
}

impl Told {
    /// Went ahead at once.
    pub const ALLOWED: Self = Self::of(ToldOutcome::Allowed);
    /// Was refused.
    pub const DENIED: Self = Self::of(ToldOutcome::Denied);

    const fn of(outcome: ToldOutcome) -> Self {
        Self {
            outcome,
            limit: None,
            remaining: None,
            retry: None,
        }
    }

    /// Went ahead after so many nanoseconds; at once if 0.
    pub const fn delayed(nanos: u64) -> Self {
        Self::of(if nanos == 0 {
            ToldOutcome::Allowed
        } else {
            ToldOutcome::Delayed(nanos)
        })
    }

    /// Was refused, and may come again then.
    pub fn denied(retry: ToldRetry) -> Self {
        Self {
            retry: Some(retry),
            ..Self::DENIED
        }
    }

    /// The same, with this much remaining.
    #[must_use]
    pub fn remaining(self, remaining: u64) -> Self {
        Self {
            remaining: Some(remaining),
            ..self
        }
    }

    /// The same, told of this limit.
    #[must_use]
    pub fn by(self, limit: &str) -> Self {
        Self {
            limit: Some(limit.to_owned()),
            ..self
        }
    }

    /// Whether the request went ahead.
    pub fn passed(&self) -> bool {
        self.outcome != ToldOutcome::Denied
    }

    fn agrees(&self, told: &Self) -> bool {
        let limit = self.limit.is_none() || told.limit.is_none() || self.limit == told.limit;
        let remaining = self.remaining.is_none()
            || told.remaining.is_none()
            || self.remaining == told.remaining;
        let retry = match (self.retry, told.retry) {
            (Some(expected), Some(told)) => expected.agrees(told),
            _ => true,
        };
        self.outcome == told.outcome && limit && remaining && retry
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.outcome)?;
        if let Some(limit) = &self.limit {
            write!(f, " by {limit}")?;
        }
        if let Some(remaining) = self.remaining {
            write!(f, ", {remaining} remaining")?;
        }
        if let Some(retry) = self.retry {
            write!(f, ", {retry:?}")?;
        }
        Ok(())
    }
}

impl Script {
    /// A script that expects nothing yet.
    pub fn new(policy: &str, trace: Vec<String>) -> Self {
        Self {
            policy: policy.to_owned(),
            trace,
            expected: Vec::new(),
        }
    }

    /// The next requests, each in turn, are told this.
    #[must_use]
    pub fn then(mut self, told: impl IntoIterator<Item = Told>) -> Self {
        for told in told {
            let next = self.covered();
            self.expected.push(Expected::Each(next..next + 1, told));
        }
        self
    }

    /// The next `n` requests are all told this.
    #[must_use]
    pub fn then_each(mut self, n: usize, told: Told) -> Self {
        let next = self.covered();
        self.expected.push(Expected::Each(next..next + n, told));
        self
    }

    /// Of the next `n` requests so many pass.
    #[must_use]
    pub fn then_pass(mut self, n: usize, passed: RangeInclusive<usize>) -> Self {
        let next = self.covered();
        self.expected.push(Expected::Passed(next..next + n, passed));
        self
    }

    /// Of all requests exactly so many pass.
    #[must_use]
    pub fn in_all(mut self, passed: usize) -> Self {
        let all = self.covered();
        self.expected
            .insert(0, Expected::Passed(0..all, passed..=passed));
        self
    }

    fn covered(&self) -> usize {
        match self.expected.last() {
            Some(Expected::Each(range, _) | Expected::Passed(range, _)) => range.end,
            None => 0,
        }
    }

    /// Where `told` is not what must come out.
    pub fn differences(&self, told: &[Told]) -> Vec<String> {
        let mut found = Vec::new();
        if told.len() != self.covered() {
            found.push(format!(
                "{} answers, expected {}",
                told.len(),
                self.covered()
            ));
        }
        for expected in &self.expected {
            match expected {
                Expected::Each(range, expected) => {
                    for (index, told) in told.iter().enumerate().take(range.end).skip(range.start) {
                        if !expected.agrees(told) {
                            found.push(format!("request {index}: {told}; expected {expected}"));
                        }
                    }
                }
                Expected::Passed(range, expected) => {
                    let told = told.get(range.clone()).unwrap_or_default();
                    let passed = told.iter().filter(|told| told.passed()).count();
                    if !expected.contains(&passed) {
                        found.push(format!("{passed} of {range:?} pass; expected {expected:?}"));
                    }
                }
            }
        }
        found
    }
}

/// A line of a trace at so many milliseconds, with the rest of its fields as JSON.
pub fn at(millis: u64, fields: &str) -> String {
    let comma = if fields.is_empty() { "" } else { "," };
    format!(
        "{{\"at_ns\":{}{comma}{fields}}}",
        u128::from(millis) * 1_000_000
    )
}
