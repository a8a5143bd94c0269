//! One node by itself, of a leased window: what it has, says, and when it asks.

use std::time::Duration;

use tidegate::{Retry, Timestamp};
use tidegate_redis::{LeaseNode, LeaseReply, LeaseRequest, LeaseState, LeaseTerms, NodeId};

const START: Timestamp = Timestamp::from_secs(1_000);
const HALF: u64 = u64::MAX / 2;
const MILLI: u64 = 1_000;

struct Cluster {
    node: LeaseNode,
    now: Timestamp,
}

/// Of window 7, which has 200 ms to go, and much in it.
const REPLY: LeaseReply = LeaseReply {
    granted: 0,
    kept: u64::MAX,
    share: 0,
    nodes: 1,
    remaining: 1_000,
    before: 0,
    window: 7,
    taken: 0,
    ends_micros: 200 * MILLI,
};

fn granted(permits: u64) -> LeaseReply {
    LeaseReply {
        granted: permits,
        taken: permits,
        ..REPLY
    }
}

impl Cluster {
    /// One of windows of 250 ms with 5,000 permits, that is asked for 20,000 a second.
    fn wanted() -> Self {
        let terms = LeaseTerms::window(5_000, Duration::from_millis(250)).unwrap();
        let cluster = Self {
            node: LeaseNode::new(terms, NodeId(1), START),
            now: START,
        };
        assert_eq!(cluster.pass(20), 0);
        cluster
    }

    fn after(&mut self, millis: u64) -> &mut Self {
        self.now = self.now.after(Duration::from_millis(millis));
        self
    }

    fn pass(&self, asked: u64) -> u64 {
        (0..asked)
            .filter(|_| self.node.check(self.now, 1).decision.is_allowed())
            .count() as u64
    }

    fn ask(&self) -> LeaseRequest {
        self.node.refresh(self.now).unwrap()
    }

    fn answer(&mut self, request: &LeaseRequest, reply: LeaseReply) {
        self.after(1);
        self.node.answered(request, &reply, self.now, HALF);
    }

    fn refresh(&mut self, reply: LeaseReply) -> LeaseRequest {
        let request = self.ask();
        self.answer(&request, reply);
        request
    }

    fn next_in(&self) -> Duration {
        self.node.next_refresh().since(self.now)
    }
}

#[test]
fn a_lease_of_a_window_ends_before_the_window_does_in_redis() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(granted(100));
    // Sent at 0: 200 ms, of which Redis may have cut a microsecond, less a thousandth.
    cluster.now = START.after(Duration::from_micros(199_798));
    assert_eq!(cluster.pass(10), 10);
    assert_eq!(cluster.node.state(cluster.now), LeaseState::Leased);
    cluster.now = START.after(Duration::from_micros(199_800));
    assert_eq!(cluster.pass(10), 0);
    assert_eq!(cluster.node.state(cluster.now), LeaseState::Closed);
    // What was left of it is given back, should Redis be in that window still.
    let request = cluster.ask();
    assert_eq!((request.held, request.window, request.taken), (0, 7, 10));
}

#[test]
fn permits_of_one_window_are_gone_when_an_answer_tells_of_the_next() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(granted(600));
    assert_eq!(cluster.pass(480), 480);
    let request = cluster.after(24).ask();
    assert_eq!((request.held, request.window, request.taken), (120, 7, 600));
    // One comes back while the call is on its way: more than it said it had.
    let lot = cluster.node.check(cluster.now, 1).lot;
    cluster.node.give_back(lot, cluster.now, 2);
    let next = LeaseReply {
        window: 8,
        ..granted(30)
    };
    cluster.answer(&request, next);
    assert_eq!(cluster.pass(200), 30);
}

#[test]
fn what_a_node_has_had_of_a_window_is_all_that_it_says() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(granted(600));
    assert_eq!(cluster.pass(440), 440);
    // An answer gets lost: what it would have brought is not in what is said next.
    let lost = cluster.after(24).ask();
    cluster.after(15);
    cluster.node.failed(&lost, cluster.now, HALF);
    let request = cluster.after(30).ask();
    assert_eq!((request.held, request.taken), (160, 600));
    // And it does not come to anything when it comes late.
    cluster.answer(&lost, granted(500));
    assert_eq!(cluster.node.refresh(cluster.now), None);
    let more = LeaseReply {
        granted: 50,
        taken: 650,
        ..REPLY
    };
    cluster.answer(&request, more);
    assert_eq!(cluster.pass(300), 160 + 50);
    assert_eq!(cluster.after(24).ask().taken, 650);
}

#[test]
fn what_a_node_gives_back_of_a_window_it_has_not_had() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(granted(600));
    let mut had = 600;
    let left = loop {
        let request = cluster.after(24).ask();
        had -= request.returned;
        assert_eq!(request.taken, had);
        if request.leaves {
            break request;
        }
        let reply = LeaseReply {
            taken: had,
            ..REPLY
        };
        cluster.answer(&request, reply);
    };
    assert_eq!((left.taken, left.held), (0, 0));
    assert_eq!(cluster.pass(10), 0);
}

