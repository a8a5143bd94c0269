//! What tidegate keeps in Redis, against real servers.

mod server;
