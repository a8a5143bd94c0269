//! One node by itself: what it has when Redis answers, when it does not, and when it has forgotten.

mod give_back;

use std::time::Duration;

use tidegate::{Retry, Timestamp};
use tidegate_redis::{LeaseNode, LeaseReply, LeaseRequest, LeaseState, NodeId, Scheme};

use super::terms;

const START: Timestamp = Timestamp::from_secs(1_000);
const HALF: u64 = u64::MAX / 2;
const REPLY: LeaseReply = LeaseReply {
    granted: 0,
    kept: 0,
    share: 0,
    nodes: 1,
    remaining: 0,
    before: 0,
    window: 0,
    taken: 0,
    ends_micros: 0,
};

struct Cluster {
    node: LeaseNode,
    now: Timestamp,
}

impl Cluster {
    fn new() -> Self {
        Self::known_since(START)
    }

    fn known_since(start: Timestamp) -> Self {
        let node = LeaseNode::new(terms(Scheme::Strict), NodeId(1), start);
        Self { node, now: START }
    }

    /// One that was asked for 20,000 permits a second, for long enough to be sure of it.
    fn wanted() -> Self {
        let cluster = Self::known_since(Timestamp::from_millis(999_999));
        assert_eq!(cluster.pass(20), 0);
        cluster
    }

    fn after(&mut self, millis: u64) -> &mut Self {
        self.now = self.now.after(Duration::from_millis(millis));
        self
    }

    /// How many of so many single permits pass.
    fn pass(&self, asked: u64) -> u64 {
        (0..asked)
            .filter(|_| self.node.check(self.now, 1).decision.is_allowed())
            .count() as u64
    }

    fn ask(&self) -> LeaseRequest {
        self.refresh_now().unwrap()
    }

    fn refresh_now(&self) -> Option<LeaseRequest> {
        self.node.refresh(self.now)
    }

    fn is_due(&self) -> bool {
        self.node.check(self.now, 1).is_due
    }

    fn answer(&mut self, request: &LeaseRequest, reply: LeaseReply) {
        self.after(1);
        self.node.answered(request, &reply, self.now, HALF);
    }

    /// Asks, and gets so many on top of what it had, and a share.
    fn refresh(&mut self, granted: u64, share: u64) {
        let request = self.ask();
        let reply = LeaseReply {
            granted,
            share,
            kept: request.held,
            before: request.seq - 1,
            ..REPLY
        };
        self.answer(&request, reply);
    }

    fn fail(&mut self) -> LeaseRequest {
        let request = self.ask();
        self.after(15);
        self.node.failed(&request, self.now, HALF);
        request
    }
}

#[test]
fn a_new_key_asks_at_once_and_has_what_it_is_granted() {
    let mut cluster = Cluster::new();
    let checked = cluster.node.check(cluster.now, 1);
    assert!(checked.decision.is_denied() && checked.is_due);
    assert_eq!(cluster.node.state(cluster.now), LeaseState::Closed);
    let request = cluster.ask();
    assert_eq!(
        (request.seq, request.ack, request.held, request.leaves),
        (1, 0, 0, false)
    );
    // One in what counts as a millisecond: 1,000 a second for 29 ms, and 15 % more.
    assert_eq!((request.demand, request.want), (1_000, 34));
    // One call at a time.
    assert_eq!(cluster.node.refresh(cluster.now), None);
    assert!(!cluster.is_due());
    cluster.answer(
        &request,
        LeaseReply {
            granted: 34,
            ..REPLY
        },
    );
    assert_eq!(cluster.node.state(cluster.now), LeaseState::Leased);
    let decision = cluster.node.check(cluster.now, 4).decision;
    assert!(decision.is_allowed());
    assert_eq!((decision.remaining, decision.limit), (30, 2_000));
    assert_eq!(cluster.pass(40), 30);
}

