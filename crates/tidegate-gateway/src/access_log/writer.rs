//! The thread that writes the access log, so that nobody else waits for a disk or a pipe.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tidegate_policy::LogTarget;

use super::lines::Outlet;
use super::sink::Sink;
use crate::counters::CoreCounters;

/// What the writer is told.
pub(super) enum Message {
    /// Lines to be written.
    Lines {
        target: Arc<LogTarget>,
        bytes: Vec<u8>,
        lines: u64,
    },
    /// The file is to be opened anew.
    Reopen,
}

/// A writer that has not been started.
pub(crate) struct Writer {
    messages: Receiver<Message>,
    outlet: Outlet,
    /// The log as it was when the gateway started.
    sink: Option<Sink>,
    counters: Arc<CoreCounters>,
}

/// Says when everything has been written.
#[derive(Debug)]
pub(crate) struct Done(Receiver<()>);

impl Done {
    /// How long the end of the gateway waits for the log.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// Waits until all has been written, or it takes too long: nobody may be reading.
    pub(crate) fn wait(self) {
        if self.0.recv_timeout(Self::PATIENCE).is_err() {
            tracing::warn!("the access log is incomplete: it could not be written in time");
        }
    }
}

impl Writer {
    /// Most batches that wait; their bytes are bounded apart.
    const MAX_BATCHES: usize = 4096;

    /// Opens the log, if there is to be one.
    ///
    /// # Errors
    /// What the kernel says, with the file.
    pub(crate) fn open(
        target: Option<&LogTarget>,
        counters: Arc<CoreCounters>,
    ) -> io::Result<Self> {
        let sink = match target {
            Some(target) => Some(Sink::open(&Arc::new(target.clone()))?),
            None => None,
        };
        let (sender, messages) = sync_channel(Self::MAX_BATCHES);
        let outlet = Outlet {
            messages: Arc::new(sender),
            waiting: Arc::new(AtomicUsize::new(0)),
        };
        Ok(Self {
            messages,
            outlet,
            sink,
            counters,
        })
    }

    /// The way here, for a core.
    pub(crate) fn outlet(&self) -> Outlet {
        self.outlet.clone()
    }

    pub(crate) fn reopen(&self) -> Reopen {
        Reopen(Arc::downgrade(&self.outlet.messages))
    }

    /// Starts the thread; it ends when all outlets have gone, and everything has been written.
    pub(crate) fn start(self) -> io::Result<Done> {
        let (done, wait) = sync_channel(1);
        let waiting = Arc::clone(&self.outlet.waiting);
        let Self {
            messages,
            outlet,
            sink,
            counters,
        } = self;
        drop(outlet);
        std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || {
                write_all(&messages, sink, &waiting, &counters);
                // Nobody waits if the gateway's future has been dropped.
                let _ = done.try_send(());
            })?;
        Ok(Done(wait))
    }
}

fn write_all(
    messages: &Receiver<Message>,
    mut sink: Option<Sink>,
    waiting: &AtomicUsize,
    counters: &CoreCounters,
) {
    let mut told = false;
    for message in messages {
        match message {
            Message::Reopen => {
                if let Some(sink) = &mut sink {
                    sink.reopen();
                }
            }
            Message::Lines {
                target,
                bytes,
                lines,
            } => {
                let sink = Sink::of(&mut sink, &target, &mut told);
                let written = sink.and_then(|sink| sink.write(&bytes));
                waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
                if written.is_err() {
                    counters.access_log_dropped.add(lines);
                }
            }
        }
    }
}

/// Has the access log's file opened anew, for whoever has moved it away. Cheap to clone; does
/// nothing once the gateway has stopped.
#[derive(Clone)]
pub struct Reopen(Weak<SyncSender<Message>>);

impl Reopen {
    /// Has the file opened anew, after all lines that wait have been written to the old one.
    /// Returns at once. A file that was moved is noticed without this, when the next line comes.
    pub fn reopen(&self) {
        let Some(messages) = self.0.upgrade() else {
            return;
        };
        if let Err(TrySendError::Full(_)) = messages.try_send(Message::Reopen) {
            tracing::warn!("the access log is behind, and is opened anew when the next line comes");
        }
    }
}

impl fmt::Debug for Reopen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reopen").finish_non_exhaustive()
    }
}
