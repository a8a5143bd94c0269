//! Where Redis is, and how to speak to it.
//!
//! What a URL says holds for the servers that it names. Sentinels name another one, so that its
//! login and TLS are said apart, in fields: as in Spring, go-redis, redis-py, Jedis and ioredis.
//! (`redis-sentinel://` URLs exist, but each client reads them in its own way.)

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use self::url::Address;
use crate::endpoint::tls;

#[cfg(test)]
mod tests;
mod url;

/// Most connections to one server.
const MAX_CONNECTIONS: usize = 64;

/// Most calls under way to one server.
const MAX_IN_FLIGHT: usize = 65_536;

/// Most servers that a configuration names.
const MAX_SERVERS: usize = 1_000;

/// Where Redis is, and how to speak to it.
///
/// ```
/// use tidegate_redis::{EndpointConfig, Tls};
///
/// let single = EndpointConfig::single("rediss://user:password@redis.example:6380/2")?;
/// let cluster = EndpointConfig::cluster(&["redis://10.0.0.1:7000", "redis://10.0.0.2:7000"])?;
/// let mut sentinel = EndpointConfig::sentinel("mymaster", &["redis://10.0.0.1:26379"])?;
/// sentinel.login.password = Some("password".into());
/// sentinel.tls = Some(Tls::default());
/// # Ok::<(), tidegate_redis::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointConfig {
    /// Which servers there are.
    pub topology: Topology,
    /// As whom to log in to them (to Sentinels: see [`Topology::Sentinel`]).
    pub login: Login,
    /// Which of a server's databases. A cluster has only database 0.
    pub database: u32,
    /// Whether to speak TLS to them.
    pub tls: Option<Tls>,
    /// Connections to each server, 1 to 64. Calls share them: more than a few help only where one
    /// core cannot write and read all.
    pub connections: usize,
    /// How long opening a connection may take, login and loading of scripts included.
    pub connect_timeout: Duration,
    /// Calls that may be under way to one server; what goes beyond has no answer at once.
    pub max_in_flight: usize,
}

/// Which servers there are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Topology {
    /// One server.
    Single(Address),
    /// A primary that Sentinels name.
    Sentinel {
        /// The name that they know it by (`sentinel monitor <name> ...`).
        primary: String,
        /// Where they are: one that answers is enough.
        sentinels: Vec<Address>,
        /// As whom to log in to them, if they want that.
        login: Login,
        /// Whether to speak TLS to them, too (as [`EndpointConfig::tls`] says, or by default).
        tls: bool,
    },
    /// A cluster.
    Cluster {
        /// Some of its servers; they know the others.
        seeds: Vec<Address>,
    },
}

/// A user and a password. Neither `Debug` nor anything else here prints the password.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// The ACL user. Without: the one named `default`.
    pub user: Option<String>,
    /// Without: no login at all.
    pub password: Option<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .finish()
    }
}

/// TLS 1.2 or 1.3. The server's certificate must be valid for the name by which it is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tls {
    /// PEM file of the authorities to trust. Without: those that the system trusts.
    pub ca_file: Option<PathBuf>,
    /// PEM files of a certificate (with its chain) and its key, for servers that ask for one.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

/// A configuration that cannot be used, and why. No password is part of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl ConfigError {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

impl EndpointConfig {
    /// One server: `redis://[[user]:password@]host[:port][/database]`, or `rediss://` for TLS.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the URL.
    pub fn single(url: &str) -> Result<Self, ConfigError> {
        let parsed = url::parse(url, 6379)?;
        let mut config = Self::with(Topology::Single(parsed.address));
        config.login = parsed.login;
        config.database = parsed.database;
        config.tls = parsed.tls.then(Tls::default);
        Ok(config)
    }

    /// A cluster, by URLs of some of its servers (as for [`EndpointConfig::single`], but without
    /// a database). Login and TLS are those of the first URL; the others may repeat them, or
    /// leave the login out.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with a URL, or contradicts the first.
    pub fn cluster(urls: &[&str]) -> Result<Self, ConfigError> {
        let all = url::parse_all(urls, 6379)?;
        let mut config = Self::with(Topology::Cluster {
            seeds: all.addresses,
        });
        config.login = all.login;
        config.tls = all.tls.then(Tls::default);
        Ok(config)
    }

    /// The primary that Sentinels know as `primary`, by the URLs of some Sentinels. A login in
    /// those, and `rediss://`, are for speaking to Sentinels; what holds for the primary is in
    /// [`login`](Self::login), [`database`](Self::database) and [`tls`](Self::tls).
    ///
    /// # Errors
    ///
    /// Whatever is wrong with a URL, or contradicts the first.
    pub fn sentinel(primary: &str, urls: &[&str]) -> Result<Self, ConfigError> {
        let all = url::parse_all(urls, 26379)?;
        let config = Self::with(Topology::Sentinel {
            primary: primary.to_owned(),
            sentinels: all.addresses,
            login: all.login,
            tls: all.tls,
        });
        if primary.is_empty() {
            let why = "Sentinel needs the name of the primary, as `sentinel monitor` gives it";
            return Err(ConfigError::new(why));
        }
        Ok(config)
    }

    fn with(topology: Topology) -> Self {
        Self {
            topology,
            login: Login::default(),
            database: 0,
            tls: None,
            connections: 2,
            connect_timeout: Duration::from_secs(1),
            max_in_flight: 4_096,
        }
    }

    /// Checks what constructors could not.
    ///
    /// # Errors
    ///
    /// The first field that cannot be used, and why.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let error = |why: String| Err(ConfigError::new(why));
        let servers = match &self.topology {
            Topology::Single(_) => 1,
            Topology::Sentinel { sentinels, .. } => sentinels.len(),
            Topology::Cluster { seeds } => seeds.len(),
        };
        if servers == 0 || servers > MAX_SERVERS {
            return error(format!(
                "name 1 to {MAX_SERVERS} servers of Redis, not {servers}"
            ));
        }
        if matches!(self.topology, Topology::Cluster { .. }) && self.database != 0 {
            let database = self.database;
            return error(format!(
                "a Redis cluster has only database 0, not {database}"
            ));
        }
        if self.login.user.is_some() && self.login.password.is_none() {
            return error("a user of Redis needs a password".to_owned());
        }
        if self.connections == 0 || self.connections > MAX_CONNECTIONS {
            return error(format!(
                "connections to a server of Redis: 1 to {MAX_CONNECTIONS}, not {}",
                self.connections
            ));
        }
        if self.max_in_flight == 0 || self.max_in_flight > MAX_IN_FLIGHT {
            return error(format!(
                "calls under way to a server of Redis: 1 to {MAX_IN_FLIGHT}, not {}",
                self.max_in_flight
            ));
        }
        if self.connect_timeout.is_zero() {
            return error("the time to connect to Redis must be longer than nothing".to_owned());
        }
        Ok(())
    }

    /// Reads the files that it names, as an endpoint does when it starts.
    ///
    /// # Errors
    /// The first that cannot be read or used, and why.
    pub fn check_files(&self) -> Result<(), ConfigError> {
        self.tls.as_ref().map(tls::connector).transpose().map(drop)
    }
}