#[test]
fn a_lease_ends_before_it_does_in_redis() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(100, 0);
    // Sent at 0: 250 ms less a thousandth.
    cluster.now = START.after(Duration::from_micros(249_749));
    assert_eq!(cluster.pass(10), 10);
    cluster.now = START.after(Duration::from_micros(249_750));
    assert_eq!(cluster.pass(10), 0);
    // And what was left of it is not claimed again.
    assert_eq!(cluster.ask().held, 0);
}

#[test]
fn a_refused_caller_is_told_the_next_refresh() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(0, 0);
    let decision = cluster.node.check(cluster.now, 1).decision;
    // Chance is a half: 25 ms after the call, of which 1 has passed.
    let wait = decision.retry_after().unwrap();
    assert!(
        wait.abs_diff(Duration::from_millis(24)) < Duration::from_micros(10),
        "{wait:?}"
    );
    let never = cluster.node.check(cluster.now, 1_501).decision;
    assert_eq!(never.retry(), Some(Retry::Never));
    assert!(cluster.node.check(cluster.now, 0).decision.is_allowed());
}

#[test]
fn a_lease_that_runs_low_is_refreshed_before_its_time_if_there_was_enough() {
    let mut cluster = Cluster::wanted();
    let request = cluster.ask();
    let reply = LeaseReply {
        granted: request.want,
        ..REPLY
    };
    cluster.answer(&request, reply);
    // 20,000 a second: 80 permits are 4 ms of them. Never before a quarter of the time.
    cluster.pass(request.want - 50);
    assert!(!cluster.is_due());
    assert!(cluster.after(6).is_due());
    // The bucket was empty: to ask again before the time is of no use.
    let request = cluster.ask();
    let reply = LeaseReply {
        granted: request.want - 1,
        kept: request.held,
        before: 1,
        ..REPLY
    };
    cluster.answer(&request, reply);
    cluster.pass(2_000);
    assert!(!cluster.after(10).is_due());
    assert!(cluster.after(20).is_due());
}

/// 75,000 a second to a key that nobody knew: 2,500 of them were refused while the bucket was full.
#[test]
fn a_rush_on_a_new_key_is_lent_what_it_needs_without_a_pause() {
    let mut cluster = Cluster::new();
    let (mut refused, mut calls) = (0, 0);
    let mut under_way: Option<(LeaseRequest, u64)> = None;
    for milli in 0..20 {
        if let Some((request, _)) = under_way.take_if(|(_, sent)| *sent < milli) {
            let reply = LeaseReply {
                granted: request.want,
                kept: request.held,
                before: request.seq - 1,
                ..REPLY
            };
            cluster.node.answered(&request, &reply, cluster.now, HALF);
        }
        for _ in 0..75 {
            let checked = cluster.node.check(cluster.now, 1);
            refused += u64::from(checked.decision.is_denied());
            if checked.is_due
                && let Some(request) = cluster.refresh_now()
            {
                // Who is refused now had better wait for it.
                assert!(cluster.node.has_more_to_come(cluster.now));
                under_way = Some((request, milli));
                calls += 1;
            }
        }
        cluster.after(1);
    }
    // Round trips of a millisecond: the first for one permit, the second for what was seen of a
    // millisecond, a third for the rest.
    assert!(refused <= 3 * 75, "{refused}");
    assert!((2..=5).contains(&calls), "{calls}");
}

/// The same to a key of which a node has a small lease, of which nothing was wanted just now.
#[test]
fn a_rush_on_a_quiet_key_is_lent_what_it_needs_without_a_pause() {
    let mut cluster = Cluster::new();
    assert!(cluster.is_due());
    cluster.refresh(40, 0);
    // Right after a refresh that wanted next to nothing.
    cluster.after(25).refresh(1, 0);
    assert!(cluster.pass(75) < 41);
    assert!(cluster.is_due());
    assert!(cluster.node.has_more_to_come(cluster.now));
    assert!(cluster.ask().want > 1_000);
}

