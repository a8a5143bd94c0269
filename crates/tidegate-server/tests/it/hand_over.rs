//! A running process hands its sockets to a new one, and nobody notices.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::asking::Asking;
use crate::running::{DEADLINE, Folder, Serve, free_address, get, status, text, tidegate};

/// How a new process begins.
const HELLO: &[u8] = b"tidegate hand-over 1";

fn policy(burst: u32) -> String {
    format!(
        "limits:\n  l:\n    rate: 1000000/s\n    burst: {burst}\n    key: []\n\
         upstreams: {{ echo: {{ builtin: echo }} }}\n\
         gateway:\n  listen: [\"127.0.0.1:0\"]\n\
         \x20 routes: [{{ id: all, upstream: echo, limits: [l] }}]\n\
         admin: {{ listen: \"127.0.0.1:0\" }}\n"
    )
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// A folder with a policy and a place for the Unix socket.
struct Site {
    folder: Folder,
    policy: PathBuf,
    path: PathBuf,
}

impl Site {
    fn new() -> Self {
        let folder = Folder::new();
        let policy = folder.write("policy.yaml", &policy(1_000_000));
        let path = folder.path("hand-over");
        Self {
            folder,
            policy,
            path,
        }
    }

    fn arguments<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .args(["serve", "-c"])
            .arg(&self.policy)
            .arg("--hand-over")
            .arg(&self.path)
    }

    fn start(&self) -> Serve {
        let serve = Serve::start_by(self.arguments(&mut tidegate()));
        serve.logged(|line| line.contains("ready to hand over"));
        serve
    }

    /// The one that takes over.
    fn next(&self) -> Serve {
        let serve = Serve::start_by(self.arguments(&mut tidegate()));
        serve.logged(|line| line.contains("taken over"));
        serve.logged(|line| line.contains("ready to hand over"));
        serve
    }

    /// What a process says that cannot start with this policy.
    fn fails_with(&self, policy: &Path) -> String {
        let output = tidegate()
            .args(["serve", "-c"])
            .arg(policy)
            .arg("--hand-over")
            .arg(&self.path)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(!output.status.success());
        text(&output.stderr)
    }

    /// On one core.
    fn next_narrow(&self) -> Serve {
        let mut command = Command::new("taskset");
        command.args(["-c", "0", env!("CARGO_BIN_EXE_tidegate")]);
        let serve = Serve::start_by(self.arguments(&mut command));
        serve.logged(|line| line.contains("taken over"));
        serve
    }
}

// shows: H2 (restart)
#[test]
fn four_hand_overs_lose_no_request() {
    let site = Site::new();
    let mut serve = site.start();
    let (gateway, admin) = (serve.gateway, serve.admin);
    let asking = Asking::start(gateway);
    for round in 0..4 {
        asking.until_answered(5000);
        // Each with another number of cores than the one before.
        let next = if round % 2 == 0 {
            site.next_narrow()
        } else {
            site.next()
        };
        assert_eq!((next.gateway, next.admin), (gateway, admin));
        assert!(serve.ended(), "the old one ends, and well");
        serve = next;
    }
    asking.until_answered(5000);
    assert_eq!(asking.stop(), Vec::<String>::new());
    let (head, _) = get(admin, "/healthz", "");
    assert_eq!(status(&head), 200);
    assert!(serve.stop());
    assert!(!site.path.exists(), "the last one leaves nothing");
}

// shows: H2 (reload and restart)
#[test]
fn fifty_reloads_and_two_hand_overs_lose_no_request() {
    let site = Site::new();
    let mut serve = site.start();
    let asking = Asking::start(serve.gateway);
    for round in 0..50_u32 {
        asking.until_answered(50);
        fs::write(&site.policy, policy(1_000_000 + round)).unwrap();
        if round % 20 == 10 {
            let next = site.next();
            assert!(serve.ended());
            serve = next;
        }
    }
    until("the last policy is in force", || {
        let (_, limits) = get(serve.admin, "/api/v1/limits", "");
        limits.contains("1000049")
    });
    asking.until_answered(200);
    assert_eq!(asking.stop(), Vec::<String>::new());
}

