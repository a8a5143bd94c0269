//! The Redis of a policy, as the node's store of what nodes share.

use std::path::PathBuf;
use std::sync::Arc;

use tidegate_policy::{RedisSettings, RedisTopology};
use tidegate_redis::concurrency::{DOUBLE_WINDOW, NODE_SHARE, SLOTS};
use tidegate_redis::exact::EXACT;
use tidegate_redis::{
    ConfigError, Endpoint, EndpointConfig, LEASE, LEASE_WINDOW, MEMBERS, RedisStore, Script, Tls,
};
use tokio::runtime::Handle;

use crate::exit::CommandError;

/// Loaded on each connection.
const SCRIPTS: &[&Script] = &[
    &EXACT,
    &LEASE,
    &LEASE_WINDOW,
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
    /// What is wrong with the settings, or with a file that they name.
    pub(crate) fn start(settings: &RedisSettings) -> Result<Self, CommandError> {
        let config = config(settings)?;
        let endpoint = Endpoint::start(config, SCRIPTS).map_err(|error| wrong(&error))?;
        let endpoint = Arc::new(endpoint);
        let store = RedisStore::new(endpoint.clone(), &Handle::current());
        Ok(Self { store, endpoint })
    }
}

fn wrong(error: &ConfigError) -> CommandError {
    CommandError::new(format!("redis: {error}"))
}

fn config(settings: &RedisSettings) -> Result<EndpointConfig, CommandError> {
    let urls: Vec<&str> = settings.urls.iter().map(String::as_str).collect();
    let first = urls.first().copied().unwrap_or_default();
    let config = match &settings.topology {
        RedisTopology::Server => EndpointConfig::single(first),
        RedisTopology::Cluster => EndpointConfig::cluster(&urls),
        RedisTopology::Sentinel(primary) => {
            let config = EndpointConfig::sentinel(primary, &urls);
            // Whoever speaks TLS to Sentinels has a primary that does.
            config.map(|mut config| {
                let is_secret = urls.iter().any(|url| url.starts_with("rediss://"));
                config.tls = is_secret.then(Tls::default);
                config
            })
        }
    };
    let mut config = config.map_err(|error| wrong(&error))?;
    if let Some(file) = &settings.password_file {
        let password = std::fs::read_to_string(file)
            .map_err(|error| CommandError::io(format!("redis: cannot read {file}"), error))?;
        config.login.user = settings.user.clone().or(config.login.user);
        config.login.password = Some(password.trim_end_matches(['\r', '\n']).to_owned());
    }
    if let Some(file) = &settings.ca_file {
        config.tls.get_or_insert_default().ca_file = Some(PathBuf::from(file));
    }
    Ok(config)
}
