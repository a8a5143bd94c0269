//! A primary, two replicas, and three Sentinels that watch them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::server::{RedisServer, free_address, redis_cli};

const DEADLINE: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(crate) struct Sentinels {
    pub(crate) servers: Vec<RedisServer>,
    pub(crate) sentinels: Vec<RedisServer>,
}

impl Sentinels {
    pub(crate) fn start() -> Self {
        let primary = RedisServer::start();
        let port = primary.address.port().to_string();
        let replica = || {
            let arguments = [
                "--replicaof",
                "127.0.0.1",
                &port,
                "--repl-diskless-sync-delay",
                "0",
            ];
            RedisServer::start_with(&arguments)
        };
        let servers = vec![primary, replica(), replica()];
        let file = format!(
            "sentinel monitor limits 127.0.0.1 {port} 2\n\
             sentinel down-after-milliseconds limits 500\n\
             sentinel failover-timeout limits 3000\n"
        );
        let sentinel = || RedisServer::start_with_file(free_address(), &file, &["--sentinel"]);
        let sentinels = (0..3).map(|_| sentinel()).collect();
        let trio = Self { servers, sentinels };
        for sentinel in &trio.sentinels {
            until("they know each other", || {
                let known = redis_cli(sentinel.address, &["SENTINEL", "MASTER", "limits"]);
                let lines: Vec<_> = known.lines().collect();
                let has =
                    |name: &str, value: &str| lines.windows(2).any(|pair| pair == [name, value]);
                has("num-slaves", "2") && has("num-other-sentinels", "2")
            });
        }
        for replica in &trio.servers[1..] {
            until("it follows", || {
                replica
                    .command(&["INFO", "replication"])
                    .contains("master_link_status:up")
            });
        }
        trio
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.sentinels.iter().map(RedisServer::url).collect()
    }

    /// Where the first Sentinel says that the primary is.
    pub(crate) fn primary(&self) -> SocketAddr {
        let question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "limits"];
        let answer = self.sentinels[0].command(&question);
        let (host, port) = answer.split_once('\n').unwrap();
        format!("{host}:{}", port.trim()).parse().unwrap()
    }
}

/// Waits until something holds that must.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < DEADLINE, "not in time: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}
