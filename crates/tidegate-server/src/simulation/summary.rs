//! What a simulation decided, limit by limit.

use std::collections::BTreeMap;

use tidegate_node::{Admission, Applied, Call};

use super::top_keys::TopKeys;

/// Counts of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Requests in all (peeks are none).
    pub requests: u64,
    /// Requests that went ahead, at once or after a delay.
    pub allowed: u64,
    limits: BTreeMap<String, LimitSummary>,
}

/// Counts of one limit.
#[derive(Clone, Debug, Default)]
pub struct LimitSummary {
    /// Requests that went ahead at once.
    pub allowed: u64,
    /// Requests that went ahead after a delay.
    pub delayed: u64,
    /// Requests that this limit refused (a shadow limit: would have).
    pub denied: u64,
    /// Whether it is only a shadow.
    pub shadow: bool,
    /// The keys that it refused most.
    pub denied_keys: TopKeys,
}

impl Summary {
    /// The limits that were met, by name.
    pub fn limits(&self) -> impl Iterator<Item = (&str, &LimitSummary)> {
        self.limits
            .iter()
            .map(|(name, limit)| (name.as_str(), limit))
    }

    pub(super) fn count(&mut self, call: &Call<'_>, admission: &Admission<'_>) {
        if call.peek {
            return;
        }
        self.requests += 1;
        self.allowed += u64::from(admission.is_allowed());
        let waits = !(admission.waited() + admission.delay()).is_zero();
        let ahead = admission.is_allowed().then_some(waits);
        for applied in admission.applied() {
            self.count_at(call, applied, ahead, false);
        }
        for applied in admission.shadow() {
            self.count_at(call, applied, ahead, true);
        }
    }

    /// `ahead`: whether the request was delayed, if it went ahead.
    fn count_at(
        &mut self,
        call: &Call<'_>,
        applied: &Applied<'_>,
        ahead: Option<bool>,
        shadow: bool,
    ) {
        if !self.limits.contains_key(applied.limit.name()) {
            let limit = LimitSummary {
                shadow,
                ..LimitSummary::default()
            };
            self.limits.insert(applied.limit.name().to_owned(), limit);
        }
        let Some(limit) = self.limits.get_mut(applied.limit.name()) else {
            return;
        };
        match ahead {
            _ if applied.decision.is_denied() => {
                limit.denied += 1;
                let key = applied
                    .limit
                    .key_text(call)
                    .unwrap_or_else(|| "(no key)".to_owned());
                limit.denied_keys.add(key);
            }
            Some(true) => limit.delayed += 1,
            Some(false) => limit.allowed += 1,
            None => {}
        }
    }
}
