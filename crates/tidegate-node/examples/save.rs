//! What it costs to save the counts of a million keys, and to read them:
//! `cargo run --release -p tidegate-node --example save [KEYS]`.
#![expect(clippy::print_stdout, reason = "that is what it is for")]

use std::borrow::Cow;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tidegate::{Algorithm, Clock, Limit, Quota, SystemClock, Timestamp};
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

/// A clock that notes when it was asked: a node asks before and after it holds a shard.
#[derive(Debug, Default)]
struct Noting {
    clock: SystemClock,
    asked: Mutex<Vec<Timestamp>>,
}

impl Clock for Noting {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        if let Ok(mut asked) = self.asked.lock() {
            asked.push(now);
        }
        now
    }

    fn sleep(&self, duration: Duration) {
        self.clock.sleep(duration);
    }
}

impl Noting {
    /// How long shards were held since the last time, in order.
    fn holds(&self) -> Vec<Duration> {
        let asked = self
            .asked
            .lock()
            .map(|mut asked| std::mem::take(&mut *asked));
        // The first says when all of it was saved.
        let asked = asked.unwrap_or_default();
        let pairs = asked.get(1..).unwrap_or_default().chunks_exact(2);
        let mut holds: Vec<_> = pairs.map(|pair| pair[1].since(pair[0])).collect();
        holds.sort();
        holds
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
    let clock = Arc::new(Noting::default());
    let node = Node::new(policy.clone(), clock.clone())?;
    let snapshot = node.snapshot();
    for key in 0..keys {
        let admission = snapshot.decide(&Call {
            request: &Client(IpAddr::V4(Ipv4Addr::from_bits(key))),
            route: "",
            limits: &[0],
            permits: 1,
            max_wait: None,
            peek: false,
            now: clock.clock.now(),
        });
        assert!(admission.is_allowed());
    }
    for _ in 0..5 {
        clock.holds();
        let (begun, mut bytes) = (Instant::now(), Vec::new());
        let report = node.save(&mut bytes)?;
        let saved_in = begun.elapsed();
        let holds = clock.holds();
        let part = |of: usize| {
            holds
                .get(holds.len() * of / 100)
                .copied()
                .unwrap_or_default()
        };
        let (half, most) = (part(50), part(99));
        let begun = Instant::now();
        let saved = Saved::read(&*bytes, &policy, clock.now())?;
        let read_in = begun.elapsed();
        println!(
            "{} keys, {} bytes: saved in {saved_in:.1?}, shards held for {half:.1?} (99 of 100: \
             {most:.1?}, the longest {:.1?}); read in {read_in:.1?}, {} keys",
            report.keys,
            report.bytes,
            report.longest_hold,
            saved.keys()
        );
    }
    Ok(())
}
