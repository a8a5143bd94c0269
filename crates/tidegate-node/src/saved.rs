//! Counts that outlive the node: what is saved of them, and how a node goes on with them.
//!
//! Saved is the key under which keys are hashed, the time, and of each limit that persists its
//! name, key parts, IPv6 prefix and algorithms, and of each key the hash and the state. A node
//! that reads it makes the limits as they were, and then changes them into those of its own
//! policy, as a reload does.

mod words;

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use tidegate::store::SavePoint;
use tidegate::{Algorithm, Enforcer, KeyHash, KeyHasher, Timestamp};
use tidegate_policy::{LimitRule, Policy};

use self::words::{WordReader, WordWriter};
use crate::enforced_limit::EnforcedLimit;
use crate::node::Node;

/// What comes next: a limit, or nothing more.
const LIMIT: u64 = 1;
const END: u64 = 0;
/// Of a key's hash, the bits that hold the place of its numbers among the limit's.
const NUMBERS: u64 = (1 << 24) - 1;
/// More than the longest name in a policy.
const MAX_TEXT: u64 = 1 << 20;
/// Words of an algorithm.
const MAX_ALGORITHM: u64 = 64;
/// Words of a state: a log of 2^24 entries.
const MAX_STATE: u64 = 1 << 26;

/// What was saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveReport {
    /// Keys of which something was in use.
    pub keys: u64,
    /// Bytes.
    pub bytes: u64,
    /// The longest that decisions on some keys had to wait for it.
    pub longest_hold: Duration,
}

/// Why counts could not be saved.
#[derive(Debug)]
pub enum SaveError {
    /// They could not be written.
    Io(io::Error),
    /// Another policy was put in force meanwhile: what was written is of neither.
    PolicyChanged,
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Io(_) => "cannot write the counts",
            Self::PolicyChanged => "the policy was reloaded while its counts were written",
        })
    }
}

impl std::error::Error for SaveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::PolicyChanged => None,
        }
    }
}

impl From<io::Error> for SaveError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Why there is nothing to go on with.
#[derive(Debug)]
#[non_exhaustive]
pub enum SavedError {
    /// It could not be read.
    Unreadable(io::Error),
    /// It is something else.
    Foreign,
    /// It is of another version.
    Version(u32),
    /// It is not all there, or not as it was written.
    Torn(&'static str),
    /// It is larger than any that a node writes.
    TooLarge,
    /// It is whole, but no node writes this.
    Wrong(&'static str),
}

impl fmt::Display for SavedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "it cannot be read: {error}"),
            Self::Foreign => f.write_str("it has no counts of tidegate in it"),
            Self::Version(version) => write!(f, "it is of version {version}, which is not ours"),
            Self::Torn(how) => write!(f, "it is torn: {how}"),
            Self::TooLarge => f.write_str("it is larger than 4 GiB"),
            Self::Wrong(how) => write!(f, "what it says cannot be: {how}"),
        }
    }
}

impl std::error::Error for SavedError {}

/// Counts of a node before, for the limits of a policy: for [`Node::restored`].
#[derive(Debug)]
pub struct Saved {
    pub(crate) hasher: KeyHasher,
    pub(crate) limits: Vec<Arc<EnforcedLimit>>,
    at: Timestamp,
    keys: u64,
    passed_over: Vec<String>,
}

impl Saved {
    /// Reads what [`Node::save`] has written, for the limits of `policy` that persist and have the
    /// name and the key of a limit there. All of it is read before any of it is used, and checked
    /// on the way.
    ///
    /// # Errors
    /// [`SavedError`] where it is not whole, or was not written by a node of this version.
    pub fn read(input: impl Read, policy: &Policy, now: Timestamp) -> Result<Self, SavedError> {
        let mut words = WordReader::new(input)?;
        let hasher = KeyHasher::with_keys(words.word()?, words.word()?);
        let mut saved = Self {
            hasher,
            limits: Vec::new(),
            at: Timestamp::from_nanos(words.word()?),
            keys: 0,
            passed_over: Vec::new(),
        };
        while words.number(LIMIT)? != END {
            saved.read_limit(&mut words, policy, now)?;
        }
        words.finish()?;
        Ok(saved)
    }

