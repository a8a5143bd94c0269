//! A thousand million checks in virtual time: what passes is what arithmetic on fractions says.

use std::time::{Duration, Instant};

use tidegate::{Ask, Clock, Limiter, ManualClock, Quota, Timestamp};

use crate::keys::Random;

/// Checks at each rate.
const CHECKS: u64 = 1_000_000_000;
/// Checks between two looks at the sum.
const LOOK: u64 = 10_000_000;
const BURST: u64 = 1_000;
/// Permits per second.
const RATES: [u64; 3] = [3, 80_000, 3_000_000];

/// Prints what passed and what should have at each rate.
///
/// # Errors
/// Says at which rate the two are not the same.
pub(crate) fn run() -> Result<(), String> {
    println!("drift: {CHECKS} checks in virtual time, about twice as often as permits come back");
    for rate in RATES {
        let start = Instant::now();
        let (passed, expected, virtual_time) = at(rate)?;
        println!(
            "{rate:>9}/s: {passed} passed, {expected} expected in {virtual_time:?} \
             ({:.1} ns per check)",
            start.elapsed().as_nanos() as f64 / CHECKS as f64
        );
    }
    Ok(())
}

/// How many passed, how many should have, and the time in which they did.
fn at(rate: u64) -> Result<(u64, u64, Duration), String> {
    let start = Timestamp::from_secs(1_700_000_000);
    let clock = ManualClock::new(start);
    let quota = Quota::per_second(rate).burst(BURST);
    let limiter = Limiter::with_clock(quota, clock.clone()).map_err(|error| error.to_string())?;
    // Gaps of 0 to what one permit takes, so about half are refused: after the first check the
    // bucket is never full again, and all that comes back has to pass or to remain.
    let mut random = Random(rate);
    let longest = 1_000_000_000 / rate;
    let (mut passed, mut expected) = (0, 0);
    for check in 1..=CHECKS {
        passed += u64::from(limiter.check().is_allowed());
        clock.advance(Duration::from_nanos(random.next() % (longest + 1)));
        if check % LOOK == 0 {
            let nanos = u128::from(passed_nanos(&clock, start));
            let due = u128::from(BURST) + u128::from(rate) * nanos / 1_000_000_000;
            expected = u64::try_from(due).unwrap_or(u64::MAX) - limiter.peek(Ask::ONE).remaining;
            if passed != expected {
                let after = format!("{rate}/s, after {check} checks");
                return Err(format!("{after}: {passed} passed, {expected} expected"));
            }
        }
    }
    Ok((
        passed,
        expected,
        Duration::from_nanos(passed_nanos(&clock, start)),
    ))
}

fn passed_nanos(clock: &ManualClock, start: Timestamp) -> u64 {
    clock.now().nanos_since(start)
}
