//! A gateway in front of one server, with one limit per client: the smallest there is.
//!
//! `gateway LISTEN UPSTREAM RATE BURST [CORES]`, for instance
//! `gateway 127.0.0.1:8080 127.0.0.1:9000 100 20`. Without a rate (`-`) nothing is limited;
//! the upstream `echo` is built in.

use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tidegate::{Algorithm, Limit, Quota, SystemClock};
use tidegate_gateway::{Gateway, TokioTimer};
use tidegate_node::Node;
use tidegate_policy::{
    Access, Balance, KeyPart, LimitRule, OnMissing, Policy, Route, RouteMatch, Upstream,
    UpstreamKind,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || {
        args.next()
            .ok_or("usage: gateway LISTEN UPSTREAM RATE BURST [CORES]")
    };
    let (listen, upstream, rate, burst) = (next()?, next()?, next()?, next()?);
    let cores = next().ok().map_or(Ok(2), |cores| cores.parse())?;
    let policy = policy(&listen, &upstream, &rate, &burst)?;
    let config = policy.gateway.clone().ok_or("no gateway")?;
    let clock = Arc::new(SystemClock::new());
    let node = Node::new(policy, clock.clone())?;
    let timer = Arc::new(TokioTimer::new(clock));
    let cores = NonZeroUsize::new(cores).ok_or("no core")?;
    let bound = Gateway::bind_on(&config, node, timer, cores)?;
    bound.run(std::future::pending()).await?;
    Ok(())
}

fn policy(listen: &str, upstream: &str, rate: &str, burst: &str) -> Result<Policy, Box<dyn Error>> {
    let mut limits = Vec::new();
    if rate != "-" {
        let quota = Quota::per_second(rate.parse()?).burst(burst.parse()?);
        let limit = Limit::new("per-client", Algorithm::TokenBucket(quota))?;
        limits.push(LimitRule {
            on_missing: OnMissing::Deny,
            ..LimitRule::new(limit, vec![KeyPart::ClientIp])
        });
    }
    let route = Route {
        id: "all".to_owned(),
        matcher: RouteMatch::default(),
        upstream: 0,
        limits: (0..limits.len()).collect(),
        access: Access::default(),
    };
    let gateway = tidegate_policy::Gateway {
        listen: vec![listen.parse()?],
        routes: vec![route].into(),
        ..Default::default()
    };
    let kind = match upstream {
        "echo" => UpstreamKind::Echo,
        server => UpstreamKind::Servers(vec![server.to_owned()]),
    };
    let name = "upstream".to_owned();
    let upstreams = vec![Upstream {
        name,
        kind,
        balance: Balance::RoundRobin,
    }];
    Ok(Policy {
        version: 0,
        redis: None,
        state: None,
        limits,
        upstreams,
        gateway: Some(gateway),
        admin: None,
    })
}
