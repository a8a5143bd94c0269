//! Exact mode: the script on a real Redis, beside a model of it and beside the local engine.

mod limiter;
mod store;
