//! The books of a leased limit, call by call: one test for each way in which permits came out of
//! nothing, or got lost, before there was a rule against it. They run on the model; the script
//! answers as it does (tests/redis/leased).

use tidegate_redis::{
    LeaseReply, LeaseRequest, LeaseTerms, NodeId, Scheme, SpendReply, SpendRequest,
};
use tidegate_sim::cluster_sim::bucket::SharedBucket;

use super::terms;

const START: u64 = 1_790_000_000_000_000;
const MILLI: u64 = 1_000;
const SECOND: u64 = 1_000_000;

/// Of the quota of these tests: refresh 25 ms, lease 250 ms, silence 75 ms, 3 s of membership. 20
/// permits come each millisecond, 2,000 are the burst, 1,500 are lent at most.
struct Redis {
    bucket: SharedBucket,
    terms: LeaseTerms,
    now: u64,
    seqs: [u64; 9],
}

/// A call of node `node` that got the answer to its last one, has nothing and wants nothing.
fn call(node: u64) -> LeaseRequest {
    LeaseRequest {
        node: NodeId(node),
        seq: u64::MAX,
        ack: u64::MAX,
        demand: 10_000,
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

/// The same of a node that is not asked for anything, and so has no share.
fn quiet(node: u64) -> LeaseRequest {
    LeaseRequest {
        demand: 0,
        ..call(node)
    }
}

impl Redis {
    fn new(scheme: Scheme) -> Self {
        Self {
            bucket: SharedBucket::default(),
            terms: terms(scheme),
            now: START,
            seqs: [0; 9],
        }
    }

    fn after(&mut self, micros: u64) -> &mut Self {
        self.now += micros;
        self
    }

    /// Numbers the call unless it has one.
    fn hear(&mut self, mut request: LeaseRequest) -> LeaseReply {
        let seq = &mut self.seqs[request.node.0 as usize];
        if request.seq == u64::MAX {
            *seq += 1;
            request.seq = *seq;
        }
        if request.ack == u64::MAX {
            request.ack = request.seq - 1;
        }
        self.answer(&request).unwrap()
    }

    fn answer(&mut self, request: &LeaseRequest) -> Option<LeaseReply> {
        let answer = self.bucket.call(self.now, &request.call(b"k", &self.terms));
        LeaseReply::from_answer(&answer).ok()
    }

    /// Takes whatever there is, and says how much it was.
    fn drain(&mut self) -> u64 {
        let all = SpendRequest {
            want: 2_000,
            unit: 1,
            returned: 0,
        };
        let answer = self.bucket.call(self.now, &all.call(b"k", &self.terms));
        SpendReply::from_answer(&answer).unwrap().granted
    }

    /// So many nodes that share the rate: each has called twice, and has heard both answers.
    fn with_nodes(nodes: u64, scheme: Scheme) -> (Self, u64) {
        let mut redis = Self::new(scheme);
        let mut share = 0;
        for round in 0..4 {
            for node in 1..=nodes {
                let counts_on = if round == 0 { 0 } else { share };
                let reply = redis.hear(LeaseRequest {
                    share: counts_on,
                    ..call(node)
                });
                share = reply.share;
            }
            redis.after(25 * MILLI);
        }
        assert_eq!(share, 1_000_000 / nodes);
        (redis, share)
    }
}

#[test]
fn a_bucket_lends_so_much_that_there_is_room_to_mint() {
    let mut redis = Redis::new(Scheme::Strict);
    assert_eq!(
        redis
            .hear(LeaseRequest {
                want: 2_000,
                ..call(1)
            })
            .granted,
        1_500
    );
    assert_eq!(redis.drain(), 500);
}

/// `refill with holdings before this report`.
#[test]
fn what_was_held_until_this_call_has_no_room_refilled_by_it() {
    let mut redis = Redis::new(Scheme::Strict);
    assert_eq!(
        redis
            .hear(LeaseRequest {
                want: 1_500,
                ..quiet(1)
            })
            .granted,
        1_500
    );
    // All spent a moment before: the bucket has 500, and not what came in 50 ms on top.
    let reply = redis.after(50 * MILLI).hear(LeaseRequest {
        want: 0,
        ..quiet(1)
    });
    assert_eq!(reply.remaining, 500);
    assert_eq!(redis.after(MILLI).drain(), 520);
}

/// `an expired lease still counted once`.
#[test]
fn a_lease_that_ended_frees_its_room_only_for_the_next_refill() {
    let mut redis = Redis::new(Scheme::Strict);
    assert_eq!(
        redis
            .hear(LeaseRequest {
                want: 1_500,
                ..quiet(1)
            })
            .granted,
        1_500
    );
    // It ended at 250 ms, and was perhaps spent at 249.
    assert_eq!(redis.after(260 * MILLI).drain(), 500);
    assert_eq!(redis.after(10 * MILLI).drain(), 200);
}

/// Not in the reference: the call was sent in time and came too late.
#[test]
fn a_lease_that_ended_before_the_call_came_is_not_brought_back() {
    let mut redis = Redis::new(Scheme::Strict);
    assert_eq!(
        redis
            .hear(LeaseRequest {
                want: 1_500,
                ..quiet(1)
            })
            .granted,
        1_500
    );
    redis.after(251 * MILLI).drain();
    redis.after(100 * MILLI);
    let late = LeaseRequest {
        held: 1_000,
        returned: 500,
        ..quiet(1)
    };
    let reply = redis.hear(late);
    assert_eq!((reply.kept, reply.granted), (0, 0));
    assert_eq!(redis.drain(), 2_000);
}

#[test]
fn a_lease_that_ended_and_is_still_counted_goes_on() {
    let mut redis = Redis::new(Scheme::Strict);
    redis.hear(LeaseRequest {
        want: 1_500,
        ..quiet(1)
    });
    let reply = redis.after(251 * MILLI).hear(LeaseRequest {
        held: 1_000,
        ..quiet(1)
    });
    assert_eq!(reply.kept, 1_000);
    assert_eq!(redis.drain(), 500);
}

#[test]
fn nobody_holds_or_returns_more_than_was_granted() {
    let mut redis = Redis::new(Scheme::Strict);
    redis.drain();
    let reply = redis.hear(LeaseRequest {
        held: 700,
        returned: 700,
        ..call(1)
    });
    assert_eq!((reply.kept, redis.drain()), (0, 0));
}

/// `sequence numbers`.
#[test]
fn a_call_that_comes_again_or_late_changes_nothing() {
    let mut redis = Redis::new(Scheme::Strict);
    let first = LeaseRequest {
        seq: 1,
        ack: 0,
        want: 100,
        ..call(1)
    };
    let late = LeaseRequest {
        seq: 2,
        ack: 1,
        returned: 100,
        ..call(1)
    };
    let third = LeaseRequest {
        seq: 3,
        ack: 1,
        held: 100,
        ..call(1)
    };
    assert_eq!(redis.answer(&first).map(|reply| reply.granted), Some(100));
    assert_eq!(redis.answer(&first), None);
    assert!(redis.answer(&third).is_some());
    assert_eq!(redis.answer(&late), None);
    assert_eq!(redis.drain(), 1_900);
}

/// `unbounded credit after an outage`: two nodes may mint, and one of them comes back after 2 s and
/// has not. Nor is the other's half given to it.
#[test]
fn what_was_not_minted_in_an_outage_comes_back_only_up_to_a_bucket() {
    let (mut redis, share) = Redis::with_nodes(2, Scheme::Strict);
    assert_eq!(redis.drain(), 2_000);
    redis.after(2 * SECOND);
    let first = redis.hear(LeaseRequest { share, ..call(1) });
    // Redis is sure that they had the answers of 50 ms before, and silence begins 75 ms after.
    assert_eq!(first.remaining, 25 * 20);
    // That it does not mint any more is known when it says that it got this answer: 25 ms of half
    // the rate come back.
    let second = redis.after(MILLI).hear(LeaseRequest { share, ..call(1) });
    assert_eq!(second.remaining, 500 + 250);
}

/// `minting nodes in back-off when the first one reconnects`.
#[test]
fn who_comes_back_first_does_not_get_what_the_others_may_be_minting() {
    for scheme in [Scheme::Strict, Scheme::Optimistic] {
        let (mut redis, share) = Redis::with_nodes(2, scheme);
        redis.after(SECOND).hear(LeaseRequest { share, ..call(1) });
        redis
            .after(25 * MILLI)
            .hear(LeaseRequest { share, ..call(1) });
        assert!(
            redis.drain() <= 1_750,
            "{scheme:?}: the other one may have minted 250"
        );
        // And it goes on doing so, at half the rate.
        assert_eq!(redis.after(40 * MILLI).drain(), 400, "{scheme:?}");
    }
}

/// `burst of the local mint buckets`: what silent nodes may have saved up is part of the burst,
/// also where the bucket was full before.
#[test]
fn a_full_bucket_makes_room_for_what_silent_nodes_save_up() {
    let (mut redis, _) = Redis::with_nodes(4, Scheme::Strict);
    redis.after(500 * MILLI);
    // Four buckets of 25 ms of a quarter of the rate each.
    let reply = redis.hear(quiet(5));
    assert_eq!(reply.remaining, 2_000 - 500);
    assert_eq!(redis.drain(), 2_000 - 500);
}

/// Not in the reference: a node that Redis hears and that hears nothing mints, too.
#[test]
fn a_node_that_does_not_hear_the_answers_may_mint() {
    let (mut redis, share) = Redis::with_nodes(2, Scheme::Strict);
    let ack = redis.seqs[1];
    let deaf = LeaseRequest {
        ack,
        share,
        ..call(1)
    };
    for _ in 0..8 {
        redis.after(25 * MILLI).hear(deaf);
        redis.hear(LeaseRequest { share, ..call(2) });
    }
    redis.drain();
    // Only half of the rate is there for others.
    redis
        .after(20 * MILLI)
        .hear(LeaseRequest { share, ..call(2) });
    assert_eq!(redis.drain(), 200);
    redis.hear(deaf);
    // What it tells is not counted again each time it tells it.
    redis.hear(LeaseRequest {
        minted: 100,
        ..deaf
    });
    redis.hear(LeaseRequest {
        minted: 100,
        ..deaf
    });
    redis.hear(LeaseRequest {
        minted: 110,
        ..deaf
    });
    let heard = LeaseRequest { share, ..call(1) };
    redis.hear(heard);
    redis.after(MILLI).hear(heard);
    // 25 ms of half the rate, less 110; and what came in 1 ms.
    assert_eq!(redis.drain(), 250 - 110 + 20);
}

/// Not in the reference's script: it cut the refill of an outage to two bursts before it took away
/// what all may have minted, and was in debt after each.
#[test]
fn a_long_outage_leaves_no_debt() {
    let (mut redis, _) = Redis::with_nodes(2, Scheme::Strict);
    redis.drain();
    assert_eq!(redis.after(5 * SECOND).drain(), 2_000);
}

/// Not in the reference: it would forget the bucket as soon as it had been full without anybody
/// minting.
#[test]
fn a_bucket_is_not_forgotten_before_others_have_minted_and_it_is_full() {
    let (mut redis, _) = Redis::with_nodes(2, Scheme::Strict);
    redis.drain();
    assert!(redis.bucket.lasts_millis() > 3_000 + 100);
}

/// Not in the reference: a node that came back after its membership was charged again for what had
/// been kept back for it.
#[test]
fn what_was_kept_back_for_a_node_is_not_charged_to_it_again() {
    let (mut redis, _) = Redis::with_nodes(1, Scheme::Strict);
    redis.drain();
    redis.after(4 * SECOND).hear(LeaseRequest {
        minted: 58_000,
        ..call(1)
    });
    // But for what it may mint if it does not hear this answer: 25 ms of the rate.
    assert_eq!(redis.drain(), 2_000 - 500);
}

#[test]
fn a_share_goes_down_only_when_its_owner_says_so() {
    let mut redis = Redis::new(Scheme::Strict);
    let whole = redis.hear(call(1)).share;
    assert_eq!(whole, 1_000_000);
    assert_eq!(redis.hear(call(2)).share, 0);
    // The answer may get lost: until it says what it counts on, half is still its own.
    assert_eq!(
        redis
            .hear(LeaseRequest {
                share: whole,
                ..call(1)
            })
            .share,
        500_000
    );
    assert_eq!(redis.hear(call(2)).share, 0);
    redis.hear(LeaseRequest {
        share: 500_000,
        ..call(1)
    });
    assert_eq!(redis.hear(call(2)).share, 500_000);
    assert!(redis.bucket.shares() <= 1_000_000);
}

#[test]
fn who_leaves_gives_back_everything() {
    let mut redis = Redis::new(Scheme::Strict);
    redis.hear(LeaseRequest {
        want: 1_500,
        ..call(1)
    });
    redis.hear(LeaseRequest {
        returned: 1_500,
        demand: 0,
        leaves: true,
        ..call(1)
    });
    assert_eq!((redis.bucket.shares(), redis.drain()), (0, 2_000));
    assert!(redis.bucket.lasts_millis() < 1_200);
}

#[test]
fn a_clock_that_is_set_back_is_no_time_and_goes_on_from_there() {
    let mut redis = Redis::new(Scheme::Strict);
    redis.hear(LeaseRequest {
        want: 1_500,
        ..quiet(1)
    });
    redis.drain();
    redis.now -= 3_600 * SECOND;
    assert_eq!(redis.drain(), 0);
    assert_eq!(redis.after(10 * MILLI).drain(), 200);
    // The lease lasts its 250 ms, not an hour.
    redis.after(240 * MILLI).drain();
    assert_eq!(redis.after(SECOND).drain(), 2_000);
}

#[test]
fn a_clock_that_is_set_back_where_nobody_leases_does_not_stall_the_bucket() {
    let mut redis = Redis::new(Scheme::Strict);
    redis.drain();
    redis.now -= 3_600 * SECOND;
    assert_eq!(redis.drain(), 0);
    assert_eq!(redis.after(10 * MILLI).drain(), 200);
}

/// All nodes are looked at each 12.5 ms. One whose lease has ended is not, and keeps its room
/// until then.
#[test]
fn a_lease_that_ended_keeps_its_room_until_all_nodes_are_looked_at() {
    let mut redis = Redis::new(Scheme::Strict);
    redis.hear(LeaseRequest {
        want: 1_500,
        ..quiet(1)
    });
    redis.after(249 * MILLI).drain();
    // It ended at 250.
    redis.after(2 * MILLI).hear(quiet(2));
    assert_eq!(redis.after(10 * MILLI).drain(), 12 * 20);
    // From the refill after the next look on, all of the burst may come.
    redis.after(SECOND).drain();
    assert_eq!(redis.after(SECOND).drain(), 2_000);
}

/// A node that may fall silent between two looks at all nodes is taken to be silent from the first
/// one on: permits that it may mint and permits of the bucket must not be given out both.
#[test]
fn who_falls_silent_between_two_looks_at_all_nodes_was_kept_back_for() {
    let (mut redis, share) = Redis::with_nodes(2, Scheme::Strict);
    // At 100 ms both are known to have had the answer of 50. One comes at 120, and all are looked
    // at; the silence of the other one begins at 125.
    redis
        .after(20 * MILLI)
        .hear(LeaseRequest { share, ..call(1) });
    redis.drain();
    assert_eq!(redis.after(4 * MILLI).drain(), 4 * 10);
    // It was not silent after all, and all of it comes back.
    redis
        .after(2 * MILLI)
        .hear(LeaseRequest { share, ..call(2) });
    assert_eq!(redis.drain(), 4 * 10 + 2 * 20);
}
