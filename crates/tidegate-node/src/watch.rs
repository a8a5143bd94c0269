//! Reloading the policy when its file changes.
//!
//! What is watched is the folder, not the file: editors write a new file and rename it, and a
//! mounted config map swaps a symlink beside it. Whatever is reported, and at least each
//! [`POLL`], the file is read and its content compared; only content that differs is loaded. A
//! bad file leaves the old policy in force.

use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use notify::Watcher;
use tidegate_policy::{Loaded, Policy};

use crate::node::{Node, ReloadFailure};

/// How long a change can stay unseen where the file system reports none.
const POLL: Duration = Duration::from_millis(500);
/// After a report: how long writers are given to finish.
const SETTLE: Duration = Duration::from_millis(20);

/// Keeps a node's policy as its file is. Dropping it ends the watching.
#[derive(Debug)]
pub struct PolicyWatch {
    stop: Option<Sender<Wake>>,
    thread: Option<JoinHandle<()>>,
}

/// Why a file cannot be watched.
#[derive(Debug)]
pub struct WatchError(io::Error);

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot start the thread that watches the policy file")
    }
}

impl std::error::Error for WatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

enum Wake {
    Changed,
    Stop,
}

impl PolicyWatch {
    /// Watches `path`, whose content was `text` when `node` was made from it.
    ///
    /// # Errors
    /// [`WatchError`] where no thread can be had.
    pub fn start(node: Arc<Node>, path: &Path, text: &str) -> Result<Self, WatchError> {
        let (stop, wakes) = channel();
        let file = WatchedFile {
            path: path.to_owned(),
            seen: Seen::of(text),
        };
        let changed = stop.clone();
        let thread = std::thread::Builder::new()
            .name("policy-watch".to_owned())
            .spawn(move || watch(&node, file, changed, &wakes))
            .map_err(WatchError)?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for PolicyWatch {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It fails only where the thread is gone already.
            let _ = stop.send(Wake::Stop);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct WatchedFile {
    path: PathBuf,
    seen: Seen,
}

/// What was last read from the file.
#[derive(PartialEq, Eq)]
enum Seen {
    Text(u64),
    Unreadable(io::ErrorKind),
}

impl Seen {
    fn of(text: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Self::Text(hasher.finish())
    }
}

fn watch(node: &Node, mut file: WatchedFile, changed: Sender<Wake>, wakes: &Receiver<Wake>) {
    let folder = file
        .path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new(".")).to_owned();
    // Held while the thread runs; where the file system has no reports, polling has to do.
    let watcher = notify::recommended_watcher(move |_: notify::Result<notify::Event>| {
        let _ = changed.send(Wake::Changed);
    })
    .and_then(|mut watcher| {
        watcher.watch(&folder, notify::RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    if let Err(error) = &watcher {
        tracing::warn!(%error, "no reports of changes: the policy file is read each {POLL:?}");
    }
    loop {
        match wakes.recv_timeout(POLL) {
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(Wake::Changed) => {
                if settle(wakes) {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        file.reload_if_changed(node);
    }
}

/// Waits until reports have ceased for a moment (not for ever); true where it is to stop.
fn settle(wakes: &Receiver<Wake>) -> bool {
    for _ in 0..10 {
        match wakes.recv_timeout(SETTLE) {
            Ok(Wake::Changed) => {}
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) => return false,
        }
    }
    false
}

impl WatchedFile {
    fn reload_if_changed(&mut self, node: &Node) {
        let name = self.path.display().to_string();
        match read(&self.path) {
            Ok(text) => {
                let seen = Seen::of(&text);
                if seen != self.seen {
                    self.seen = seen;
                    reload(node, &name, &text);
                }
            }
            Err(error) => {
                let seen = Seen::Unreadable(error.kind());
                if seen != self.seen {
                    self.seen = seen;
                    let reason = format!("cannot read the policy file: {error}");
                    tracing::error!(file = name, "{reason}; the old policy stays");
                    node.refuse(ReloadFailure {
                        file: name,
                        line: 0,
                        column: 0,
                        reason,
                    });
                }
            }
        }
    }
}

/// Only a regular file is read: a pipe that has come in its place would be waited for without end.
fn read(path: &Path) -> io::Result<String> {
    let kind = fs::metadata(path)?;
    if kind.is_file() {
        return tidegate_policy::read(path);
    }
    let what = if kind.is_dir() {
        "folder"
    } else {
        "pipe or device"
    };
    let reason = format!("it is a {what}, not a file");
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

/// Why a policy that is right in itself is not taken over by a node that serves: writers empty a
/// file before they write it, and what is read between must not end what is running.
fn is_cut_short(node: &Node, new: &Policy) -> Option<&'static str> {
    if node.snapshot().policy().gateway.is_some() && new.gateway.is_none() {
        return Some("it has no `gateway:`, and the gateway is running");
    }
    let nothing = Policy {
        version: new.version,
        ..Policy::default()
    };
    (*new == nothing).then_some("it is empty")
}

fn reload(node: &Node, name: &str, text: &str) {
    let check = |policy: &Policy| match is_cut_short(node, policy) {
        Some(_) => Vec::new(),
        None => node.complaints(policy),
    };
    match tidegate_policy::parse_with(name, text, &check) {
        Ok(Loaded { policy, .. }) if let Some(reason) = is_cut_short(node, &policy) => {
            tracing::error!(file = name, reason, "policy refused; the old one stays");
            node.refuse(ReloadFailure {
                file: name.to_owned(),
                line: 1,
                column: 1,
                reason: reason.to_owned(),
            });
        }
        Ok(Loaded {
            policy, warnings, ..
        }) => {
            for warning in &warnings {
                tracing::warn!("{warning}");
            }
            match node.reload(policy) {
                Ok(revision) => tracing::info!(file = name, revision, "policy reloaded"),
                Err(error) => {
                    let reason = error.to_string();
                    tracing::error!(file = name, reason, "policy refused; the old one stays");
                    node.refuse(ReloadFailure {
                        file: name.to_owned(),
                        reason,
                        ..Default::default()
                    });
                }
            }
        }
        Err(problems) => {
            let Some(first) = problems.first_error() else {
                return;
            };
            let failure = ReloadFailure {
                file: name.to_owned(),
                line: first.line(),
                column: first.column(),
                reason: first.message().to_owned(),
            };
            tracing::error!(
                file = name,
                line = failure.line,
                column = failure.column,
                reason = failure.reason,
                "policy refused; the old one stays"
            );
            // The picture in an event of its own: lines of fields stay lines.
            tracing::error!("{problems}");
            node.refuse(failure);
        }
    }
}
