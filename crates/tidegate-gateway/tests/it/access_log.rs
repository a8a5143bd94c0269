//! The access log: what a line says of which request, and that none is lost.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::gateway::{Running, parse, policy};
use crate::upstream::{OK, Upstream};
use crate::wire::soon;

/// A log file that is removed again.
struct Log(PathBuf);

impl Log {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate-log-{}-{next}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// Lines of the policy.
    fn policy(&self, more: &str) -> String {
        format!("  access_log: {{ path: \"{}\"{more} }}", self.0.display())
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.0).unwrap_or_default()
    }

    /// The lines, once there are so many.
    async fn lines(&self, count: usize) -> Vec<String> {
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
    async fn entries(&self, count: usize) -> Vec<Value> {
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
