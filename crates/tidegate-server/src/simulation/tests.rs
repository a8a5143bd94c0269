use super::*;

const POLICY: &str =
    "limits:\n  l: { concurrency: 1, on_limit: { queue: { length: 2, max_wait: 1d } } }\n";

fn outcomes(trace: &[String]) -> Vec<OutcomeWord> {
    let policy = tidegate_policy::parse("policy.yaml", POLICY)
        .unwrap()
        .policy;
    let mut simulation = Simulation::new(policy).unwrap();
    for (line, text) in (1..).zip(trace) {
        let event = TraceLine::parse(text).unwrap();
        simulation.step(line, event).unwrap();
    }
    simulation.finish().unwrap();
    let decisions = std::iter::from_fn(|| simulation.next_decision());
    decisions.map(|decision| decision.outcome).collect()
}

// shows: G3 (simulation)
#[test]
fn one_that_waits_when_time_ends_is_told_too() {
    let at = |nanos: u64| format!("{{\"at_ns\":{nanos}}}");
    for start in [0, Timestamp::MAX.as_nanos() - 5] {
        let trace = [at(start), at(start), at(start + 1)];
        let expected = [
            OutcomeWord::Allowed,
            OutcomeWord::Denied,
            OutcomeWord::Denied,
        ];
        assert_eq!(outcomes(&trace), expected);
    }
}
