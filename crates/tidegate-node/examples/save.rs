//! What it costs to save the counts of a million keys, and to read them:
//! `cargo run --release -p tidegate-node --example save [KEYS]`.
#![expect(clippy::print_stdout, reason = "that is what it is for")]

use std::borrow::Cow;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use tidegate::{Algorithm, Clock, Limit, Quota, SystemClock};
use tidegate_node::{Call, Node, Saved};
use tidegate_policy::{KeyPart, LimitRule, Policy, Request};

#[derive(Debug)]
struct Client(IpAddr);

impl Request for Client {
    fn client_ip(&self) -> Option<IpAddr> {
        Some(self.0)
    }
    fn method(&self) -> &'static str {
        "GET"
    }
    fn host(&self) -> Option<&str> {
        None
    }
    fn path(&self) -> &'static str {
        "/"
    }
    fn header(&self, _name: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
    fn cookie(&self, _name: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
    fn query(&self, _name: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let keys: u32 = std::env::args()
        .nth(1)
        .map_or(Ok(1_000_000), |text| text.parse())?;
    let quota = Quota::per_day(100);
    let limit = Limit::new("per-client", Algorithm::TokenBucket(quota))?;
    let rule = LimitRule {
        max_keys: keys as usize,
        persist: true,
        ..LimitRule::new(limit, vec![KeyPart::ClientIp])
    };
    let policy = Policy {
        limits: vec![rule],
        ..Policy::default()
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let node = Node::new(policy.clone(), Arc::clone(&clock))?;
    let snapshot = node.snapshot();
    for key in 0..keys {
        let admission = snapshot.decide(&Call {
            request: &Client(IpAddr::V4(Ipv4Addr::from_bits(key))),
            route: "",
            limits: &[0],
            permits: 1,
            max_wait: None,
            peek: false,
            now: clock.now(),
        });
        assert!(admission.is_allowed());
    }
    for _ in 0..5 {
        let (begun, mut bytes) = (Instant::now(), Vec::new());
        let report = node.save(&mut bytes)?;
        let saved_in = begun.elapsed();
        let begun = Instant::now();
        let saved = Saved::read(&*bytes, &policy, clock.now())?;
        let read_in = begun.elapsed();
        println!(
            "{} keys, {} bytes: saved in {saved_in:.1?}, no shard held longer than {:.1?}; \
             read in {read_in:.1?}, {} keys",
            report.keys,
            report.bytes,
            report.longest_hold,
            saved.keys()
        );
    }
    Ok(())
}
