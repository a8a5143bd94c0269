//! The access log: what a line says of which request, and that none is lost.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::gateway::Running;
use crate::upstream::{OK, Upstream};
use crate::wire::soon;

/// A log file that is removed again.
pub(crate) struct Log(pub(crate) PathBuf);

impl Log {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate-log-{}-{next}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// Lines of the policy.
    pub(crate) fn policy(&self, more: &str) -> String {
        format!("  access_log: {{ path: \"{}\"{more} }}", self.0.display())
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.0).unwrap_or_default()
    }

    /// Waits until there is such a file.
    pub(crate) async fn exists(&self) {
        soon(async {
            while !self.0.exists() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// The lines, once there are so many.
    pub(crate) async fn lines(&self, count: usize) -> Vec<String> {
        soon(async {
            loop {
                let text = self.text();
                if text.matches('\n').count() >= count {
                    return text.lines().map(str::to_owned).collect();
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }

    /// The lines as JSON.
    pub(crate) async fn entries(&self, count: usize) -> Vec<Value> {
        let lines = self.lines(count).await;
        let entries: Vec<Value> = (lines.iter())
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
            .collect();
        assert_eq!(entries.len(), count, "{entries:#?}");
        entries
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_file(self.0.with_extension("1"));
    }
}

const ONE_AN_HOUR: &str = "  per-client:\n    rate: 1/h\n    key: [client_ip]";

// shows: A8 (reject), D4
#[tokio::test]
async fn a_line_says_what_was_asked_who_answered_and_which_limit_refused() {
    let upstream = Upstream::answering(OK).await;
    let log = Log::new();
    let gateway = Running::before(
        &[upstream.address],
        ONE_AN_HOUR,
        &(log.policy("") + "\n  trusted_proxies: [127.0.0.1]"),
    );
    let mut client = gateway.connect().await;
    let asked = "POST /a?b=c HTTP/1.1\r\nHost: example.com\r\nX-Forwarded-For: 192.0.2.7\r\n\
                 Content-Length: 3\r\n\r\nabc";
    assert_eq!(client.ask(asked).await.status(), 200);
    assert_eq!(client.ask(asked).await.status(), 429);
    let entries = log.entries(2).await;
    let (first, second) = (&entries[0], &entries[1]);
    for (key, value) in [
        ("client", "192.0.2.7"),
        ("peer", "127.0.0.1"),
        ("method", "POST"),
        ("target", "/a?b=c"),
        ("host", "example.com"),
        ("protocol", "HTTP/1.1"),
        ("upstream", "shop"),
        ("server", &upstream.address.to_string()),
        ("route", "all"),
        ("decision", "allowed"),
        ("limit", "per-client"),
        ("ended", "complete"),
    ] {
        assert_eq!(first[key], value, "{key}");
    }
    assert_eq!(first["status"], 200);
    assert_eq!(
        (&first["bytes_sent"], &first["bytes_received"]),
        (&2.into(), &3.into())
    );
    assert_eq!(first["remaining"], 0);
    let seconds = |key: &str| first[key].as_f64().unwrap();
    assert!(seconds("duration") >= seconds("server_duration"));
    assert!(seconds("server_duration") > 0.0 && seconds("waited") == 0.0);
    assert_eq!(second["status"], 429);
    assert_eq!(
        (&second["decision"], &second["limit"]),
        (&"denied".into(), &"per-client".into())
    );
    assert_eq!(
        (&second["upstream"], &second["ended"]),
        (&Value::Null, &"complete".into())
    );
    assert!(second["bytes_sent"].as_u64().unwrap() > 100);
}

#[tokio::test]
async fn lines_of_nginx_say_the_same_and_hide_what_is_to_be_hidden() {
    let upstream = Upstream::answering(OK).await;
    let log = Log::new();
    let more = ", format: combined_limits, hide_query: [token]";
    let gateway = Running::before(&[upstream.address], ONE_AN_HOUR, &log.policy(more));
    let mut client = gateway.connect().await;
    let asked = "GET /a?token=s&b=1 HTTP/1.1\r\nHost: a\r\nUser-Agent: x\"\r\n\
                 Referer: http://a/?token=s\r\nAuthorization: Basic YWxpY2U6czpy\r\n\r\n";
    client.ask(asked).await;
    let line = log.lines(1).await.remove(0);
    let (before, rest) = line.split_once('[').unwrap();
    let (_, rest) = rest.split_once("] ").unwrap();
    assert_eq!(before, "127.0.0.1 - alice ");
    let (combined, limits) = rest.split_at(rest.find(" limit=").unwrap());
    assert_eq!(
        combined,
        r#""GET /a?token=***&b=1 HTTP/1.1" 200 2 "http://a/?token=***" "x\x22""#
    );
    assert!(limits.starts_with(r#" limit="per-client" decision=allowed waited=0.000 time=0."#));
}

#[tokio::test]
async fn a_wait_is_told_and_headers_that_are_named() {
    let upstream = Upstream::answering(OK).await;
    let log = Log::new();
    let paced = "  paced: { rate: 20/s, burst: 1, on_limit: { queue: { length: 5 } } }";
    let more = ", headers: [User-Agent, x-none]";
    let gateway = Running::before(&[upstream.address], paced, &log.policy(more));
    let mut client = gateway.connect().await;
    for _ in 0..2 {
        client
            .ask("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: me\r\nCookie: s\r\n\r\n")
            .await;
    }
    let entries = log.entries(2).await;
    assert_eq!(entries[0]["decision"], "allowed");
    assert_eq!(entries[0]["headers"], json!({ "user-agent": "me" }));
    assert_eq!(entries[1]["decision"], "delayed");
    assert_eq!(entries[1]["limit"], "paced");
    let seconds = |key: &str| entries[1][key].as_f64().unwrap();
    assert!(seconds("waited") > 0.001 && seconds("waited") <= seconds("duration"));
}

// shows: A8 (reject)
#[tokio::test]
async fn what_a_shadow_would_have_refused_is_told_and_can_be_all_that_is_logged() {
    let upstream = Upstream::answering(OK).await;
    let log = Log::new();
    let dry = "  dry: { rate: 1/h, shadow: true }";
    let gateway = Running::before(
        &[upstream.address],
        dry,
        &log.policy(", only: [refused, errors]"),
    );
    let mut client = gateway.connect().await;
    client.get("/passes").await;
    client.get("/would-not").await;
    let entries = log.entries(1).await;
    assert_eq!(entries[0]["target"], "/would-not");
    assert_eq!(entries[0]["decision"], "shadow");
    assert_eq!(entries[0]["limit"], "dry");
    assert_eq!(entries[0]["status"], 200);
}

#[tokio::test]
async fn whoever_does_not_get_to_the_end_is_logged_as_well() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
    let (upstream, mut held) = Upstream::held(head, "").await;
    let log = Log::new();
    let limits = "  slots: { concurrency: 1, on_limit: { queue: { length: 5 } } }";
    let gateway = Running::before(&[upstream.address], limits, &log.policy(""));
    // One that has a part of its answer, and one that stands in line.
    let mut first = gateway.connect().await;
    first.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n").await;
    first.head().await;
    let _hold = soon(held.recv()).await.unwrap();
    let mut second = gateway.connect().await;
    second.send("GET /second HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let waiting = || gateway.node.snapshot().limits()[0].counts().waits().now;
    soon(async {
        while waiting() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(second);
    let entries = log.entries(1).await;
    assert_eq!(entries[0]["target"], "/second");
    assert_eq!(entries[0]["decision"], "waiting");
    assert_eq!(entries[0]["ended"], "client_gone");
    assert_eq!(entries[0]["status"], 499);
    assert!(entries[0]["waited"].as_f64().unwrap() > 0.0);
    first.exactly(5).await;
    drop(first);
    let entries = log.entries(2).await;
    assert_eq!(entries[1]["ended"], "client_gone");
    assert_eq!(entries[1]["status"], 200);
    assert_eq!(entries[1]["bytes_sent"], 5);
    assert_eq!(gateway.node.snapshot().limits()[0].in_use(), Some(0));
}

#[tokio::test]
async fn a_server_that_breaks_off_and_one_that_is_too_slow_are_told_apart() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
    let (upstream, mut held) = Upstream::held(head, "").await;
    let log = Log::new();
    let more = log.policy("") + "\n  response_timeout: 100ms";
    let gateway = Running::before(&[upstream.address], "", &more);
    let mut client = gateway.connect().await;
    client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let slow = soon(held.recv()).await.unwrap();
    let entries = log.entries(1).await;
    assert_eq!(entries[0]["ended"], "timed_out");
    drop(slow);
    let breaks = Upstream::start(move |mut served| async move {
        served.request().await;
        served.wire.send(head).await;
    })
    .await;
    let gateway = Running::before(&[breaks.address], "", &log.policy(""));
    let mut client = gateway.connect().await;
    client.send("GET /broken HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let entries = log.entries(2).await;
    assert_eq!(entries[1]["ended"], "upstream_broke_off");
    assert_eq!(entries[1]["bytes_sent"], 5);
}

#[tokio::test]
async fn what_is_no_request_and_what_has_no_body_is_logged() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n").await;
    let log = Log::new();
    let gateway = Running::before(&[upstream.address], "", &log.policy(""));
    let mut client = gateway.connect().await;
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.head().await;
    client.send("GE T /\r\n\r\n").await;
    client.head().await;
    let entries = log.entries(2).await;
    assert_eq!(entries[0]["ended"], "complete");
    assert_eq!(entries[0]["bytes_sent"], 0);
    assert_eq!(entries[1]["ended"], "unreadable");
    assert_eq!(entries[1]["status"], 400);
    assert_eq!(entries[1]["target"], Value::Null);
    // Refused before any limit, without a route, without a server.
    client = gateway.connect().await;
    client.ask("GET / HTTP/1.1\r\n\r\n").await;
    let entries = log.entries(3).await;
    assert_eq!(entries[2]["status"], 400);
    assert_eq!(entries[2]["decision"], Value::Null);
}

#[tokio::test]
async fn a_slow_request_is_logged_whatever_else_is() {
    let upstream = Upstream::answering(OK).await;
    let log = Log::new();
    for (more, target) in [
        (", only: refused, slow: 1d", "/fast-enough"),
        (", slow: 1d", "/fast-enough-too"),
        (", only: refused, slow: 1ns", "/slow"),
    ] {
        let mut gateway = Running::before(&[upstream.address], "", &log.policy(more));
        gateway.connect().await.get(target).await;
        gateway.stop();
        gateway.ended().await;
    }
    assert_eq!(log.entries(1).await[0]["target"], "/slow");
}
