//! How an endpoint is, as data.

use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::Timestamp;

/// Whether a server is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It is.
    Up,
    /// It is not, or only now and then to see whether it is well again.
    Down {
        /// Since when.
        since: Timestamp,
        /// The latest reason, in words.
        why: String,
    },
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerHealth {
    /// `host:port`, or the name that Sentinels know the primary by.
    pub server: String,
    /// Whether it is asked.
    pub state: State,
}

/// An endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Up if every key has a server that is up. Otherwise that of the server that is down the
    /// longest.
    pub state: State,
    /// The servers that have keys. A cluster without any has not been found yet.
    pub servers: Vec<ServerHealth>,
    /// What happened since the start.
    pub counts: Counts,
}

/// Lists each count once: as a field that is read, and as one that is counted.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What happened since the start. All only grow.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts { $($(#[$doc])* pub $name: u64,)* }

        #[derive(Debug, Default)]
        pub(crate) struct Counting { $(pub(crate) $name: Count,)* }

        impl Counting {
            pub(crate) fn read(&self) -> Counts {
                Counts { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counts! {
    /// Calls; each is also one of the next six, unless its caller gave up.
    calls,
    /// Calls with an answer.
    answered,
    /// Calls that were not sent: the server was not asked, or too many were under way.
    not_sent,
    /// Calls without an answer in time.
    timed_out,
    /// Calls whose connection was lost.
    lost,
    /// Calls that a server refused: it is a replica, loads, is out of memory, ...
    refused,
    /// Calls whose script failed, or answered with something else than integers.
    bad_answers,
    /// Connections that were opened.
    connects,
    /// Attempts to open connections to a server that failed.
    failed_connects,
    /// Calls that were sent again with the text of their script.
    scripts_sent,
    /// Calls that a server of a cluster sent on to another.
    redirects,
}

/// A count.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