#[test]
fn permits_are_given_back_to_the_window_that_they_are_of() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(granted(10));
    let first = cluster.node.check(cluster.now, 3).lot;
    assert_eq!(cluster.pass(20), 7);
    cluster.node.give_back(first, cluster.now, 3);
    assert_eq!(cluster.pass(20), 3);
    // Also after a call: what a node has had of a window it tells as one number, spent or not.
    let request = cluster.after(24).ask();
    let same = LeaseReply {
        taken: request.taken + 5,
        kept: request.held,
        ..granted(5)
    };
    cluster.answer(&request, same);
    cluster.node.give_back(first, cluster.now, 3);
    assert_eq!(cluster.pass(20), 8);
    let request = cluster.after(24).ask();
    let next = LeaseReply {
        window: 8,
        ..granted(5)
    };
    cluster.answer(&request, next);
    cluster.node.give_back(first, cluster.now, 3);
    let second = cluster.node.check(cluster.now, 3).lot;
    assert_eq!(cluster.pass(20), 2);
    // Nor to one that is over.
    cluster.after(300);
    cluster.node.give_back(second, cluster.now, 3);
    assert_eq!(cluster.pass(20), 0);
}

#[test]
fn a_node_asks_again_as_a_window_begins() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(granted(600));
    assert_eq!(cluster.next_in().as_millis(), 23);
    // 10 ms to go by Redis's clock: by then it is over there for sure.
    let soon = LeaseReply {
        ends_micros: 10 * MILLI,
        ..REPLY
    };
    assert_eq!(cluster.pass(480), 480);
    let request = cluster.after(24).ask();
    cluster.answer(&request, soon);
    assert_eq!(cluster.next_in(), Duration::from_millis(10));
    assert!(!cluster.node.has_more_to_come(cluster.now));
    let now = cluster.after(10).now;
    assert!(
        cluster.node.has_more_to_come(now),
        "the next one's are awaited"
    );
    assert!(cluster.node.check(now, 1).is_due);
    let request = cluster.ask();
    cluster.node.failed(&request, now, HALF);
    assert!(!cluster.node.has_more_to_come(now), "Redis is away");
}

#[test]
fn of_a_window_that_is_used_up_callers_are_told_the_end() {
    let mut cluster = Cluster::wanted();
    let used_up = LeaseReply {
        remaining: 0,
        ends_micros: 3_600_000 * MILLI,
        ..granted(10)
    };
    cluster.refresh(used_up);
    assert_eq!(cluster.pass(20), 10);
    let denied = cluster.node.check(cluster.now, 1);
    let hour = Duration::from_hours(1);
    let wait = denied.decision.retry_after().unwrap();
    assert!(wait < hour && wait > hour.mul_f64(0.998), "{wait:?}");
    assert_eq!(denied.decision.reset_after, wait);
    assert!(!denied.is_due, "nobody asks in vain");
    // Now and then others give some back.
    let next = cluster.next_in();
    assert!((1_400..1_500).contains(&next.as_millis()), "{next:?}");
    let never = cluster.node.check(cluster.now, 5_001).decision;
    assert_eq!(never.retry(), Some(Retry::Never));
}

#[test]
fn a_node_that_redis_may_have_forgotten_begins_anew() {
    let mut cluster = Cluster::wanted();
    let long = LeaseReply {
        ends_micros: 3_600_000 * MILLI,
        ..granted(10_000)
    };
    cluster.refresh(long);
    assert_eq!(cluster.pass(600), 600);
    let lost = cluster.after(24).ask();
    cluster.node.failed(&lost, cluster.now, HALF);
    // 30 s after the last call that was answered, less a thousandth.
    cluster.now = START.after(Duration::from_millis(29_969));
    assert_eq!(cluster.pass(5), 5);
    cluster.now = START.after(Duration::from_millis(29_970));
    let request = cluster.ask();
    assert_eq!((request.window, request.held), (0, 0));
    assert_eq!(cluster.pass(5), 0);
    cluster.answer(&request, granted(8));
    assert_eq!(cluster.pass(20), 8);
}

#[test]
fn nothing_is_minted_of_a_window() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(LeaseReply {
        ends_micros: 100_000,
        ..granted(10)
    });
    for _ in 0..100 {
        let now = cluster.after(25).now;
        if let Some(request) = cluster.node.refresh(now) {
            cluster.node.failed(&request, now, HALF);
        }
        if now > START.after(Duration::from_millis(100)) {
            assert_eq!(cluster.pass(10), 0);
            assert_eq!(cluster.node.state(now), LeaseState::Closed);
        }
    }
}

#[test]
fn a_node_that_nobody_asks_keeps_a_little_of_a_window_while_redis_is_away() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(LeaseReply {
        ends_micros: 3_600_000 * MILLI,
        ..granted(10)
    });
    // Longer than a bucket's lease is remembered for.
    for _ in 0..200 {
        let request = cluster.after(25).ask();
        cluster.node.failed(&request, cluster.now, HALF);
    }
    // What nobody seems to need was given up with a call, whether that was heard or not.
    assert_eq!(cluster.pass(20), 1);
}
