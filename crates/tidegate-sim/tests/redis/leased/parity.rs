//! The script and its model answer the same, whatever they are asked.

use tidegate_sim::cluster_sim::bucket::SharedBucket;

use super::Scripted;
use super::calls::{Step, sequence};

/// Sequences of calls of an everyday run.
const SEQUENCES: u64 = 60;
const STEPS: usize = 80;
/// The server's clock goes on between the calls of a test.
const SLACK_MILLIS: i128 = 5_000;

/// Runs a sequence on both, and says where they part.
pub(super) fn compare(redis: &mut Scripted, seed: u64) -> Result<(), String> {
    let mut model = SharedBucket::default();
    for (at, Step { now, call }) in sequence(seed, STEPS).iter().enumerate() {
        let key = String::from_utf8_lossy(&call.keys[0]).into_owned();
        if model.is_forgotten(*now) {
            // The server's own clock does not know that.
            redis.query::<()>(&["DEL", &key]);
        }
        let expected = model.call(*now, call).to_vec();
        let answer = redis
            .try_call(*now, call)
            .map_err(|error| error.to_string())?;
        if answer != expected {
            return Err(format!(
                "seed {seed}, step {at}: {answer:?}, not {expected:?}: {call:?}"
            ));
        }
        let lasts: i128 = redis.query::<i64>(&["PTTL", &key]).into();
        let expected = if model.is_forgotten(*now) {
            -2
        } else {
            model.lasts_millis()
        };
        if (lasts - expected).abs() > SLACK_MILLIS {
            return Err(format!(
                "seed {seed}, step {at}: lasts {lasts} ms, not {expected}"
            ));
        }
        if model.shares() > 1_000_000 {
            return Err(format!(
                "seed {seed}, step {at}: shares are more than the whole"
            ));
        }
    }
    Ok(())
}

#[test]
fn script_and_model_answer_the_same() {
    let mut redis = Scripted::new();
    for seed in 0..SEQUENCES {
        compare(&mut redis, seed).unwrap();
    }
}
