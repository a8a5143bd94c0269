//! Histories that broke others, or an earlier design: each a few steps long. The flaws are those
//! of a double window kept with MGET, INCR and DECR by each node's clock; the rules are those
//! without which a node's share is not safe.

use std::time::Duration;

use tidegate::{Retry, Timestamp};
use tidegate_redis::concurrency::{
    Asked, ConcurrencyOptions, DoubleWindow, Event, NodeShare, OnLeaseLost, Places, Request,
    Scheme, Slots,
};
use tidegate_sim::redis_concurrency::{DoubleWindowModel, NodeShareModel, ScriptModel, SlotsModel};

const LEASE: Duration = Duration::from_secs(6);
const LEASE_US: u64 = 6_000_000;
/// The beginning of a window.
const BEGIN_US: u64 = 1_790_000_004_000_000;

/// Redis and a clock that all share, unless a step says otherwise.
struct Scene<M> {
    redis: M,
    us: u64,
}

impl<M: ScriptModel + Default> Scene<M> {
    fn new() -> Self {
        assert_eq!(BEGIN_US % LEASE_US, 0);
        Self {
            redis: M::default(),
            us: BEGIN_US,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_nanos((self.us - BEGIN_US + 1_000_000) * 1_000)
    }

    fn goes_on(&mut self, ms: u64) {
        self.us += ms * 1_000;
    }

    fn run(&mut self, request: &Request) -> Vec<i64> {
        self.redis.call(self.us, &request.args)
    }

    /// Makes calls until there are none to make now.
    fn settle(&mut self, node: &mut dyn Places) -> Vec<Event> {
        while let Some(request) = node.poll(self.now()) {
            let answer = self.run(&request);
            assert!(node.answered(self.now(), Some(&answer)));
        }
        node.take_events()
    }

    /// Whether somebody who asks gets in; under which ticket.
    fn take(&mut self, node: &mut dyn Places, permits: u64) -> Option<u64> {
        match node.ask(self.now(), permits) {
            Asked::Granted(ticket) => Some(ticket),
            Asked::Waits(ticket) => self
                .settle(node)
                .contains(&Event::Granted(ticket))
                .then_some(ticket),
            Asked::Denied(_) | Asked::Unavailable => None,
        }
    }
}

fn options(limit: u64) -> ConcurrencyOptions {
    ConcurrencyOptions::new(limit).ttl(LEASE).window(LEASE)
}

fn double_window(limit: u64, seed: u64) -> DoubleWindow {
    let options = options(limit).scheme(Scheme::DoubleWindow);
    DoubleWindow::new(&options, seed)
}

type Windows = Scene<DoubleWindowModel>;

#[test]
fn flaw_1_to_look_and_to_count_are_one_step() {
    let mut scene = Windows::new();
    let mut nodes: Vec<_> = (0..5).map(|seed| double_window(2, seed)).collect();
    // All of them ask before any of them is answered.
    let asks: Vec<_> = nodes
        .iter_mut()
        .map(|node| {
            assert!(matches!(node.ask(scene.now(), 1), Asked::Waits(_)));
            node.poll(scene.now()).unwrap()
        })
        .collect();
    let got: i64 = asks.iter().map(|ask| scene.run(ask)[4]).sum();
    assert_eq!(got, 2);
}

#[test]
fn flaw_2_the_end_is_taken_from_the_window_of_the_beginning() {
    let mut scene = Windows::new();
    let mut node = double_window(1, 1);
    for _ in 0..20 {
        let ticket = scene.take(&mut node, 1).expect("nobody else is inside");
        // Into the next window, without moving.
        scene.us += LEASE_US;
        node.give_back(scene.now(), ticket);
        scene.settle(&mut node);
        assert_eq!(scene.redis.inside(scene.us, LEASE_US), 0);
        assert_eq!(scene.redis.windows(), 0);
    }
    assert!(scene.take(&mut node, 1).is_some() && scene.take(&mut node, 1).is_none());
}

#[test]
fn flaw_3_a_move_neither_dips_nor_doubles() {
    let mut scene = Windows::new();
    let (mut node, mut other) = (double_window(3, 1), double_window(3, 2));
    let ticket = scene.take(&mut node, 3).unwrap();
    scene.us += LEASE_US;
    let moves = node.poll(scene.now()).unwrap();
    let answer = scene.run(&moves);
    assert_eq!(scene.redis.inside(scene.us, LEASE_US), 3);
    assert!(scene.take(&mut other, 1).is_none());
    // It ends while the answer is on its way: it is taken from the window it has moved to.
    node.give_back(scene.now(), ticket);
    assert!(node.poll(scene.now()).is_none(), "one call at a time");
    node.answered(scene.now(), Some(&answer));
    scene.settle(&mut node);
    assert_eq!(scene.redis.inside(scene.us, LEASE_US), 0);
}

#[test]
fn flaw_4_windows_are_named_by_one_clock() {
    let mut scene = Windows::new();
    let mut ahead = double_window(1, 1);
    let mut behind = double_window(1, 2);
    // A node that is a day ahead, and one at its beginning.
    let tomorrow = Timestamp::from_secs(90_000);
    ahead.ask(tomorrow, 1);
    let request = ahead.poll(tomorrow).unwrap();
    let answer = scene.run(&request);
    ahead.answered(tomorrow, Some(&answer));
    assert!(matches!(ahead.take_events()[..], [Event::Granted(_)]));
    assert!(scene.take(&mut behind, 1).is_none());
}

#[test]
fn flaw_5_who_could_not_move_in_time_is_told_before_others_come() {
    let mut scene = Windows::new();
    let (mut node, mut other) = (double_window(1, 1), double_window(1, 2));
    // Late in its window, which is the worst case.
    scene.goes_on(5_900);
    let ticket = scene.take(&mut node, 1).unwrap();
    let mut told = false;
    for _ in 0..200 {
        scene.goes_on(100);
        // It is cut off: whatever it sends is lost.
        if node.poll(scene.now()).is_some() {
            node.answered(scene.now(), None);
        }
        told |= node.take_events().contains(&Event::Lost(ticket));
        if let Some(theirs) = scene.take(&mut other, 1) {
            assert!(told, "two in flight");
            other.give_back(scene.now(), theirs);
            scene.settle(&mut other);
        }
    }
    assert!(told);
    // It is counted again when it is back, for as long as it takes to stop.
    scene.goes_on(600);
    scene.settle(&mut node);
    assert!(scene.take(&mut other, 1).is_none());
}

#[test]
fn flaw_6_an_end_in_a_window_that_is_over_leaves_nothing_behind() {
    let mut scene = Windows::new();
    let mut node = double_window(5, 1);
    let ticket = scene.take(&mut node, 2).unwrap();
    scene.us += 5 * LEASE_US;
    node.give_back(scene.now(), ticket);
    scene.settle(&mut node);
    assert_eq!(scene.redis.windows(), 0);
    assert_eq!(node.next(), None, "it may be forgotten");
}

#[test]
fn flaw_7_calls_without_an_answer_count_too_much_at_most() {
    let mut scene = Windows::new();
    let (mut node, mut other) = (double_window(2, 1), double_window(2, 2));
    let theirs = scene.take(&mut other, 1).unwrap();
    let ours = scene.take(&mut node, 1).unwrap();
    node.give_back(scene.now(), ours);
    // The end has been counted, and its answer is lost: it is not counted again.
    let end = node.poll(scene.now()).unwrap();
    scene.run(&end);
    node.answered(scene.now(), None);
    scene.goes_on(1_000);
    scene.settle(&mut node);
    assert_eq!(scene.redis.inside(scene.us, LEASE_US), 1);
    // A beginning without an answer is counted until its window is over.
    node.ask(scene.now(), 1);
    let begins = node.poll(scene.now()).unwrap();
    scene.run(&begins);
    node.answered(scene.now(), None);
    assert!(matches!(node.take_events()[..], [Event::Unavailable(_)]));
    assert_eq!(scene.redis.inside(scene.us, LEASE_US), 2);
    other.give_back(scene.now(), theirs);
    scene.settle(&mut other);
    scene.us += 2 * LEASE_US;
    assert!(scene.take(&mut node, 2).is_some());
}

#[test]
fn flaw_8_places_of_the_killed_are_free_after_two_windows() {
    let mut scene = Windows::new();
    let mut killed = double_window(2, 1);
    scene.take(&mut killed, 2).unwrap();
    let mut other = double_window(2, 2);
    scene.us += 2 * LEASE_US - 1;
    assert!(scene.take(&mut other, 1).is_none());
    scene.us += 1;
    assert!(scene.take(&mut other, 2).is_some());
}

#[test]
fn flaw_9_nodes_do_not_all_move_at_once() {
    let mut scene = Windows::new();
    let mut moves: Vec<_> = (0..50)
        .map(|seed| {
            let mut node = double_window(100, seed);
            scene.take(&mut node, 1).unwrap();
            scene.settle(&mut node);
            node.next().unwrap()
        })
        .collect();
    moves.sort();
    let spread = moves[49].since(moves[0]);
    assert!(
        spread > LEASE / 20 && moves[49].since(scene.now()) <= LEASE / 2,
        "{spread:?}"
    );
    moves.dedup();
    assert!(moves.len() > 45);
}

type Shares = Scene<NodeShareModel>;

fn node_share(limit: u64, incarnation: u64) -> NodeShare {
    NodeShare::new(&options(limit), incarnation)
}

/// Without it: an answer is lost, Redis has given away what the node goes on using.
#[test]
fn rule_1_redis_never_makes_a_share_smaller_than_what_the_node_may_be_using() {
    let mut scene = Shares::new();
    let (mut a, mut b) = (node_share(8, 1), node_share(8, 2));
    let mut held = Vec::new();
    while let Some(ticket) = scene.take(&mut a, 1) {
        held.push(ticket);
    }
    assert_eq!(held.len(), 8);
    // Its requests end, and others want everything: Redis would like to divide anew.
    for ticket in held {
        a.give_back(scene.now(), ticket);
    }
    assert!(scene.take(&mut b, 8).is_none());
    scene.goes_on(2_000);
    let beat = a.poll(scene.now()).unwrap();
    let answer = scene.run(&beat);
    assert!(answer[1] < answer[0], "{answer:?}");
    // That is lost on its way.
    a.answered(scene.now(), None);
    let ours = (0..8)
        .filter(|_| matches!(a.ask(scene.now(), 1), Asked::Granted(_)))
        .count();
    assert!(ours > 2);
    scene.goes_on(100);
    let theirs = (0..8).filter(|_| scene.take(&mut b, 1).is_some()).count();
    assert!(ours + theirs <= 8, "{ours} and {theirs} in flight");
}

/// Without it: a call that comes late makes the entry smaller than what is in use.
#[test]
fn rule_2_a_late_call_does_not_overwrite_a_newer_one() {
    let mut scene = Shares::new();
    let (mut a, mut b) = (node_share(2, 1), node_share(2, 2));
    let first = scene.take(&mut a, 1).unwrap();
    a.give_back(scene.now(), first);
    // It says that it wants nothing, and that is under way for long.
    let late = loop {
        scene.goes_on(500);
        if let Some(request) = a.poll(scene.now()) {
            a.answered(scene.now(), None);
            if request.args[4] == b"0" {
                break request;
            }
        }
    };
    scene.goes_on(600);
    let in_use = scene.take(&mut a, 2);
    assert!(in_use.is_some());
    assert_eq!(scene.run(&late)[0], -1);
    assert_eq!(scene.redis.granted(scene.us), 2);
    assert!(scene.take(&mut b, 1).is_none(), "three in flight");
}

#[test]
fn what_a_node_does_when_it_is_cut_off_is_as_it_was_told() {
    for what in [OnLeaseLost::Cancel, OnLeaseLost::Drain, OnLeaseLost::Ignore] {
        let mut scene = Shares::new();
        let mut node = NodeShare::new(&options(4).on_lease_lost(what), 1);
        let ticket = scene.take(&mut node, 1).unwrap();
        let other = scene.take(&mut node, 1).unwrap();
        node.give_back(scene.now(), other);
        scene.goes_on(5_996);
        node.lapse(scene.now());
        assert_eq!(
            node.take_events(),
            [],
            "{what:?}: not before its lease ends"
        );
        scene.goes_on(1);
        node.lapse(scene.now());
        assert_eq!(
            node.take_events(),
            [Event::Lost(ticket)],
            "500 ppm before Redis's ttl"
        );
        let asked = node.ask(scene.now(), 1);
        let goes_on = matches!(asked, Asked::Granted(_));
        assert_eq!(goes_on, what == OnLeaseLost::Ignore, "{asked:?}");
    }
}

#[test]
fn a_storm_of_refused_requests_makes_few_calls() {
    let mut scene = Shares::new();
    let (mut a, mut b) = (node_share(4, 1), node_share(4, 2));
    scene.take(&mut a, 4).unwrap();
    let mut calls = 0;
    for _ in 0..10_000 {
        scene.us += 100;
        match b.ask(scene.now(), 1) {
            Asked::Waits(_) => {
                let request = b.poll(scene.now()).unwrap();
                let answer = scene.run(&request);
                b.answered(scene.now(), Some(&answer));
                calls += 1;
            }
            asked => assert_eq!(asked, Asked::Denied(Retry::OnRelease)),
        }
    }
    // A second; a hundred for each beat of 2 s, and no more.
    assert!((40..=50).contains(&calls), "{calls}");
}

#[test]
fn places_go_to_those_who_lack_some_with_the_next_beat() {
    let mut scene = Shares::new();
    let (mut a, mut b) = (node_share(4, 1), node_share(4, 2));
    // `a` has all of them, and goes on asking for all.
    let mut held: Vec<_> = (0..4).filter_map(|_| scene.take(&mut a, 1)).collect();
    assert_eq!(held.len(), 4);
    assert!(scene.take(&mut b, 4).is_none());
    for _ in 0..2 {
        a.give_back(scene.now(), held.pop().unwrap());
    }
    scene.goes_on(2_000);
    scene.settle(&mut a);
    assert!(scene.take(&mut b, 2).is_some());
    assert!(scene.take(&mut b, 1).is_none());
}

#[test]
fn a_killed_holder_of_slots_is_lost_for_good() {
    let mut scene = Scene::<SlotsModel>::new();
    let mut node = Slots::new(&options(2).scheme(Scheme::Slots), 3);
    let ticket = scene.take(&mut node, 2).unwrap();
    assert_eq!(scene.redis.kill("0:3", ticket), 2);
    scene.goes_on(2_000);
    assert_eq!(scene.settle(&mut node), [Event::Lost(ticket)]);
    assert!(scene.take(&mut node, 1).is_none(), "until it has ended");
    // It does not end, and its places expire: it does not take them again.
    scene.goes_on(7_000);
    assert!(scene.take(&mut node, 2).is_some());
    node.give_back(scene.now(), ticket);
    scene.settle(&mut node);
    assert!(scene.take(&mut node, 1).is_none());
}

/// Redis comes back empty, and others are there first.
fn who_finds_its_places_taken_has_lost_them<M: ScriptModel + Default>(
    mut a: impl Places,
    mut b: impl Places,
) {
    let mut scene = Scene::<M>::new();
    let first = scene.take(&mut a, 1).expect("free");
    let second = scene.take(&mut a, 1).expect("free");
    scene.redis = M::default();
    assert!(scene.take(&mut b, 1).is_some());
    scene.goes_on(2_000);
    let events = scene.settle(&mut a);
    assert_eq!(events, [Event::Lost(second)], "who came last");
    assert!(scene.take(&mut b, 1).is_none());
    a.give_back(scene.now(), second);
    a.give_back(scene.now(), first);
    scene.settle(&mut a);
    scene.goes_on(2_000);
    scene.settle(&mut a);
    scene.goes_on(2_000);
    assert!(scene.take(&mut b, 1).is_some());
}

#[test]
fn after_redis_lost_its_keys_shares_above_the_limit_are_lost() {
    let (a, b) = (node_share(2, 1), node_share(2, 2));
    who_finds_its_places_taken_has_lost_them::<NodeShareModel>(a, b);
}

#[test]
fn after_redis_lost_its_keys_slots_above_the_limit_are_lost() {
    let options = options(2).scheme(Scheme::Slots);
    let (a, b) = (Slots::new(&options, 1), Slots::new(&options, 2));
    who_finds_its_places_taken_has_lost_them::<SlotsModel>(a, b);
}

#[test]
fn what_a_call_without_an_answer_may_have_taken_is_freed() {
    let mut scene = Scene::<SlotsModel>::new();
    let options = options(2).scheme(Scheme::Slots);
    let (mut a, mut b) = (Slots::new(&options, 1), Slots::new(&options, 2));
    a.ask(scene.now(), 2);
    let taken = a.poll(scene.now()).unwrap();
    scene.run(&taken);
    a.answered(scene.now(), None);
    assert!(scene.take(&mut b, 1).is_none());
    scene.goes_on(30);
    scene.settle(&mut a);
    assert!(scene.take(&mut b, 2).is_some());
}
