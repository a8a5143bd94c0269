//! The binary, as people and scripts use it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod access_log;
mod admission;
mod asking;
mod bandwidth;
mod client;
mod command_line;
mod golden;
mod hand_over;
mod held;
mod limit_rate;
mod nginx_parity;
mod problems;
mod reload;
mod restart;
mod running;
mod sharing;
mod sharing_faults;
mod sharing_windows;
mod soak;
mod streaming;
mod wire_cases;
