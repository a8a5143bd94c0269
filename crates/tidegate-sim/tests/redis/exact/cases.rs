//! Random limits and calls of the script.
//!
//! Times and costs are relative to the limits and to what they last answered, since most faults
//! sit at "exactly when it said" and "exactly what is left".

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use tidegate::{Algorithm, Ask, CalendarUnit, Quota};
use tidegate_redis::exact::{Group, Kind, Numbers};
use tidegate_sim::strategy::{EXACT_RATES, log_uniform};

/// Some limits of one slot, and what happens to them.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Each with what it becomes when a step says so.
    pub(crate) limits: Vec<(Algorithm, Algorithm)>,
    /// In microseconds.
    pub(crate) start: u64,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) time: Move,
    pub(crate) act: Act,
}

/// How time goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    Stay,
    /// Microseconds.
    Micros(u64),
    /// As long as the last denial said, and a tick less, none or one more.
    AsTold(i64),
    /// Thousandths of a period or window.
    Part(u64),
    Years(u64),
    /// Thousandths of a period or window.
    Back(u64),
}

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Check(Vec<Wish>),
    Peek(Wish),
    /// One of what was taken, whichever this number means.
    GiveBack(usize),
    Forget,
    /// This limit gets its other numbers, or its first ones again.
    Change(usize),
}

/// A group of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    requests: u64,
    size: Size,
    patience: Patience,
    forced: bool,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Permits(u64),
    /// Thousandths of the smallest limit.
    Part(u64),
    Limit(i64),
    Remaining(i64),
    Huge,
}

#[derive(Clone, Copy, Debug)]
enum Patience {
    None,
    /// Thousandths of a period or window.
    Part(u64),
    Endless,
}

fn span() -> BoxedStrategy<Duration> {
    let us = Duration::from_micros;
    let known = [
        us(1),
        us(10),
        us(700),
        Duration::from_millis(1),
        Duration::from_millis(250),
        Duration::from_secs(1),
        Duration::from_secs(7),
        Duration::from_mins(1),
        Duration::from_hours(1),
        Duration::from_hours(24),
        Duration::from_hours(24 * 30),
    ];
    let any = log_uniform(4_000_000_000).prop_map(us);
    prop_oneof![4 => select(known.to_vec()), 1 => any].boxed()
}

fn permits() -> BoxedStrategy<u64> {
    prop_oneof![1 => Just(0), 8 => 1..=12_u64, 4 => 1..=400_u64, 2 => log_uniform(1 << 30)].boxed()
}

fn quota() -> BoxedStrategy<Quota> {
    let known = select(&EXACT_RATES[..])
        .prop_map(|(permits, seconds)| Quota::new(permits, Duration::from_secs(seconds)));
    let any = (log_uniform(1 << 30), span()).prop_map(|(permits, span)| Quota::new(permits, span));
    let burst = prop_oneof![
        2 => Just(None),
        3 => (1..=20_u64).prop_map(Some),
        1 => log_uniform(1 << 20).prop_map(Some)
    ];
    let initial = prop_oneof![4 => Just(None), 1 => (0..=1_000_u64).prop_map(Some)];
    (prop_oneof![known, any], burst, initial)
        .prop_map(|(quota, burst, initial)| {
            let quota = burst.map_or(quota, |burst| quota.burst(burst));
            let part = |parts| quota.burst_permits() * parts / 1_000;
            initial.map_or(quota, |parts| quota.initial(part(parts)))
        })
        .boxed()
}

/// A limit that the script knows, of this kind.
pub(crate) fn algorithm(kind: Kind) -> BoxedStrategy<Algorithm> {
    let window = (permits(), span());
    let any = match kind {
        Kind::Bucket => quota().prop_map(Algorithm::TokenBucket).boxed(),
        Kind::PayLater => {
            let max_debt = prop_oneof![Just(Duration::ZERO), span(), Just(Duration::from_hours(1))];
            let made = |(quota, max_debt)| Algorithm::SmoothBursty { quota, max_debt };
            (quota(), max_debt).prop_map(made).boxed()
        }
        Kind::Interval => (quota(), any::<bool>())
            .prop_map(|(quota, aligned)| Algorithm::IntervalBucket { quota, aligned })
            .boxed(),
        Kind::Fixed => (window, 0..=3_u8)
            .prop_map(|((permits, window), which)| match which {
                0 => Algorithm::WindowFromFirst { permits, window },
                1 => Algorithm::CalendarWindow {
                    permits,
                    unit: CalendarUnit::Week,
                },
                _ => Algorithm::FixedWindow { permits, window },
            })
            .boxed(),
        Kind::Counter => window
            .prop_map(|(permits, window)| Algorithm::SlidingCounter { permits, window })
            .boxed(),
        Kind::Log => (window, prop_oneof![Just(0), 1..=12_u32, 1..=1_000_u32])
            .prop_map(|((permits, window), parts)| match NonZeroU32::new(parts) {
                None => Algorithm::SlidingLog { permits, window },
                Some(parts) => Algorithm::SlidingWindow {
                    permits,
                    window,
                    parts,
                },
            })
            .boxed(),
    };
    let fits = move |algorithm: &Algorithm| {
        Numbers::of(algorithm).is_ok_and(|numbers| numbers.kind == kind)
    };
    any.prop_filter("what Redis counts exactly", fits).boxed()
}

pub(crate) const KINDS: [Kind; 6] = [
    Kind::Bucket,
    Kind::PayLater,
    Kind::Interval,
    Kind::Fixed,
    Kind::Counter,
    Kind::Log,
];

