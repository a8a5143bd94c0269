//! The file of the access log: moved away, opened anew, full, changed with the policy.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::access_log::Log;
use crate::gateway::{Running, policy};
use crate::upstream::{OK, Upstream};

#[tokio::test]
async fn no_line_is_lost_when_the_file_is_moved_and_the_new_one_is_private() {
    let upstream = Upstream::answering(OK).await;
    let log = Log::new();
    let gateway = Running::before(&[upstream.address], "", &log.policy(""));
    let mut client = gateway.connect().await;
    client.get("/1").await;
    log.entries(1).await;
    let moved = log.0.with_extension("1");
    fs::rename(&log.0, &moved).unwrap();
    // Nobody has told the gateway.
    client.get("/2").await;
    let entries = log.entries(1).await;
    assert_eq!(entries[0]["target"], "/2");
    assert!(fs::read_to_string(&moved).unwrap().contains("/1"));
    let mode = fs::metadata(&log.0).unwrap().permissions().mode();
    assert_eq!(
        mode & 0o037,
        0o000,
        "others may not read it, the group may not write it"
    );
    // Removed, and told: the file is there again before the next line.
    fs::remove_file(&log.0).unwrap();
    gateway.log.reopen();
    log.exists().await;
    let before = fs::metadata(&log.0).unwrap().ino();
    client.get("/3").await;
    assert_eq!(log.entries(1).await[0]["target"], "/3");
    assert_eq!(fs::metadata(&log.0).unwrap().ino(), before);
    gateway
        .counted(|counters| counters.access_log_lines == 3)
        .await;
    assert_eq!(gateway.counters().access_log_dropped, 0);
}

#[tokio::test]
async fn what_was_logged_last_is_in_the_file_when_the_gateway_has_stopped() {
    let upstream = Upstream::answering(OK).await;
    let log = Log::new();
    let mut gateway = Running::before(&[upstream.address], "", &log.policy(""));
    let mut client = gateway.connect().await;
    for _ in 0..500 {
        client.get("/").await;
    }
    gateway.stop();
    gateway.ended().await;
    assert_eq!(log.text().lines().count(), 500);
    assert!(log.text().ends_with("\"complete\"}\n"));
}

// shows: H1 (bounded memory)
#[tokio::test]
async fn more_than_may_wait_is_dropped_and_counted_and_no_request_waits() {
    let upstream = Upstream::answering(OK).await;
    let log = Log::new();
    // Nobody reads from a pipe: the writer is stuck.
    let made = std::process::Command::new("mkfifo").arg(&log.0).status();
    assert!(made.unwrap().success());
    let reader = fs::OpenOptions::new().read(true).write(true).open(&log.0);
    let more = log.policy(", buffer: 1MiB");
    let gateway = Running::before(&[upstream.address], "", &more);
    let mut client = gateway.connect().await;
    let long = "x".repeat(8_000);
    for _ in 0..300 {
        assert_eq!(client.get(&format!("/{long}")).await.status(), 200);
    }
    gateway
        .counted(|counts| counts.access_log_dropped > 0 && counts.access_log_lines > 0)
        .await;
    drop(reader);
}

#[tokio::test]
async fn the_log_follows_the_policy() {
    let upstream = Upstream::answering(OK).await;
    let (first, second) = (Log::new(), Log::new());
    let gateway = Running::before(&[upstream.address], "", &first.policy(""));
    let mut client = gateway.connect().await;
    let reload = |lines: &str| {
        let policy = policy(&[upstream.address], "", lines);
        gateway.node.reload(policy).unwrap();
    };
    client.get("/1").await;
    reload(&second.policy(", format: combined"));
    client.get("/2").await;
    reload("");
    client.get("/3").await;
    let nowhere = "  access_log: /nowhere/at/all.log";
    reload(nowhere);
    client.get("/4").await;
    gateway
        .counted(|counts| counts.access_log_dropped == 1)
        .await;
    reload(&first.policy(""));
    client.get("/5").await;
    let entries = first.entries(2).await;
    assert_eq!(
        (&entries[0]["target"], &entries[1]["target"]),
        (&"/1".into(), &"/5".into())
    );
    assert!(second.lines(1).await[0].contains("\"GET /2 HTTP/1.1\" 200 2"));
    assert_eq!(second.text().lines().count(), 1);
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_told_at_the_start() {
    let nobody = Upstream::nobody().await;
    let policy = policy(&[nobody], "", "  access_log: /nowhere/at/all.log");
    let config = policy.gateway.clone().unwrap();
    let clock = std::sync::Arc::new(tidegate::SystemClock::new());
    let node = tidegate_node::Node::new(policy, clock.clone()).unwrap();
    let timer = std::sync::Arc::new(tidegate_gateway::TokioTimer::new(clock));
    let error = tidegate_gateway::Gateway::bind(&config, node, timer).unwrap_err();
    let told = error.to_string();
    assert!(
        told.starts_with("cannot open access log /nowhere/at/all.log: "),
        "{told}"
    );
}
