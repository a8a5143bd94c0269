//! What the script of leased limits does, once more: a state machine over whole numbers, with time
//! as an argument. The real script has to agree with it answer by answer.

mod args;
mod member;

use std::collections::BTreeMap;

use tidegate_redis::ScriptCall;

use self::args::{Args, WHOLE, ceil, part};
use self::member::Member;

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
    /// When all members were last looked at.
    swept: i128,
    members: BTreeMap<String, Member>,
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
            swept: now,
            members: BTreeMap::new(),
        });
        if let Some(me) = state.members.get(&args.node)
            && args.seq <= me.seq
        {
            return [-1, 0, 0, 0, 0, me.seq, 0].map(in_64_bits);
        }
        let was_set_back = state.set_clock_back(now);
        let sweeps = was_set_back || now >= state.swept + args.sweep();
        let sweeps = sweeps && !state.members.is_empty();
        if sweeps {
            state.sweep(now, &args);
        } else {
            state.go_on(now, &args);
        }
        let (answer, is_changed) = if args.node == "-" {
            state.spend(&args)
        } else {
            (state.lease(now, &args), true)
        };
        if is_changed || was_set_back || sweeps {
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
        answer.map(in_64_bits)
    }

    /// The hash as Redis keeps it. `call` is any call of this key.
    pub fn fields(&self, call: &ScriptCall) -> BTreeMap<String, String> {
        let state = self.state.as_ref();
        state.map_or_else(BTreeMap::new, |state| state.fields(&Args::read(call)))
    }

    /// Whether what has to hold at all times holds: level, leases and what may be minted are
    /// within the burst, and shares within the whole. `call` is any call of this key.
    pub fn is_sound(&self, call: &ScriptCall) -> bool {
        let state = self.state.as_ref();
        state.is_none_or(|state| state.is_sound(&Args::read(call)))
    }

    /// All shares together, in millionths.
    pub fn shares(&self) -> i128 {
        let state = self.state.as_ref();
        state.map_or(0, |state| state.sum(|member| member.share))
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
}

fn in_64_bits(number: i128) -> i64 {
    i64::try_from(number).expect("below 2^53")
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
            member.since = member.since.map(|since| since - back);
        }
        true
    }

    /// Time passes, and nobody but who calls is looked at: who was silent at the last sweep, or
    /// could be before the next one, is taken to be silent since then.
    fn go_on(&mut self, now: i128, args: &Args) {
        let passed = now - self.last;
        self.refill(passed, part(args.refill(passed), self.silent()), args);
        let last = self.last;
        if let Some(me) = self.members.get_mut(&args.node) {
            let silent = if me.since.is_some() { passed } else { 0 };
            me.catch_up(last, now, silent, args);
        }
        self.last = now;
    }

    /// Time passes, and all members are looked at.
    fn sweep(&mut self, now: i128, args: &Args) {
        let (passed, last) = (now - self.last, self.last);
        if passed > args.silence {
            self.gap = (last, now);
        }
        let mut withheld = 0;
        for (name, member) in &mut self.members {
            let silent = member.silence(last, now, self.gap, args);
            withheld += part(args.refill(silent), member.share);
            member.catch_up(last, now, silent, args);
            let may_fall_silent = member.silence(now, now + args.sweep(), self.gap, args) > 0;
            member.since = (may_fall_silent && *name != args.node).then_some(now);
        }
        self.members.retain(|name, member| {
            now < member.seen + REMEMBERED * args.membership || *name == args.node
        });
        self.refill(passed, withheld, args);
        (self.last, self.swept) = (now, now);
    }

    fn refill(&mut self, passed: i128, withheld: i128, args: &Args) {
        self.level += args.refill(passed) - withheld;
        self.make_room(args);
    }

    /// The level is at most what is neither lent nor kept back.
    fn make_room(&mut self, args: &Args) {
        self.level = self.level.min(self.free(args));
    }

    fn free(&self, args: &Args) -> i128 {
        args.full - self.lent() * args.den - self.sum(|member| member.most_out(args))
    }

    fn is_sound(&self, args: &Args) -> bool {
        self.level <= self.free(args) && self.sum(|member| member.share) <= WHOLE
    }

    fn fields(&self, args: &Args) -> BTreeMap<String, String> {
        let nodes = self.members.iter();
        let mut fields: BTreeMap<_, _> = nodes
            .map(|(name, member)| (name.clone(), member.text()))
            .collect();
        let bucket = [
            self.level,
            self.last,
            self.gap.0,
            self.gap.1,
            self.swept,
            self.members.len() as i128,
            self.nodes(),
            self.sum(|member| member.demand),
            self.sum(|member| member.share),
            self.lent(),
            self.sum(|member| member.most_out(args)),
            self.silent(),
        ];
        fields.insert("b".to_owned(), bucket.map(|n| n.to_string()).join(":"));
        fields
    }

    fn sum(&self, of: impl Fn(&Member) -> i128) -> i128 {
        self.members.values().map(of).sum()
    }

    fn nodes(&self) -> i128 {
        self.sum(|member| i128::from(member.demand > 0))
    }

    fn lent(&self) -> i128 {
        self.sum(|member| member.hold)
    }

    /// The shares that are kept back.
    fn silent(&self) -> i128 {
        self.sum(|member| member.since.map_or(0, |_| member.share))
    }

    fn there(&self, args: &Args) -> i128 {
        self.level.div_euclid(args.den).max(0)
    }

    fn spend(&mut self, args: &Args) -> ([i128; 7], bool) {
        self.level += args.returned * args.den;
        self.make_room(args);
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

    fn lease(&mut self, now: i128, args: &Args) -> [i128; 7] {
        let newcomer = Member {
            seen: now - args.refresh,
            heard: now - args.refresh,
            ..Member::default()
        };
        let mut me = self.members.remove(&args.node).unwrap_or(newcomer);
        let before = me.seq;
        self.settle(&mut me, now, args);
        let kept = args.held.min(me.hold);
        self.level += args.returned.min(me.hold - kept) * args.den;
        me.demand = if args.leaves { 0 } else { args.demand };
        let weight = self.weight(&me);
        let share = self.share(&me, weight);
        me.share = share.max(args.share.min(me.share));

        let there = self.there(args);
        let room = (args.full - args.refill(args.refresh)) / args.den - self.lent() - kept;
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
            let next = self.swept + args.sweep();
            me.since = (me.silence(now, next, self.gap, args) > 0).then_some(now);
            self.members.insert(args.node.clone(), me);
            self.make_room(args);
        }
        [granted, kept, share, nodes, there - granted, before, 0]
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
        let mut beyond = (left - args.saved_up(me.share)).max(0);
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
        match me.demand {
            0 => 0,
            demand => demand * WHOLE / (demand + self.sum(|member| member.demand)),
        }
    }

    fn share(&self, me: &Member, weight: i128) -> i128 {
        if me.demand == 0 {
            return 0;
        }
        let others = self.sum(|member| member.share);
        let fair = i128::midpoint(weight, WHOLE / (self.nodes() + 1));
        fair.min(WHOLE - others).max(0)
    }
}
