//! What passes, counted at the upstream.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::running::{Folder, Nginx, Serve, get, passed, status, text};

// shows: A1, D4
#[test]
fn the_default_limit_as_the_readme_tries_it() {
    let folder = Folder::new();
    let policy = "limits:\n  per-client: { rate: 10/s, burst: 20, key: client_ip }\n\
                  upstreams: { echo: { builtin: echo } }\n\
                  gateway:\n  listen: [\"127.0.0.1:0\"]\n\
                  \x20 routes: [{ id: all, upstream: echo, limits: [per-client] }]\n\
                  admin: { listen: \"127.0.0.1:0\" }\n";
    let serve = Serve::start(&folder.write("policy.yaml", policy));
    let start = Instant::now();
    let first = passed(serve.gateway, 40, "");
    let took = start.elapsed();
    let refilled = took.as_millis() as usize / 100 + 1;
    assert!((20..=20 + refilled).contains(&first), "{first} in {took:?}");
    let (head, body) = get(serve.gateway, "/", "");
    assert_eq!(status(&head), 429);
    for header in [
        "content-type: application/problem+json",
        "ratelimit: \"per-client\";r=0;t=1",
        "ratelimit-policy: \"per-client\";q=10;w=1",
        "retry-after: 1",
    ] {
        assert!(
            head.lines().any(|line| line == header),
            "{header} in {head}"
        );
    }
    let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(problem["violated-policies"][0], "per-client");
    assert!(serve.stop());
}

// shows: A1, A6, H1 (bounded memory)
#[test]
fn alone_under_load_what_passes_is_within_two_limits_and_nearly_all_of_them() {
    let nginx = Nginx::start();
    let folder = Folder::new();
    // 400/s for the client, 300/s and a burst of 500 for all: the second one binds in the end.
    let policy = format!(
        "limits:\n  per-client: {{ rate: 400/s, burst: 100, key: client_ip }}\n\
         \x20 in-all: {{ rate: 300/s, burst: 500 }}\n\
         upstreams: {{ shop: {{ servers: [\"{}\"] }} }}\n\
         gateway:\n  listen: [\"127.0.0.1:0\"]\n\
         \x20 routes: [{{ id: all, upstream: shop, limits: [per-client, in-all] }}]\n\
         admin: {{ listen: \"127.0.0.1:0\" }}\n",
        nginx.address
    );
    let policy = folder.write("policy.yaml", &policy);
    for connections in ["1", "64"] {
        let serve = Serve::start(&policy);
        let before = nginx.requests();
        let start = Instant::now();
        let wrk = Command::new("wrk")
            .args([
                "-t1",
                "-c",
                connections,
                "-d",
                "10s",
                &format!("http://{}/", serve.gateway),
            ])
            .output()
            .expect("wrk is installed (`cargo xtask setup`)");
        let took = start.elapsed();
        assert!(wrk.status.success(), "{}", text(&wrk.stderr));
        let passed = nginx.requests() - before;
        // Whatever is asked for while both limits are open: min over limits of burst + rate * t.
        let bound = |time: Duration| {
            let seconds = time.as_secs_f64();
            f64::min(100.0 + 400.0 * seconds, 500.0 + 300.0 * seconds)
        };
        let (least, most) = (0.98 * bound(Duration::from_secs(10)), bound(took));
        assert!(
            (least..=most).contains(&(passed as f64)),
            "{passed} passed with {connections} connections: {least:.0} to {most:.0}"
        );
        let allowed = "tidegate_decisions_total{limit=\"in-all\",outcome=\"allowed\"}";
        let counted = serve.metric(allowed).unwrap();
        // wrk cuts its connections when time is up: of each, one request may have been let in and
        // not have arrived.
        let cut_off = connections.parse::<f64>().unwrap();
        assert!(
            (0.0..=cut_off).contains(&(counted - passed as f64)),
            "{counted} counted, {passed} seen"
        );
        assert!(serve.stop());
    }
}

// shows: A5 (HTTP parts)
#[test]
fn a_refusal_for_a_missing_part_says_which() {
    let folder = Folder::new();
    let policy = "limits:\n\
                  \x20 need: { rate: 10/s, key: [client_ip, \"header:user\"], on_missing: deny }\n\
                  upstreams: { echo: { builtin: echo } }\n\
                  gateway:\n  listen: [\"127.0.0.1:0\"]\n\
                  \x20 routes: [{ id: all, upstream: echo, limits: [need] }]\n\
                  admin: { listen: \"127.0.0.1:0\" }\n";
    let serve = Serve::start(&folder.write("policy.yaml", policy));
    let (head, body) = get(serve.gateway, "/", "");
    assert_eq!(status(&head), 429);
    assert!(
        !head.contains("retry-after"),
        "waiting does not help: {head}"
    );
    let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        problem["detail"],
        "`need` counts by `header:user`, and this request has none"
    );
    assert_eq!(status(&get(serve.gateway, "/", "user: a\r\n").0), 200);
}