    fn read_limit(
        &mut self,
        words: &mut WordReader<impl Read>,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<(), SavedError> {
        let name = words.text(MAX_TEXT)?;
        let mut key = Vec::new();
        for _ in 0..words.number(LimitRule::MAX_KEY_PARTS as u64)? {
            key.push(words.text(MAX_TEXT)?);
        }
        let ipv6_prefix = words.number(128)?;
        let mut algorithms = Vec::new();
        for _ in 0..words.number(NUMBERS)? {
            let (length, mut numbers) = (words.number(MAX_ALGORITHM)?, Vec::new());
            words.words(length, &mut numbers)?;
            let algorithm = Algorithm::from_words(&numbers);
            algorithms.push(algorithm.ok_or(SavedError::Wrong("there is no such algorithm"))?);
        }
        let is_twice = |limit: &Arc<EnforcedLimit>| limit.name() == name;
        if self.limits.iter().any(is_twice) || self.passed_over.contains(&name) {
            return Err(SavedError::Wrong("a limit is there twice"));
        }
        let is_same = |rule: &&LimitRule| {
            let parts = rule.key.iter().map(ToString::to_string);
            rule.persist
                && rule.limit.name() == name
                && parts.eq(key.iter().cloned())
                && u64::from(policy.ipv6_prefix()) == ipv6_prefix
        };
        let rule = policy.limits.iter().find(is_same);
        let max_keys = rule.map_or(1, |rule| rule.max_keys);
        let enforcers = tidegate::enforcers(&algorithms, max_keys)
            .map_err(|_| SavedError::Wrong("its numbers make no limit"))?;
        let goes_on = rule.is_some();
        self.read_keys(words, &enforcers, goes_on, now)?;
        match rule {
            Some(rule) => {
                let limit = EnforcedLimit::saved(rule, policy.ipv6_prefix(), enforcers);
                self.limits.push(Arc::new(limit));
            }
            None => self.passed_over.push(name),
        }
        Ok(())
    }

    fn read_keys(
        &mut self,
        words: &mut WordReader<impl Read>,
        enforcers: &[Enforcer],
        goes_on: bool,
        now: Timestamp,
    ) -> Result<(), SavedError> {
        let mut state = Vec::new();
        loop {
            let length = words.number(MAX_STATE)?;
            if length == 0 {
                return Ok(());
            }
            let (hi, lo) = (words.word()?, words.word()?);
            state.clear();
            words.words(length, &mut state)?;
            let numbers = usize::try_from(lo & NUMBERS).ok();
            let enforcer = numbers.and_then(|numbers| enforcers.get(numbers));
            let enforcer = enforcer.ok_or(SavedError::Wrong("a key has numbers of no limit"))?;
            let key = KeyHash::from_words([hi, lo & !NUMBERS])
                .ok_or(SavedError::Wrong("there is no such key"))?;
            if goes_on {
                if !enforcer.load(key, &state, self.at, now) {
                    return Err(SavedError::Wrong(
                        "a key is there twice, or has no such state",
                    ));
                }
                self.keys += 1;
            }
        }
    }

    /// When it was saved.
    pub const fn saved_at(&self) -> Timestamp {
        self.at
    }

    /// How many keys there were of the limits that go on.
    pub const fn keys(&self) -> u64 {
        self.keys
    }

    /// The limits that were saved and do not go on: the policy has none of this name that
    /// persists, or it has another key.
    pub fn passed_over(&self) -> &[String] {
        &self.passed_over
    }
}

impl Node {
    /// Writes the counts of the limits that persist, in a form that [`Saved::read`] reads. What is
    /// written has the key of the hashes in it: it is to be kept as a secret.
    ///
    /// Decisions go on meanwhile: no more than a thousand keys or so are held at a time, and never
    /// while anything is written to `out`.
    ///
    /// # Errors
    /// [`SaveError`]; what was written until then is to be thrown away.
    pub fn save(&self, out: impl Write) -> Result<SaveReport, SaveError> {
        let snapshot = Arc::clone(&self.snapshot());
        let mut report = SaveReport::default();
        let mut words = WordWriter::new(out)?;
        let (first, second) = snapshot.hasher().keys();
        words.put(&[first, second, self.clock().now().as_nanos()])?;
        let limits = snapshot.limits().iter();
        for limit in limits.filter(|limit| limit.rule().persist) {
            self.save_limit(limit, &mut words, &mut report)?;
        }
        words.put(&[END])?;
        if !Arc::ptr_eq(&snapshot, &self.snapshot()) {
            return Err(SaveError::PolicyChanged);
        }
        report.bytes = words.finish()?;
        Ok(report)
    }

    fn save_limit(
        &self,
        limit: &EnforcedLimit,
        words: &mut WordWriter<impl Write>,
        report: &mut SaveReport,
    ) -> Result<(), SaveError> {
        words.put(&[LIMIT])?;
        words.put_text(limit.name())?;
        words.put(&[limit.rule().key.len() as u64])?;
        for part in &limit.rule().key {
            words.put_text(&part.to_string())?;
        }
        words.put(&[limit.ipv6_prefix().into()])?;
        // Of overrides with the same numbers, one is enough.
        let mut places = HashMap::new();
        let mut algorithms = Vec::new();
        for (enforcer, algorithm) in limit.numbers() {
            places.entry(enforcer.numbers()).or_insert_with(|| {
                algorithms.push(algorithm);
                algorithms.len() as u64 - 1
            });
        }
        words.put(&[algorithms.len() as u64])?;
        for algorithm in algorithms {
            let numbers = algorithm.to_words();
            words.put(&[numbers.len() as u64])?;
            words.put(&numbers)?;
        }
        let Some((own, _)) = limit.numbers().next() else {
            return Ok(words.put(&[0])?);
        };
        let (mut next, mut keys) = (Some(SavePoint::default()), Vec::new());
        while let Some(from) = next {
            let begun = self.clock().now();
            let mut is_known = true;
            let saved = own.save(from, begun, &mut |key, numbers, state| {
                let [hi, lo] = key.to_words();
                let Some(place) = places.get(&numbers) else {
                    is_known = false;
                    return;
                };
                keys.extend([state.len() as u64, hi, lo & !NUMBERS | place]);
                keys.extend_from_slice(state);
                report.keys += 1;
            });
            let held = self.clock().now().since(begun);
            report.longest_hold = report.longest_hold.max(held);
            // Numbers that this policy does not have are those of a later one.
            next = saved
                .ok()
                .filter(|_| is_known)
                .ok_or(SaveError::PolicyChanged)?;
            words.put(&keys)?;
            keys.clear();
        }
        Ok(words.put(&[0])?)
    }
}
