//! Counts outlive the process where a limit says so.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use crate::running::{DEADLINE, Folder, Serve, passed, tidegate};

fn policy(burst: u32) -> String {
    format!(
        "limits:\n  kept: {{ rate: 60/h, burst: {burst}, key: [\"header:user\"], persist: true }}\n\
         state: {{ file: counts/now, every: 1s }}\n\
         upstreams: {{ echo: {{ builtin: echo }} }}\n\
         gateway:\n  listen: [\"127.0.0.1:0\"]\n\
         \x20 routes: [{{ id: all, upstream: echo, limits: [kept] }}]\n\
         admin: {{ listen: \"127.0.0.1:0\" }}\n"
    )
}

fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.path("counts")).unwrap();
    folder
}

fn file(folder: &Folder) -> std::path::PathBuf {
    folder.path("counts/now")
}

/// Whether it said so before it served.
fn said(serve: &Serve, parts: &[&str]) {
    let is_it = |line: &String| parts.iter().all(|part| line.contains(part));
    assert!(serve.greeting.iter().any(is_it), "{:#?}", serve.greeting);
}

// shows: H2 (counts survive a restart)
#[test]
fn what_was_used_before_a_stop_is_used_after_the_next_start() {
    let folder = folder();
    let path = folder.write("policy.yaml", &policy(20));
    let serve = Serve::start(&path);
    said(&serve, &["there are no counts from before"]);
    assert_eq!(passed(serve.gateway, 12, "user: a\r\n"), 12);
    assert!(serve.stop());
    let mode = fs::metadata(file(&folder)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it has the key of the hashes in it");

    let serve = Serve::start(&path);
    said(&serve, &["going on with the counts", "keys=1"]);
    assert_eq!(passed(serve.gateway, 100, "user: a\r\n"), 8);
    assert_eq!(passed(serve.gateway, 100, "user: b\r\n"), 20);
    assert!(serve.stop());

    // Other numbers, as at a reload.
    fs::write(&path, policy(25)).unwrap();
    let serve = Serve::start(&path);
    assert_eq!(passed(serve.gateway, 100, "user: a\r\n"), 5);
    assert!(serve.stop());
    assert_eq!(names(&folder), ["now"], "nothing unfinished is left");
}

fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path("counts")).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Waits until the file has been written twice from now: the second time began after now.
fn until_written(path: &Path) {
    let start = Instant::now();
    let written = || fs::metadata(path).and_then(|of| of.modified()).ok();
    for _ in 0..2 {
        let before = written();
        while written() == before {
            assert!(start.elapsed() < DEADLINE, "it is written each second");
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
    }
}

// shows: H2 (a crash loses at most the interval)
#[test]
fn what_was_used_before_the_file_was_last_written_survives_a_kill() {
    let folder = folder();
    let path = folder.write("policy.yaml", &policy(20));
    let serve = Serve::start(&path);
    assert_eq!(passed(serve.gateway, 12, "user: a\r\n"), 12);
    until_written(&file(&folder));
    assert_eq!(passed(serve.gateway, 3, "user: a\r\n"), 3);
    drop(serve); // SIGKILL
    let serve = Serve::start(&path);
    let left = passed(serve.gateway, 100, "user: a\r\n");
    assert!(
        (5..=8).contains(&left),
        "12 are kept, perhaps the 3 of the last second: {left} left"
    );
}

// shows: H2 (a torn file)
#[test]
fn a_torn_file_is_refused_and_the_gateway_serves() {
    let folder = folder();
    let path = folder.write("policy.yaml", &policy(20));
    let serve = Serve::start(&path);
    assert_eq!(passed(serve.gateway, 12, "user: a\r\n"), 12);
    assert!(serve.stop());
    let whole = fs::read(file(&folder)).unwrap();
    fs::write(file(&folder), &whole[..whole.len() / 2]).unwrap();
    let serve = Serve::start(&path);
    said(&serve, &["all limits begin anew", "torn"]);
    assert_eq!(passed(serve.gateway, 100, "user: a\r\n"), 20);
    assert!(serve.stop());

    fs::remove_file(file(&folder)).unwrap();
    fs::create_dir(file(&folder)).unwrap();
    let serve = Serve::start(&path);
    said(&serve, &["all limits begin anew", "no file"]);
    assert_eq!(passed(serve.gateway, 100, "user: a\r\n"), 20);
    assert!(serve.stop(), "it stops, although it can keep nothing");
}

/// Starts it on this policy, in place of whoever serves at the same path.
fn in_place(folder: &Folder, policy: &Path) -> Serve {
    let mut command = tidegate();
    command.args(["serve", "-c"]).arg(policy);
    command.arg("--hand-over").arg(folder.path("hand-over"));
    let serve = Serve::start_by(&mut command);
    serve.logged(|line| line.contains("ready to hand over"));
    serve
}

// shows: H2 (counts go over with the sockets)
#[test]
fn who_takes_over_goes_on_with_the_counts_and_the_old_one_writes_them_no_more() {
    let folder = folder();
    let path = folder.write("policy.yaml", &policy(20));
    let old = in_place(&folder, &path);
    assert_eq!(passed(old.gateway, 12, "user: a\r\n"), 12);

    // One that asks and does not come up changes nothing.
    let broken = folder.write("broken.yaml", "gateway: { routes: 1 }");
    let output = tidegate()
        .args(["serve", "-c"])
        .arg(&broken)
        .arg("--hand-over")
        .arg(folder.path("hand-over"))
        .output()
        .unwrap();
    assert!(!output.status.success());

    let new = in_place(&folder, &path);
    said(&new, &["going on with the counts", "keys=1"]);
    // Until it ends, the old one may be asked, too.
    assert!(old.ended());
    assert_eq!(passed(new.gateway, 5, "user: a\r\n"), 5);
    assert!(new.stop());
    let last = Serve::start(&path);
    assert_eq!(passed(last.gateway, 100, "user: a\r\n"), 3);
    assert!(last.stop());
}
