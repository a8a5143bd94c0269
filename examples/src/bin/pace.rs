//! Work at an even pace: each job waits for its permit, in the order they came.
//!
//! `cargo run -p tidegate-examples --bin pace`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use tidegate::{Ask, Clock, Limiter, ManualClock, Quota, Timestamp};

fn main() -> Result<(), Box<dyn Error>> {
    // Sleeping on this clock moves it on. With `SystemClock` the same code really waits.
    let clock = ManualClock::default();
    // A burst of 1 saves nothing up: one each 200 ms, also after a rest.
    let five_a_second = Limiter::with_clock(Quota::per_second(5).burst(1), clock.clone())?;

    let mut sent = Vec::new();
    for job in 1..=4 {
        // Whoever would wait longer than this is told so at once, and has taken nothing.
        let decision = five_a_second.acquire_within(Ask::ONE, Duration::from_secs(1));
        assert!(decision.is_allowed());
        let at = clock.now().since(Timestamp::EPOCH);
        println!("job {job} at {at:?}");
        sent.push(at);
    }
    let millis = [0, 200, 400, 600];
    assert_eq!(sent, millis.map(Duration::from_millis));

    // A caller that cannot block gets the delay in the answer, with its permit taken.
    let reserved = five_a_second.check_ask(Ask::ONE.within(Duration::from_secs(1)));
    assert!(reserved.is_allowed());
    assert_eq!(reserved.delay(), Duration::from_millis(200));
    Ok(())
}
