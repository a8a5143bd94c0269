//! Concurrency limits that nodes share: the real machines of the nodes, and models of the scripts.

mod counterexamples;
mod random_faults;
mod world;