/// Where the bucket always has enough, but nobody ever stays: each call would be followed by one.
#[test]
fn refreshes_follow_each_other_at_once_a_few_times_only() {
    let mut cluster = Cluster::wanted();
    let mut calls = 0;
    for _ in 0..20 {
        let Some(request) = cluster.is_due().then(|| cluster.ask()) else {
            break;
        };
        calls += 1;
        // Refused while it is under way.
        cluster.pass(2_000);
        let reply = LeaseReply {
            granted: request.want,
            before: request.seq - 1,
            ..REPLY
        };
        cluster.answer(&request, reply);
        cluster.pass(2_000);
    }
    assert_eq!(calls, 4);
    assert!(!cluster.node.has_more_to_come(cluster.now));
}

#[test]
fn surplus_goes_back_and_an_idle_key_leaves() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(600, 1_000_000);
    let mut returned = 0;
    for _ in 0..60 {
        let Some(request) = cluster.after(25).refresh_now() else {
            break;
        };
        returned += request.returned;
        let (kept, before) = (request.held, request.seq - 1);
        cluster.answer(
            &request,
            LeaseReply {
                kept,
                before,
                share: 1_000_000,
                ..REPLY
            },
        );
        if request.leaves {
            assert_eq!((request.held, request.share, request.demand), (0, 0, 0));
        }
    }
    assert!(cluster.node.has_left());
    assert_eq!(returned, 600);
    assert_eq!(cluster.pass(10), 0);
}

#[test]
fn a_key_that_is_asked_for_once_is_put_to_rest_after_one_refresh_and_leaves_with_its_lease() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.pass(1), 0);
    cluster.refresh(34, 1_000_000);
    // Who was refused comes again, which is no further demand.
    assert_eq!(cluster.pass(1), 1);
    let request = cluster.after(24).ask();
    assert_eq!((request.demand, request.share, request.want), (0, 0, 0));
    assert_eq!((request.held, request.returned), (2, 31));
    assert!(!request.leaves);
    let kept = LeaseReply {
        kept: 2,
        before: 1,
        ..REPLY
    };
    cluster.answer(&request, kept);
    // Sent at 25 ms; it is looked at again when the lease of 250 ms has ended.
    let due = START.after(Duration::from_micros(25_000 + 250_000 + 2_500));
    let next = cluster.node.next_refresh();
    assert!(
        next.since(START).abs_diff(due.since(START)) < Duration::from_micros(1),
        "{next:?}"
    );
    cluster.now = next;
    assert!(cluster.ask().leaves);
}

#[test]
fn a_key_at_rest_is_refreshed_for_the_first_who_asks() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.pass(1), 0);
    cluster.refresh(34, 1_000_000);
    cluster.after(24).refresh(0, 0);
    let now = cluster.after(100).now;
    let checked = cluster.node.check(now, 1);
    assert!(checked.decision.is_allowed() && checked.is_due);
    // As for a new key: how long it rested says nothing.
    let request = cluster.ask();
    assert_eq!((request.demand, request.want), (1_000, 33));
}

/// Who asks meanwhile waits for the next lease: it is not refused, nor told that Redis is away.
#[test]
fn a_key_that_is_just_being_given_back_is_not_one_whose_redis_is_away() {
    let mut cluster = Cluster::wanted();
    assert!(!cluster.node.is_leaving(), "Redis has not answered yet");
    cluster.refresh(600, 1_000_000);
    assert!(!cluster.node.is_leaving());
    let request = loop {
        let request = cluster.after(25).refresh_now().unwrap();
        if request.leaves {
            break request;
        }
        let (kept, before) = (request.held, request.seq - 1);
        let reply = LeaseReply {
            kept,
            before,
            share: 1_000_000,
            ..REPLY
        };
        cluster.answer(&request, reply);
    };
    assert!(cluster.node.is_leaving() && !cluster.node.has_left());
    cluster.answer(&request, REPLY);
    assert!(cluster.node.is_leaving() && cluster.node.has_left());

    let mut cluster = Cluster::wanted();
    cluster.refresh(100, 0);
    for _ in 0..60 {
        let now = cluster.after(25).now;
        if let Some(request) = cluster.refresh_now() {
            cluster.node.failed(&request, now, u64::MAX / 2);
        }
        assert!(cluster.pass(1) <= 1);
    }
    assert!(!cluster.node.is_leaving(), "Redis is away");
}

