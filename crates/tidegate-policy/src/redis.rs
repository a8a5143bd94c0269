//! Where Redis is.

use std::fmt;

/// The Redis that nodes share their limits through.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisSettings {
    /// The servers, the Sentinels, or some nodes of the Cluster. They may have passwords in them.
    pub urls: Vec<String>,
    /// What kind of Redis that is.
    pub topology: RedisTopology,
    /// How many nodes to expect until Redis has told how many there are; this one among them.
    pub nodes: u64,
    /// As whom to log in to the servers, where their URLs do not say.
    pub user: Option<String>,
    /// The file with the password for that.
    pub password_file: Option<String>,
    /// The file of the certificates that servers are trusted by.
    pub ca_file: Option<String>,
}

/// What kind of Redis it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisTopology {
    /// One server.
    Server,
    /// The primary of this name, which Sentinels know.
    Sentinel(String),
    /// A Cluster.
    Cluster,
}

impl RedisSettings {
    /// Most nodes that can be expected.
    pub const MAX_NODES: u64 = 100_000;

    /// Whether both are of the same Redis. How many nodes to expect is of no matter once it has
    /// answered.
    pub fn is_same(&self, other: &Self) -> bool {
        let nodes = self.nodes;
        *self
            == Self {
                nodes,
                ..other.clone()
            }
    }
}

impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the URLs: there are passwords in them.
        f.debug_struct("RedisSettings")
            .field("topology", &self.topology)
            .finish_non_exhaustive()
    }
}
