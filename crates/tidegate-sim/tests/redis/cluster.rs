//! A cluster of three primaries with a replica each.

use crate::certificates::Certificates;
use crate::sentinels::until;
use crate::server::{RedisServer, free_address};

#[derive(Debug)]
pub(crate) struct Cluster {
    /// The first three began as primaries of a third of the slots each, in order.
    pub(crate) servers: Vec<RedisServer>,
    /// How each of them is called by the others and by clients.
    pub(crate) urls: Vec<String>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        Self::start_with(None)
    }

    /// With certificates: all speak TLS, with each other, too.
    pub(crate) fn start_with(certificates: Option<&Certificates>) -> Self {
        let server = || {
            let bus = free_address().port().to_string();
            let arguments = [
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus,
                "--cluster-node-timeout",
                "1000",
                "--repl-diskless-sync-delay",
                "0",
            ];
            let Some(certificates) = certificates else {
                let server = RedisServer::start_with(&arguments);
                let url = server.url();
                return (server, url, bus);
            };
            let with_tls = ["--tls-cluster", "yes", "--tls-replication", "yes"];
            let (server, url) = certificates.serve("no", &[&arguments[..], &with_tls].concat());
            (server, url, bus)
        };
        let (mut servers, mut urls, mut buses) = (Vec::new(), Vec::new(), Vec::new());
        for (server, url, bus) in (0..6).map(|_| server()) {
            servers.push(server);
            urls.push(url);
            buses.push(bus);
        }
        let (_, first) = urls[0].trim_end_matches('/').rsplit_once(':').unwrap();
        for (number, server) in servers.iter().enumerate() {
            server.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
            server.command(&["CLUSTER", "MEET", "127.0.0.1", first, &buses[0]]);
        }
        let thirds = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];
        for (server, (from, to)) in servers.iter().zip(thirds) {
            server.command(&["CLUSTER", "ADDSLOTSRANGE", from, to]);
        }
        let cluster = Self { servers, urls };
        for server in &cluster.servers {
            until("they know each other", || {
                server.command(&["CLUSTER", "NODES"]).lines().count() == 6
            });
        }
        for number in 0..3 {
            let primary = cluster.id(number);
            cluster.servers[number + 3].command(&["CLUSTER", "REPLICATE", &primary]);
        }
        for server in &cluster.servers {
            until("it is well", || {
                let nodes = server.command(&["CLUSTER", "NODES"]);
                let replicas = nodes.lines().filter(|line| line.contains("slave")).count();
                let state = server.command(&["CLUSTER", "INFO"]);
                replicas == 3 && state.contains("cluster_state:ok")
            });
        }
        for replica in &cluster.servers[3..] {
            until("it follows", || {
                replica
                    .command(&["INFO", "replication"])
                    .contains("master_link_status:up")
            });
        }
        cluster
    }

    pub(crate) fn id(&self, number: usize) -> String {
        self.servers[number].command(&["CLUSTER", "MYID"])
    }

    /// Begins to move a slot: its new keys are the other server's.
    pub(crate) fn begin_to_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        let (giver, taker) = (self.id(from), self.id(to));
        self.servers[to].command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &giver]);
        self.servers[from].command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &taker]);
    }

    /// Moves a key of such a slot.
    pub(crate) fn move_key(&self, key: &str, from: usize, to: usize) {
        let port = self.servers[to].address.port().to_string();
        self.servers[from].command(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
    }

    /// Ends the move of a slot.
    pub(crate) fn end_move(&self, slot: u16, to: usize) {
        let (slot, taker) = (slot.to_string(), self.id(to));
        let others = (0..3).filter(|other| *other != to);
        for server in std::iter::once(to).chain(others) {
            self.servers[server].command(&["CLUSTER", "SETSLOT", &slot, "NODE", &taker]);
        }
    }
}
