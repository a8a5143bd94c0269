//! The Redis of a policy, as the node's store of what nodes share.

use std::path::PathBuf;
use std::sync::Arc;

use tidegate_policy::{RedisSettings, RedisTopology};
use tidegate_redis::concurrency::{DOUBLE_WINDOW, NODE_SHARE, SLOTS};
use tidegate_redis::exact::EXACT;
use tidegate_redis::{ConfigError, Endpoint, EndpointConfig, LEASE, MEMBERS, RedisStore, Script};
use tokio::runtime::Handle;

/// Loaded on each connection.
const SCRIPTS: &[&Script] = &[
    &EXACT,
    &LEASE,
    &NODE_SHARE,
    &SLOTS,
    &DOUBLE_WINDOW,
    &MEMBERS,
];

/// What a node shares with others, and how the way there is.
#[derive(Debug)]
pub(crate) struct Redis {
    pub(crate) store: RedisStore,
    pub(crate) endpoint: Arc<Endpoint>,
}

impl Redis {
    /// Starts connections, and waits for none: a Redis that is not there is waited for while the
    /// node serves. Within the runtime.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub(crate) fn start(settings: &RedisSettings) -> Result<Self, ConfigError> {
        let urls: Vec<&str> = settings.urls.iter().map(String::as_str).collect();
        let first = urls.first().copied().unwrap_or_default();
        let mut config = match &settings.topology {
            RedisTopology::Server => EndpointConfig::single(first)?,
            RedisTopology::Cluster => EndpointConfig::cluster(&urls)?,
            RedisTopology::Sentinel(primary) => EndpointConfig::sentinel(primary, &urls)?,
        };
        if let Some(file) = &settings.ca_file {
            config.tls.get_or_insert_default().ca_file = Some(PathBuf::from(file));
        }
        let endpoint = Arc::new(Endpoint::start(config, SCRIPTS)?);
        let store = RedisStore::new(endpoint.clone(), &Handle::current());
        Ok(Self { store, endpoint })
    }
}
