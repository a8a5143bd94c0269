//! A running process hands its sockets to a new one, and nobody notices.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::asking::Asking;
use crate::running::{Folder, Serve, get, status, tidegate};

fn policy(burst: u32) -> String {
    format!(
        "limits:\n  l:\n    rate: 1000000/s\n    burst: {burst}\n    key: []\n\
         upstreams: {{ echo: {{ builtin: echo }} }}\n\
         gateway:\n  listen: [\"127.0.0.1:0\"]\n\
         \x20 routes: [{{ id: all, upstream: echo, limits: [l] }}]\n\
         admin: {{ listen: \"127.0.0.1:0\" }}\n"
    )
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
        Serve::start_by(self.arguments(&mut tidegate()))
    }

    /// On one core.
    fn start_narrow(&self) -> Serve {
        let mut command = Command::new("taskset");
        command.args(["-c", "0", env!("CARGO_BIN_EXE_tidegate")]);
        Serve::start_by(self.arguments(&mut command))
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
            site.start_narrow()
        } else {
            site.start()
        };
        next.logged(|line| line.contains("taken over"));
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
