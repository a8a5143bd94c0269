//! A node that is asked so many times a second, and notes what passes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate::Quota;
use tidegate_redis::{ExactLimiter, LeasedLimiter, Scheme};

use crate::journal::micros;
use crate::{Node, Result};

const KEY: &str = "all";
/// Requests that came while the process stood still are made when it goes on, up to this many
/// milliseconds' worth.
const CAUGHT_UP_MS: u64 = 100;

pub(crate) fn run(node: &Node, kind: &str, rate: u64, burst: u64, offered: u64) -> Result<()> {
    let quota = Quota::per_second(rate).burst(burst);
    let scheme = match kind {
        "strict" => Scheme::Strict,
        "optimistic" => Scheme::Optimistic,
        _ => return exact(node, quota, offered),
    };
    let built = LeasedLimiter::builder("faults", quota).scheme(scheme);
    let (limiter, driver) = built.build(node.endpoint.clone())?;
    node.runtime.spawn(driver.run());
    pace(node, offered, || {
        let asked = micros();
        if limiter.check(KEY, 1).is_allowed() {
            node.journal.passed(asked, micros());
        }
    });
    Ok(())
}

fn exact(node: &Node, quota: Quota, offered: u64) -> Result<()> {
    let limiter = ExactLimiter::new(node.endpoint.clone(), "faults", quota)?;
    pace(node, offered, || {
        let (limiter, journal) = (limiter.clone(), Arc::clone(&node.journal));
        let asked = micros();
        node.runtime.spawn(async move {
            // Without an answer nothing passes.
            let allowed = limiter.check(KEY, 1).await;
            if allowed.is_ok_and(|decision| decision.is_allowed()) {
                journal.passed(asked, micros());
            }
        });
    });
    Ok(())
}

fn pace(node: &Node, offered: u64, mut ask: impl FnMut()) {
    let began = Instant::now();
    let mut asked = 0;
    while !node.is_over() {
        let due = began.elapsed().as_micros() as u64 * offered / 1_000_000;
        asked = due.saturating_sub(offered * CAUGHT_UP_MS / 1000).max(asked);
        for _ in asked..due {
            ask();
        }
        asked = due;
        node.flush();
        std::thread::sleep(Duration::from_millis(1));
    }
}
