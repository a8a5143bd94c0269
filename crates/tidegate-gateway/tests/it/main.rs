//! The gateway over real sockets: a raw client before it, scripted upstreams behind it.

mod bounds;
mod forwarding;
mod gateway;
mod limits;
mod listening;
mod reload;
mod shutdown;
mod streaming;
mod upstream;
mod upstreams;
mod wire;
