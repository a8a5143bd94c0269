//! What is shown to people does what it says: the documentation, the examples, the policies.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod answer;
mod docs;
mod examples;
mod links;
mod page;
mod policies;
