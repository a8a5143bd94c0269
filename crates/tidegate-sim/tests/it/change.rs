//! Promise 8: when a limit changes, what was used stays used, and the new limit holds at once.

mod against_oracles;
mod at_once;
mod of_algorithm;
mod on_change;
mod pay_later;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tidegate::{Algorithm, KeyedLimiter, ManualClock, Timestamp};
use tidegate_sim::strategy::{self, Allowed};

type Outcome = Result<(), TestCaseError>;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);
const PLAIN: Allowed = Allowed {
    steps_back: false,
    patience: false,
    give_back: false,
    force: false,
};

fn limiter(algorithm: Algorithm, clock: &ManualClock) -> KeyedLimiter<ManualClock> {
    let builder = KeyedLimiter::builder(algorithm).max_keys(100);
    builder.clock(clock.clone()).build().expect("a valid limit")
}

fn full_interval_bucket() -> BoxedStrategy<Algorithm> {
    (strategy::quota(), any::<bool>())
        .prop_map(|(quota, aligned)| Algorithm::IntervalBucket { quota, aligned })
        .boxed()
}
