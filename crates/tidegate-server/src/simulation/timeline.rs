//! What came and what became of it, by time, in bounded memory.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate::Timestamp;
use tidegate_node::{Admission, Applied};

/// Pieces of time that are kept apart at most.
const PIECES: usize = 2_048;
/// Limits that are kept apart at most; who comes later is only named.
const LIMITS: usize = 8;

/// How long a piece may be, in nanoseconds: each divides the next, so that pieces can be put
/// together when a trace turns out to be longer.
const LENGTHS: [u64; 39] = {
    const SECOND: u64 = 1_000_000_000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let mut lengths = [0; 39];
    let (mut at, mut decade) = (0, 1);
    while decade <= 10 * SECOND {
        lengths[at] = decade;
        lengths[at + 1] = 2 * decade;
        at += 2;
        decade *= 10;
    }
    let by_clock = [
        MINUTE,
        2 * MINUTE,
        10 * MINUTE,
        20 * MINUTE,
        HOUR,
        2 * HOUR,
        6 * HOUR,
        12 * HOUR,
    ];
    let mut next = 0;
    while next < by_clock.len() {
        lengths[at] = by_clock[next];
        at += 1;
        next += 1;
    }
    decade = DAY;
    while at < lengths.len() {
        lengths[at] = decade;
        if at + 1 < lengths.len() {
            lengths[at + 1] = 2 * decade;
        }
        at += 2;
        decade *= 10;
    }
    lengths
};

/// What happened in one piece of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Requests that came.
    pub came: u64,
    /// Requests that went ahead, without waiting.
    pub at_once: u64,
    /// Requests that went ahead, when they had waited.
    pub waited: u64,
    /// Requests that were refused.
    pub refused: u64,
}

impl Piece {
    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            came: self.came + other.came,
            at_once: self.at_once + other.at_once,
            waited: self.waited + other.waited,
            refused: self.refused + other.refused,
        }
    }
}

/// One limit, or all requests.
#[derive(Clone, Debug, Default)]
pub struct Track {
    /// The name of the limit; `None` for all requests.
    pub name: Option<String>,
    /// Whether its limit is only a shadow.
    pub shadow: bool,
    /// Its pieces from the timeline's first on; what is beyond the last is empty.
    pub pieces: Vec<Piece>,
}

impl Track {
    /// All pieces together.
    pub fn total(&self) -> Piece {
        self.pieces
            .iter()
            .copied()
            .fold(Piece::default(), Piece::and)
    }

    fn widen(&mut self, skipped: usize, ratio: usize) {
        let mut wide = vec![Piece::default(); (skipped + self.pieces.len()).div_ceil(ratio)];
        for (at, piece) in self.pieces.iter().enumerate() {
            let sum = &mut wide[(skipped + at) / ratio];
            *sum = sum.and(*piece);
        }
        self.pieces = wide;
    }
}

/// All requests, and each limit that was met.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Which of [`LENGTHS`] a piece has.
    scale: usize,
    /// The number of the first piece, counted from the epoch; `None` before the first request.
    first: Option<u64>,
    all: Track,
    limits: Vec<Track>,
    others: BTreeSet<String>,
}

impl Timeline {
    /// How long a piece is, in nanoseconds.
    pub fn piece_nanos(&self) -> u64 {
        LENGTHS[self.scale]
    }

    /// The number of the first piece, counted from the epoch.
    pub fn first_piece(&self) -> u64 {
        self.first.unwrap_or(0)
    }

    /// All requests.
    pub const fn all(&self) -> &Track {
        &self.all
    }

    /// The limits that were met, in the order of their names.
    pub fn limits(&self) -> impl Iterator<Item = &Track> {
        self.limits.iter()
    }

    /// How many limits more were met, of which only the first requests came too late to be kept
    /// apart.
    pub fn omitted_limits(&self) -> usize {
        self.others.len()
    }

