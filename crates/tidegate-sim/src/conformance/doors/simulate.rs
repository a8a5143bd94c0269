//! What `tidegate simulate` decides.

use tidegate_server::simulation::{DecisionLine, OutcomeWord, RetryWord, Simulation};
use tidegate_server::trace::TraceLine;

use super::read;
use crate::conformance::{Door, Told, ToldOutcome, ToldRetry};

/// Runs a trace through the simulation.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimulateDoor;

impl Door for SimulateDoor {
    fn run(&mut self, policy: &str, trace: &[String]) -> Result<Vec<Told>, String> {
        let loaded = tidegate_policy::parse("case", policy).map_err(|e| e.to_string())?;
        let mut simulation = Simulation::new(loaded.policy).map_err(|e| e.to_string())?;
        let mut told = Vec::new();
        for (number, line) in read(trace)? {
            // In the table, the policy of a reload is its text.
            if let TraceLine::Reload { at_ns, policy } = &line {
                let loaded = tidegate_policy::parse("case", policy).map_err(|e| e.to_string())?;
                simulation
                    .reload(*at_ns, loaded.policy)
                    .map_err(|e| e.to_string())?;
                continue;
            }
            simulation.step(number, line).map_err(|e| e.to_string())?;
        }
        simulation.finish().map_err(|e| e.to_string())?;
        while let Some(decision) = simulation.next_decision() {
            told.push(as_told(&decision));
        }
        Ok(told)
    }
}

fn as_told(decision: &DecisionLine) -> Told {
    Told {
        outcome: match decision.outcome {
            OutcomeWord::Allowed => ToldOutcome::Allowed,
            OutcomeWord::Delayed => ToldOutcome::Delayed(decision.delay_ns),
            OutcomeWord::Denied => ToldOutcome::Denied,
        },
        limit: decision.limit.clone(),
        remaining: decision.remaining,
        retry: decision.retry.map(|retry| match retry {
            RetryWord::After { after_ns } => ToldRetry::AfterNanos(after_ns),
            RetryWord::Word("on_release") => ToldRetry::OnRelease,
            RetryWord::Word(_) => ToldRetry::Never,
        }),
    }
}
