//! A pool of workers that calls two services, each behind a bulkhead of its own: the one that
//! hangs takes two workers, and not all.
//!
//! `cargo run -p tidegate-examples --bin bulkhead`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tidegate::ConcurrencyLimiter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    Slow,
    Fast,
}

/// What became of a call.
type Outcome = (Service, bool);

#[derive(Debug)]
struct Pool {
    slow: ConcurrencyLimiter,
    fast: ConcurrencyLimiter,
    jobs: Mutex<Receiver<Service>>,
    /// The slow service answers when the other end of this is dropped.
    hanging: Mutex<Receiver<()>>,
}

impl Pool {
    /// What each worker does until there are no more jobs.
    fn work(&self, outcomes: &Sender<Outcome>) {
        while let Some(service) = next(&self.jobs) {
            let bulkhead = match service {
                Service::Slow => &self.slow,
                Service::Fast => &self.fast,
            };
            // A worker does not wait for a place: waiting is what would use up the pool.
            let (_, place) = bulkhead.try_acquire(1);
            if place.is_some() && service == Service::Slow {
                let _ = next(&self.hanging);
            }
            let _ = outcomes.send((service, place.is_some()));
            // `place` comes back here, also where the call panics.
        }
    }
}

fn next<T>(channel: &Mutex<Receiver<T>>) -> Option<T> {
    let channel = channel.lock().unwrap_or_else(PoisonError::into_inner);
    channel.recv().ok()
}

fn main() -> Result<(), Box<dyn Error>> {
    let (submit, jobs) = channel();
    let (answer, hanging) = channel();
    let pool = Pool {
        slow: ConcurrencyLimiter::new(2)?,
        fast: ConcurrencyLimiter::new(4)?,
        jobs: Mutex::new(jobs),
        hanging: Mutex::new(hanging),
    };
    for service in [Service::Slow; 10].into_iter().chain([Service::Fast; 3]) {
        submit.send(service)?;
    }
    drop(submit);

    let (report, outcomes) = channel();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| pool.work(&report));
        }
        // Two calls hang. All others are over: eight are refused, three have gone through.
        let others: Vec<Outcome> = outcomes.iter().take(11).collect();
        let refused = others
            .iter()
            .filter(|other| **other == (Service::Slow, false));
        let through = others
            .iter()
            .filter(|other| **other == (Service::Fast, true));
        let (refused, through) = (refused.count(), through.count());
        println!(
            "2 calls hang, {refused} were refused at once, {through} to the other went through"
        );
        assert_eq!((refused, through, pool.slow.in_use()), (8, 3, 2));

        // A caller with a thread of its own may wait for a place, in line, for so long.
        let (in_vain, _) = pool.slow.acquire_within(1, Duration::from_millis(1));
        assert!(in_vain.is_denied());
        drop(answer);
        let (decision, place) = pool.slow.acquire_within(1, Duration::from_mins(1));
        println!(
            "the service answers, and the next one is in: {}",
            place.is_some()
        );
        assert!(decision.is_allowed());
    });
    Ok(())
}
