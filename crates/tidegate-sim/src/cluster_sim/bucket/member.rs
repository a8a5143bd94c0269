//! What the bucket knows of one node.

use super::args::{Args, WHOLE};

#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    pub(super) hold: i128,
    pub(super) expires: i128,
    pub(super) demand: i128,
    pub(super) share: i128,
    pub(super) seen: i128,
    pub(super) heard: i128,
    pub(super) out: i128,
    pub(super) seq: i128,
    pub(super) ack: i128,
    pub(super) told: i128,
    /// Kept back, and out no more: unused, or minted and not told yet by a call that came late.
    pub(super) past: i128,
    /// From then on its share has been kept back, and is not in `out` yet.
    pub(super) since: Option<i128>,
}

impl Member {
    /// For how much of a time it may be minting.
    pub(super) fn silence(&self, from: i128, to: i128, gap: (i128, i128), args: &Args) -> i128 {
        let end = to.min(self.seen + args.membership);
        let end = match args.is_strict {
            true => end,
            false if self.seen <= gap.0 => end.min(gap.1 + args.grace),
            false => from,
        };
        let silent = end - from.max(self.heard + args.silence);
        if self.share > 0 { silent.max(0) } else { 0 }
    }

    /// Brings it up to now. Its share has been kept back for `silent` ticks since the last call.
    pub(super) fn catch_up(&mut self, last: i128, now: i128, silent: i128, args: &Args) {
        let earlier = self.since.take().map_or(0, |since| last - since);
        self.out += args.refill(earlier + silent) * self.share / WHOLE;
        if self.expires <= last {
            self.hold = 0;
        }
        if now >= self.seen + args.membership {
            self.share = 0;
            self.demand = 0;
        }
    }

    /// What room it takes: for what it may have minted, or may before the next sweep.
    pub(super) fn most_out(&self, args: &Args) -> i128 {
        let most = args.saved_up(self.share);
        match self.since {
            Some(_) => most,
            None => most.min(self.out),
        }
    }

    /// As Redis keeps it.
    pub(super) fn text(&self) -> String {
        let numbers = [
            self.hold,
            self.expires,
            self.demand,
            self.share,
            self.seen,
            self.heard,
            self.out,
            self.seq,
            self.ack,
            self.told,
            self.past,
            self.since.unwrap_or(0),
        ];
        numbers.map(|n| n.to_string()).join(":")
    }
}
