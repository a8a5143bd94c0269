//! A policy file that changes while the gateway serves.

use std::fs;
use std::time::{Duration, Instant};

use crate::running::{DEADLINE, Folder, Serve, get, passed, status};

fn policy(burst: u32) -> String {
    format!(
        "limits:\n  l:\n    rate: 60/h\n    burst: {burst}\n    key: [\"header:user\"]\n\
         upstreams: {{ echo: {{ builtin: echo }} }}\n\
         gateway:\n  listen: [\"127.0.0.1:0\"]\n\
         \x20 routes: [{{ id: all, upstream: echo, limits: [l] }}]\n\
         admin: {{ listen: \"127.0.0.1:0\" }}\n"
    )
}

fn until(serve: &Serve, metric: &str, value: f64) -> Duration {
    let start = Instant::now();
    let mut last = Err(String::new());
    while start.elapsed() < DEADLINE {
        last = serve.metric(metric);
        if last
            .as_ref()
            .is_ok_and(|seen| (seen - value).abs() < f64::EPSILON)
        {
            return start.elapsed();
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("{metric} is not {value}: {last:?}");
}

// shows: F1 (file), F4, G1 (metrics)
#[test]
fn a_broken_policy_changes_nothing_and_a_repaired_one_keeps_what_was_used() {
    let folder = Folder::new();
    let path = folder.write("policy.yaml", &policy(20));
    let serve = Serve::start(&path);
    let user = "user: a\r\n";
    assert_eq!(passed(serve.gateway, 12, user), 12);

    fs::write(&path, policy(20).replace("burst: 20", "brust: 20")).unwrap();
    until(&serve, "tidegate_policy_last_reload_ok", 0.0);
    let (_, metrics) = get(serve.admin, "/metrics", "");
    let problem = metrics
        .lines()
        .find(|line| line.starts_with("tidegate_policy_problem{"));
    let problem = problem.unwrap();
    assert!(
        problem.contains("line=\"4\"") && problem.contains("brust"),
        "{problem}"
    );
    let logged = serve.logged(|line| line.contains("policy refused"));
    assert!(
        logged.contains("line=4") && logged.contains("brust"),
        "{logged}"
    );
    let (_, limits) = get(serve.admin, "/api/v1/limits", "");
    let limits: serde_json::Value = serde_json::from_str(&limits).unwrap();
    assert_eq!(limits["refused_policy"]["line"], 4);
    assert_eq!(passed(serve.gateway, 3, user), 3, "the old limit stays");

    fs::write(&path, policy(30)).unwrap();
    until(&serve, "tidegate_policy_revision", 2.0);
    assert!((serve.metric("tidegate_policy_last_reload_ok").unwrap() - 1.0).abs() < f64::EPSILON);
    assert_eq!(
        passed(serve.gateway, 100, user),
        30 - 15,
        "what was used stays used"
    );
    assert_eq!(passed(serve.gateway, 100, "user: b\r\n"), 30);

    fs::write(&path, policy(10)).unwrap();
    until(&serve, "tidegate_policy_revision", 3.0);
    let (head, _) = get(serve.gateway, "/", user);
    assert_eq!(status(&head), 429);
    // 30 used of 10: it has to wait for 21 permits, one a minute.
    let wait = head
        .lines()
        .find_map(|line| line.strip_prefix("retry-after: "))
        .unwrap();
    let wait: u64 = wait.parse().unwrap();
    assert!((21 * 60 - 40..=21 * 60).contains(&wait), "{wait}");
    assert!(serve.stop());
}
