//! Key parts: which pieces of a request a limit counts by.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::path_pattern::{NORMAL_FORM, is_normal};
use crate::quote::printable;
use crate::request::Request;

/// One piece of a request that makes a key.
///
/// A piece has one byte form, whoever writes it: [`write_value`](Self::write_value) from a
/// request, [`parse_value`](Self::parse_value) from a policy. Whoever joins several pieces
/// into one key has to keep them apart (a length before each).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyPart {
    /// The client's address; of an IPv6 address only the leading bits.
    ClientIp,
    /// The method.
    Method,
    /// The host, in lower case.
    Host,
    /// The path, without the query.
    Path,
    /// The id of the route that the request took.
    Route,
    /// A header, by its name in lower case.
    Header(String),
    /// A cookie.
    Cookie(String),
    /// A query parameter.
    Query(String),
}

impl KeyPart {
    /// The parts that have no name of their own, as a policy writes them.
    pub const PLAIN: [&str; 5] = ["client_ip", "method", "host", "path", "route"];
    /// The prefixes of the parts that are named.
    pub const NAMED: [&str; 3] = ["header:", "cookie:", "query:"];

    /// Appends this part of `request` to `out`; false, and nothing appended, where the request
    /// lacks it.
    ///
    /// An address is its octets: 4, or 16 with all but the first `ipv6_prefix` bits cleared;
    /// an IPv4 address that came as IPv6 is IPv4. An empty `route` is none.
    pub fn write_value(
        &self,
        request: &dyn Request,
        route: &str,
        ipv6_prefix: u8,
        out: &mut impl Extend<u8>,
    ) -> bool {
        let value = match self {
            Self::ClientIp => {
                let Some(ip) = request.client_ip() else {
                    return false;
                };
                match masked(ip, ipv6_prefix) {
                    IpAddr::V4(ip) => out.extend(ip.octets()),
                    IpAddr::V6(ip) => out.extend(ip.octets()),
                }
                return true;
            }
            Self::Host => {
                let Some(host) = request.host() else {
                    return false;
                };
                out.extend(
                    without_root_dot(host)
                        .bytes()
                        .map(|byte| byte.to_ascii_lowercase()),
                );
                return true;
            }
            Self::Method => Some(request.method().as_bytes().into()),
            Self::Path => Some(request.path().as_bytes().into()),
            Self::Route => (!route.is_empty()).then(|| route.as_bytes().into()),
            Self::Header(name) => request.header(name),
            Self::Cookie(name) => request.cookie(name),
            Self::Query(name) => request.query(name),
        };
        let Some(value) = value else { return false };
        out.extend(value.iter().copied());
        true
    }

    /// The byte form of a value that a policy names.
    ///
    /// # Errors
    /// [`KeyValueError`] where no request can have this value.
    pub fn parse_value(&self, text: &str, ipv6_prefix: u8) -> Result<Box<[u8]>, KeyValueError> {
        match self {
            Self::ClientIp => {
                let ip = text.parse().map_err(|_| KeyValueError::NotAnAddress)?;
                Ok(match masked(ip, ipv6_prefix) {
                    IpAddr::V4(ip) => Box::from(ip.octets()),
                    IpAddr::V6(ip) => Box::from(ip.octets()),
                })
            }
            Self::Host => {
                let host = without_root_dot(text).to_ascii_lowercase();
                Ok(host.into_bytes().into_boxed_slice())
            }
            Self::Path if text != "*" => match text.strip_prefix('/') {
                None => Err(KeyValueError::NotAPath),
                Some(inner) if !is_normal(inner) => Err(KeyValueError::PathNotNormal),
                Some(_) => Ok(Box::from(text.as_bytes())),
            },
            _ => Ok(Box::from(text.as_bytes())),
        }
    }

    /// A value as people should see it: an address in its usual form, anything else as text,
    /// with what cannot be printed escaped.
    pub fn display_value(&self, value: &[u8]) -> String {
        if matches!(self, Self::ClientIp) {
            if let Ok(octets) = <[u8; 4]>::try_from(value) {
                return Ipv4Addr::from(octets).to_string();
            }
            if let Ok(octets) = <[u8; 16]>::try_from(value) {
                return Ipv6Addr::from(octets).to_string();
            }
        }
        let mut text = String::with_capacity(value.len());
        for chunk in value.utf8_chunks() {
            text.push_str(&printable(chunk.valid()));
            text.extend(chunk.invalid().escape_ascii().map(char::from));
        }
        text
    }
}

impl fmt::Display for KeyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientIp => f.write_str("client_ip"),
            Self::Method => f.write_str("method"),
            Self::Host => f.write_str("host"),
            Self::Path => f.write_str("path"),
            Self::Route => f.write_str("route"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
        }
    }
}

impl FromStr for KeyPart {
    type Err = KeyPartError;

    fn from_str(text: &str) -> Result<Self, KeyPartError> {
        Ok(match text {
            "client_ip" => Self::ClientIp,
            "method" => Self::Method,
            "host" => Self::Host,
            "path" => Self::Path,
            "route" => Self::Route,
            _ => {
                let (kind, name) = text.split_once(':').ok_or(KeyPartError::Unknown)?;
                match kind {
                    "header" if is_token(name) => Self::Header(name.to_ascii_lowercase()),
                    "cookie" if is_token(name) => Self::Cookie(name.to_owned()),
                    "query" if !name.is_empty() => Self::Query(name.to_owned()),
                    "header" | "cookie" | "query" => return Err(KeyPartError::BadName),
                    _ => return Err(KeyPartError::Unknown),
                }
            }
        })
    }
}

/// Why a text is no key part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPartError {
    /// There is no such part.
    Unknown,
    /// The name behind `header:`, `cookie:` or `query:` is empty or none that can be sent.
    BadName,
}

impl fmt::Display for KeyPartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "there is no such part of a request",
            Self::BadName => "this name cannot be sent",
        })
    }
}

impl std::error::Error for KeyPartError {}

/// Why no request can have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyValueError {
    /// A client address that is none.
    NotAnAddress,
    /// A path that does not start with `/`.
    NotAPath,
    /// A path that requests have in another form.
    PathNotNormal,
}

impl fmt::Display for KeyValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAnAddress => "this is no IP address",
            Self::NotAPath => "a path starts with `/`",
            Self::PathNotNormal => "no request has this: paths are normalised first",
        })
    }
}

impl std::error::Error for KeyValueError {}

impl KeyValueError {
    /// What to write instead.
    pub(crate) fn help(self) -> &'static str {
        match self {
            Self::NotAnAddress => "write one address, such as `192.0.2.1` or `2001:db8::1`",
            Self::NotAPath => "write it as requests have it, such as `/api/orders`",
            Self::PathNotNormal => NORMAL_FORM,
        }
    }
}

/// Whether this is a token of RFC 9110: what header names, cookie names and methods are.
pub(crate) fn is_token(text: &str) -> bool {
    let is_token_byte = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// A host without the dot of the DNS root: `example.com.` is `example.com`.
pub(crate) fn without_root_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// The client that an address stands for: of IPv6, what one customer line is given.
pub(crate) fn masked(ip: IpAddr, ipv6_prefix: u8) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => {
            let hidden = 128 - u32::from(ipv6_prefix.min(128));
            let mask = u128::MAX.checked_shl(hidden).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests;
