//! A limit for each client, in bounded memory, however many clients come.
//!
//! `cargo run -p tidegate-examples --bin per_client`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

use tidegate::{KeyedLimiter, ManualClock, Quota};

fn main() -> Result<(), Box<dyn Error>> {
    // A clock of our own, so that this takes no time. `.clock(..)` left out: the system's.
    let clock = ManualClock::default();
    let per_client = KeyedLimiter::builder(Quota::per_minute(6).burst(3))
        .max_keys(10_000)
        .clock(clock.clone())
        .build()?;

    // A key is whatever can be hashed. Each has its own three.
    for client in ["alice", "bob"] {
        let passed = (0..10)
            .filter(|_| per_client.check(client).is_allowed())
            .count();
        println!("{client}: {passed} of 10 passed");
        assert_eq!(passed, 3);
    }

    // 6 a minute are one each 10 s.
    clock.advance(Duration::from_secs(10));
    assert!(per_client.check("alice").is_allowed());
    assert!(per_client.check("alice").is_denied());

    // A million addresses: what is remembered stays within the bound.
    for address in 0..1_000_000_u32 {
        assert!(per_client.check(&Ipv4Addr::from_bits(address)).is_allowed());
    }
    let stats = per_client.stats();
    println!(
        "{} keys in {} KB; forgotten with permits in use: {} keys, {} permits",
        stats.keys,
        per_client.allocated_bytes() / 1_000,
        stats.evicted_active,
        stats.permits_released,
    );
    assert!(stats.keys <= 10_000);
    assert!(per_client.allocated_bytes() < 1_000_000);
    Ok(())
}
