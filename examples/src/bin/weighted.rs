//! Requests that cost more than others: points instead of requests, and megabytes instead of
//! places.
//!
//! `cargo run -p tidegate-examples --bin weighted`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use tidegate::{Ask, ConcurrencyLimiter, KeyedLimiter, ManualClock, Quota, Retry};

/// What an operation costs.
const LIST: Ask = Ask::new(1);
const EXPORT: Ask = Ask::new(40);

fn main() -> Result<(), Box<dyn Error>> {
    // 60 points a minute for each user, all of them at once if they like.
    let clock = ManualClock::default();
    let points = KeyedLimiter::builder(Quota::per_minute(60))
        .clock(clock.clone())
        .build()?;
    assert!(points.check_ask("alice", EXPORT).is_allowed());
    let second = points.check_ask("alice", EXPORT);
    let wait = second.retry_after().unwrap_or_default();
    println!("a second export: in {wait:?}");
    assert_eq!(second.retry_after(), Some(Duration::from_secs(20)));
    // What was refused took nothing: smaller requests go on.
    assert!(points.check_ask("alice", LIST).is_allowed());
    // More than there ever is cannot be waited for.
    let all = points.check_ask("alice", Ask::new(61));
    assert_eq!(all.retry(), Some(Retry::Never));

    // The price may be known only afterwards: take the most, and give back what was not used.
    let (_, receipt) = points.reserve("bob", EXPORT);
    let cost = Ask::new(7);
    if let Some(receipt) = receipt {
        points
            .give_back(receipt)
            .map_err(|_| "of another limiter")?;
        assert!(points.check_ask("bob", cost).is_allowed());
    }
    println!("bob has {} points left", points.peek("bob", LIST).remaining);
    assert_eq!(points.peek("bob", LIST).remaining, 53);

    // The same for what is in flight: 512 MB of memory, however many jobs share it.
    let memory = ConcurrencyLimiter::new(512)?;
    let (_, large) = memory.try_acquire(400);
    let (refused, none) = memory.try_acquire(200);
    assert!(none.is_none() && refused.is_denied());
    let (_, small) = memory.try_acquire(100);
    println!("{} MB in use", memory.in_use());
    assert_eq!(memory.in_use(), 500);
    drop((large, small));
    assert_eq!(memory.in_use(), 0);
    Ok(())
}
