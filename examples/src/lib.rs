//! Examples of the tidegate library, and the guide.
//!
//! Each file in `src/bin` is a program of its own: `cargo run -p tidegate-examples --bin one_key`.
//! `policies` has policy files, `traces` what `tidegate simulate` can be tried on.
//!
//! The modules here are the guide in `docs/`, so that rustdoc compiles and runs its Rust blocks;
//! what else it shows is run by `tests/it/docs.rs`.

#[doc = include_str!("../../docs/guide/quota-and-burst.md")]
pub mod quota_and_burst {}

#[doc = include_str!("../../docs/guide/choosing-an-algorithm.md")]
pub mod choosing_an_algorithm {}

#[doc = include_str!("../../docs/guide/keys.md")]
pub mod keys {}

#[doc = include_str!("../../docs/guide/several-limits.md")]
pub mod several_limits {}

#[doc = include_str!("../../docs/guide/why-did-more-than-n-pass.md")]
pub mod why_did_more_than_n_pass {}

#[doc = include_str!("../../docs/guide/simulate.md")]
pub mod simulate {}

#[doc = include_str!("../../docs/guide/library.md")]
pub mod library {}

#[doc = include_str!("../../README.md")]
pub mod readme {}
