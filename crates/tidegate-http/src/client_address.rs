//! Who the client is: the peer, or whom trusted proxies say they speak for.
//!
//! The invariant: an address that a client can choose freely is never believed. A header is
//! read only if the peer is a trusted proxy, from the right (what the nearest proxy wrote), and
//! only as far as each hop is trusted.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName};
use ipnet::{IpNet, Ipv4Net};

/// `x-forwarded-for`.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Proxies whose `X-Forwarded-For` is believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
}

impl TrustedProxies {
    /// Most entries of `X-Forwarded-For` that are looked at; a longer chain of trusted proxies
    /// ends at the last that was looked at.
    pub const MAX_HOPS: usize = 32;

    /// Those in one of `networks`. A network of IPv4 addresses written as IPv6
    /// (`::ffff:10.0.0.0/104`) is the IPv4 network.
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self {
            networks: networks.into_iter().map(canonical).collect(),
        }
    }

    /// Whether `address` is a trusted proxy's.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }

    /// The client that `peer` speaks for.
    ///
    /// The peer itself unless it is trusted. Then the entries of all `X-Forwarded-For` lines
    /// are walked from the last to the first: the first one that is not trusted is the client.
    /// If all are trusted it is the leftmost; an entry that is no address (`unknown`, garbage)
    /// stops the walk at the hop that wrote it. An IPv4 address in IPv6 form is IPv4; a port
    /// behind an address is ignored.
    ///
    /// ```
    /// use http::{HeaderMap, HeaderValue};
    /// use tidegate_http::TrustedProxies;
    ///
    /// let trusted = TrustedProxies::new(["10.0.0.0/8".parse()?]);
    /// let mut headers = HeaderMap::new();
    /// headers.insert("x-forwarded-for", HeaderValue::from_static("6.6.6.6, 192.0.2.1, 10.0.0.2"));
    /// let from_proxy = trusted.client("10.0.0.1".parse()?, &headers);
    /// assert_eq!(from_proxy.to_string(), "192.0.2.1");
    /// let from_elsewhere = trusted.client("203.0.113.9".parse()?, &headers);
    /// assert_eq!(from_elsewhere.to_string(), "203.0.113.9");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut nearest = peer.to_canonical();
        if self.networks.is_empty() || !self.contains(nearest) {
            return nearest;
        }
        let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
        let entries = lines.flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b','));
        for entry in entries.take(Self::MAX_HOPS) {
            let entry = entry.trim_ascii();
            if entry.is_empty() {
                continue; // an empty list element is no hop (RFC 9110 section 5.6.1.2)
            }
            let Some(address) = parse_hop(entry) else {
                break;
            };
            nearest = address;
            if !self.contains(address) {
                break;
            }
        }
        nearest
    }
}

/// An address, perhaps with a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`,
/// `[2001:db8::1]`, `[2001:db8::1]:80`.
fn parse_hop(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?;
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address = bare
        .and_then(|text| text.parse().ok().map(IpAddr::V6))
        .or_else(|| text.parse().ok())
        .or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()))?;
    Some(address.to_canonical())
}

fn canonical(network: IpNet) -> IpNet {
    if let IpNet::V6(v6) = network
        && let Some(v4) = v6.addr().to_ipv4_mapped()
        && let Some(prefix) = v6.prefix_len().checked_sub(96)
        && let Ok(v4) = Ipv4Net::new(v4, prefix)
    {
        return IpNet::V4(v4);
    }
    network
}

#[cfg(test)]
mod tests;