/// Two limits of which one can become the other: text states all can, logs are among themselves.
fn changing() -> BoxedStrategy<(Algorithm, Algorithm)> {
    let text = || select(KINDS[..5].to_vec()).prop_flat_map(algorithm);
    let log = || algorithm(Kind::Log);
    prop_oneof![5 => (text(), text()), 2 => (log(), log())].boxed()
}

fn time() -> BoxedStrategy<Move> {
    prop_oneof![
        6 => Just(Move::Stay),
        3 => log_uniform(3_000_000).prop_map(Move::Micros),
        6 => (-1..=1_i64).prop_map(Move::AsTold),
        4 => (0..3_000_u64).prop_map(Move::Part),
        1 => (1..=10_u64).prop_map(Move::Years),
        2 => (0..3_000_u64).prop_map(Move::Back),
    ]
    .boxed()
}

fn wish() -> BoxedStrategy<Wish> {
    let size = prop_oneof![
        1 => Just(Size::Permits(0)),
        6 => Just(Size::Permits(1)),
        2 => (2..20_u64).prop_map(Size::Permits),
        3 => (0..1_200_u64).prop_map(Size::Part),
        2 => (-1..=1_i64).prop_map(Size::Limit),
        4 => (-1..=1_i64).prop_map(Size::Remaining),
        1 => Just(Size::Huge),
    ];
    let patience = prop_oneof![
        5 => Just(Patience::None),
        3 => (0..3_000_u64).prop_map(Patience::Part),
        1 => Just(Patience::Endless),
    ];
    let requests = prop_oneof![4 => Just(1), 2 => 2..=5_u64, 1 => 6..=200_u64];
    let forced = prop::bool::weighted(0.1);
    (requests, size, patience, forced)
        .prop_map(|(requests, size, patience, forced)| Wish {
            requests,
            size,
            patience,
            forced,
        })
        .boxed()
}

pub(crate) fn step() -> BoxedStrategy<Step> {
    let check = prop::collection::vec(wish(), 1..=3).prop_map(Act::Check);
    let act = prop_oneof![
        12 => check,
        1 => wish().prop_map(Act::Peek),
        3 => any::<usize>().prop_map(Act::GiveBack),
        1 => Just(Act::Forget),
        1 => any::<usize>().prop_map(Act::Change),
    ];
    (time(), act)
        .prop_map(|(time, act)| Step { time, act })
        .boxed()
}

pub(crate) fn case() -> BoxedStrategy<Case> {
    let start = 1_700_000_000_000_000..1_900_000_000_000_000_u64;
    let limits = prop::collection::vec(changing(), 1..=3);
    (limits, start, prop::collection::vec(step(), 1..=40))
        .prop_map(|(limits, start, steps)| Case {
            limits,
            start,
            steps,
        })
        .boxed()
}

/// What a step is relative to: limits, and what they last said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Length of a period or window, in microseconds.
    pub(crate) span: u64,
    pub(crate) most: u64,
    pub(crate) remaining: u64,
    /// In microseconds, and the tick that it is in.
    pub(crate) told: u64,
    pub(crate) tick: u64,
}

/// The period or window of a limit, in microseconds.
pub(crate) fn span_of(numbers: &Numbers) -> u64 {
    let ticks = match numbers.kind {
        Kind::Bucket | Kind::PayLater => numbers.b.saturating_mul(numbers.most) / numbers.a,
        Kind::Interval => numbers.b,
        Kind::Fixed | Kind::Counter => numbers.a,
        Kind::Log => numbers.a * numbers.y,
    };
    ticks.saturating_mul(numbers.tick).clamp(1, 1 << 45)
}

fn part(of: u64, parts: u64) -> u64 {
    (u128::from(of) * u128::from(parts) / 1_000) as u64
}

impl Move {
    pub(crate) fn from(self, now: u64, scale: Scale) -> u64 {
        const YEAR_US: u64 = 365 * 86_400 * 1_000_000;
        let later = match self {
            Self::Stay => 0,
            Self::Micros(us) => us,
            Self::AsTold(by) => scale
                .told
                .saturating_add_signed(by.saturating_mul(scale.tick.cast_signed())),
            Self::Part(parts) => part(scale.span, parts),
            Self::Years(years) => years * YEAR_US,
            Self::Back(parts) => return now.saturating_sub(part(scale.span, parts)),
        };
        // A hundred years from now times are not below 2^52 any more.
        now.saturating_add(later).min(4_400_000_000_000_000)
    }
}

impl Wish {
    pub(crate) fn ask(self, scale: Scale) -> Ask {
        let permits = match self.size {
            Size::Permits(permits) => permits,
            Size::Part(parts) => part(scale.most, parts),
            Size::Limit(by) => scale.most.saturating_add_signed(by),
            Size::Remaining(by) => scale.remaining.saturating_add_signed(by),
            Size::Huge => u64::MAX,
        };
        let us = match self.patience {
            Patience::None => 0,
            Patience::Part(parts) => part(scale.span, parts),
            Patience::Endless => u64::MAX / 1_000,
        };
        let ask = Ask::new(permits).within(Duration::from_micros(us));
        if self.forced { ask.forced() } else { ask }
    }

    pub(crate) fn group(self, scale: Scale, can_grow: impl Fn(&Ask) -> bool) -> Group {
        let ask = self.ask(scale);
        let requests = if can_grow(&ask) { self.requests } else { 1 };
        Group { requests, ask }
    }
}
