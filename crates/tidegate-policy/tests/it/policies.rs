//! What good policies mean.

use std::borrow::Cow;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use tidegate::{Algorithm, CalendarUnit, Quota};
use tidegate_policy::{
    BandwidthRule, Direction, HideQuery, KeyPart, LimitHeaders, Loaded, LogFormat, LogTarget,
    OnMissing, Policy, Request, Reset, UpstreamKind, WhenFull, parse,
};

fn policy(name: &str) -> Policy {
    let texts = super::policies();
    let (_, text) = texts.iter().find(|(of, _)| of == name).unwrap();
    parse(name, text)
        .unwrap_or_else(|problems| panic!("{problems}"))
        .policy
}

fn algorithm(policy: &Policy, name: &str) -> Algorithm {
    let rule = policy
        .limits
        .iter()
        .find(|rule| rule.limit.name() == name)
        .unwrap();
    *rule.limit.algorithm()
}

#[test]
fn the_default_policy_is_what_the_design_says() {
    let Loaded {
        policy, warnings, ..
    } = parse("default", tidegate_policy::DEFAULT).unwrap();
    assert_eq!(warnings, []);
    let [rule] = policy.limits.as_slice() else {
        panic!("one limit")
    };
    assert_eq!(
        *rule.limit.algorithm(),
        Algorithm::TokenBucket(Quota::per_second(10).burst(20))
    );
    assert_eq!(rule.key, [KeyPart::ClientIp]);
    assert_eq!(
        (rule.max_keys, rule.on_missing),
        (1_000_000, OnMissing::Shared)
    );
    assert_eq!(policy.upstreams[0].kind, UpstreamKind::Echo);
    let gateway = policy.gateway.as_ref().unwrap();
    assert_eq!(gateway.listen, ["127.0.0.1:8080".parse().unwrap()]);
    assert_eq!(
        policy.admin.as_ref().unwrap().listen,
        "127.0.0.1:8090".parse().unwrap()
    );
    let route = policy.route(&Get("/any/thing", "a")).unwrap();
    assert_eq!(
        (route.id.as_str(), route.upstream, route.limits.as_slice()),
        ("all", 0, &[0][..])
    );
}

#[test]
fn nothing_listens_beyond_loopback_unless_told_to() {
    let policy = parse("a", "gateway: {}\nadmin: {}\n").unwrap().policy;
    for address in policy.gateway.unwrap().listen {
        assert!(address.ip().is_loopback());
    }
    assert!(policy.admin.unwrap().listen.ip().is_loopback());
    let policy = parse("a", "admin: { listen: \"0.0.0.0:8090\" }\n")
        .unwrap()
        .policy;
    assert!(policy.admin.unwrap().listen.ip().is_unspecified());
}

#[test]
fn the_shop() {
    let policy = policy("shop");
    let [client, slots, hot] = policy.limits.as_slice() else {
        panic!("three limits")
    };
    assert_eq!(
        *client.limit.algorithm(),
        Algorithm::TokenBucket(Quota::per_minute(100).burst(20))
    );
    assert_eq!(*slots.limit.algorithm(), Algorithm::Concurrency { max: 5 });
    assert_eq!(
        slots.key,
        [KeyPart::Header("user-id".into()), KeyPart::Route]
    );
    assert_eq!(slots.on_missing, OnMissing::Deny);
    assert!(hot.shadow && !client.shadow);
    assert_eq!(hot.max_keys, 2_000_000);
    let overrides: Vec<_> = hot
        .overrides
        .iter()
        .map(|one| (one.matches[0].as_deref().unwrap(), *one.limit.algorithm()))
        .collect();
    let hundred_thousand = Quota::per_second(100_000);
    assert_eq!(
        overrides,
        [
            (
                &b"vip-7"[..],
                Algorithm::TokenBucket(Quota::per_second(1_000_000))
            ),
            (
                &b"007"[..],
                Algorithm::TokenBucket(hundred_thousand.burst(5))
            ),
            (&b"abuser"[..], Algorithm::TokenBucket(Quota::per_second(0))),
        ]
    );
}

#[test]
fn the_gateway_of_the_shop() {
    let policy = policy("shop");
    let gateway = policy.gateway.as_ref().unwrap();
    assert_eq!(gateway.trusted_proxies[1], "192.0.2.1/32".parse().unwrap());
    assert_eq!((gateway.ipv6_prefix, policy.ipv6_prefix()), (56, 56));
    assert!(gateway.headers.rate_limit && gateway.headers.x_rate_limit);
    assert_eq!(gateway.header_timeout, Duration::from_secs(5));
    assert_eq!(gateway.idle_timeout, Duration::from_secs(90));
    assert_eq!(gateway.connect_timeout, Duration::from_secs(2));
    assert_eq!(gateway.shutdown_timeout, Duration::ZERO);
    assert_eq!(gateway.when_full, WhenFull::Refuse);
    assert_eq!(gateway.max_connections_per_client, NonZeroU32::new(50));
    assert_eq!(gateway.accept_queue, 512);
    assert_eq!(gateway.max_header_bytes, 16_384);
    let ids: Vec<_> = gateway
        .routes
        .iter()
        .map(|route| route.id.as_str())
        .collect();
    assert_eq!(ids, ["orders", "api", "rest"]);
    let orders = &gateway.routes[0];
    assert_eq!(
        orders.matcher.headers,
        [("x-version".to_owned(), Box::from(&b"2"[..]))]
    );
    assert_eq!(orders.limits, [0, 1]);
    assert_eq!(
        policy
            .route(&Get("/api/orders/7", "eu.shop.example"))
            .unwrap()
            .id,
        "api"
    );
    assert_eq!(
        policy.route(&Get("/", "eu.shop.example")).unwrap().id,
        "rest"
    );
}

