//! Benchmarks: rival, floor and tidegate side by side.

fn main() {}
