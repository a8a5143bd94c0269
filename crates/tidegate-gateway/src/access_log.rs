//! The access log: a line for each request that has ended.
//!
//! - [`Record`](record::Record): what is noted of a request, from its header to its end;
//! - [`Lines`](lines::Lines): a core's lines, which it writes into a buffer of its own;
//! - [`Writer`](writer::Writer): the thread that takes such buffers to the file.
//!
//! No request waits for the file: where more waits to be written than may, lines are dropped,
//! and counted.

mod lines;
mod record;
mod rules;
mod sink;
mod writer;

pub(crate) use self::lines::{Lines, Outlet};
pub(crate) use self::record::{Record, Recorder};
pub(crate) use self::rules::Rules;
pub use self::writer::Reopen;
pub(crate) use self::writer::Writer;