#[test]
fn every_algorithm() {
    let policy = policy("algorithms");
    let second = Duration::from_secs(1);
    let of = |name| algorithm(&policy, name);
    assert_eq!(
        of("bucket"),
        Algorithm::TokenBucket(Quota::one_per(2 * second))
    );
    assert_eq!(
        of("paced"),
        Algorithm::TokenBucket(Quota::per_minute(100).burst(1))
    );
    assert_eq!(
        of("window"),
        Algorithm::FixedWindow {
            permits: 5,
            window: 60 * second
        }
    );
    let (permits, window) = (5, 60 * second);
    assert_eq!(of("first"), Algorithm::WindowFromFirst { permits, window });
    for (name, unit) in [
        ("monthly-window", CalendarUnit::Month),
        ("weekly-window", CalendarUnit::Week),
    ] {
        assert_eq!(of(name), Algorithm::CalendarWindow { permits, unit });
    }
    let window = 365 * 86_400 * second;
    assert_eq!(
        of("epoch-window"),
        Algorithm::FixedWindow { permits, window }
    );
    assert_eq!(
        of("log"),
        Algorithm::SlidingLog {
            permits: 3,
            window: 5 * second
        }
    );
    let sentinel = |warm_up_seconds, cold_factor| Algorithm::SentinelWarmUpQueue {
        count: 10,
        warm_up_seconds,
        cold_factor,
    };
    assert_eq!(of("sentinel"), sentinel(10, 3));
    assert_eq!(of("sentinel-slow"), sentinel(5, 4));
    let waits = |name: &str| {
        let rule = policy.limits.iter().find(|rule| rule.limit.name() == name);
        rule.unwrap().queue.as_ref().unwrap().max_wait
    };
    assert_eq!(waits("sentinel"), Duration::from_millis(500));
    assert_eq!(waits("sentinel-slow"), 2 * second);
    assert_eq!(of("slots"), Algorithm::Concurrency { max: 10 });
    assert_eq!(of("monthly"), Algorithm::TokenBucket(Quota::per_month(1)));
    assert_eq!(of("closed"), Algorithm::TokenBucket(Quota::per_second(0)));
}

#[test]
fn what_is_granted_ahead() {
    let policy = policy("algorithms");
    let second = Duration::from_secs(1);
    let of = |name| algorithm(&policy, name);
    let bursty = Algorithm::SmoothBursty {
        quota: Quota::per_second(5),
        max_debt: 10 * second,
    };
    assert_eq!(of("bursty"), bursty);
    let warming = Algorithm::SmoothWarmUp {
        quota: Quota::per_second(2),
        warm_up: 3 * second,
        cold_factor: 3,
        max_debt: 3_600 * second,
    };
    assert_eq!(of("warming"), warming);
    let warming_slowly = Algorithm::SmoothWarmUp {
        quota: Quota::per_second(2),
        warm_up: 7_200 * second,
        cold_factor: 3,
        max_debt: 10_800 * second,
    };
    assert_eq!(of("warming-slowly"), warming_slowly);
    let quota = Quota::per_month(1);
    let max_debt = quota.period();
    assert_eq!(
        of("bursty-monthly"),
        Algorithm::SmoothBursty { quota, max_debt }
    );
}

#[test]
fn aliases_and_merges() {
    let policy = policy("aliases");
    let of = |name| algorithm(&policy, name);
    assert_eq!(of("slow"), Algorithm::TokenBucket(Quota::per_minute(10)));
    assert_eq!(of("slower"), Algorithm::TokenBucket(Quota::per_minute(5)));
    assert_eq!(policy.limits[1].key, [KeyPart::ClientIp]);
    assert_eq!(of("same"), Algorithm::TokenBucket(Quota::per_minute(10)));
}

#[test]
fn an_override_inherits_what_it_does_not_say() {
    let text = "limits:\n  a:\n    rate: 10/s\n    burst: 20\n    key: [client_ip]\n    \
                overrides:\n      \
                - { match: { client_ip: \"2001:db8::7\" }, rate: 5/s }\n      \
                - { match: { client_ip: 192.0.2.1 }, rate: 0/s }\n      \
                - { match: {}, burst: 1 }\n";
    let policy = parse("a", text).unwrap().policy;
    let overrides = &policy.limits[0].overrides;
    let quota = |index: usize| *overrides[index].limit.algorithm();
    assert_eq!(
        quota(0),
        Algorithm::TokenBucket(Quota::per_second(5).burst(20))
    );
    assert_eq!(
        quota(1),
        Algorithm::TokenBucket(Quota::per_second(0)),
        "nothing, burst or not"
    );
    assert_eq!(
        quota(2),
        Algorithm::TokenBucket(Quota::per_second(10).burst(1))
    );
    let network: [u8; 16] = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        overrides[0].matches,
        [Some(Box::from(network))],
        "the whole /64"
    );
    assert_eq!(overrides[2].matches, [None]);
}

