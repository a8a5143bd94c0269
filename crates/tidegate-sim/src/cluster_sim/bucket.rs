//! What the script of leased limits does, once more: a state machine over whole numbers, with time
//! as an argument. The real script has to agree with it answer by answer.

use std::collections::BTreeMap;

use tidegate_redis::ScriptCall;

/// Shares are in millionths.
const WHOLE: i128 = 1_000_000;
/// A node is remembered for so many memberships.
const REMEMBERED: i128 = 10;

/// The bucket of one key, as Redis has it. The default is one that nobody has asked yet.
#[derive(Clone, Debug, Default)]
pub struct SharedBucket {
    state: Option<State>,
    /// When Redis forgets it, in microseconds.
    expires: i128,
    /// How long it would be kept from the last change on, in milliseconds.
    lasts: i128,
}

#[derive(Clone, Debug)]
struct State {
    /// In 1/den permits, like [`Member::out`].
    level: i128,
    /// When it was last filled up; all times in ticks.
    last: i128,
    /// The last time in which nobody came for longer than they should.
    gap: (i128, i128),
    members: BTreeMap<String, Member>,
}

#[derive(Clone, Debug, Default)]
struct Member {
    hold: i128,
    expires: i128,
    demand: i128,
    share: i128,
    seen: i128,
    heard: i128,
    out: i128,
    seq: i128,
    ack: i128,
    told: i128,
    /// Kept back, and out no more: unused, or minted and not told yet by a call that came late.
    past: i128,
}

/// `ARGV` by name.
#[derive(Debug)]
struct Args {
    node: String,
    seq: i128,
    ack: i128,
    demand: i128,
    held: i128,
    returned: i128,
    want: i128,
    minted: i128,
    share: i128,
    leaves: bool,
    unit: i128,
    num: i128,
    den: i128,
    full: i128,
    tick: i128,
    refresh: i128,
    lease: i128,
    silence: i128,
    membership: i128,
    grace: i128,
    is_strict: bool,
}

impl Args {
    fn read(call: &ScriptCall) -> Self {
        let text: Vec<String> = call.args.iter().map(|arg| text(arg)).collect();
        let at = |index: usize| text[index - 1].parse::<i128>().expect("a whole number");
        assert_eq!(text.len(), 21, "arguments of the script");
        Self {
            node: text[0].clone(),
            seq: at(2),
            ack: at(3),
            demand: at(4),
            held: at(5),
            returned: at(6),
            want: at(7),
            minted: at(8),
            share: at(9),
            leaves: at(10) == 1,
            unit: at(11),
            num: at(12),
            den: at(13),
            full: at(14),
            tick: at(15),
            refresh: at(16),
            lease: at(17),
            silence: at(18),
            membership: at(19),
            grace: at(20),
            is_strict: text[20] == "strict",
        }
    }

    /// What is refilled in so many ticks.
    const fn refill(&self, ticks: i128) -> i128 {
        self.num * ticks
    }

