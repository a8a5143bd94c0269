//! Exact mode: the script on a real Redis, beside a model of it and beside the local engine.

mod cases;
mod limiter;
mod local;
mod mutants;
mod parity;
mod sharing;
pub(crate) mod store;
mod writes;
