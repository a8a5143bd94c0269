//! What Redis notes of a window, call by call, on the model; the script answers as it does
//! (tests/redis/leased).

use std::time::Duration;

use tidegate_redis::{LeaseReply, LeaseRequest, LeaseTerms, NodeId};
use tidegate_sim::cluster_sim::window::SharedWindow;

const START: u64 = 1_790_000_000_000_000;
const MILLI: u64 = 1_000;
const PERMITS: u64 = 1_000;

/// Windows of 1 s with 1,000 permits, refreshed every 100 ms.
struct Redis {
    window: SharedWindow,
    terms: LeaseTerms,
    now: u64,
}

/// A node that is asked for 100 a second.
fn call(node: u64, seq: u64) -> LeaseRequest {
    LeaseRequest {
        node: NodeId(node),
        seq,
        ack: 0,
        demand: 100,
        held: 0,
        returned: 0,
        want: 0,
        minted: 0,
        share: 0,
        leaves: false,
        window: 0,
        taken: 0,
    }
}

impl Redis {
    fn new() -> Self {
        Self {
            window: SharedWindow::default(),
            terms: LeaseTerms::window(PERMITS, Duration::from_secs(1)).unwrap(),
            now: START,
        }
    }

    fn after(&mut self, micros: u64) -> &mut Self {
        self.now += micros;
        self
    }

    fn answer(&mut self, request: &LeaseRequest) -> Option<LeaseReply> {
        let answer = self.window.call(self.now, &request.call(b"k", &self.terms));
        LeaseReply::of(&self.terms, &answer).ok()
    }

    /// A node's call that wants so many, and what it is answered.
    fn wants(&mut self, want: u64, request: LeaseRequest) -> LeaseReply {
        self.answer(&LeaseRequest { want, ..request }).unwrap()
    }
}

/// What the node says next to such an answer.
fn with(reply: LeaseReply, request: LeaseRequest) -> LeaseRequest {
    LeaseRequest {
        window: reply.window,
        taken: reply.taken,
        ..request
    }
}

#[test]
fn a_window_begins_and_ends_with_the_clock() {
    let mut redis = Redis::new();
    let reply = redis.after(300 * MILLI).wants(400, call(1, 1));
    assert_eq!((reply.granted, reply.ends_micros), (400, 700 * MILLI));
    assert_eq!(reply.window, START);
    let last = redis
        .after(700 * MILLI - 1)
        .wants(900, with(reply, call(1, 2)));
    assert_eq!(
        (last.granted, last.taken, last.ends_micros),
        (600, 1_000, 1)
    );
    let next = redis.after(1).wants(900, with(last, call(1, 3)));
    assert_eq!((next.granted, next.taken), (900, 900));
    assert_eq!(
        (next.window, next.ends_micros),
        (START + 1_000 * MILLI, 1_000 * MILLI)
    );
}

#[test]
fn an_answer_that_is_lost_gives_back_what_it_would_have_brought() {
    let mut redis = Redis::new();
    let _lost = redis.wants(700, call(1, 1));
    let reply = redis.wants(100, call(1, 2));
    assert_eq!(
        (reply.granted, reply.taken, reply.remaining),
        (100, 100, 900)
    );
    // In the middle of a window, too.
    let _lost = redis.wants(700, with(reply, call(1, 3)));
    let reply = redis.wants(900, with(reply, call(1, 4)));
    assert_eq!((reply.granted, reply.taken), (900, 1_000));
}

#[test]
fn a_call_that_is_doubled_or_late_changes_nothing() {
    let mut redis = Redis::new();
    let first = redis.wants(300, call(1, 1));
    let returns = LeaseRequest {
        taken: 100,
        ..with(first, call(1, 2))
    };
    redis.wants(0, returns);
    assert_eq!(redis.window.given(), 100);
    let taken_anew = redis.wants(200, LeaseRequest { seq: 3, ..returns });
    assert_eq!(taken_anew.taken, 300);
    for late in [call(1, 1), returns, LeaseRequest { seq: 3, ..returns }] {
        assert_eq!(redis.answer(&LeaseRequest { want: 50, ..late }), None);
    }
    assert_eq!(redis.window.given(), 300);
}

