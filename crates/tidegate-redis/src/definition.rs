//! How the limits that nodes share are defined, where nodes say so differently.
//!
//! A node tells Redis now and then how each of its limits is defined, and is told how it is counted
//! by all: as the newest definition says that somebody holds. So a limit that changes on one node
//! after the other is one limit all the time. It is nothing that a decision waits for.
//!
//! Callers of the library say it themselves ([`Definitions`]): once and for all, or in editions.

mod definitions;
mod followed;
mod words;

use tidegate::{Algorithm, SharedLimit, Sharing};

pub use self::definitions::{DefineError, Definitions};
pub use self::followed::FollowedLimiter;
use crate::call::{Script, ScriptCall, Unavailable};
use crate::concurrency::arg;
use crate::key::definition_key;

/// The script.
pub static DEFINE: Script = Script {
    name: "define",
    text: include_str!("definition/define.lua"),
};

/// Most limits of one call.
pub(crate) const MAX_CLAIMS: usize = 256;

/// How often anything has changed: in the slot of the definitions.
const CHANGES: &[u8] = b"tg:{nodes}:defined";

/// How a limit is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Which edition of it this is; 0 where that is not said.
    pub version: u64,
    /// How it counts, and with which numbers.
    pub algorithm: Algorithm,
    /// How nodes share it.
    pub sharing: Sharing,
}

impl Definition {
    /// Whether both are counted alike, whatever their versions, and in whichever way their numbers
    /// are said.
    pub(crate) fn counts_like(&self, other: &Self) -> bool {
        let words = |of: &Self| words::of(&of.algorithm, of.sharing);
        words(self) == words(other)
    }

    /// As this node has it.
    pub(crate) const fn of(limit: &SharedLimit) -> Self {
        Self {
            version: limit.version,
            algorithm: limit.algorithm,
            sharing: limit.sharing,
        }
    }
}

/// How a definition is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It holds unless a newer one, or a stricter one of its version, is held.
    Hold,
    /// It holds unless there is any.
    Once,
}

/// What one limit is said to be.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    key: Vec<u8>,
    how: How,
    definition: Definition,
    words: Vec<u64>,
}

impl Claim {
    /// `None` of a limit that cannot be shared.
    pub(crate) fn new(name: &str, keys: &[u8], how: How, definition: Definition) -> Option<Self> {
        Some(Self {
            key: definition_key(name, keys),
            how,
            words: words::of(&definition.algorithm, definition.sharing)?,
            definition,
        })
    }
}

/// What holds for a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// This, on all nodes.
    Definition(Definition),
    /// Something of this version that this software does not know.
    Unknown(u64),
}

/// What a call answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    /// How often definitions had changed before the call, and have now.
    pub(crate) changes: (i64, i64),
    /// In the order of the claims.
    pub(crate) holds: Vec<Holds>,
}

/// The call that tells these, as `holder`; they last for so long from then on.
pub(crate) fn call(holder: u64, lasts_ms: u64, claims: &[Claim]) -> ScriptCall {
    let mut keys = vec![CHANGES.to_vec()];
    let mut args = vec![hex(&[holder]), arg(lasts_ms)];
    for claim in claims {
        keys.push(claim.key.clone());
        args.push(match claim.how {
            How::Hold => b"hold".to_vec(),
            How::Once => b"once".to_vec(),
        });
        args.push(hex(&[claim.definition.version]));
        args.push(hex(&claim.words));
    }
    ScriptCall {
        script: &DEFINE,
        keys,
        args,
    }
}

/// Reads the answer to so many claims.
pub(crate) fn read(answer: &[i64], claims: usize) -> Result<Answered, Unavailable> {
    let read = || {
        let (&before, mut rest) = answer.split_first()?;
        let (mut written, mut holds) = (0, Vec::with_capacity(claims));
        for _ in 0..claims {
            let ([is_new, count], after) = rest.split_first_chunk()?;
            let halves = after.get(..2 * usize::try_from(*count).ok()?)?;
            rest = &after[halves.len()..];
            written += is_new;
            holds.push(holds_of(halves)?);
        }
        let changes = (before, before + written);
        rest.is_empty().then_some(Answered { changes, holds })
    };
    read().ok_or_else(|| Unavailable::BadAnswer(format!("{answer:?} to a definition")))
}

fn holds_of(halves: &[i64]) -> Option<Holds> {
    let half = |half: i64| u32::try_from(half).ok().map(u64::from);
    let whole = |pair: &[i64]| Some(half(pair[0])? << 32 | half(pair[1])?);
    let all: Vec<u64> = halves.chunks_exact(2).map(whole).collect::<Option<_>>()?;
    let (&version, numbers) = all.split_first()?;
    Some(match words::read(numbers) {
        Some((algorithm, sharing)) => Holds::Definition(Definition {
            version,
            algorithm,
            sharing,
        }),
        None => Holds::Unknown(version),
    })
}

/// Sixteen digits each: so their order is that of the numbers.
fn hex(words: &[u64]) -> Vec<u8> {
    words
        .iter()
        .flat_map(|word| format!("{word:016x}").into_bytes())
        .collect()
}
