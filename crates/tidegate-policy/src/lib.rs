//! The rule book: reads policy files and answers which limits a request meets.
//!
//! For the doors of tidegate (node, gateway, simulator) and for whoever checks policies. The
//! only crate that knows a file format: what leaves it is a [`Policy`] of plain types, in which
//! every name is resolved and every limit is one that the engine accepts.
//!
//! ```
//! let loaded = tidegate_policy::parse("policy.yaml", tidegate_policy::DEFAULT)?;
//! assert_eq!(loaded.policy.limits[0].limit.name(), "per-client");
//! assert!(loaded.warnings.is_empty());
//! # Ok::<(), tidegate_policy::Problems>(())
//! ```
//!
//! A file that is wrong gives all of its [`Problems`] at once. Each draws itself:
//!
//! ```
//! let text = "limits:\n  a: { rate: 100 }\n";
//! let problems = tidegate_policy::parse("policy.yaml", text).unwrap_err();
//! let problem = problems.iter().next().expect("there is one");
//! assert_eq!((problem.line(), problem.column()), (2, 14));
//! assert_eq!(problem.message(), "a rate needs a time: `100` of what?");
//! assert_eq!(problem.help(), Some("write `100/s`, `100/min` or `100 per 5s`"));
//! ```

mod access;
mod admin;
mod bandwidth_rule;
mod compile;
mod complaint;
mod file;
mod gateway;
mod grammar;
mod host_pattern;
mod key;
mod later;
mod limit_rule;
mod load;
mod observe;
mod on_limit;
mod path_pattern;
mod policy;
mod problem;
mod quote;
mod redis;
mod report;
mod request;
mod route;
mod router;
mod schema;
mod source;
mod state;
mod suggest;
mod upstream;
mod yaml;

pub use access::{Access, Denial, Lists};
pub use admin::Admin;
pub use bandwidth_rule::{BandwidthRule, BodyOf, Direction};
pub use complaint::{Complaint, Place, RedisPlace};
pub use gateway::{Gateway, WhenFull};
pub use host_pattern::HostPattern;
pub use key::{KeyPart, KeyPartError, KeyValueError};
pub use limit_rule::{
    LimitRule, OnMissing, OnUnavailable, Override, Priorities, Queue, SharedRule,
};
pub use load::{DEFAULT, Loaded, MAX_FILE_BYTES, load, parse, parse_with, read};
pub use observe::{
    AccessLog, DebugHeader, HideQuery, LimitHeaders, LogFormat, LogOnly, LogTarget, Reset,
};
pub use on_limit::{Action, Answer, OnLimit, Page, Tarpit};
pub use path_pattern::PathPattern;
pub use policy::Policy;
pub use problem::{Problem, Problems, Severity};
pub use redis::{RedisSettings, RedisTopology};
pub use request::Request;
pub use route::{Route, RouteMatch};
pub use router::Routes;
pub use schema::schema;
pub use state::StateSettings;
pub use upstream::{Balance, Upstream, UpstreamKind};
