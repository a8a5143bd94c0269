//! At most two at work at a time. A place is a guard: it comes back when the guard is dropped.
//!
//! `cargo run -p tidegate-examples --bin concurrency`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Barrier;
use std::thread;

use tidegate::{ConcurrencyLimiter, Retry};

fn main() -> Result<(), Box<dyn Error>> {
    let reports = ConcurrencyLimiter::new(2)?;

    // Eight threads want in. Whoever got a place keeps it until all have tried.
    let all_have_tried = Barrier::new(8);
    let work = || {
        let (decision, place) = reports.try_acquire(1);
        all_have_tried.wait();
        if place.is_none() {
            // No time can be told: it depends on when somebody leaves.
            assert_eq!(decision.retry(), Some(Retry::OnRelease));
        }
        place.is_some()
        // `place` is dropped here, on whichever way this is left.
    };
    let got_in = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .filter_map(|one| one.join().ok())
            .filter(|got_in| *got_in)
            .count()
    });
    println!("{got_in} of 8 got in");
    assert_eq!(got_in, 2);

    // A panic gives the place back too.
    let panicked = thread::scope(|scope| {
        let broken = scope.spawn(|| {
            let _place = reports.try_acquire(2);
            std::panic::resume_unwind(Box::new("broken"));
        });
        broken.join().is_err()
    });
    let free = reports.peek(1).remaining;
    println!("after a panic ({panicked}) {free} places are free");
    assert_eq!(free, 2);
    Ok(())
}
