//! The lines of one core, on their way to the writer.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use tidegate_http::access_log::Entry;
use tidegate_policy::LogTarget;
use tokio::sync::Notify;

use super::rules::Rules;
use super::writer::Message;
use crate::counters::CoreCounters;

/// Lines that one core has written and not handed over yet.
pub(crate) struct Lines {
    batch: RefCell<Batch>,
    /// Says that there is a first line in the batch.
    begun: Notify,
    writer: Outlet,
    counters: Arc<CoreCounters>,
}

/// The way to the writer, which all cores share.
#[derive(Clone)]
pub(crate) struct Outlet {
    pub(super) messages: Arc<SyncSender<Message>>,
    /// Bytes that have been handed over and not been written.
    pub(super) waiting: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Batch {
    target: Option<Arc<LogTarget>>,
    bytes: Vec<u8>,
    lines: u64,
    max_waiting: usize,
}

impl Lines {
    /// A batch is handed over when it has so many bytes,
    const FULL: usize = 64 * 1024;
    /// or when its first line is this old.
    const MAX_REST: Duration = Duration::from_millis(50);

    pub(crate) fn new(writer: Outlet, counters: Arc<CoreCounters>) -> Self {
        Self {
            batch: RefCell::default(),
            begun: Notify::new(),
            writer,
            counters,
        }
    }

    /// Adds a line, if these rules have one for it.
    pub(super) fn push(&self, rules: &Rules, entry: &Entry<'_>) {
        if !rules.takes(entry) {
            return;
        }
        let mut batch = self.batch.borrow_mut();
        let is_other = |target: &Arc<LogTarget>| !Arc::ptr_eq(target, &rules.target);
        if batch.target.as_ref().is_none_or(is_other) {
            self.hand_over(&mut batch);
            batch.target = Some(Arc::clone(&rules.target));
        }
        if batch.bytes.is_empty() {
            batch.bytes.reserve_exact(Self::FULL + 1024);
            self.begun.notify_one();
        }
        batch.max_waiting = rules.max_waiting;
        rules.write(entry, &mut batch.bytes);
        batch.lines += 1;
        if batch.bytes.len() >= Self::FULL {
            self.hand_over(&mut batch);
        }
    }

    /// Gives what there is to the writer; drops it where too much waits there already.
    fn hand_over(&self, batch: &mut Batch) {
        let Some(target) = batch.target.as_ref().filter(|_| batch.lines > 0) else {
            return;
        };
        let lines = std::mem::take(&mut batch.lines);
        let bytes = std::mem::take(&mut batch.bytes);
        let length = bytes.len();
        let waiting = &self.writer.waiting;
        let message = Message::Lines {
            target: Arc::clone(target),
            bytes,
            lines,
        };
        if waiting.fetch_add(length, Ordering::Relaxed) + length <= batch.max_waiting
            && self.writer.messages.try_send(message).is_ok()
        {
            self.counters.access_log_lines.add(lines);
            return;
        }
        waiting.fetch_sub(length, Ordering::Relaxed);
        self.counters.access_log_dropped.add(lines);
    }

    /// Hands over, from time to time, what has rested here.
    pub(crate) async fn keep_moving(self: Rc<Self>) {
        loop {
            self.begun.notified().await;
            tokio::time::sleep(Self::MAX_REST).await;
            self.hand_over(&mut self.batch.borrow_mut());
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let mut batch = std::mem::take(self.batch.get_mut());
        self.hand_over(&mut batch);
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}