#[test]
fn a_policy_that_is_wrong_takes_nothing_over() {
    let site = Site::new();
    let serve = site.start();
    let asking = Asking::start(serve.gateway);
    let right = fs::read_to_string(&site.policy).unwrap();
    let other = site
        .folder
        .write("wrong.yaml", &right.replace("burst", "brust"));
    let failed = site.fails_with(&other);
    assert!(failed.contains("brust"), "{failed}");
    // Right, and yet it cannot be served: a port that somebody else has.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let moved = right.replacen("127.0.0.1:0", &address, 1);
    let other = site.folder.write("moved.yaml", &moved);
    let failed = site.fails_with(&other);
    assert!(failed.contains("cannot listen on"), "{failed}");
    serve.logged(|line| line.contains("not handed over") && line.contains("before it was ready"));
    asking.until_answered(200);
    assert_eq!(asking.stop(), Vec::<String>::new());
    // And the next one can.
    let _next = site.next();
    assert!(serve.ended());
}

/// A policy that listens elsewhere: what stays is handed over, what is new is bound.
#[test]
fn a_new_policy_may_add_and_drop_addresses() {
    let site = Site::new();
    let text = policy(1_000_000);
    let (first, second, third) = (free_address(), free_address(), free_address());
    let listening = |addresses: &[SocketAddr]| {
        let addresses: Vec<_> = addresses.iter().map(|one| format!("\"{one}\"")).collect();
        let listen = format!("listen: [{}]\n", addresses.join(", "));
        text.replacen("listen: [\"127.0.0.1:0\"]\n", &listen, 1)
    };
    fs::write(&site.policy, listening(&[first, second])).unwrap();
    let serve = site.start();
    let asking = Asking::start(second);
    fs::write(&site.policy, listening(&[third, second])).unwrap();
    let next = site.next();
    assert!(serve.ended());
    assert_eq!(next.gateway, third);
    assert_eq!(status(&get(third, "/", "").0), 200);
    TcpStream::connect(first).unwrap_err();
    asking.until_answered(200);
    assert_eq!(asking.stop(), Vec::<String>::new());
}

#[test]
fn only_one_takes_over_at_a_time() {
    let site = Site::new();
    let serve = site.start();
    let mut slow = UnixStream::connect(&site.path).unwrap();
    slow.write_all(HELLO).unwrap();
    serve.logged(|line| line.contains("handing over"));
    let failed = site.fails_with(&site.policy);
    assert!(
        failed.contains("is handing over to another process"),
        "{failed}"
    );
    assert_eq!(status(&get(serve.gateway, "/", "").0), 200);
    drop(slow);
    serve.logged(|line| line.contains("not handed over"));
    let _next = site.next();
    assert!(serve.ended());
}

#[test]
fn who_speaks_something_else_gets_nothing() {
    let site = Site::new();
    let serve = site.start();
    let mode = fs::metadata(&site.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A later version; what is no hand-over at all; too little; too soon; nothing.
    let garbage: [&[u8]; 5] = [
        b"tidegate hand-over 9",
        &[0xff; 4096],
        b"tide",
        b"RRRR",
        b"",
    ];
    for garbage in garbage {
        let mut stranger = UnixStream::connect(&site.path).unwrap();
        stranger.set_read_timeout(Some(DEADLINE)).unwrap();
        stranger.write_all(garbage).unwrap();
        stranger.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        // It is closed with something unread, which may show as a reset.
        let _ = stranger.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer == b"N", "{answer:?}");
        serve.logged(|line| line.contains("not handed over"));
    }
    // It knows how to ask, and then says what is no word.
    let mut stranger = UnixStream::connect(&site.path).unwrap();
    stranger.write_all(HELLO).unwrap();
    stranger.write_all(b"?").unwrap();
    serve.logged(|line| line.contains("not a word of a hand-over"));
    assert_eq!(status(&get(serve.gateway, "/", "").0), 200);
    let _next = site.next();
    assert!(serve.ended());
}

