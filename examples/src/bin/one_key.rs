//! One limit for a whole service: 10 a second, at most 5 at once.
//!
//! `cargo run -p tidegate-examples --bin one_key`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::thread;

use tidegate::{Limiter, Quota, QuotaError};

fn main() -> Result<(), QuotaError> {
    let limiter = Limiter::new(Quota::per_second(10).burst(5))?;

    // Four threads that ask as fast as they can: together they get what is there.
    let passed: usize = thread::scope(|scope| {
        let ask = || (0..100).filter(|_| limiter.check().is_allowed()).count();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().filter_map(|one| one.join().ok()).sum()
    });
    println!("{passed} of 400 passed");
    assert!(
        passed >= 5,
        "the burst is there, and what came back meanwhile"
    );

    // A refusal says when: that long, and not one nanosecond less.
    let wait = loop {
        if let Some(wait) = limiter.check().retry_after() {
            break wait;
        }
    };
    println!("the next one in {wait:?}");
    thread::sleep(wait);
    let decision = limiter.check();
    assert!(decision.is_allowed());
    println!("it passed, {} remain", decision.remaining);
    Ok(())
}
