//! `redis://` and `rediss://`, as every client knows them.

use std::fmt;

use redis::{ConnectionAddr, IntoConnectionInfo};

use super::{ConfigError, Login};

/// A server's host and port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Address {
    /// A name, or an IP address (of version 6: without brackets).
    pub host: String,
    /// 1 to 65,535.
    pub port: u16,
}

impl Address {
    /// From both.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        let host = host.into();
        Self { host, port }
    }

    /// With another's host, if this one is not known: a server that does not know its own name
    /// says none, or `?`.
    pub(crate) fn or_host_of(mut self, other: &Self) -> Self {
        if self.host.is_empty() || self.host == "?" {
            self.host.clone_from(&other.host);
        }
        self
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

pub(super) struct Parsed {
    pub(super) address: Address,
    pub(super) login: Login,
    pub(super) database: u32,
    pub(super) tls: bool,
}

/// Several URLs that agree.
pub(super) struct Agreed {
    pub(super) addresses: Vec<Address>,
    pub(super) login: Login,
    pub(super) tls: bool,
}

pub(super) fn parse(url: &str, default_port: u16) -> Result<Parsed, ConfigError> {
    let wrong = |why: &str| {
        let url = without_login(url);
        ConfigError::new(format!(
            "{url}: {why}; Redis is at redis://[[user]:password@]host[:port][/database], or \
             rediss:// for TLS"
        ))
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("no URL"))?;
    let tls = match scheme {
        "redis" | "valkey" => false,
        "rediss" | "valkeys" => true,
        _ => return Err(wrong("another scheme than redis:// or rediss://")),
    };
    if rest.contains(['#', '?']) {
        // `#insecure` would switch the check of certificates off; nothing else is known, either.
        return Err(wrong(
            "options in the URL are not read (`?` and `#` in passwords: %3F, %23)",
        ));
    }
    // The client's own parser does the escapes; what it knows of TLS is not used.
    let known = format!("redis://{rest}").as_str().into_connection_info();
    let known = known.map_err(|_| wrong("host, port or database is none"))?;
    let ConnectionAddr::Tcp(host, port) = known.addr() else {
        return Err(wrong("no host"));
    };
    let settings = known.redis_settings();
    let has_port = rest
        .rsplit_once('@')
        .map_or(rest, |(_, rest)| rest)
        .split('/')
        .next()
        .is_some_and(|authority| authority.ends_with(&format!(":{port}")));
    let database = u32::try_from(settings.db()).map_err(|_| wrong("a database that is none"))?;
    Ok(Parsed {
        address: Address::new(host, if has_port { *port } else { default_port }),
        login: Login {
            user: settings.username().map(str::to_owned),
            password: settings.password().map(str::to_owned),
        },
        database,
        tls,
    })
}

pub(super) fn parse_all(urls: &[&str], default_port: u16) -> Result<Agreed, ConfigError> {
    let mut agreed: Option<Agreed> = None;
    for url in urls {
        let Parsed {
            address,
            login,
            database,
            tls,
        } = parse(url, default_port)?;
        let wrong = |why: &str| Err(ConfigError::new(format!("{}: {why}", without_login(url))));
        if database != 0 {
            return wrong("neither Sentinels nor clusters have databases");
        }
        match &mut agreed {
            None => {
                let addresses = vec![address];
                agreed = Some(Agreed {
                    addresses,
                    login,
                    tls,
                });
            }
            Some(first) if first.tls != tls => {
                return wrong("redis:// and rediss:// at once: all need the same");
            }
            Some(first) if login != Login::default() && login != first.login => {
                return wrong("another login than the first URL's: all need the same");
            }
            Some(first) => first.addresses.push(address),
        }
    }
    agreed.ok_or_else(|| ConfigError::new("no URL of any server of Redis"))
}

/// A URL as it may be shown. Whatever stands before the last `@` could be a password.
fn without_login(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://***@{host}"),
        (None, Some((_, host))) => format!("***@{host}"),
        (_, None) => url.to_owned(),
    }
}