/// A user that owns nothing.
const NOBODY: u32 = 65_534;

/// Where the test may become another user; elsewhere there is nothing to be seen.
#[test]
fn another_user_gets_nothing() {
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout != b"0\n" {
        return;
    }
    let site = Site::new();
    let serve = site.start();
    let as_nobody = |what: &str| {
        let mut command = tidegate();
        let command = site.arguments(&mut command).uid(NOBODY).gid(NOBODY);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(!output.status.success());
        let said = text(&output.stderr);
        assert!(said.contains(what), "{said}");
    };
    as_nobody("Permission denied");
    // Whatever the file's mode: its owner is asked for, too.
    fs::set_permissions(&site.path, fs::Permissions::from_mode(0o666)).unwrap();
    as_nobody("and this is one of user 65534");
    serve.logged(|line| line.contains("a process of user 65534"));
    assert_eq!(status(&get(serve.gateway, "/", "").0), 200);
}

/// An old process that the test plays: says `words`, reads what it is told, and goes.
fn old_one(path: &Path, words: &'static [u8], listens_to: usize) -> JoinHandle<Vec<u8>> {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        let (mut new, _) = listener.accept().unwrap();
        new.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut hello = vec![0; HELLO.len()];
        new.read_exact(&mut hello).unwrap();
        assert_eq!(hello, HELLO);
        new.write_all(words).unwrap();
        let mut told = vec![0; listens_to];
        new.read_exact(&mut told).unwrap();
        told
    })
}

#[test]
fn an_old_one_that_dies_before_it_has_handed_all_over_fails_the_new_one() {
    for (words, why) in [
        (&b""[..], "it ended before it had handed all over"),
        (b"G", "a socket is missing"),
        (b"R", "it says what does not belong here"),
        (b"?", "not a word of a hand-over"),
    ] {
        let site = Site::new();
        let old = old_one(&site.path, words, 0);
        let failed = site.fails_with(&site.policy);
        assert!(failed.contains(why), "{failed}");
        old.join().unwrap();
        // Nobody is there any more (a process that another test has just forked may be, for a
        // moment): the next one starts as the first one does.
        until("nobody is there", || {
            UnixStream::connect(&site.path).is_err()
        });
        let serve = site.start();
        assert_eq!(status(&get(serve.gateway, "/", "").0), 200);
    }
}

#[test]
fn an_old_one_that_dies_at_the_end_leaves_the_new_one_serving() {
    let site = Site::new();
    let old = old_one(&site.path, b"E", 1);
    let serve = site.next();
    assert_eq!(old.join().unwrap(), b"R");
    assert_eq!(status(&get(serve.gateway, "/", "").0), 200);
    let _next = site.next();
    assert!(serve.ended());
}

/// Two must not serve side by side for good.
#[test]
fn a_new_one_that_is_told_that_it_is_too_late_ends() {
    let site = Site::new();
    let old = old_one(&site.path, b"EL", 1);
    let serve = Serve::start_by(site.arguments(&mut tidegate()));
    assert_eq!(old.join().unwrap(), b"R");
    serve.logged(|line| line.contains("took too long to start"));
    assert!(!serve.ended());
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let site = Site::new();
    fs::write(&site.path, "precious").unwrap();
    let failed = site.fails_with(&site.policy);
    assert!(
        failed.contains("there is something that is no socket"),
        "{failed}"
    );
    assert_eq!(fs::read_to_string(&site.path).unwrap(), "precious");
    // What a process has left that was killed is no obstacle.
    fs::remove_file(&site.path).unwrap();
    drop(UnixListener::bind(&site.path).unwrap());
    until("nobody is there", || {
        UnixStream::connect(&site.path).is_err()
    });
    let serve = site.start();
    assert!(serve.stop());
    assert!(!site.path.exists());
}