    /// One more request.
    pub(super) fn add(&mut self, now: Timestamp, admission: &Admission<'_>) {
        let delay = admission.waited() + admission.delay();
        let outcome = Outcome::of(admission.is_allowed(), delay);
        self.reach(now, outcome);
        let (first, length) = (self.first_piece(), self.piece_nanos());
        let place = |at: Timestamp| index(at, first, length);
        outcome.count(&mut self.all, now, place);
        let enforced = admission.applied().iter().map(|applied| (applied, false));
        let shadows = admission.shadow().iter().map(|applied| (applied, true));
        for (applied, shadow) in enforced.chain(shadows) {
            let outcome = if applied.decision.is_denied() {
                Outcome::Refused
            } else if admission.is_allowed() {
                outcome
            } else {
                Outcome::OfAnother
            };
            if let Some(track) = self.track(applied, shadow) {
                outcome.count(track, now, place);
            }
        }
    }

    /// Makes pieces so long that there is one for this request.
    fn reach(&mut self, now: Timestamp, outcome: Outcome) {
        if self.first.is_none() {
            self.first = Some(now.as_nanos());
        }
        let last = match outcome {
            Outcome::Waited(delay) => now.after(delay),
            _ => now,
        };
        while self.scale + 1 < LENGTHS.len()
            && index(last, self.first_piece(), self.piece_nanos()) >= PIECES
        {
            let (first, length) = (self.first_piece(), self.piece_nanos());
            self.scale += 1;
            let ratio = self.piece_nanos() / length;
            let skipped = (first % ratio) as usize;
            self.first = Some(first / ratio);
            self.all.widen(skipped, ratio as usize);
            for track in &mut self.limits {
                track.widen(skipped, ratio as usize);
            }
        }
    }

    fn track(&mut self, applied: &Applied<'_>, shadow: bool) -> Option<&mut Track> {
        let name = applied.limit.name();
        let named = |track: &Track| track.name.as_deref().unwrap_or_default().cmp(name);
        match self.limits.binary_search_by(named) {
            Ok(at) => self.limits.get_mut(at),
            Err(_) if self.limits.len() == LIMITS => {
                if !self.others.contains(name) {
                    self.others.insert(name.to_owned());
                }
                None
            }
            Err(at) => {
                let track = Track {
                    name: Some(name.to_owned()),
                    shadow,
                    pieces: Vec::new(),
                };
                self.limits.insert(at, track);
                self.limits.get_mut(at)
            }
        }
    }
}

fn index(at: Timestamp, first: u64, length: u64) -> usize {
    usize::try_from((at.as_nanos() / length).saturating_sub(first)).unwrap_or(usize::MAX)
}

#[derive(Clone, Copy, Debug)]
enum Outcome {
    AtOnce,
    Waited(Duration),
    Refused,
    /// Refused, by another limit.
    OfAnother,
}

impl Outcome {
    fn of(allowed: bool, delay: Duration) -> Self {
        match (allowed, delay.is_zero()) {
            (false, _) => Self::Refused,
            (true, true) => Self::AtOnce,
            (true, false) => Self::Waited(delay),
        }
    }

    fn count(self, track: &mut Track, now: Timestamp, place: impl Fn(Timestamp) -> usize) {
        let mut piece = |at: Timestamp, add: fn(&mut Piece)| {
            let at = place(at).min(PIECES - 1);
            if track.pieces.len() <= at {
                track.pieces.resize(at + 1, Piece::default());
            }
            add(&mut track.pieces[at]);
        };
        piece(now, |piece| piece.came += 1);
        match self {
            Self::AtOnce => piece(now, |piece| piece.at_once += 1),
            Self::Waited(delay) => piece(now.after(delay), |piece| piece.waited += 1),
            Self::Refused => piece(now, |piece| piece.refused += 1),
            Self::OfAnother => {}
        }
    }
}

#[cfg(test)]
mod tests;
