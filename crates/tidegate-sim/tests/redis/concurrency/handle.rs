//! The handle of library users, on a real server.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_redis::concurrency::{
    ConcurrencyOptions, OnLeaseLost, Scheme, SharedConcurrency, SharedPermit,
};
use tidegate_redis::{ScriptCall, Scripts};
use tokio::runtime::Handle;

use super::carrier::Carrier;
use crate::server::RedisServer;

const SCHEMES: [Scheme; 3] = [Scheme::NodeShare, Scheme::Slots, Scheme::DoubleWindow];
const LEASE: Duration = Duration::from_millis(1_200);
const DEADLINE: Duration = Duration::from_secs(20);

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

fn options(scheme: Scheme, limit: u64) -> ConcurrencyOptions {
    ConcurrencyOptions::new(limit)
        .scheme(scheme)
        .ttl(LEASE)
        .window(LEASE)
        .budget(LEASE / 4)
}

async fn node(url: &str, options: ConcurrencyOptions) -> SharedConcurrency {
    let scripts = Arc::new(Carrier::connect(url).await);
    SharedConcurrency::new("test", options, scripts, Handle::current()).unwrap()
}

async fn take(node: &SharedConcurrency, permits: u64) -> Option<SharedPermit> {
    let (decision, permit) = node.try_acquire(b"key", permits).await.unwrap();
    assert_eq!(decision.is_allowed(), permit.is_some());
    permit
}

