//! The reverse proxy: tidegate in front of HTTP services.
//!
//! For the `tidegate` binary, and for whoever embeds it. HTTP/1.1 on both sides, on hyper: one
//! thread, runtime, listener and upstream pool per core, and nothing that cores share on the
//! way of a request but the node that decides.
//!
//! # What it does to a message
//!
//! - Fields of one hop are dropped, both ways; `X-Forwarded-For`, `-Proto` and `-Host` are
//!   added, and believed only from trusted proxies; `Host` stays. No `Via` is added.
//! - Bodies are streamed. A response that its upstream breaks off ends the client connection
//!   behind what has come of it (for HTTP/1.0 with a reset), so that it cannot be taken for a
//!   whole one.
//! - A request goes to another server, or over another connection, only while nothing of it has
//!   been sent. One exception: a request of an idempotent method without a body, put on a
//!   connection that had rested and that then ends without a byte of an answer, is sent once more
//!   over a new connection to the same server.
//! - `Upgrade: websocket`, `CONNECT`, and transfer codings other than chunked are answered with
//!   501, other upgrades ignored.
//! - What two readers could read differently is refused and ends the connection: it is read by the
//!   letter of RFC 9112 before anything else looks at it, and answered with 400 (or 414, 431, 501,
//!   505) in its turn. So are a length beside chunks, two lengths, bare line feeds, folded lines, a
//!   space before a colon, chunk sizes that are none, a target and a `Host` that differ. A response
//!   with two lengths, or one beside chunks, is 502.
//! - Trailers of a request are bounded; those that would change how a message is read, or who
//!   sends it, are refused, others go on if the request's `Trailer` names them.
//!
//! # How long what may take
//!
//! - `header_timeout`: from a request's first byte to the end of its header. Then the
//!   connection is closed.
//! - `idle_timeout`: between two requests, and for a client to take what was answered.
//! - `min_body_rate`, `min_response_rate`: of a client, while the gateway waits for it. It has
//!   `min_rate_grace` in advance, saves up what it is faster, to `response_timeout`, and is then
//!   answered with 408, or cut off.
//! - `max_connection_age`, `max_requests_per_connection`: then the next answer is the last.
//! - `connect_timeout`: to connect to a server. Then the next one is tried; 504 after the last.
//! - `response_timeout`: from the last piece of a request to the header of the response. Then
//!   504, or 408 if it is the client's body that does not come. The same time is given to each
//!   further piece of the response, and to the client to take it; then the connection is closed.
//! - `shutdown_timeout`: for requests in flight when the gateway stops.
//!
//! A connection looks at its deadlines as often as its shortest timeout asks for, not for each
//! request: that costs a request nothing but to note what it waits for.
//!
//! # What holds a limit
//!
//! A request is decided before its body is read. It holds its places under concurrency limits
//! until its response has been handed over to the client's socket, or the client has gone.
//! A refusal is 429 with a problem body, or what the limit's `on_limit` says, and leaves the
//! connection open; a delay that a limit imposes is waited out first, and given back if the client
//! goes away meanwhile. That shows at once, whatever it has sent behind its header (on Linux; and
//! only where the end of what it sends fits into the kernel's buffer). A client that says it sends
//! no more (a half-closed connection) counts as gone.
//!
//! [`PolicyLimits`] has the limits of a policy around a service of your own, as a tower layer.
//!
//! ```no_run
//! use std::sync::Arc;
//! use tidegate::SystemClock;
//! use tidegate_gateway::{Gateway, TokioTimer};
//! use tidegate_node::Node;
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = tidegate_policy::parse("policy.yaml", tidegate_policy::DEFAULT)?.policy;
//! let config = policy.gateway.clone().ok_or("the policy has no gateway")?;
//! let clock = Arc::new(SystemClock::new());
//! let node = Node::new(policy, clock.clone())?;
//! let gateway = Gateway::bind(&config, node, Arc::new(TokioTimer::new(clock)))?;
//! println!("listening on {:?}", gateway.local_addrs());
//! gateway.run(std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

mod access_log;
mod answer;
mod body;
mod body_pace;
mod client;
mod connections;
mod core;
mod counters;
mod debug;
mod echo;
mod exchange;
mod fault;
mod forward;
mod framer;
mod gateway;
mod listener;
mod patience;
mod phrases;
mod policy_limits;
mod refusal;
mod request_id;
mod settings;
mod socket;
mod upstream;
mod vet;
mod view;
mod watch;

pub use access_log::Reopen;
pub use counters::{Counters, CountersSnapshot};
pub use gateway::{Bound, Gateway, Shutdown};
pub use policy_limits::PolicyLimits;
pub use tidegate::TokioTimer;
pub use view::RequestView;
