//! Faults of real processes and a real Redis, under load: what passes is held against the limit in
//! every stretch of milliseconds, and how soon the limit is used again is held against a time.
#![expect(clippy::print_stdout, reason = "what is measured is worth to be seen")]

mod exact;
mod fleet;
mod leased;
mod picture;
mod places;
mod proxy;
mod record;
mod redis_away;
mod topologies;
