//! A limit that is borrowed, or shared.

use core::ops::Deref;
use std::sync::Arc;

use super::Enforce;

/// A limit to ask: borrowed from whoever holds it, or, where its numbers may be replaced
/// meanwhile, shared with them.
#[derive(Clone, Debug)]
pub(crate) enum LimitRef<'a> {
    Borrowed(&'a dyn Enforce),
    Shared(Arc<dyn Enforce>),
}

impl<'a> Deref for LimitRef<'a> {
    type Target = dyn Enforce + 'a;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Borrowed(limit) => *limit,
            Self::Shared(limit) => &**limit,
        }
    }
}
