//! Catches events of `tracing` on the thread of a test.
//!
//! One subscriber for all threads, set before anything can happen: `tracing` decides once for each
//! place in the code whether anybody listens, and tests that each bring their own subscriber
//! meet that decision of another's.

use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

thread_local! {
    static CAUGHT: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Listens from now on, with nothing caught yet.
pub(crate) fn listen() {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| tracing::subscriber::set_global_default(Events).unwrap());
    CAUGHT.with_borrow_mut(Vec::clear);
}

/// The events of this thread so far, one text each: `name=value ...`.
pub(crate) fn caught() -> Vec<String> {
    CAUGHT.with_borrow(Clone::clone)
}

#[derive(Debug)]
struct Events;

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tidegate")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        CAUGHT.with_borrow_mut(|caught| caught.push(text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Debug, Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}
