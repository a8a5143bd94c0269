//! What is wrong with a policy for whoever is to run it, and this crate cannot know: that a store
//! has no such limit, that a file is not there.
//!
//! Whoever knows says it of a place of the [`Policy`](crate::Policy); where that stands in the
//! file is found here.

use std::ops::Range;

use crate::compile;
use crate::file::{LimitFile, PolicyFile};
use crate::problem::Severity;
use crate::report::{Finding, Report};
use crate::source::Span;

/// Something that is wrong with a policy, by the place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// How bad it is.
    pub severity: Severity,
    /// Of what.
    pub place: Place,
    /// What is wrong. It is shown, so that it has no passwords in it.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

/// A place of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// `redis`, or a part of it.
    Redis(RedisPlace),
    /// `state`
    State,
    /// Where the admin port listens.
    Admin,
    /// The numbers of a rule.
    Numbers {
        /// Its index among the limits of the policy.
        rule: usize,
        /// If the numbers are those of an override: its index.
        of_override: Option<usize>,
    },
}

/// A part of `redis`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisPlace {
    /// All of it.
    Whole,
    /// The URL of this index.
    Url(usize),
    /// `sentinel`
    Sentinel,
    /// `password_file`
    PasswordFile,
    /// `ca_file`
    CaFile,
}

impl Complaint {
    /// The policy cannot be run for this.
    pub fn error(place: Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, place, message.into())
    }

    /// The policy can be run, but perhaps not here, or not as it is meant.
    pub fn warning(place: Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, place, message.into())
    }

    const fn new(severity: Severity, place: Place, message: String) -> Self {
        Self {
            severity,
            place,
            message,
            help: None,
        }
    }

    /// What to write instead.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn tell(self, span: Span, report: &Report<'_>) {
        let finding = match self.severity {
            Severity::Error => Finding::error(span, self.message),
            Severity::Warning => Finding::warning(span, self.message),
        };
        report.push(match self.help {
            Some(help) => finding.help(help),
            None => finding,
        });
    }
}

/// Tells each at its place in a file without errors; at its beginning, where it has none.
pub(crate) fn tell_all(complaints: Vec<Complaint>, file: &PolicyFile, report: &Report<'_>) {
    if complaints.is_empty() {
        return;
    }
    let rules = file.limits.get().map(compile::rules_of).unwrap_or_default();
    for complaint in complaints {
        let span = match complaint.place {
            Place::Redis(part) => of_redis(file, part),
            Place::State => file.state.place(),
            Place::Admin => file.admin.get().and_then(|admin| admin.listen.place()),
            Place::Numbers { rule, of_override } => of_numbers(file, &rules, rule, of_override),
        };
        complaint.tell(span.unwrap_or_default(), report);
    }
}

fn of_redis(file: &PolicyFile, part: RedisPlace) -> Option<Span> {
    let redis = file.redis.get()?;
    let part = match part {
        RedisPlace::Whole => None,
        RedisPlace::Url(index) => redis.url.items().nth(index).map(|(_, place)| place),
        RedisPlace::Sentinel => redis.sentinel.place(),
        RedisPlace::PasswordFile => redis.password_file.place(),
        RedisPlace::CaFile => redis.ca_file.place(),
    };
    part.or(file.redis.place())
}

fn of_numbers(
    file: &PolicyFile,
    rules: &[Range<usize>],
    rule: usize,
    of_override: Option<usize>,
) -> Option<Span> {
    let at = rules.partition_point(|rules| rules.end <= rule);
    let rate = rule - rules.get(at)?.start;
    let (_, name, limit) = file.limits.get()?.iter().nth(at)?;
    let limit = limit.get()?;
    let span = match of_override {
        None => of_limit(limit, rate),
        Some(index) => of_one_override(limit, index, rate),
    };
    span.or(Some(name))
}

fn of_limit(limit: &LimitFile, rate: usize) -> Option<Span> {
    let rate = limit.rate.items().nth(rate).map(|(_, place)| place);
    rate.or(limit.concurrency.place())
}

/// Its own numbers: what it inherits is fine, or told of the limit.
fn of_one_override(limit: &LimitFile, index: usize, rate: usize) -> Option<Span> {
    let field = limit.overrides.get()?.get(index)?;
    let one = field.get()?;
    let rate = one.rate.items().nth(rate).map(|(_, place)| place);
    let rest = one.burst.place().or(one.concurrency.place());
    rate.or(rest).or(field.place())
}
