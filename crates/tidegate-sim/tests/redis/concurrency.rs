//! Concurrency limits that nodes share.

mod carrier;
mod handle;
mod mutants;
mod parity;
