//! Patterns of hosts: `shop.example.com`, `*.example.com`.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use crate::key::without_root_dot;

/// One host, or all names below one (`*.example.com` is `a.example.com` and `b.a.example.com`,
/// not `example.com`). Case does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    /// In lower case; of a wildcard without the `*`, so that it begins with a dot.
    text: String,
}

impl HostPattern {
    /// Longest host, in bytes (what DNS allows).
    pub const MAX_BYTES: usize = 253;

    /// Whether `host` is of this pattern. Allocates nothing.
    pub fn matches(&self, host: &str) -> bool {
        let host = without_root_dot(host);
        if !self.is_wildcard() {
            return host.eq_ignore_ascii_case(&self.text);
        }
        host.len() > self.text.len()
            && host.as_bytes()[host.len() - self.text.len()..]
                .eq_ignore_ascii_case(self.text.as_bytes())
    }

    /// Whether every host of `other` is one of this pattern too.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self == other
            || (self.is_wildcard()
                && other.text.len() > self.text.len()
                && other.text.ends_with(&self.text))
    }

    pub(crate) fn is_wildcard(&self) -> bool {
        self.text.starts_with('.')
    }

    /// In lower case; of a wildcard without the `*`.
    pub(crate) fn index_text(&self) -> &str {
        &self.text
    }
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        if text == "*" {
            return Err(HostPatternError::Anything);
        }
        if text.contains('/') {
            return Err(HostPatternError::Url);
        }
        let text = without_root_dot(text).to_ascii_lowercase();
        if let Some(inner) = text.strip_prefix('[') {
            let is_address = inner
                .strip_suffix(']')
                .is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok());
            return if is_address {
                Ok(Self { text })
            } else {
                Err(HostPatternError::NotAHost)
            };
        }
        if text.contains(':') {
            return Err(HostPatternError::Port);
        }
        let name = text.strip_prefix("*.").unwrap_or(&text);
        if name.contains('*') {
            return Err(HostPatternError::Star);
        }
        let is_label = |label: &str| {
            let is_label_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            !label.is_empty() && label.bytes().all(is_label_byte)
        };
        if text.len() > Self::MAX_BYTES || !name.split('.').all(is_label) {
            return Err(HostPatternError::NotAHost);
        }
        Ok(Self {
            text: text.strip_prefix('*').unwrap_or(&text).to_owned(),
        })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_wildcard() {
            f.write_str("*")?;
        }
        f.write_str(&self.text)
    }
}

/// Why a text is no pattern of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostPatternError {
    /// `*` alone.
    Anything,
    /// A URL.
    Url,
    /// There is a port.
    Port,
    /// A `*` that is not the first label.
    Star,
    /// Nothing that can be a host.
    NotAHost,
}

impl fmt::Display for HostPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anything => "`*` alone is no host",
            Self::Url => "a host, not a URL",
            Self::Port => "a host is matched without its port",
            Self::Star => "`*` is only for all that comes before the first dot",
            Self::NotAHost => "this is no host",
        })
    }
}

impl std::error::Error for HostPatternError {}

impl HostPatternError {
    /// What to write instead.
    pub(crate) fn help(self) -> &'static str {
        match self {
            Self::Anything => "leave `host` out to match any",
            Self::Url => "write `host: shop.example.com` and `path: /...`",
            Self::Port => "leave the port out",
            Self::Star | Self::NotAHost => "write `shop.example.com` or `*.example.com`",
        }
    }
}

#[cfg(test)]
mod tests;
