//! Limits that several machines share through one Redis.

mod backoff;
mod breaker;
mod call;
mod config;
mod endpoint;
mod fault;
mod health;

pub use self::call::{Answer, Script, ScriptCall, Scripts, Unavailable};
pub use self::config::{Address, ConfigError, EndpointConfig, Login, Tls, Topology};
pub use self::endpoint::Endpoint;
pub use self::health::{Counts, Health, ServerHealth, State};
