//! Many more distinct keys than a store may hold: memory stays at the bound, and what eviction
//! gives away is counted.

use core::time::Duration;
use std::fs;
use std::time::Instant;

use tidegate::{Algorithm, Ask, Enforcer, KeyHash, KeyHasher, Quota, Timestamp};

use crate::door::keyed;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

/// What a flood of keys did.
#[derive(Debug, Default)]
struct Flood {
    admitted: u64,
    longest: Duration,
    longest_at: u64,
    took: Duration,
    /// Keys whose permits, as far as the bound allows, were all there at the end.
    kept: u64,
}

/// Each of `keys` takes two permits, a microsecond apart; every third comes back later.
fn flood(store: &Enforcer, keys: u64) -> Flood {
    let hasher = KeyHasher::with_keys(11, 12);
    let hash = |key: u64| -> KeyHash { hasher.hash(&key) };
    let mut flood = Flood::default();
    let begin = Instant::now();
    for key in 0..keys {
        let now = START.after_nanos(1_000 * key);
        let before = Instant::now();
        let (decision, _) = store.check(hash(key), now, &Ask::new(2));
        let took = before.elapsed();
        if took > flood.longest {
            (flood.longest, flood.longest_at) = (took, key);
        }
        assert!(decision.is_allowed(), "a new key has its burst");
        flood.admitted += 2;
        if key % 3 == 0 {
            let old = key / 2;
            flood.admitted += u64::from(store.check(hash(old), now, &Ask::ONE).0.is_allowed());
        }
        if key % 65_536 == 0 {
            assert!(store.stats().keys <= store.stats().max_keys);
        }
    }
    flood.took = begin.elapsed();
    let now = START.after_nanos(1_000 * keys);
    let peeked = (0..keys).map(|key| store.peek(hash(key), now, &Ask::ONE));
    flood.kept = peeked.map(|now| now.limit - now.remaining).sum();
    flood
}

/// Resident memory in bytes, where the system tells it.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

fn bounded(keys: u64, max_keys: usize) -> (Flood, Enforcer) {
    // A day for each permit: nothing drips in within a test, so that all is at stake.
    let algorithm = Algorithm::TokenBucket(Quota::new(1, Duration::from_hours(24)).burst(4));
    let store = keyed(&algorithm, max_keys);
    let flood = flood(&store, keys);
    let (stats, allocated) = (store.stats(), store.allocated_bytes());
    assert_eq!(stats.keys, max_keys);
    assert_eq!((stats.overflowed, stats.evicted_drained), (0, 0));
    // A hash and a state are 24 bytes.
    let bytes = 24 * max_keys..=40 * max_keys + (1 << 16);
    assert!(bytes.contains(&allocated), "{allocated} bytes");
    // The books balance: what was admitted is in use, or was let go of and counted. What dripped
    // in meanwhile is less than a permit of each key, and a count is of whole permits.
    assert_eq!(flood.admitted, flood.kept + stats.permits_released);
    (flood, store)
}

// shows: H1 (bounded memory)
#[test]
fn two_hundred_thousand_keys_in_room_for_twenty_thousand() {
    let _ = bounded(200_000, 20_000);
}

// shows: H1 (bounded memory)
#[test]
#[ignore = "long: ten million keys"]
fn alone_ten_million_keys_in_room_for_a_million() {
    let before = resident();
    let (flood, store) = bounded(10_000_000, 1_000_000);
    let grown = before
        .zip(resident())
        .map(|(before, now)| now.saturating_sub(before));
    let (stats, allocated) = (store.stats(), store.allocated_bytes());
    println!(
        "ten million keys, a million at a time: {:?} in all, {:.0} ns a check\n\
         allocated {allocated} bytes, {:.1} a key; resident memory grew by {grown:?} bytes\n\
         evicted {}, with {} permits in use; {} permits still in use\n\
         longest single call {:?}, of key {}",
        flood.took,
        flood.took.as_nanos() as f64 / (10_000_000.0 * 4.0 / 3.0),
        allocated as f64 / stats.keys as f64,
        stats.evicted_active,
        stats.permits_released,
        flood.kept,
        flood.longest,
        flood.longest_at,
    );
    assert!(grown.is_none_or(|grown| grown < 2 * allocated as u64 + (64 << 20)));
}
