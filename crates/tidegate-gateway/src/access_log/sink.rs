//! Where lines end up: standard output, or a file that may be moved away at any time.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use tidegate_policy::LogTarget;

/// A log that is open.
pub(super) struct Sink {
    target: Arc<LogTarget>,
    /// `None` for standard output.
    file: Option<Open>,
    /// Whether the last line may have been written in part.
    torn: bool,
    /// Whether what is wrong has been told.
    told: bool,
}

struct Open {
    file: File,
    /// Device and inode.
    identity: (u64, u64),
}

impl Open {
    fn at(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).mode(0o640).open(path)?;
        let metadata = file.metadata()?;
        Ok(Self {
            file,
            identity: (metadata.dev(), metadata.ino()),
        })
    }

    /// Whether this is still the file of that name.
    fn is_at(&self, path: &Path) -> bool {
        let there = std::fs::metadata(path);
        there.is_ok_and(|there| (there.dev(), there.ino()) == self.identity)
    }
}

impl Sink {
    /// # Errors
    /// What the kernel says, with the file.
    pub(super) fn open(target: &Arc<LogTarget>) -> io::Result<Self> {
        let file = match &**target {
            LogTarget::Stdout => None,
            LogTarget::File(path) => Some(Open::at(path).map_err(|error| {
                let text = format!("cannot open access log {}: {error}", path.display());
                io::Error::new(error.kind(), text)
            })?),
        };
        Ok(Self {
            target: Arc::clone(target),
            file,
            torn: false,
            told: false,
        })
    }

    /// The one in `current`, or, where the policy names another by now, that.
    ///
    /// # Errors
    /// As [`open`](Self::open); `told` is whether that has been told of.
    pub(super) fn of<'a>(
        current: &'a mut Option<Self>,
        target: &Arc<LogTarget>,
        told: &mut bool,
    ) -> io::Result<&'a mut Self> {
        let other = current.take_if(|sink| sink.target != *target);
        let sink = match current.take() {
            Some(sink) => sink,
            None => match Self::open(target) {
                Ok(sink) => {
                    *told = false;
                    sink
                }
                Err(error) => {
                    // Not each time: there may be many lines.
                    if !*told {
                        tracing::error!("{error}");
                    }
                    *told = true;
                    *current = other;
                    return Err(error);
                }
            },
        };
        Ok(current.insert(sink))
    }

    /// Opens the file anew; goes on with the old one where that cannot be.
    pub(super) fn reopen(&mut self) {
        let LogTarget::File(path) = &*self.target else {
            return;
        };
        match Open::at(path) {
            Ok(open) => {
                self.file = Some(open);
                self.torn = false;
                self.told = false;
            }
            Err(error) => {
                if !self.told {
                    let path = path.display();
                    tracing::error!(%path, %error, "cannot open the access log anew");
                }
                self.told = true;
            }
        }
    }

    /// Writes whole lines, to the file that has the name now.
    ///
    /// # Errors
    /// What the kernel says; then some of it may have been written.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if let (LogTarget::File(path), Some(open)) = (&*self.target, &self.file)
            && !open.is_at(path)
        {
            self.reopen();
        }
        let torn = std::mem::take(&mut self.torn);
        let written = match &mut self.file {
            Some(open) => put(&mut open.file, torn, lines),
            None => put(&mut io::stdout().lock(), torn, lines),
        };
        match &written {
            Ok(()) => self.told = false,
            Err(error) => {
                if !self.told {
                    tracing::error!(%error, "the access log cannot be written");
                }
                self.told = true;
                self.torn = true;
            }
        }
        written
    }
}

fn put(out: &mut impl Write, torn: bool, lines: &[u8]) -> io::Result<()> {
    if torn {
        out.write_all(b"\n")?;
    }
    out.write_all(lines)?;
    out.flush()
}
