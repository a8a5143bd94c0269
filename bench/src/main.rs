//! Benchmarks: rival, floor and tidegate side by side, in five paired runs.
//!
//! `cargo xtask bench [WHICH] [FILTER]`; WHICH is engine, algorithms, memory, tails, width,
//! gateway, shared or drift.
//! A row prints the median of each side and the ratio of tidegate to its rival in each pair,
//! lowest, median and highest, and the target. Rows that we lose stay in the table.
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod algorithms;
mod drift;
mod engine;
mod floor;
mod gateway;
mod gateway_limits;
mod gateway_shared;
mod idle;
mod keys;
mod leased;
mod many;
mod memory;
mod pairs;
mod quanta_clock;
mod shared;
mod stopwatch;
mod tails;
mod waiters;
mod width;

use std::process::ExitCode;

const WHICH: &str = "engine, algorithms, memory, tails, width, gateway, shared or drift";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let which = args.next();
    let filter = args.next().unwrap_or_default();
    let result = match which.as_deref() {
        None | Some("all") => {
            engine::run("");
            memory::run();
            tails::run("");
            width::run("")
                .and_then(|()| gateway::run(""))
                .and_then(|()| shared::run(""))
                .and_then(|()| leased::run(""))
        }
        Some("engine") => {
            engine::run(&filter);
            Ok(())
        }
        Some("algorithms") => algorithms::run(&filter),
        Some("memory") => {
            memory::run();
            Ok(())
        }
        // The process of its own in which one store's memory is measured.
        Some("memory-of") => memory::measure(&filter),
        Some("tails") => {
            tails::run(&filter);
            Ok(())
        }
        Some("width") => width::run(&filter),
        // The process of its own in which one side's waiters are measured.
        Some("waiters-of") => waiters::measure(&filter),
        Some("gateway") => gateway::run(&filter),
        Some("shared") => shared::run(&filter).and_then(|()| leased::run(&filter)),
        // One of the processes that share a limit.
        Some("shared-worker") => shared::worker(&filter),
        Some("leased-worker") => leased::worker(&filter),
        Some("drift") => drift::run(),
        Some(other) => Err(format!("no benchmark `{other}`: {WHICH}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("{message}");
            ExitCode::from(2)
        }
    }
}
