//! Permits that were taken and not used.

use tidegate_redis::{LeaseNode, LeaseReply, NodeId, Scheme};

use super::super::terms;
use super::{Cluster, REPLY, START};

#[test]
fn permits_given_back_are_used_again_while_the_lease_lasts() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(10, 0);
    let lot = cluster.node.check(cluster.now, 3).lot;
    assert_eq!(cluster.pass(20), 7);
    cluster.node.give_back(lot, cluster.now, 3);
    assert_eq!(cluster.pass(20), 3);
    cluster.after(300);
    cluster.node.give_back(lot, cluster.now, 3);
    assert_eq!(cluster.ask().held, 0);
}

/// A call had told Redis that they were spent: then it was burst and what was given back.
#[test]
fn permits_that_redis_counts_as_spent_are_not_given_back() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(10, 0);
    let spent = cluster.node.check(cluster.now, 10).lot;
    let request = cluster.after(25).ask();
    assert_eq!((request.held, request.returned), (0, 0));
    // While the call is under way, and when it is answered.
    cluster.node.give_back(spent, cluster.now, 10);
    assert_eq!(cluster.pass(20), 0);
    let reply = LeaseReply {
        granted: 5,
        before: 1,
        ..REPLY
    };
    cluster.answer(&request, reply);
    cluster.node.give_back(spent, cluster.now, 10);
    assert_eq!(cluster.pass(20), 5);
}

/// Taken of what a call held, and then not counted any more: nothing of it may come back.
#[test]
fn permits_that_redis_does_not_count_are_not_given_back() {
    let mut cluster = Cluster::wanted();
    cluster.refresh(100, 0);
    let request = cluster.after(25).ask();
    assert!(request.held > 10);
    let held = cluster.node.check(cluster.now, request.held).lot;
    let forgotten = LeaseReply {
        granted: 5,
        kept: 0,
        before: 1,
        ..REPLY
    };
    cluster.answer(&request, forgotten);
    cluster.node.give_back(held, cluster.now, request.held);
    assert_eq!(cluster.pass(20), 5);
}

/// A key that was given up and asked for again is another node's to Redis.
#[test]
fn permits_of_another_life_are_not_given_back() {
    let [mut before, mut after] = [Cluster::wanted(), Cluster::wanted()];
    after.node = LeaseNode::new(terms(Scheme::Strict), NodeId(2), START);
    assert_eq!(after.pass(20), 0);
    before.refresh(10, 0);
    after.refresh(10, 0);
    let lot = before.node.check(before.now, 5).lot;
    after.node.give_back(lot, after.now, 5);
    assert_eq!(after.pass(20), 10);
}
