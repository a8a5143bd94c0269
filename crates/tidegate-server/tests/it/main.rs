//! The binary, as people and scripts use it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod access_log;
mod admission;
mod bandwidth;
mod command_line;
mod golden;
mod limit_rate;
mod nginx_parity;
mod problems;
mod reload;
mod running;
mod sharing;
mod sharing_faults;
mod sharing_windows;
mod soak;
mod streaming;
