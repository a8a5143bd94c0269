//! Random limits and schedules, for property tests.
//!
//! Times and sizes of a step are relative to the limit and to what it last answered: most faults
//! sit at "exactly when it said", "one nanosecond earlier" and "exactly what is left".

mod limits;

use std::env;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::Config;
use tidegate::{Algorithm, Timestamp};

pub use self::limits::*;
use crate::oracle::Oracle;

/// Rates that must not drift, and their neighbours: permits per seconds.
pub const EXACT_RATES: [(u64, u64); 12] = [
    (10, 60),
    (3, 1),
    (80_000, 1),
    (3_000_000, 1),
    (7, 1),
    (999_999, 1),
    (10_000_000, 1),
    (1, 30 * 86_400),
    (60, 3_600),
    (100, 60),
    (1, 1),
    (59, 60),
];

/// How a property runs: as many cases as `TIDEGATE_CASES` says, or `modest` of them.
pub fn cases(modest: u32) -> Config {
    let asked = env::var("TIDEGATE_CASES").ok();
    let cases = asked.and_then(|text| text.parse().ok()).unwrap_or(modest);
    Config {
        cases,
        // Each case is dozens of steps: as long as it gets smaller, it is worth trying.
        max_shrink_iters: 20_000,
        ..Config::default()
    }
}

/// From 1 to `most`, each power of two as likely as any other.
pub fn log_uniform(most: u64) -> BoxedStrategy<u64> {
    let bits = most.max(1).ilog2();
    (0..=bits)
        .prop_flat_map(move |bits| (1_u64 << bits)..=((2_u64 << bits) - 1).min(most))
        .boxed()
}

/// When a schedule starts: at the epoch, these years, and near the end of the range.
pub fn start() -> BoxedStrategy<Timestamp> {
    const END: u64 = Timestamp::MAX.as_nanos();
    prop_oneof![
        1 => Just(0),
        4 => 1_700_000_000_000_000_000..1_900_000_000_000_000_000_u64,
        1 => END - 1_000_000_000_000..=END,
    ]
    .prop_map(Timestamp::from_nanos)
    .boxed()
}

/// How time goes on before a step.
#[derive(Clone, Copy, Debug)]
pub enum Move {
    /// It stands still.
    Stay,
    /// So many nanoseconds.
    Nanos(u64),
    /// So many times what one permit takes, and a nanosecond less, none or one more.
    Grains(u64, i64),
    /// Thousandths of a period or window.
    Part(u64),
    /// As long as the last denial said, and a nanosecond less, none or one more.
    AsTold(i64),
    /// Years.
    Years(u64),
    /// Back, thousandths of a period or window.
    Back(u64),
}

/// How many permits a step asks for.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    /// So many.
    Permits(u64),
    /// Thousandths of the limit.
    Part(u64),
    /// The limit, and one less, none or one more.
    Limit(i64),
    /// What remains, and one less, none or one more.
    Remaining(i64),
    /// As many as there are numbers.
    Huge,
}

/// How long a step would wait.
#[derive(Clone, Copy, Debug)]
pub enum Patience {
    /// Not at all.
    None,
    /// So many times what one permit takes.
    Grains(u64),
    /// For a hundred years: what a `u64` can say is not much more.
    Endless,
}

/// What a step does.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Takes.
    Check,
    /// Looks.
    Peek,
    /// Gives back one of what was taken, whichever this number means.
    GiveBack(usize),
    /// Takes, whatever the limit says.
    Force,
}

/// One step of a schedule.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// First, time goes on.
    pub time: Move,
    /// Then this is done,
    pub act: Act,
    /// for so many permits,
    pub size: Size,
    /// by someone who would wait so long.
    pub patience: Patience,
}

fn time(steps_back: bool) -> BoxedStrategy<Move> {
    let back = u32::from(steps_back);
    prop_oneof![
        6 => Just(Move::Stay),
        2 => (1..1_000_u64).prop_map(Move::Nanos),
        6 => (0..5_u64, -1..=1_i64).prop_map(|(grains, off)| Move::Grains(grains, off)),
        3 => (0..3_000_u64).prop_map(Move::Part),
        6 => (-1..=1_i64).prop_map(Move::AsTold),
        1 => (1..=10_u64).prop_map(Move::Years),
        4 * back => (0..3_000_u64).prop_map(Move::Back),
    ]
    .boxed()
}

fn size() -> BoxedStrategy<Size> {
    prop_oneof![
        1 => Just(Size::Permits(0)),
        6 => Just(Size::Permits(1)),
        2 => (2..20_u64).prop_map(Size::Permits),
        3 => (0..1_200_u64).prop_map(Size::Part),
        2 => (-1..=1_i64).prop_map(Size::Limit),
        4 => (-1..=1_i64).prop_map(Size::Remaining),
        1 => Just(Size::Huge),
    ]
    .boxed()
}

