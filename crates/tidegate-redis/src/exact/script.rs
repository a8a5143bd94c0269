//! Calls of the script, and what it answers.

use std::time::Duration;

use tidegate::{Ask, Decision, Quota, Retry, Verdict};

use super::numbers::{Kind, Numbers};
use crate::call::{Script, ScriptCall, Unavailable};

/// The script of exact mode.
pub static EXACT: Script = Script {
    name: "exact",
    // One script, in the order in which its parts use each other.
    text: concat!(
        include_str!("lua/head.lua"),
        include_str!("lua/text_state.lua"),
        include_str!("lua/bucket.lua"),
        include_str!("lua/interval.lua"),
        include_str!("lua/fixed_window.lua"),
        include_str!("lua/sliding_counter.lua"),
        include_str!("lua/log.lua"),
        include_str!("lua/decide.lua"),
    ),
};

/// The longest that a caller can offer to wait, in microseconds (71 years).
const MOST_PATIENCE_US: u64 = 1 << 51;
/// A cost that no state of the script has room for: above 2^52, and exact as a double.
const MORE_THAN_ANY: u64 = (1 << 52) + 1;

/// One limit of a call: where its state is, and its numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Asked {
    /// The key of its state.
    pub key: Vec<u8>,
    /// Its numbers.
    pub numbers: Numbers,
}

/// So many equal requests in a row, decided one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// How many.
    pub requests: u64,
    /// What each of them asks, of each limit of the call.
    pub ask: Ask,
}

impl Group {
    /// Whether several requests of this kind can be decided as one: those whose answer can be a
    /// delay each need their own, and a forced one is never refused for another.
    pub fn can_grow(ask: &Ask, limits: &[Asked]) -> bool {
        let pays_later = |limit: &Asked| limit.numbers.kind == Kind::PayLater;
        !ask.is_forced() && patience_us(ask) == 0 && !limits.iter().any(pays_later)
    }
}

/// What the script does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Takes what it grants.
    Check,
    /// Takes nothing.
    Peek,
}

/// The call that decides these groups in order.
pub fn decide(what: What, limits: &[Asked], groups: &[Group]) -> ScriptCall {
    let mut args = vec![
        match what {
            What::Check => b"check".to_vec(),
            What::Peek => b"peek".to_vec(),
        },
        text(groups.len() as u64),
    ];
    push_numbers(&mut args, limits);
    for group in groups {
        let Group { requests, ask } = group;
        let forced = ask.is_forced().into();
        args.extend([*requests, cost(ask), patience_us(ask), forced].map(text));
    }
    call(limits, args)
}

/// The call that gives back what was taken: for each limit its permits, by its mark.
pub fn give_back(limits: &[Asked], taken: &[(u64, i64)]) -> ScriptCall {
    let mut args = vec![b"back".to_vec(), text(0)];
    push_numbers(&mut args, limits);
    for (permits, mark) in taken {
        args.extend([text(*permits), mark.to_string().into_bytes()]);
    }
    call(limits, args)
}

/// The call that forgets all that is known of these keys.
pub fn forget(limits: &[Asked]) -> ScriptCall {
    call(limits, vec![b"forget".to_vec(), text(0)])
}

fn call(limits: &[Asked], args: Vec<Vec<u8>>) -> ScriptCall {
    ScriptCall {
        script: &EXACT,
        keys: limits.iter().map(|limit| limit.key.clone()).collect(),
        args,
    }
}

fn push_numbers(args: &mut Vec<Vec<u8>>, limits: &[Asked]) {
    for Asked { numbers, .. } in limits {
        let Numbers {
            kind,
            a,
            b,
            tick,
            most,
            first,
            y,
        } = *numbers;
        args.push(kind.letter().as_bytes().to_vec());
        args.extend([a, b, tick, most, first, y].map(text));
    }
}

fn text(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// What is asked for; for more than any limit has, what the script refuses of every limit.
fn cost(ask: &Ask) -> u64 {
    match ask.permits() {
        permits @ ..=Quota::MAX_PERMITS => permits,
        _ => MORE_THAN_ANY,
    }
}

fn patience_us(ask: &Ask) -> u64 {
    let micros = ask.max_delay().as_micros();
    u64::try_from(micros)
        .unwrap_or(u64::MAX)
        .min(MOST_PATIENCE_US)
}

/// What the script answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Of each limit: by what it is given back.
    pub marks: Vec<i64>,
    /// Of each group.
    pub groups: Vec<Granted>,
}

/// What one group was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// How many of its requests: the first ones.
    pub requests: u64,
    /// What each limit says after it.
    pub limits: Vec<Said>,
}

/// What one limit says after a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// Permits that are there now.
    pub remaining: u64,
    /// When the first that was refused might come again; `None` where this limit would allow it.
    pub retry: Option<Retry>,
    /// Time until all is there.
    pub reset_after: Duration,
    /// How long one that was granted has to wait.
    pub delay: Duration,
}

impl Reply {
    /// Reads the integers of an answer.
    ///
    /// # Errors
    /// [`Unavailable::BadAnswer`] where they are not of a call of so many limits and groups.
    pub fn read(answer: &[i64], limits: usize, groups: usize) -> Result<Self, Unavailable> {
        let bad = || Unavailable::BadAnswer(format!("{answer:?} from the script `exact`"));
        if answer.len() != limits + groups * (1 + 4 * limits) {
            return Err(bad());
        }
        let (marks, rest) = answer.split_at(limits);
        let read = |numbers: &[i64]| {
            let (granted, said) = numbers.split_first()?;
            let limits = said
                .chunks_exact(4)
                .map(Said::read)
                .collect::<Option<_>>()?;
            Some(Granted {
                requests: u64::try_from(*granted).ok()?,
                limits,
            })
        };
        let groups = rest.chunks_exact(1 + 4 * limits).map(read);
        Ok(Self {
            marks: marks.to_vec(),
            groups: groups.collect::<Option<_>>().ok_or_else(bad)?,
        })
    }
}

impl Said {
    fn read(numbers: &[i64]) -> Option<Self> {
        let [remaining, retry, reset, delay] = *numbers else {
            return None;
        };
        let micros = |us: i64| Some(Duration::from_micros(u64::try_from(us).ok()?));
        Some(Self {
            remaining: u64::try_from(remaining).ok()?,
            retry: match retry {
                -1 => Some(Retry::Never),
                0 => None,
                us => Some(Retry::After(micros(us)?)),
            },
            reset_after: micros(reset)?,
            delay: micros(delay)?,
        })
    }

    /// The decision on one of a group's requests: so many of those that were granted came after
    /// it (`None` for one that was refused), each for so many permits.
    pub fn decision(&self, limit: u64, after: Option<u64>, permits: u64) -> Decision {
        let delay = self.delay;
        let (verdict, later) = match (after, self.retry) {
            (Some(after), _) => (Verdict::Allowed { delay }, after.saturating_mul(permits)),
            (None, Some(retry)) => (Verdict::Denied { retry }, 0),
            // This limit would have allowed it.
            (None, None) => (Verdict::Allowed { delay }, 0),
        };
        Decision {
            verdict,
            limit,
            remaining: self.remaining.saturating_add(later).min(limit),
            reset_after: self.reset_after,
        }
    }
}
