//! Where counts are kept that survive a restart.

use std::time::Duration;

/// The file in which the counts are kept of the limits that [persist](crate::LimitRule::persist).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSettings {
    /// Its path, as seen from the folder of the policy.
    pub file: String,
    /// How often it is written.
    pub every: Duration,
}

impl StateSettings {
    /// How often it is written, where the policy does not say.
    pub const DEFAULT_EVERY: Duration = Duration::from_secs(10);
    /// The most often that a policy can ask for.
    pub const LEAST_EVERY: Duration = Duration::from_secs(1);
    /// The least often that a policy can ask for.
    pub const MOST_EVERY: Duration = Duration::from_hours(24);
}
