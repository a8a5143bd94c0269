//! The cases that must come out, by their numbers.
//!
//! Times are virtual. A policy has only limits, which all requests meet in their order.

mod buckets;
mod concurrency;
mod dialects;
mod keys;
mod queues;
mod several_limits;
mod smooth;
mod windows;

use super::DoorName::{Gateway, Library, Simulate};
use super::script::{ToldRetry, at};
use super::{Case, DoorName};

/// Every door.
const ALL: &[DoorName] = &[Library, Simulate, Gateway];
/// What plain HTTP cannot ask: several permits at once.
const NOT_HTTP: &[DoorName] = &[Library, Simulate];
/// What changes while it runs, by hand.
const SIMULATE: &[DoorName] = &[Simulate];
/// What only a node knows: missing parts.
const NODE: &[DoorName] = &[Simulate, Gateway];

/// The table, by subject.
const SUBJECTS: &[&[Case]] = &[
    windows::CASES,
    buckets::CASES,
    queues::CASES,
    smooth::CASES,
    dialects::CASES,
    concurrency::CASES,
    several_limits::CASES,
    keys::CASES,
];

/// All rows of the table.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    SUBJECTS.iter().copied().flatten()
}

const fn after(millis: u64) -> ToldRetry {
    ToldRetry::AfterNanos(millis * 1_000_000)
}

/// Lines at these times (in ms), with the same fields.
fn each(times: impl IntoIterator<Item = u64>, fields: &str) -> Vec<String> {
    times.into_iter().map(|millis| at(millis, fields)).collect()
}

fn user(name: &str) -> String {
    format!("\"headers\":{{\"user\":\"{name}\"}}")
}
