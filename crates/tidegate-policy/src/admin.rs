//! Where the admin API listens.

use std::net::{Ipv4Addr, SocketAddr};

/// The admin port: health, metrics, and what the limits are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// The address it listens on; loopback unless the policy says otherwise.
    pub listen: SocketAddr,
}

impl Default for Admin {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8090)),
        }
    }
}