#[test]
fn what_redis_does_not_count_is_gone() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(100, 0);
    let request = cluster.after(25).ask();
    assert_eq!(request.held, 100);
    assert_eq!(cluster.pass(10), 10);
    cluster.answer(
        &request,
        LeaseReply {
            granted: 7,
            kept: 30,
            before: 1,
            ..REPLY
        },
    );
    assert_eq!(cluster.pass(100), 100 - 10 - 70 + 7);
}

/// `burst of the local mint buckets`.
#[test]
fn a_node_mints_its_share_and_saves_up_no_more_than_a_refresh_of_it() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(0, 500_000);
    cluster.after(25).fail();
    assert_eq!(cluster.pass(1_000), 0, "75 ms of silence come first");
    cluster.now = START.after(Duration::from_millis(500));
    assert_eq!(cluster.node.state(cluster.now), LeaseState::Minting);
    // Half of 20 per ms: 25 ms of that at once.
    assert_eq!(cluster.pass(1_000), 250);
    // 10 ms: 100, less a thousandth that the clock may be fast.
    assert_eq!(cluster.after(10).pass(1_000), 99);
    // The right ends with the membership, by a clock that may be slow.
    cluster.now = START.after(Duration::from_millis(2_996));
    assert_eq!(cluster.pass(1_000), 250);
    cluster.now = START.after(Duration::from_millis(2_997));
    assert_eq!(cluster.pass(1_000), 0);
    assert_eq!(cluster.node.state(cluster.now), LeaseState::Closed);
    let request = cluster.ask();
    assert_eq!((request.minted, request.share), (250 + 99 + 250, 0));
}

#[test]
fn what_was_minted_is_told_until_an_answer_comes() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(0, 1_000_000);
    cluster.after(25).fail();
    assert_eq!(cluster.after(400).pass(100), 100);
    assert_eq!(cluster.fail().minted, 100);
    let request = cluster.after(100).ask();
    assert_eq!((request.minted, request.ack), (100, 1));
    // While the answer is on its way it goes on.
    assert_eq!(cluster.pass(20), 20);
    cluster.answer(
        &request,
        LeaseReply {
            before: 1,
            share: 1_000_000,
            ..REPLY
        },
    );
    assert_eq!(cluster.pass(20), 0);
    let request = cluster.after(25).ask();
    assert_eq!((request.minted, request.ack), (20, request.seq - 1));
}

#[test]
fn grants_that_redis_has_forgotten_are_owed() {
    let mut cluster = Cluster::wanted();
    for granted in [300, 200, 100] {
        cluster.refresh(granted, 0);
        assert_eq!(cluster.pass(1_000), granted);
        cluster.after(24);
    }
    // It knows call 1 and no other: 200 and 100 are owed.
    let request = cluster.ask();
    assert_eq!(request.seq, 4);
    cluster.answer(
        &request,
        LeaseReply {
            granted: 5,
            before: 1,
            ..REPLY
        },
    );
    let request = cluster.after(25).ask();
    assert_eq!(request.minted, 300);
    // Told once.
    cluster.answer(
        &request,
        LeaseReply {
            kept: request.held,
            before: 4,
            ..REPLY
        },
    );
    assert_eq!(cluster.after(25).ask().minted, 0);
}

#[test]
fn an_answer_that_comes_too_late_is_none() {
    let mut cluster = Cluster::wanted();
    let request = cluster.fail();
    let late = LeaseReply {
        granted: 100,
        ..REPLY
    };
    cluster.answer(&request, late);
    assert_eq!(cluster.pass(10), 0);
}

#[test]
fn threads_that_share_a_lease_pass_exactly_what_was_granted() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(1_000, 0);
    let cluster = &cluster;
    let passed: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| cluster.pass(400))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(passed, 1_000);
}