/// A GET for a path at a host.
struct Get(&'static str, &'static str);

impl Request for Get {
    fn client_ip(&self) -> Option<IpAddr> {
        None
    }
    fn method(&self) -> &'static str {
        "GET"
    }
    fn host(&self) -> Option<&str> {
        Some(self.1)
    }
    fn path(&self) -> &str {
        self.0
    }
    fn header(&self, _: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
    fn cookie(&self, _: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
    fn query(&self, _: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
}

// shows: A3 (policy)
#[test]
fn a_bandwidth_is_a_token_bucket_of_bytes() {
    use Direction::{Both, Requests, Responses};
    let policy = policy("bandwidth");
    let bucket = |bytes, burst| Algorithm::TokenBucket(Quota::per_second(bytes).burst(burst));
    let of = |name| {
        let rule = policy.limits.iter().find(|rule| rule.limit.name() == name);
        let rule = rule.unwrap();
        let BandwidthRule {
            after,
            direction,
            is_nginx,
        } = rule.bandwidth.unwrap();
        (*rule.limit.algorithm(), after, direction, is_nginx)
    };
    assert_eq!(
        of("downloads"),
        (bucket(100_000, 5_000), 0, Responses, false)
    );
    assert_eq!(of("slow"), (bucket(100, 64), 0, Responses, false));
    assert_eq!(
        of("both"),
        (bucket(1_572_864, 131_072), 1_000_000, Both, false)
    );
    let minute = Quota::per_minute(1_000_000_000).burst(833_333);
    assert_eq!(
        of("uploads"),
        (Algorithm::TokenBucket(minute), 0, Requests, false)
    );
    // A second's worth at once.
    let second = bucket(102_400, 102_400);
    assert_eq!(of("nginx"), (second, 10_240, Responses, true));

    let both = &policy.limits[2];
    assert_eq!(
        (both.shadow, both.on_missing, both.max_keys),
        (true, OnMissing::Pass, 10)
    );
    // A burst goes with the bandwidth it was written for.
    let overrides = both.overrides.iter().map(|one| *one.limit.algorithm());
    assert_eq!(
        overrides.collect::<Vec<_>>(),
        [bucket(10_000_000, 500_000), bucket(1_572_864, 1_000_000)]
    );
}

#[test]
fn what_is_told_of_requests_is_as_the_file_says() {
    let gateway = |lines: &str| {
        let text = format!("gateway:\n{lines}\n");
        parse("a", &text).unwrap().policy.gateway.unwrap()
    };
    let none = gateway("  request_id: false");
    assert_eq!((none.access_log, none.request_id), (None, None));
    assert_eq!(
        (none.debug_header, none.headers),
        (None, LimitHeaders::default())
    );
    let short = gateway("  access_log: logs/access.log\n  request_id: true");
    let log = short.access_log.unwrap();
    assert_eq!(log.target, LogTarget::File("logs/access.log".into()));
    assert_eq!((log.format, log.buffer), (LogFormat::Json, 8 << 20));
    assert!(log.only.is_all() && log.hide_query == HideQuery::Values(Vec::new()));
    assert_eq!(short.request_id.as_deref(), Some("x-request-id"));
    let long = gateway(
        "  access_log: { path: stdout, format: combined, only: errors, slow: 1s, \
         hide_query: '*' }\n  \
         request_id: X-Correlation-Id\n  debug_header: { from: 10.1.2.3/8 }\n  \
         headers: { x_rate_limit: true, x_rate_limit_reset: epoch, retry_after: false }",
    );
    let log = long.access_log.unwrap();
    assert_eq!(
        (log.target, log.format),
        (LogTarget::Stdout, LogFormat::Combined)
    );
    assert_eq!(log.hide_query, HideQuery::Whole);
    assert!(log.only.errors && !log.only.refused && !log.only.is_all());
    assert_eq!(log.only.slow, Some(Duration::from_secs(1)));
    assert_eq!(long.request_id.as_deref(), Some("x-correlation-id"));
    assert_eq!(
        long.debug_header.unwrap().from,
        ["10.0.0.0/8".parse().unwrap()]
    );
    let headers = long.headers;
    assert!(headers.rate_limit && headers.x_rate_limit && !headers.retry_after);
    assert_eq!(headers.x_rate_limit_reset, Reset::Epoch);
}

#[test]
fn a_token_is_not_shown() {
    let text = "gateway: { debug_header: { token: 0123456789abcdef } }";
    let gateway = parse("a", text).unwrap().policy.gateway;
    assert!(!format!("{gateway:?}").contains("0123456789abcdef"));
}
