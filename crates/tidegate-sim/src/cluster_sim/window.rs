//! What the script of leased windows does, once more: a state machine over whole numbers, with time
//! as an argument. The real script has to agree with it answer by answer.

use std::collections::BTreeMap;

use tidegate_redis::ScriptCall;

/// Weights are in millionths.
const WHOLE: i128 = 1_000_000;
/// A node is remembered for so many memberships.
const REMEMBERED: i128 = 10;
/// More demand of others than this makes no difference.
const MOST_DEMAND: i128 = 1 << 32;

/// The window of one key, as Redis has it. The default is one that nobody has asked yet.
#[derive(Clone, Debug, Default)]
pub struct SharedWindow {
    name: i128,
    /// In microseconds, like all times.
    ends: i128,
    given: i128,
    members: BTreeMap<String, Member>,
    /// When Redis forgets it.
    expires: i128,
    /// How long it would be kept from the last change on, in milliseconds.
    lasts: i128,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    window: i128,
    taken: i128,
    demand: i128,
    seen: i128,
    seq: i128,
}

/// `ARGV` by name.
#[derive(Debug)]
struct Args {
    node: String,
    seq: i128,
    window: i128,
    taken: i128,
    demand: i128,
    want: i128,
    leaves: bool,
    resets: bool,
    permits: i128,
    length: i128,
    refresh: i128,
    membership: i128,
}

impl Args {
    fn read(call: &ScriptCall) -> Self {
        let text = |at: usize| String::from_utf8_lossy(&call.args[at]).into_owned();
        let at = |index: usize| text(index - 1).parse::<i128>().expect("a whole number");
        assert_eq!(call.args.len(), 11, "arguments of the script");
        Self {
            node: text(0),
            seq: at(2),
            window: at(3),
            taken: at(4),
            demand: at(5),
            want: at(6),
            leaves: at(7) == 1,
            resets: at(7) == 2,
            permits: at(8),
            length: at(9),
            refresh: at(10),
            membership: at(11),
        }
    }
}

/// A quotient, rounded up.
fn ceil(a: i128, b: i128) -> i128 {
    -(-a).div_euclid(b)
}

impl SharedWindow {
    /// Runs a call of the script at a time in microseconds.
    ///
    /// # Panics
    /// Where the call is none of this script.
    pub fn call(&mut self, now_micros: u64, call: &ScriptCall) -> [i64; 7] {
        let args = Args::read(call);
        let now = i128::from(now_micros);
        if self.is_forgotten(now_micros) {
            *self = Self::default();
        }
        let before = self.members.get(&args.node).copied();
        let seen_before = before.map_or(0, |me| me.seq);
        if args.seq <= seen_before {
            return whole([-1, 0, 0, 0, 0, seen_before, 0]);
        }
        self.go_on(now, args.length);
        if args.resets {
            self.name += 1;
            self.given = 0;
        }
        let had = before.filter(|me| me.window == self.name);
        let had = had.map_or(0, |me| me.taken);
        let has = if args.window == self.name {
            args.taken.min(args.permits)
        } else {
            0
        };
        self.given += has - had;

        self.members.remove(&args.node);
        for member in self.members.values_mut() {
            member.seen = member.seen.min(now);
        }
        self.members
            .retain(|_, member| now - member.seen < REMEMBERED * args.membership);
        let live = self
            .members
            .values()
            .filter(|member| member.demand > 0 && now - member.seen < args.membership);
        let (others, nodes) = live
            .fold((0, i128::from(args.demand > 0)), |(sum, count), member| {
                (sum + member.demand, count + 1)
            });

        let there = (args.permits - self.given).max(0);
        let granted = if args.leaves || args.resets {
            0
        } else {
            args.want.min(fair(there, others, &args)).max(0)
        };
        self.given += granted;
        if !(args.leaves || args.resets) {
            let me = Member {
                window: self.name,
                taken: has + granted,
                demand: args.demand,
                seen: now,
                seq: args.seq,
            };
            self.members.insert(args.node, me);
        }
        self.lasts = (self.ends - now + args.membership) / 1000 + 1000;
        self.expires = now + self.lasts * 1000;
        whole([
            granted,
            self.name,
            has + granted,
            nodes,
            there - granted,
            seen_before,
            self.ends - now,
        ])
    }

    /// The window that it is now.
    fn go_on(&mut self, now: i128, length: i128) {
        let begins = now - now.rem_euclid(length);
        if now >= self.ends {
            self.name = begins.max(self.name + 1);
            self.ends = begins + length;
            self.given = 0;
        } else if self.ends - now > 2 * length {
            self.ends = begins + length;
        }
    }

    /// Whether Redis has forgotten it by now, or never knew it.
    pub fn is_forgotten(&self, now_micros: u64) -> bool {
        i128::from(now_micros) >= self.expires
    }

    /// How long Redis keeps it after the last change, in milliseconds.
    pub const fn lasts_millis(&self) -> i128 {
        self.lasts
    }

    /// What was taken of the window by all.
    pub const fn given(&self) -> i128 {
        self.given
    }

    /// How many fields the hash has.
    pub fn fields(&self) -> i128 {
        self.members.len() as i128 + i128::from(self.expires > 0)
    }
}

/// A part of what is there by demand, or all beyond what the others need until they come again.
fn fair(there: i128, others: i128, args: &Args) -> i128 {
    let weight = match args.demand {
        0 => 0,
        demand => demand * WHOLE / (demand + others),
    };
    let slice = ceil(there * weight, WHOLE);
    let surplus = there - ceil(others.min(MOST_DEMAND) * args.refresh, WHOLE);
    slice.max(surplus)
}

fn whole(answer: [i128; 7]) -> [i64; 7] {
    answer.map(|n| i64::try_from(n).expect("below 2^53"))
}
