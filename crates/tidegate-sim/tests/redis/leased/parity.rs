//! The script and its model answer the same, and keep the same, whatever they are asked. The model
//! adds up over all nodes each time, the script keeps sums.

use std::collections::BTreeMap;

use tidegate_sim::cluster_sim::bucket::SharedBucket;

use super::Scripted;
use super::calls::{Step, crowd, sequence};

/// Sequences of calls of an everyday run.
const SEQUENCES: u64 = 60;
const STEPS: usize = 80;
/// With many nodes, and so many of them.
const CROWDS: u64 = 8;
const CROWD_STEPS: usize = 600;
/// The server's clock goes on between the calls of a test.
const SLACK_MILLIS: i128 = 5_000;

/// Runs a sequence on both, and says where they part.
pub(super) fn compare(redis: &mut Scripted, seed: u64) -> Result<(), String> {
    run_both(redis, &sequence(seed, STEPS)).map_err(|parted| format!("seed {seed}, {parted}"))
}

fn run_both(redis: &mut Scripted, steps: &[Step]) -> Result<(), String> {
    let mut model = SharedBucket::default();
    for (at, Step { now, call }) in steps.iter().enumerate() {
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
            return Err(format!("step {at}: {answer:?}, not {expected:?}: {call:?}"));
        }
        let lasts: i128 = redis.query::<i64>(&["PTTL", &key]).into();
        let expected = if model.is_forgotten(*now) {
            -2
        } else {
            model.lasts_millis()
        };
        if (lasts - expected).abs() > SLACK_MILLIS {
            return Err(format!("step {at}: lasts {lasts} ms, not {expected}"));
        }
        let (fields, expected) = (redis.query(&["HGETALL", &key]), model.fields(call));
        if !model.is_forgotten(*now) && expected != fields {
            let fields: BTreeMap<String, String> = fields;
            return Err(format!("step {at}: has {fields:?}, not {expected:?}"));
        }
        if !model.is_sound(call) {
            return Err(format!("step {at}: more is promised than there is"));
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

#[test]
fn script_and_model_answer_the_same_to_a_crowd() {
    let mut redis = Scripted::new();
    for seed in 0..CROWDS {
        let nodes = 40 + 20 * (seed as usize % 4);
        let steps = crowd(seed, nodes, CROWD_STEPS);
        run_both(&mut redis, &steps).unwrap_or_else(|parted| panic!("seed {seed}, {parted}"));
    }
}
