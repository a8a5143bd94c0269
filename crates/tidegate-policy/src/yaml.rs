//! YAML, as a tree in which everything knows its place.
//!
//! Reading is done in two steps so that one mistake does not hide the next: first the text
//! becomes a [`Node`] tree, which only fails where it is no YAML; then [`Reader`] gives the tree
//! to serde types and reports everything in it that does not fit.

mod node;
mod reader;

pub(crate) use self::node::parse;
pub(crate) use self::reader::{FIELD_MARKER, LIST_MARKER, SHORT_MARKER, read};
