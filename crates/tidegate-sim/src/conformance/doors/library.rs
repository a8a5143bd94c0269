//! What the engine decides for whoever holds it directly.

use std::collections::HashMap;

use tidegate::{Answer, Asked, Decision, Enforcer, KeyHasher, Receipt, Retry, Timestamp};
use tidegate_gateway::RequestView;
use tidegate_policy::LimitRule;
use tidegate_server::trace::{TraceLine, TraceRequest};

use super::read;
use crate::conformance::{Door, Told, ToldOutcome, ToldRetry};

/// Makes each limit of a policy by hand and asks all of them with `check_all`. Only keys come
/// from the policy; requests that lack a part of one are not the engine's business.
#[derive(Clone, Copy, Debug, Default)]
pub struct LibraryDoor;

/// A limit, made by hand.
struct Made<'a> {
    rule: &'a LimitRule,
    limit: Enforcer,
}

impl Door for LibraryDoor {
    fn run(&mut self, policy: &str, trace: &[String]) -> Result<Vec<Told>, String> {
        let policy = tidegate_policy::parse("case", policy)
            .map_err(|e| e.to_string())?
            .policy;
        let hasher = KeyHasher::with_keys(1, 2);
        let mut limits = Vec::new();
        for rule in &policy.limits {
            let made = tidegate::enforcers(&[*rule.limit.algorithm()], rule.max_keys);
            let limit = made.map_err(|e| e.to_string())?.pop().ok_or("no limit")?;
            limits.push(Made { rule, limit });
        }
        let mut in_flight: HashMap<usize, Vec<Option<Receipt>>> = HashMap::new();
        let mut told = Vec::new();
        for (number, line) in read(trace)? {
            match line {
                TraceLine::Request(request) => {
                    let answers = decide(&limits, &hasher, &request)?;
                    told.push(tell(&limits, &answers));
                    let receipts = answers.into_iter().map(|answer| answer.receipt).collect();
                    in_flight.insert(number, receipts);
                }
                TraceLine::Release { at_ns, line } => {
                    let receipts = in_flight.remove(&line).ok_or("nothing to release")?;
                    give_back(&limits, receipts, Timestamp::from_nanos(at_ns))?;
                }
                TraceLine::Reload { .. } => return Err("no reload here".to_owned()),
            }
        }
        Ok(told)
    }
}

fn decide(
    limits: &[Made<'_>],
    hasher: &KeyHasher,
    request: &TraceRequest,
) -> Result<Vec<Answer>, String> {
    let view = RequestView::new(&request.parts, request.client_ip);
    let mut asks = Vec::new();
    for Made { rule, limit } in limits {
        let mut key: Vec<Vec<u8>> = Vec::new();
        for part in &rule.key {
            let mut value = Vec::new();
            if !part.write_value(&view, "", 64, &mut value) {
                return Err(format!("the request lacks `{part}`"));
            }
            key.push(value);
        }
        let patience = request.timeout_ns.map(std::time::Duration::from_nanos);
        let ask = rule.ask(rule.limit.algorithm(), request.permits, patience);
        asks.push(Asked::new(&**limit, hasher.hash(&key), ask));
    }
    let now = Timestamp::from_nanos(request.at_ns);
    tidegate::check_all_with_receipts(&asks, now).map_err(|error| error.to_string())
}

fn tell(limits: &[Made<'_>], answers: &[Answer]) -> Told {
    let first = answers
        .iter()
        .zip(limits)
        .min_by(|(a, _), (b, _)| a.decision.cmp_severity(&b.decision));
    let Some((answer, made)) = first else {
        return Told::ALLOWED;
    };
    let Decision { remaining, .. } = answer.decision;
    let delay = answers
        .iter()
        .map(|answer| answer.decision.delay())
        .max()
        .unwrap_or_default();
    let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
    let told = match answer.decision.retry() {
        None => Told::delayed(nanos),
        Some(Retry::After(wait)) => {
            let wait = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
            Told::denied(ToldRetry::AfterNanos(wait))
        }
        Some(Retry::OnRelease) => Told::denied(ToldRetry::OnRelease),
        Some(Retry::Never) => Told::denied(ToldRetry::Never),
    };
    debug_assert_eq!(
        told.outcome == ToldOutcome::Denied,
        answer.decision.is_denied()
    );
    told.remaining(remaining).by(made.rule.limit.name())
}

fn give_back(
    limits: &[Made<'_>],
    receipts: Vec<Option<Receipt>>,
    now: Timestamp,
) -> Result<(), String> {
    for (made, receipt) in limits.iter().zip(receipts) {
        if let Some(receipt) = receipt.filter(|_| made.limit.is_gate()) {
            made.limit
                .give_back(receipt, now)
                .map_err(|_| "a foreign receipt".to_owned())?;
        }
    }
    Ok(())
}
