//! Limits that several machines share through one Redis.

mod backoff;
mod breaker;
mod call;
pub mod concurrency;
mod config;
mod definition;
mod endpoint;
pub mod exact;
mod fault;
mod health;
mod key;
mod leased;
mod members;
mod store;

pub use self::call::{Answer, Script, ScriptCall, Scripts, Unavailable};
pub use self::config::{Address, ConfigError, EndpointConfig, Login, Tls, Topology};
pub use self::definition::{DEFINE, DefineError, Definition, Definitions, FollowedLimiter};
pub use self::endpoint::Endpoint;
pub use self::exact::{Exact, ExactLimiter, NotShared};
pub use self::health::{Counts, Health, ServerHealth, State};
pub use self::key::{MAX_KEY_BYTES, Subject};
pub use self::leased::{
    AutoLease, AutoLimiter, Checked, LEASE, LEASE_BUDGET, LEASE_WINDOW, LeaseDriver, LeaseError,
    LeaseKeyStats, LeaseMode, LeaseNode, LeasePipeline, LeaseReply, LeaseRequest, LeaseState,
    LeaseStats, LeaseTerms, LeasedLimiter, LeasedLimiterBuilder, Lot, NodeId, Scheme, SpendReply,
    SpendRequest,
};
pub use self::members::MEMBERS;
pub use self::store::{DefinedBy, RedisStore, validate};