/// Asks until it is granted; how long that took.
async fn take_in_time(node: &SharedConcurrency, permits: u64) -> (SharedPermit, Duration) {
    let start = Instant::now();
    loop {
        if let Some(permit) = take(node, permits).await {
            return (permit, start.elapsed());
        }
        assert!(start.elapsed() < DEADLINE, "no places");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn nodes_together_have_no_more_than_the_limit_and_give_back() {
    let server = RedisServer::start();
    runtime().block_on(async {
        for scheme in SCHEMES {
            let options = options(scheme, 5);
            let (a, b) = (
                node(&server.url(), options.clone()).await,
                node(&server.url(), options).await,
            );
            let first = take(&a, 3).await.expect("all are free");
            let second = take_in_time(&b, 2).await.0;
            assert!(
                take(&a, 1).await.is_none() && take(&b, 1).await.is_none(),
                "{scheme:?}"
            );
            let (decision, none) = a.try_acquire(b"key", 6).await.unwrap();
            assert!(
                none.is_none() && decision.retry_after().is_none(),
                "{decision:?}"
            );
            assert!(!first.is_lost() && first.permits() == 3);
            assert_eq!(first.on_lease_lost(), OnLeaseLost::Cancel);
            drop(first);
            let (third, _) = take_in_time(&b, 3).await;
            assert!(take(&a, 1).await.is_none(), "{scheme:?}");
            drop((second, third));
            drop(take_in_time(&a, 5).await);
            // Idle keys leave, here and there.
            let start = Instant::now();
            while a.keys() + b.keys() > 0 {
                assert!(start.elapsed() < DEADLINE, "{scheme:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
}

#[test]
fn an_acquire_that_is_dropped_half_way_gives_back() {
    let server = RedisServer::start();
    runtime().block_on(async {
        for scheme in SCHEMES {
            let a = node(&server.url(), options(scheme, 4)).await;
            for _ in 0..20 {
                // It is polled once: the call is on its way, and nobody waits for it.
                let asks = a.try_acquire(b"key", 4);
                drop(tokio::time::timeout(Duration::ZERO, asks).await);
                tokio::task::yield_now().await;
            }
            drop(take_in_time(&a, 4).await);
        }
    });
}

#[test]
fn a_node_that_is_cut_off_loses_its_places_before_others_get_them() {
    let server = RedisServer::start();
    runtime().block_on(async {
        for scheme in SCHEMES {
            let a = node(&server.url(), options(scheme, 1)).await;
            let permit = take(&a, 1).await.expect("it is free");
            let held = Instant::now();
            // Nobody answers: the process is stopped, and what it counts goes on.
            server.signal("-STOP");
            let lost = tokio::time::timeout(DEADLINE, permit.lost()).await;
            server.signal("-CONT");
            assert!(lost.is_ok() && permit.is_lost(), "{scheme:?}");
            assert!(
                held.elapsed() < 2 * LEASE,
                "{scheme:?} {:?}",
                held.elapsed()
            );
            let lost = tokio::time::timeout(DEADLINE, permit.lost()).await;
            assert!(lost.is_ok(), "once lost, always lost");
            drop(permit);
            drop(a);
            let b = node(&server.url(), options(scheme, 1)).await;
            drop(take_in_time(&b, 1).await);
        }
    });
}

#[test]
fn a_key_too_many_is_refused_and_known_ones_go_on() {
    let server = RedisServer::start();
    runtime().block_on(async {
        let a = node(&server.url(), options(Scheme::NodeShare, 2).max_keys(1)).await;
        let permit = take(&a, 1).await;
        assert!(a.try_acquire(b"other", 1).await.is_err());
        assert!(take(&a, 1).await.is_some());
        drop(permit);
    });
}

#[test]
fn a_key_too_many_takes_the_room_of_one_that_is_idle_which_gives_back_its_share() {
    let server = RedisServer::start();
    runtime().block_on(async {
        let options = options(Scheme::NodeShare, 2);
        let a = node(&server.url(), options.clone().max_keys(2)).await;
        let held = take(&a, 1).await;
        let (_, other) = a.try_acquire(b"other", 2).await.unwrap();
        drop(other.expect("free"));
        // The share of `other` was kept, for those who might come.
        let b = node(&server.url(), options).await;
        for key in [b"third".as_slice(), b"fourth"] {
            let (_, permit) = a.try_acquire(key, 1).await.unwrap();
            drop(permit.expect("free"));
            assert_eq!(a.keys(), 2);
        }
        let start = Instant::now();
        while b.try_acquire(b"other", 2).await.unwrap().1.is_none() {
            assert!(start.elapsed() < LEASE / 4, "it says goodbye at once");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(take(&a, 2).await.is_none(), "what is held stays");
        drop(held);
    });
}

#[test]
fn a_limit_that_is_dropped_gives_back_what_it_kept() {
    let server = RedisServer::start();
    runtime().block_on(async {
        let a = node(&server.url(), options(Scheme::NodeShare, 2)).await;
        drop(take(&a, 2).await);
        let b = node(&server.url(), options(Scheme::NodeShare, 2)).await;
        drop(a);
        let (_, took) = take_in_time(&b, 2).await;
        assert!(took < LEASE / 4, "{took:?}");
    });
}

#[test]
fn holders_of_slots_are_listed_and_can_be_killed() {
    let server = RedisServer::start();
    runtime().block_on(async {
        let a = node(&server.url(), options(Scheme::Slots, 5)).await;
        let stays = take(&a, 1).await.expect("free");
        let goes = take(&a, 2).await.expect("free");
        let holders = a.holders(b"key", 0, 10).await.unwrap();
        assert_eq!(holders.len(), 3);
        let of_two = holders.iter().find(|holder| holder.number == 2).unwrap();
        assert!(of_two.expires_in <= LEASE && !of_two.is_leaving);
        assert!(a.kill(b"key", of_two).await.unwrap());
        let told = tokio::time::timeout(DEADLINE, goes.lost()).await;
        assert!(told.is_ok() && !stays.is_lost());
        // They stay taken until who holds them is done.
        assert!(take(&a, 3).await.is_none());
        drop(goes);
        assert!(take(&a, 4).await.is_some());
        assert!(!a.kill(b"key", of_two).await.unwrap(), "it is gone");
    });
}

#[test]
fn every_key_in_redis_expires() {
    let server = RedisServer::start();
    runtime().block_on(async {
        for scheme in SCHEMES {
            let a = node(&server.url(), options(scheme, 5)).await;
            let permit = take(&a, 2).await;
            let kind = match scheme {
                Scheme::Slots => "slots",
                Scheme::DoubleWindow => "windows",
                _ => "share",
            };
            let key = format!("tg:{{key}}:test:{kind}");
            let redis = Carrier::connect(&server.url()).await;
            assert!(redis.query("PTTL", &key).await > 0, "{scheme:?}");
            drop(permit);
        }
    });
}

/// A carrier that nothing is behind.
#[derive(Debug)]
struct Nowhere;

impl Scripts for Nowhere {
    fn call(&self, _: ScriptCall, budget: Duration) -> tidegate_redis::Answer<'_> {
        Box::pin(async move { Err(tidegate_redis::Unavailable::TimedOut(budget)) })
    }
}

#[test]
fn without_redis_and_without_a_runtime_there_is_an_answer() {
    let ended = runtime();
    let of_ended = ended.handle().clone();
    drop(ended);
    runtime().block_on(async {
        for scheme in SCHEMES {
            for runtime in [Handle::current(), of_ended.clone()] {
                let options = options(scheme, 1);
                let scripts = Arc::new(Nowhere);
                let node = SharedConcurrency::new("test", options, scripts, runtime).unwrap();
                for _ in 0..3 {
                    assert!(node.try_acquire(b"key", 1).await.is_err());
                }
            }
        }
    });
}

const URL: &str = "TIDEGATE_TEST_REDIS";
const SCHEME: &str = "TIDEGATE_TEST_SCHEME";

/// Not a test of its own: the node that `places_of_a_killed_node_come_back` starts, and kills.
#[test]
fn child_holds_20() {
    let (Ok(url), Ok(scheme)) = (std::env::var(URL), std::env::var(SCHEME)) else {
        return;
    };
    let scheme = SCHEMES[scheme.parse::<usize>().unwrap()];
    runtime().block_on(async {
        let node = node(&url, options(scheme, 50)).await;
        let mut permits = Vec::new();
        for _ in 0..20 {
            permits.push(take_in_time(&node, 1).await.0);
        }
        // Longer than any lease; it is killed before.
        tokio::time::sleep(DEADLINE).await;
    });
}

struct OtherNode(Child);

impl Drop for OtherNode {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Case 27: 50 places, 4 nodes; one, a process of its own, is killed while it holds 20.
#[test]
fn places_of_a_killed_node_come_back() {
    let server = RedisServer::start();
    for (number, scheme) in SCHEMES.into_iter().enumerate() {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "concurrency::handle::child_holds_20"])
            .env(URL, server.url())
            .env(SCHEME, number.to_string())
            .stdout(Stdio::null())
            .spawn();
        let mut child = OtherNode(child.unwrap());
        runtime().block_on(async {
            let mut nodes = Vec::new();
            for _ in 0..3 {
                nodes.push(node(&server.url(), options(scheme, 50)).await);
            }
            let long = take_in_time(&nodes[0], 1).await.0;
            // The child has its 20 when others find no more than 29 for the length of a lease.
            let mut held = Vec::new();
            let start = Instant::now();
            let mut quiet_since = Instant::now();
            while held.len() < 29 || quiet_since.elapsed() < LEASE {
                let free = held.len() < 29;
                match take(&nodes[held.len() % 3], 1).await {
                    Some(permit) if free => {
                        held.push(permit);
                        quiet_since = Instant::now();
                    }
                    // More than 29: the child is not there yet.
                    _ => tokio::time::sleep(Duration::from_millis(10)).await,
                }
                assert!(start.elapsed() < DEADLINE, "{scheme:?} {}", held.len());
            }
            assert_eq!(held.len(), 29, "{scheme:?}");
            child.0.kill().unwrap();
            child.0.wait().unwrap();
            let killed = Instant::now();
            let mut turn = 0;
            while held.len() < 49 {
                turn += 1;
                match take(&nodes[turn % 3], 1).await {
                    Some(permit) => held.push(permit),
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
                assert!(killed.elapsed() < DEADLINE, "{scheme:?} {}", held.len());
            }
            let bound = match scheme {
                Scheme::DoubleWindow => 2 * LEASE,
                // And a beat until the nodes with idle places have given them up.
                _ => LEASE + LEASE,
            };
            assert!(
                killed.elapsed() < bound + LEASE,
                "{scheme:?} {:?}",
                killed.elapsed()
            );
            for node in &nodes {
                assert!(take(node, 1).await.is_none(), "{scheme:?}: above the limit");
            }
            assert!(!long.is_lost() && held.iter().all(|permit| !permit.is_lost()));
        });
    }
}