    /// What a node of this share may have minted and not used, at most.
    fn most_out(&self, share: i128) -> i128 {
        part(self.refill(self.refresh), share)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A part of something, rounded up.
fn part(whole: i128, millionths: i128) -> i128 {
    ceil(whole * millionths, WHOLE)
}

fn ceil(a: i128, b: i128) -> i128 {
    -(-a).div_euclid(b)
}

impl SharedBucket {
    /// Runs a call of the script at a time in microseconds.
    ///
    /// # Panics
    /// Where the call is none of this script.
    pub fn call(&mut self, now_micros: u64, call: &ScriptCall) -> [i64; 7] {
        let args = Args::read(call);
        let now = i128::from(now_micros) / args.tick;
        if self.is_forgotten(now_micros) {
            self.state = None;
        }
        let mut state = self.state.clone().unwrap_or_else(|| State {
            level: args.full,
            last: now,
            gap: (0, 0),
            members: BTreeMap::new(),
        });
        let was_set_back = state.set_clock_back(now);
        let free = state.refill(now, &args);
        let answer = if args.node == "-" {
            state.spend(free, &args)
        } else {
            state.lease(now, &args)
        };
        let (answer, is_changed) = answer;
        if is_changed || was_set_back && args.node == "-" {
            let rest = ceil(args.full - state.level, args.num);
            let remembered = if state.members.is_empty() {
                0
            } else {
                REMEMBERED * args.membership
            };
            self.lasts = (rest + remembered) * args.tick / 1000 + 1000;
            self.expires = i128::from(now_micros) + self.lasts * 1000;
            self.state = Some(state);
        }
        answer.map(|n| i64::try_from(n).expect("below 2^53"))
    }

    /// Forgets everything, as a server does that starts without its data.
    pub fn wipe(&mut self) {
        self.state = None;
    }

    /// Whether Redis has forgotten it by now, or never knew it.
    pub fn is_forgotten(&self, now_micros: u64) -> bool {
        self.state.is_none() || i128::from(now_micros) >= self.expires
    }

    /// How long Redis keeps it after the last change, in milliseconds.
    pub const fn lasts_millis(&self) -> i128 {
        self.lasts
    }

    /// All shares together, in millionths.
    pub fn shares(&self) -> i128 {
        self.members().map(|member| member.share).sum()
    }

    /// The members that are remembered.
    fn members(&self) -> impl Iterator<Item = &Member> {
        self.state.iter().flat_map(|state| state.members.values())
    }
}

impl State {
    fn set_clock_back(&mut self, now: i128) -> bool {
        let back = self.last - now;
        if back <= 0 {
            return false;
        }
        self.last = now;
        self.gap = (self.gap.0 - back, self.gap.1 - back);
        for member in self.members.values_mut() {
            member.expires -= back;
            member.seen -= back;
            member.heard -= back;
        }
        true
    }

    /// Returns the most that the level may be: what is neither lent nor kept back.
    fn refill(&mut self, now: i128, args: &Args) -> i128 {
        let passed = now - self.last;
        if passed > args.silence && !self.members.is_empty() {
            self.gap = (self.last, now);
        }
        let (mut lent, mut withheld, mut out) = (0, 0, 0);
        for member in self.members.values_mut() {
            if member.expires <= self.last {
                member.hold = 0;
            }
            lent += member.hold;
            let end = member.seen + args.membership;
            let end = match args.is_strict {
                true => end,
                false if member.seen <= self.gap.0 => end.min(self.gap.1 + args.grace),
                false => self.last,
            };
            let from = self.last.max(member.heard + args.silence);
            let kept = part(args.refill((end.min(now) - from).max(0)), member.share);
            withheld += kept;
            member.out += kept;
            if now >= member.seen + args.membership {
                member.share = 0;
                member.demand = 0;
            }
            out += member.out.min(args.most_out(member.share));
        }
        self.members.retain(|name, member| {
            now < member.seen + REMEMBERED * args.membership || *name == args.node
        });
        let free = args.full - lent * args.den - out;
        self.level = free.min(self.level + args.refill(passed) - withheld);
        self.last = now;
        free
    }

    fn nodes(&self) -> i128 {
        self.members
            .values()
            .filter(|member| member.demand > 0)
            .count() as i128
    }

    fn there(&self, args: &Args) -> i128 {
        self.level.div_euclid(args.den).max(0)
    }

    fn spend(&mut self, free: i128, args: &Args) -> ([i128; 7], bool) {
        self.level = free.min(self.level + args.returned * args.den);
        let there = self.there(args);
        let granted = args.want.min(there) / args.unit * args.unit;
        self.level -= granted * args.den;
        let missing = args.unit * args.den - self.level;
        let wait = if granted < args.want {
            ceil(missing, args.num).max(1) * args.tick
        } else {
            0
        };
        let answer = [granted, 0, 0, self.nodes(), there - granted, 0, wait];
        (answer, granted > 0 || args.returned > 0)
    }

    fn lease(&mut self, now: i128, args: &Args) -> ([i128; 7], bool) {
        let mut me = match self.members.get(&args.node) {
            Some(me) if args.seq <= me.seq => return ([-1, 0, 0, 0, 0, me.seq, 0], false),
            Some(me) => me.clone(),
            None => Member {
                seen: now - args.refresh,
                heard: now - args.refresh,
                ..Member::default()
            },
        };
        let before = me.seq;
        self.settle(&mut me, now, args);
        let kept = args.held.min(me.hold);
        self.level += args.returned.min(me.hold - kept) * args.den;
        me.demand = if args.leaves { 0 } else { args.demand };
        self.members.remove(&args.node);
        let weight = self.weight(&me);
        let share = self.share(&me, weight);
        me.share = share.max(args.share.min(me.share));

        let there = self.there(args);
        let room = (args.full - args.refill(args.refresh)) / args.den - self.lent(now) - kept;
        let since = (now - me.seen).min(2 * args.refresh);
        let slice = part(there, (2 * weight * since / args.refresh).min(WHOLE));
        let others = part(args.refill(args.refresh), WHOLE - weight);
        let surplus = there - ceil(others, args.den);
        let granted = slice.max(surplus).min(room).min(args.want).max(0);
        self.level -= granted * args.den;

        me.hold = kept + granted;
        me.expires = now + args.lease;
        me.seen = now;
        me.seq = args.seq;
        me.ack = args.ack;
        me.told = args.minted;
        let nodes = self.nodes() + i128::from(me.demand > 0);
        if !args.leaves {
            self.members.insert(args.node.clone(), me);
        }
        let left = there - granted;
        ([granted, kept, share, nodes, left, before, 0], true)
    }

    /// What the node has minted is spent; what it can mint no more of its right comes back.
    fn settle(&mut self, me: &mut Member, now: i128, args: &Args) {
        let told = if args.ack == me.ack { me.told } else { 0 };
        let minted = (args.minted - told).max(0) * args.den;
        let mut left = me.out - minted;
        if left < 0 {
            let known = me.past.min(-left);
            me.past -= known;
            self.level = (self.level + left + known).max(-args.full);
            left = 0;
        }
        let mut beyond = (left - args.most_out(me.share)).max(0);
        left -= beyond;
        me.out = left;
        if args.leaves {
            me.out = 0;
        } else if args.ack == me.seq {
            let end = now.min(me.seen + args.membership);
            let again = (end - me.seen - args.silence).max(0);
            let right = part(args.refill(again), me.share);
            me.out = left.min(right);
            me.heard = me.seen;
            me.past = 0;
            beyond = beyond.min(right - me.out);
        }
        let most = args.refill(args.membership);
        me.past = (me.past + beyond).min(most);
        self.level += left - me.out;
    }

    /// A node's part of all demand.
    fn weight(&self, me: &Member) -> i128 {
        let others: i128 = self.members.values().map(|member| member.demand).sum();
        match me.demand {
            0 => 0,
            demand => demand * WHOLE / (demand + others),
        }
    }

    fn share(&self, me: &Member, weight: i128) -> i128 {
        if me.demand == 0 {
            return 0;
        }
        let others: i128 = self.members.values().map(|member| member.share).sum();
        let fair = i128::midpoint(weight, WHOLE / (self.nodes() + 1));
        fair.min(WHOLE - others).max(0)
    }

    fn lent(&self, now: i128) -> i128 {
        let unexpired = self.members.values().filter(|member| member.expires > now);
        unexpired.map(|member| member.hold).sum()
    }
}
