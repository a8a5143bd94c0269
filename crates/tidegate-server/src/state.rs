//! The file in which counts outlive the process: read before anything is served, written now and
//! then and when nothing is served any more.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tidegate::{Clock, SharedStore};
use tidegate_node::{Node, PolicyError, SaveError, SaveReport, Saved, SavedError};
use tidegate_policy::Policy;

/// How often a file is begun anew because the policy was reloaded while it was written.
const ATTEMPTS: u32 = 3;

/// A file of counts.
#[derive(Clone, Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    every: Duration,
    /// Whether it is another process's to write now. Held while it is written.
    lent: Arc<Mutex<bool>>,
}

impl StateFile {
    /// The one that a policy names; its path is as seen from the folder of the policy.
    pub(crate) fn of(policy: &Policy, policy_path: Option<&Path>) -> Option<Self> {
        let settings = policy.state.as_ref()?;
        let folder = policy_path.and_then(Path::parent).unwrap_or(Path::new(""));
        Some(Self {
            path: folder.join(&settings.file),
            every: settings.every,
            lent: Arc::default(),
        })
    }

    /// What can be gone on with; `None`, and a line in the log, where there is nothing.
    pub(crate) fn read(&self, policy: &Policy, clock: &dyn Clock) -> Option<Saved> {
        let file = self.path.display();
        let begun = Instant::now();
        let saved = match self.open() {
            Ok(None) => {
                tracing::info!(%file, "there are no counts from before");
                return None;
            }
            Ok(Some(open)) => Saved::read(BufReader::new(open), policy, clock.now()),
            Err(error) => Err(SavedError::Unreadable(error)),
        };
        match saved {
            Ok(saved) => {
                let now = clock.now();
                let age = now.since(saved.saved_at());
                let (keys, took) = (saved.keys(), begun.elapsed());
                tracing::info!(%file, keys, ?age, ?took, "going on with the counts from before");
                if now < saved.saved_at() {
                    let what = "the clock says that it is earlier than when the counts were \
                                written: no time counts as passed";
                    tracing::warn!(%file, "{what}");
                }
                for limit in saved.passed_over() {
                    let what = "the limit begins anew: it no longer persists, or has another key";
                    tracing::warn!(limit, "{what}");
                }
                Some(saved)
            }
            Err(reason) => {
                let what = "the counts from before are of no use: all limits begin anew";
                tracing::error!(%file, %reason, "{what}");
                None
            }
        }
    }

    fn open(&self) -> io::Result<Option<File>> {
        let refused =
            |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what.to_owned()));
        match fs::metadata(&self.path) {
            // A pipe would block whoever opens it.
            Ok(of_path) if !of_path.is_file() => return refused("it is no file"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(_) | Err(_) => {}
        }
        let open = File::open(&self.path)?;
        let of_file = open.metadata()?;
        if !of_file.is_file() {
            return refused("it is no file");
        }
        // Its checks find what is torn, not what somebody has written on purpose.
        if of_file.uid() != rustix::process::geteuid().as_raw() || of_file.mode() & 0o022 != 0 {
            return refused("others may have written it: it has to be this user's, of mode 0600");
        }
        Ok(Some(open))
    }

    /// Writes the counts of `node` as a whole, or not at all.
    fn write(&self, node: &Node) -> Result<SaveReport, SaveError> {
        let mut attempts = 1;
        loop {
            match self.try_to_write(node) {
                Err(SaveError::PolicyChanged) if attempts < ATTEMPTS => attempts += 1,
                result => return result,
            }
        }
    }

    fn try_to_write(&self, node: &Node) -> Result<SaveReport, SaveError> {
        let folder = match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        // In the same folder, so that it can take the other's place in one step. Two processes
        // that have one file each write their own.
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let unfinished = folder.join(name);
        let written = write_whole(&unfinished, node);
        let kept = written.and_then(|report| {
            fs::rename(&unfinished, &self.path)?;
            // The new name has to be on the disk as well.
            File::open(folder)?.sync_all()?;
            Ok(report)
        });
        if kept.is_err() {
            // It may not be there at all.
            let _ = fs::remove_file(&unfinished);
        }
        kept
    }

    /// Writes now and then, until [`Keeper::finish`].
    pub(crate) fn keep(&self, node: Arc<Node>) -> io::Result<Keeper> {
        let file = self.clone();
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(file.every) == Err(RecvTimeoutError::Timeout) {
                    file.write_unless_lent(&node);
                }
                file.write_unless_lent(&node)
            })?;
        Ok(Keeper { stop, thread })
    }

    /// Writes the counts for a process that goes on with them, and from now on leaves the file to
    /// that.
    pub(crate) fn lend(&self, node: &Node) {
        let mut lent = self.lent();
        self.write_and_tell(node);
        *lent = true;
    }

    /// The other process does not go on.
    pub(crate) fn take_back(&self) {
        *self.lent() = false;
    }

    /// Leaves the file to another process.
    pub(crate) fn give_up(&self) {
        *self.lent() = true;
    }

    fn lent(&self) -> MutexGuard<'_, bool> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_unless_lent(&self, node: &Node) -> bool {
        let lent = self.lent();
        *lent || self.write_and_tell(node)
    }

    /// Writes them, and says in the log how that went; and whether it went well.
    fn write_and_tell(&self, node: &Node) -> bool {
        let begun = Instant::now();
        let file = self.path.display();
        match self.write(node) {
            Ok(SaveReport {
                keys,
                bytes,
                longest_hold,
                ..
            }) => {
                let took = begun.elapsed();
                tracing::debug!(%file, keys, bytes, ?took, ?longest_hold, "counts written");
                true
            }
            Err(error) => {
                let reason = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(%file, reason, "{error}");
                false
            }
        }
    }
}

fn write_whole(path: &Path, node: &Node) -> Result<SaveReport, SaveError> {
    // What a process of this id left behind is not gone on with, nor is where a link leads to.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    let report = node.save(&mut out)?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(report)
}

/// Writes the counts of a node now and then.
#[derive(Debug)]
pub(crate) struct Keeper {
    stop: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Keeper {
    /// Writes them a last time, and never again: nothing may be counted any more, or it is lost.
    /// Returns whether that could be written.
    pub(crate) fn finish(self) -> bool {
        drop(self.stop);
        self.thread.join().unwrap_or(false)
    }
}

/// A node that goes on with what the file has for it; a new one where that is nothing.
pub(crate) fn start_node(
    file: Option<&StateFile>,
    policy: Policy,
    clock: Arc<dyn Clock>,
    store: Option<Arc<dyn SharedStore>>,
) -> Result<Arc<Node>, PolicyError> {
    let saved = file.and_then(|file| file.read(&policy, &clock));
    match (saved, store) {
        (Some(saved), store) => Node::restored(policy, clock, store, saved),
        (None, Some(store)) => Node::with_store(policy, clock, store),
        (None, None) => Node::new(policy, clock),
    }
}