/// What steps of a schedule may do.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each may be allowed or not, whatever the others are"
)]
pub struct Allowed {
    /// The clock may step back.
    pub steps_back: bool,
    /// Callers may offer to wait.
    pub patience: bool,
    /// What was taken may be given back.
    pub give_back: bool,
    /// Permits may be taken whatever the limit says.
    pub force: bool,
}

/// A step.
pub fn step(allowed: Allowed) -> BoxedStrategy<Step> {
    let patient = u32::from(allowed.patience);
    let patience = prop_oneof![
        4 => Just(Patience::None),
        3 * patient => (0..20_u64).prop_map(Patience::Grains),
        patient => Just(Patience::Endless),
    ];
    let act = prop_oneof![
        8 => Just(Act::Check),
        1 => Just(Act::Peek),
        3 * u32::from(allowed.give_back) => any::<usize>().prop_map(Act::GiveBack),
        2 * u32::from(allowed.force) => Just(Act::Force),
    ];
    (time(allowed.steps_back), act, size(), patience)
        .prop_map(|(time, act, size, patience)| Step {
            time,
            act,
            size,
            patience,
        })
        .boxed()
}

/// Up to `most` steps.
pub fn schedule(most: usize, allowed: Allowed) -> BoxedStrategy<Vec<Step>> {
    prop::collection::vec(step(allowed), 1..=most).boxed()
}

/// Nanoseconds of one permit (at least 1), and of the period or window.
pub fn scale(algorithm: &Algorithm) -> (u64, u64) {
    let (permits, span) = match *algorithm {
        Algorithm::TokenBucket(quota)
        | Algorithm::IntervalBucket { quota, .. }
        | Algorithm::SmoothBursty { quota, .. }
        | Algorithm::SmoothWarmUp { quota, .. } => (quota.permits(), quota.period()),
        Algorithm::CalendarWindow { permits, unit } => (permits, unit.longest()),
        Algorithm::FixedWindow { permits, window }
        | Algorithm::WindowFromFirst { permits, window }
        | Algorithm::SlidingLog { permits, window }
        | Algorithm::SlidingCounter { permits, window } => (permits, window),
        // Steps at the edges of parts.
        Algorithm::SlidingWindow { window, parts, .. } => (parts.get().into(), window),
        Algorithm::Nginx {
            requests,
            per_minute,
            ..
        } => (
            requests,
            Duration::from_secs(if per_minute { 60 } else { 1 }),
        ),
        Algorithm::RedisCell {
            count,
            period_seconds,
            ..
        } => (count, Duration::from_secs(period_seconds)),
        Algorithm::SentinelWarmUpQueue { count, .. } => (count, Duration::from_secs(1)),
        _ => (1, Duration::from_secs(1)),
    };
    let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    ((span / permits.max(1)).max(1), span)
}

impl Move {
    /// The time after this move from `now`, where the last denial told to wait `told`.
    pub fn from(self, now: u64, (grain, span): (u64, u64), told: u64) -> u64 {
        let off = |value: u64, off: i64| value.saturating_add_signed(off);
        let part = |parts: u64| (u128::from(span) * u128::from(parts) / 1_000) as u64;
        let later = match self {
            Self::Stay => 0,
            Self::Nanos(nanos) => nanos,
            Self::Grains(grains, by) => off(grain.saturating_mul(grains), by),
            Self::Part(parts) => part(parts),
            Self::AsTold(by) => off(told, by),
            Self::Years(years) => years * 365 * 86_400 * 1_000_000_000,
            Self::Back(parts) => return now.saturating_sub(part(parts)),
        };
        now.saturating_add(later).min(Timestamp::MAX.as_nanos())
    }
}

impl Size {
    /// The permits that this means to a limit in this state.
    pub fn permits(self, oracle: &dyn Oracle, now: u64) -> u64 {
        let limit = oracle.limit();
        match self {
            Self::Permits(permits) => permits,
            Self::Part(parts) => (u128::from(limit) * u128::from(parts) / 1_000) as u64,
            Self::Limit(by) => limit.saturating_add_signed(by),
            Self::Remaining(by) => oracle.remaining(now).saturating_add_signed(by),
            Self::Huge => u64::MAX,
        }
    }
}

impl Patience {
    /// In nanoseconds.
    pub const fn nanos(self, (grain, _): (u64, u64)) -> u64 {
        match self {
            Self::None => 0,
            Self::Grains(grains) => grain.saturating_mul(grains),
            Self::Endless => 100 * 365 * 86_400 * 1_000_000_000,
        }
    }
}
