//! The Redis of a policy, as the node's store of what nodes share.

use std::path::PathBuf;
use std::sync::Arc;

use tidegate_node::shared_complaints;
use tidegate_policy::{
    Complaint, Place, Policy, RedisPlace, RedisSettings, RedisTopology, Severity,
};
use tidegate_redis::concurrency::{DOUBLE_WINDOW, NODE_SHARE, SLOTS};
use tidegate_redis::exact::EXACT;
use tidegate_redis::{
    ConfigError, DEFINE, Endpoint, EndpointConfig, LEASE, LEASE_WINDOW, MEMBERS, RedisStore,
    Script, Tls,
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
    &DEFINE,
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
    /// What is wrong with the settings, or with a file that they name: what [`complaints`] has told
    /// with its place before, unless a file has changed since.
    pub(crate) fn start(settings: &RedisSettings) -> Result<Self, CommandError> {
        let wrong = |error: &ConfigError| CommandError::new(format!("redis: {error}"));
        let mut config = config(settings).map_err(|error| wrong(&error))?;
        if let Some(file) = &settings.password_file {
            let password = password(file);
            config.login.password =
                Some(password.map_err(|error| {
                    CommandError::io(format!("redis: cannot read {file}"), error)
                })?);
        }
        let endpoint = Endpoint::start(config, SCRIPTS).map_err(|error| wrong(&error))?;
        let endpoint = Arc::new(endpoint);
        let store = RedisStore::expecting(settings.nodes, endpoint.clone(), &Handle::current());
        Ok(Self { store, endpoint })
    }
}

/// What is wrong with a policy for a node that is to share limits through Redis. How bad it is that
/// a file is not here depends on whether the node is.
pub(crate) fn complaints(policy: &Policy, missing_file: Severity) -> Vec<Complaint> {
    let mut complaints = shared_complaints(policy, &tidegate_redis::validate);
    if let Some(settings) = &policy.redis {
        match config(settings) {
            Ok(config) => complaints.extend(of_files(settings, &config, missing_file)),
            Err(error) => complaints.extend(of_settings(settings, &error)),
        }
    }
    complaints
}

/// Which part of the settings is at fault. Whatever URLs say of servers, those before them agree
/// with.
fn of_settings(settings: &RedisSettings, error: &ConfigError) -> Vec<Complaint> {
    let help = match &settings.topology {
        RedisTopology::Server => "write `redis://HOST:PORT`, or `redis://HOST:PORT/DATABASE`",
        RedisTopology::Sentinel(name) if name.is_empty() => "write `sentinel: NAME`",
        RedisTopology::Sentinel(_) | RedisTopology::Cluster => {
            "write `redis://HOST:PORT`, all with the same login"
        }
    };
    let complain = |place, error: &ConfigError| {
        Complaint::error(Place::Redis(place), format!("`redis`: {error}")).help(help)
    };
    if matches!(&settings.topology, RedisTopology::Sentinel(name) if name.is_empty()) {
        return vec![complain(RedisPlace::Sentinel, error)];
    }
    let mut complaints = Vec::new();
    let mut right = RedisSettings {
        urls: Vec::new(),
        ..settings.clone()
    };
    for (at, url) in settings.urls.iter().enumerate() {
        right.urls.push(url.clone());
        if let Err(error) = config(&right) {
            complaints.push(complain(RedisPlace::Url(at), &error));
            right.urls.pop();
        }
    }
    if complaints.is_empty() {
        complaints.push(complain(RedisPlace::Whole, error));
    }
    complaints
}

/// Files that cannot be read, or used.
fn of_files(
    settings: &RedisSettings,
    config: &EndpointConfig,
    severity: Severity,
) -> Vec<Complaint> {
    let complain = |place, message: String| Complaint {
        severity,
        place: Place::Redis(place),
        message,
        help: Some("on each machine that serves this policy it has to be there".to_owned()),
    };
    let password = settings.password_file.as_deref().and_then(|file| {
        let error = password(file).err()?;
        let message = format!("`redis`: cannot read {file}: {error}");
        Some(complain(RedisPlace::PasswordFile, message))
    });
    let authorities = config.check_files().err().map(|error| {
        let place = if settings.ca_file.is_some() {
            RedisPlace::CaFile
        } else {
            RedisPlace::Whole
        };
        complain(place, format!("`redis`: {error}"))
    });
    password.into_iter().chain(authorities).collect()
}

fn password(file: &str) -> std::io::Result<String> {
    let text = std::fs::read_to_string(file)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// All but the password of a file.
fn config(settings: &RedisSettings) -> Result<EndpointConfig, ConfigError> {
    let urls: Vec<&str> = settings.urls.iter().map(String::as_str).collect();
    let first = urls.first().copied().unwrap_or_default();
    let mut config = match &settings.topology {
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
    }?;
    if settings.password_file.is_some() {
        config.login.user = settings.user.clone().or(config.login.user);
    }
    if let Some(file) = &settings.ca_file {
        config.tls.get_or_insert_default().ca_file = Some(PathBuf::from(file));
    }
    // The file's comes when it is read.
    let mut with_login = config.clone();
    if settings.password_file.is_some() {
        with_login.login.password.get_or_insert_default();
    }
    with_login.validate().map(|()| config)
}
