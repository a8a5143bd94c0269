//! One entry for each node.

use std::collections::BTreeMap;

use super::{Args, ScriptModel, reply};

/// The state of `node_share.lua`.
#[derive(Clone, Debug, Default)]
pub struct NodeShareModel {
    nodes: BTreeMap<String, Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    share: u64,
    expiry: u64,
    want: u64,
    seq: u64,
}

impl NodeShareModel {
    /// Shares that have not expired.
    pub fn granted(&self, now_us: u64) -> u64 {
        let live = self.nodes.values().filter(|entry| entry.expiry > now_us);
        live.map(|entry| entry.share).sum()
    }
}

impl ScriptModel for NodeShareModel {
    fn call(&mut self, now: u64, args: &[Vec<u8>]) -> Vec<i64> {
        let mut args = Args::of(args);
        let node = args.text();
        let [seq, in_use, held, want, limit, ttl] = std::array::from_fn(|_| args.number());
        let is_live = |name: &String, entry: &Entry| *name == node || entry.expiry > now;
        self.nodes.retain(|name, entry| is_live(name, entry));
        let mine = self.nodes.get(&node).copied();
        let (mut others, mut wanted, mut nodes) = (0, 0, 1);
        for (_, entry) in self.nodes.iter_mut().filter(|(name, _)| **name != node) {
            others += entry.share;
            wanted += entry.want;
            nodes += 1;
            entry.expiry = entry.expiry.min(now + ttl);
        }
        if mine.is_some_and(|mine| seq < mine.seq) {
            let mut overtaken = vec![-1];
            overtaken.extend(reply([0, others, wanted, nodes, now]));
            return overtaken;
        }
        let before = mine.filter(|mine| mine.expiry > now);
        let keep = before.map_or(0, |before| before.share.min(held));
        let free = limit.saturating_sub(others);
        let fair = (limit * want).div_ceil((want + wanted).max(1));
        let lacking = wanted.saturating_sub(others);
        let reserve = lacking.max(limit.saturating_sub(fair) / 8);
        let spare = free.saturating_sub(reserve);
        let target = want.min(in_use.max(fair).max(spare));
        let share = keep.max(free.min(target));
        if share == 0 && want == 0 {
            self.nodes.remove(&node);
        } else {
            let entry = Entry {
                share,
                expiry: now + ttl,
                want,
                seq,
            };
            self.nodes.insert(node, entry);
        }
        reply([share, share.min(target), others, wanted, nodes, now])
    }

    fn snapshot(&self) -> Box<dyn ScriptModel> {
        Box::new(self.clone())
    }
}