#[test]
fn what_redis_has_lost_it_is_told_again() {
    let mut redis = Redis::new();
    let (one, two) = (redis.wants(400, call(1, 1)), redis.wants(500, call(2, 1)));
    redis.window = SharedWindow::default();
    let again = redis.after(50 * MILLI).wants(300, with(one, call(1, 2)));
    // Node 2 has not been heard of yet: that is what a loss costs.
    assert_eq!((again.granted, again.taken), (300, 700));
    let reply = redis.wants(300, with(two, call(2, 2)));
    assert_eq!((reply.granted, reply.taken, reply.remaining), (0, 500, 0));
}

#[test]
fn who_leaves_gives_back_what_is_unspent_and_no_more() {
    let mut redis = Redis::new();
    let reply = redis.wants(400, call(1, 1));
    let leaving = LeaseRequest {
        taken: 150,
        demand: 0,
        leaves: true,
        ..with(reply, call(1, 2))
    };
    redis.wants(100, leaving);
    let rest = redis.wants(1_000, call(2, 1));
    assert_eq!((rest.granted, rest.nodes), (850, 1));
}

/// The last ones, too: a part of one permit is one.
#[test]
fn nodes_have_a_window_by_demand_and_to_the_last_permit() {
    let mut redis = Redis::new();
    let demand = 20_000;
    let first = |node| LeaseRequest {
        demand,
        ..call(node, 1)
    };
    let mut replies = [1, 2, 3].map(|node| redis.wants(0, first(node)));
    let mut all = 0;
    for round in 2..30 {
        for node in 1..=3 {
            let asked = LeaseRequest {
                demand,
                ..with(replies[node as usize - 1], call(node, round))
            };
            let reply = redis.wants(2_300, asked);
            replies[node as usize - 1] = reply;
            all += reply.granted;
        }
    }
    assert_eq!(all, PERMITS);
    assert!(replies.iter().all(|reply| reply.taken > 200), "{replies:?}");
}

/// 60 s are set back, and come again: what was noted of the windows then is of no other.
#[test]
fn a_window_that_comes_again_has_another_name() {
    let mut redis = Redis::new();
    let first = redis.after(60_000 * MILLI).wants(400, call(1, 1));
    redis.now -= 5_000 * MILLI;
    // It goes on, in the clock's own window.
    let same = redis.wants(0, with(first, call(1, 2)));
    assert_eq!((same.window, same.taken), (first.window, 400));
    assert_eq!((same.remaining, same.ends_micros), (600, 1_000 * MILLI));
    for second in 1..=5 {
        redis.after(1_000 * MILLI);
        let reply = redis.wants(300, call(2, second));
        assert_eq!(reply.granted, 300, "{second}");
        assert_ne!(reply.window, first.window);
    }
    let reply = redis.wants(1_000, with(same, call(1, 3)));
    assert_eq!((reply.granted, reply.taken), (690, 690));
}

#[test]
fn a_step_back_of_at_most_a_window_stays_in_it() {
    let mut redis = Redis::new();
    let first = redis.after(1_010 * MILLI).wants(1_000, call(1, 1));
    redis.now -= 900 * MILLI;
    let same = redis.wants(1_000, with(first, call(1, 2)));
    assert_eq!((same.granted, same.window), (0, first.window));
    assert_eq!(same.ends_micros, 1_890 * MILLI);
}

#[test]
fn a_node_that_is_silent_for_long_is_forgotten_and_what_it_took_is_not() {
    let mut redis = Redis::new();
    let terms = LeaseTerms::window(PERMITS, Duration::from_mins(1)).unwrap();
    redis.terms = terms;
    let silent = redis.wants(400, call(1, 1));
    let mut two = redis.wants(100, call(2, 1));
    for seq in 2..=31 {
        two = redis.after(1_000 * MILLI).wants(0, with(two, call(2, seq)));
        // For 3 s it counts as one of those who are asked.
        assert_eq!(two.nodes, if seq < 4 { 2 } else { 1 }, "{seq}");
    }
    assert_eq!(redis.window.fields(), 1 + 1);
    assert_eq!(two.remaining, 500);
    // It says nothing then, as it may be unknown: what it had stays taken.
    let back = redis.wants(0, call(1, 2));
    assert_eq!((back.taken, back.remaining), (0, 500));
    assert_eq!(silent.taken, 400);
}
