//! The policy file changes on disk, in each way that files change.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tidegate::SystemClock;
use tidegate_node::{Node, PolicyStatus, PolicyWatch};

/// A folder that is removed again.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "tidegate-watch-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(rate: u32) -> String {
    format!("limits:\n  l:\n    rate: {rate}/h\n")
}

fn watched(path: &Path) -> (Arc<Node>, PolicyWatch) {
    let text = tidegate_policy::read(path).unwrap();
    let loaded = tidegate_policy::parse("policy.yaml", &text).unwrap();
    let node = Node::new(loaded.policy, Arc::new(SystemClock::new())).unwrap();
    let watch = PolicyWatch::start(Arc::clone(&node), path, &text).unwrap();
    (node, watch)
}

/// Waits until the status is as wanted; a change has to show within a second or so, and the
/// deadline leaves room for a busy machine.
fn until(node: &Node, what: &str, wanted: impl Fn(&PolicyStatus) -> bool) -> PolicyStatus {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        let status = node.status();
        if wanted(&status) {
            return status;
        }
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("not seen in time: {what}; {:?}", node.status());
}

// shows: F1 (file)
#[test]
fn a_bad_file_leaves_the_old_policy_and_says_line_and_reason() {
    let folder = Folder::new();
    let path = folder.0.join("policy.yaml");
    fs::write(&path, text(10)).unwrap();
    let (node, _watch) = watched(&path);

    fs::write(&path, "limits:\n  l:\n    rate: 10\n").unwrap();
    let refused = until(&node, "the refusal", |status| status.failure.is_some());
    let failure = refused.failure.unwrap();
    assert_eq!((failure.line, failure.column), (3, 11));
    assert!(failure.reason.contains("`10`"), "{}", failure.reason);
    assert_eq!(node.snapshot().revision(), 1);
    assert_eq!(node.snapshot().limits().len(), 1);

    fs::write(&path, text(20)).unwrap();
    until(&node, "the repair", |status| {
        status.failure.is_none() && status.revision == 2
    });

    fs::remove_file(&path).unwrap();
    let gone = until(&node, "the loss", |status| status.failure.is_some());
    assert!(gone.failure.unwrap().reason.contains("cannot read"));
    assert_eq!(node.snapshot().revision(), 2);
}

// shows: F1 (file)
#[test]
fn an_editor_that_renames_over_the_file_is_seen() {
    let folder = Folder::new();
    let path = folder.0.join("policy.yaml");
    fs::write(&path, text(10)).unwrap();
    let (node, _watch) = watched(&path);
    for rate in 11..14 {
        let new = folder.0.join(".policy.yaml.swp");
        fs::write(&new, text(rate)).unwrap();
        fs::rename(&new, &path).unwrap();
        until(&node, "the new file", |status| {
            status.revision == u64::from(rate) - 9
        });
    }
}

// shows: F1 (file)
#[test]
fn envoy_ratelimit_379_a_config_map_that_swaps_a_symlink_is_seen() {
    let folder = Folder::new();
    for (version, rate) in [("v1", 10), ("v2", 20)] {
        fs::create_dir(folder.0.join(version)).unwrap();
        fs::write(folder.0.join(version).join("policy.yaml"), text(rate)).unwrap();
    }
    symlink("v1", folder.0.join("..data")).unwrap();
    symlink("..data/policy.yaml", folder.0.join("policy.yaml")).unwrap();
    let (node, _watch) = watched(&folder.0.join("policy.yaml"));

    symlink("v2", folder.0.join("..data_tmp")).unwrap();
    fs::rename(folder.0.join("..data_tmp"), folder.0.join("..data")).unwrap();
    until(&node, "the swap", |status| status.revision == 2);
}

// shows: F1 (file)
#[test]
fn the_same_text_again_reloads_nothing() {
    let folder = Folder::new();
    let path = folder.0.join("policy.yaml");
    fs::write(&path, text(10)).unwrap();
    let (node, _watch) = watched(&path);
    fs::write(&path, text(10)).unwrap();
    // It is read again each half-second at the latest: long enough for two of those.
    let deadline = Instant::now() + Duration::from_millis(1_300);
    while Instant::now() < deadline {
        fs::write(folder.0.join("beside.txt"), "x").unwrap();
        std::thread::park_timeout(Duration::from_millis(100));
        assert_eq!(node.status().reloads, 0);
    }
    fs::write(&path, text(11)).unwrap();
    let status = until(&node, "the change", |status| status.revision > 1);
    assert_eq!(status.reloads, 1);
}

/// Writers truncate a file before they write it.
// shows: F1 (file)
#[test]
fn an_emptied_file_leaves_the_old_policy_and_what_was_used() {
    let folder = Folder::new();
    let path = folder.0.join("policy.yaml");
    let served = "upstreams: { u: { builtin: echo } }\n\
                  gateway: { routes: [{ id: all, upstream: u, limits: l }] }\n";
    fs::write(&path, text(10) + served).unwrap();
    let (node, _watch) = watched(&path);
    for (emptied, refusals) in [("", 1), ("# to be written\n", 2), (text(10).as_str(), 3)] {
        fs::write(&path, emptied).unwrap();
        let status = until(&node, "the refusal", |status| status.refused == refusals);
        assert!(status.failure.is_some());
        assert_eq!((status.revision, node.snapshot().limits().len()), (1, 1));
    }
    fs::write(&path, text(11) + served).unwrap();
    until(&node, "the repair", |status| {
        status.failure.is_none() && status.revision == 2
    });
}

// shows: F1 (file)
#[test]
fn an_emptied_file_leaves_limits_that_serve_no_gateway() {
    let folder = Folder::new();
    let path = folder.0.join("policy.yaml");
    fs::write(&path, text(10)).unwrap();
    let (node, _watch) = watched(&path);
    fs::write(&path, "").unwrap();
    until(&node, "the refusal", |status| status.refused == 1);
    assert_eq!(node.snapshot().limits().len(), 1);
}

// shows: F1 (file)
#[test]
fn a_pipe_in_the_files_place_does_not_end_the_watching() {
    let folder = Folder::new();
    let path = folder.0.join("policy.yaml");
    fs::write(&path, text(10)).unwrap();
    let (node, _watch) = watched(&path);
    fs::remove_file(&path).unwrap();
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    until(&node, "the refusal", |status| {
        let failure = status.failure.as_ref();
        failure.is_some_and(|failure| failure.reason.contains("not a file"))
    });
    fs::remove_file(&path).unwrap();
    fs::write(&path, text(11)).unwrap();
    until(&node, "the file", |status| status.revision == 2);
}
