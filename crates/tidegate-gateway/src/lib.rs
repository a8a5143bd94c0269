//! The reverse proxy: tidegate in front of HTTP services.
//!
//! For the `tidegate` binary, and for whoever embeds it. HTTP/1.1 on both sides, on hyper: one
//! thread, runtime, listener and upstream pool per core, and nothing that cores share on the
//! way of a request but the node that decides.
//!
//! # What it does to a message
//!
//! - Fields of one hop are dropped, both ways; `X-Forwarded-For`, `-Proto` and `-Host` are
//!   added, and believed only from trusted proxies; `Host` stays.
//! - Bodies are streamed. A response that its upstream breaks off ends the client connection,
//!   so that it cannot be taken for a whole one.
//! - A request goes to another server, or over another connection, only while nothing of it has
//!   been sent.
//! - `Upgrade: websocket` and `CONNECT` are answered with 501, other upgrades ignored.
//!
//! # What holds a limit
//!
//! A request is decided before its body is read. It holds its places under concurrency limits
//! until its response has been handed over to the client's socket, or the client has gone.
//! A refusal is 429 with a problem body, and leaves the connection open.

mod answer;
mod body;
mod client;
mod core;
mod counters;
mod echo;
mod exchange;
mod forward;
mod gateway;
mod listener;
mod phrases;
mod settings;
mod socket;
mod timer;
mod upstream;
mod vet;
mod view;
mod watch;

pub use counters::{Counters, CountersSnapshot};
pub use gateway::{Bound, Gateway};
pub use timer::TokioTimer;
pub use view::RequestView;
