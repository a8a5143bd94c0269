//! Several limits on one request, decided as one: all are charged, or none.
//!
//! `cargo run -p tidegate-examples --bin several_limits`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use tidegate::{Clock, KeyedLimiter, Limiter, ManualClock, Quota, check_all};

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let per_user = KeyedLimiter::builder(Quota::per_second(2))
        .clock(clock.clone())
        .build()?;
    let of_all = Limiter::with_clock(Quota::per_minute(5), clock.clone())?;
    let request = |user: &str| -> Result<bool, Box<dyn Error>> {
        let checked = check_all(&[per_user.ask(user, 1), of_all.ask(1)], clock.now())?;
        if let Some((index, told)) = checked.told().filter(|_| !checked.is_allowed()) {
            let limit = ["per user", "of all"][index];
            println!(
                "{user}: refused by the limit {limit}, again in {:?}",
                told.retry_after()
            );
        }
        Ok(checked.is_allowed())
    };

    // A user beyond their own limit takes nothing from the others.
    for n in 0..1_000 {
        let limits = [per_user.ask("noisy", 1), of_all.ask(1)];
        assert_eq!(check_all(&limits, clock.now())?.is_allowed(), n < 2);
    }
    let left = of_all.peek(tidegate::Ask::ONE).remaining;
    println!("1,000 requests of one user: {left} of 5 are left for all");
    assert_eq!(left, 3);

    assert!(request("alice")? && request("alice")? && request("bob")?);
    // Now it is the common limit that refuses, and takes nothing of bob's own.
    assert!(!request("bob")?);
    assert_eq!(per_user.peek("bob", tidegate::Ask::ONE).remaining, 1);
    Ok(())
}
