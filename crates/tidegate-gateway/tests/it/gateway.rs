//! A running gateway.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tidegate::{Clock, SystemClock};
use tidegate_gateway::{Counters, CountersSnapshot, Gateway, Reopen, TokioTimer};
use tidegate_node::{Node, Timer};
use tidegate_policy::Policy;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::wire::{Wire, soon};

/// A gateway on one core; shuts down when it is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) node: Arc<Node>,
    counters: Counters,
    pub(crate) log: Reopen,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<io::Result<()>>,
}

/// A policy in which everything goes to `servers`, under the limits (and whatever else) of
/// `more`; `gateway` are further lines of the gateway.
pub(crate) fn policy(servers: &[SocketAddr], limits: &str, gateway: &str) -> Policy {
    let servers: Vec<_> = servers
        .iter()
        .map(|server| format!("\"{server}\""))
        .collect();
    let names = limits
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<_> = names
        .filter_map(|line| line.trim().split(':').next())
        .collect();
    let limits = if names.is_empty() {
        String::new()
    } else {
        format!("limits:\n{limits}\n")
    };
    let text = format!(
        "{limits}\nupstreams:\n  shop: {{ servers: [{}] }}\ngateway:\n  \
         listen: [\"127.0.0.1:0\"]\n{gateway}\n  routes:\n    \
         - {{ id: all, match: {{ path: \"/**\" }}, upstream: shop, limits: [{}] }}\n",
        servers.join(", "),
        names.join(", "),
    );
    parse(&text)
}

pub(crate) fn parse(text: &str) -> Policy {
    match tidegate_policy::parse("test.yaml", text) {
        Ok(loaded) => loaded.policy,
        Err(problems) => panic!("{text}\n{problems}"),
    }
}

impl Running {
    /// In real time, in front of `servers`.
    pub(crate) fn before(servers: &[SocketAddr], limits: &str, gateway: &str) -> Self {
        Self::of(policy(servers, limits, gateway))
    }

    /// In real time.
    pub(crate) fn of(policy: Policy) -> Self {
        let clock = Arc::new(SystemClock::new());
        Self::with_clock(policy, clock.clone(), Arc::new(TokioTimer::new(clock)))
    }

    pub(crate) fn with_clock(policy: Policy, clock: Arc<dyn Clock>, timer: Arc<dyn Timer>) -> Self {
        Self::on(NonZeroUsize::MIN, policy, clock, timer)
    }

    pub(crate) fn on(
        cores: NonZeroUsize,
        policy: Policy,
        clock: Arc<dyn Clock>,
        timer: Arc<dyn Timer>,
    ) -> Self {
        let config = policy.gateway.clone().expect("a policy with a gateway");
        let node = Node::new(policy, clock).expect("limits that are limits");
        let bound = Gateway::bind_on(&config, Arc::clone(&node), timer, cores).expect("a port");
        let address = bound.local_addrs()[0];
        let counters = bound.counters();
        let log = bound.reopen();
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(bound.run(async move {
            let _ = stopped.await;
        }));
        Self {
            address,
            node,
            counters,
            log,
            stop: Some(stop),
            ended,
        }
    }

    pub(crate) async fn connect(&self) -> Wire {
        Wire::connect(self.address).await
    }

    pub(crate) fn counters(&self) -> CountersSnapshot {
        self.counters.snapshot()
    }

    /// Waits until the counters are as `wanted` says.
    #[track_caller]
    pub(crate) fn counted(
        &self,
        wanted: impl Fn(&CountersSnapshot) -> bool,
    ) -> impl Future<Output = ()> {
        let counters = self.counters.clone();
        soon(async move {
            while !wanted(&counters.snapshot()) {
                tokio::task::yield_now().await;
            }
        })
    }

    /// Begins to shut down.
    pub(crate) fn stop(&mut self) {
        let _ = self.stop.take().expect("stopped once").send(());
    }

    /// Waits until it has shut down.
    pub(crate) async fn ended(self) {
        soon(self.ended).await.expect("no panic").expect("no error");
    }
}
