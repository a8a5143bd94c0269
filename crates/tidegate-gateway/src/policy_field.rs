//! `RateLimit-Policy`, which is the same for most requests: written once, then copied.

use std::cell::RefCell;
use std::ptr;

use http::HeaderValue;
use smallvec::SmallVec;
use tidegate_http::headers;
use tidegate_node::Applied;

/// The fields that were written last, of one version of the policy.
#[derive(Debug, Default)]
pub(crate) struct PolicyFields {
    slots: [RefCell<Option<Written>>; Self::SLOTS],
}

#[derive(Debug)]
struct Written {
    /// Where the numbers of the limits stand; they stay there as long as the version lives.
    of: Addresses,
    field: HeaderValue,
}

type Addresses = SmallVec<[usize; 4]>;

impl PolicyFields {
    /// Sets of limits that are remembered; two that fall together take turns.
    const SLOTS: usize = 16;

    /// The field for these limits.
    pub(crate) fn of(&self, applied: &[Applied<'_>]) -> Option<HeaderValue> {
        let address = |one: &Applied<'_>| ptr::from_ref(one.algorithm).addr();
        let first = address(applied.first()?);
        let mut slot = self.slots[(first >> 4) % Self::SLOTS].borrow_mut();
        if let Some(written) = &*slot
            && written.of.iter().copied().eq(applied.iter().map(address))
        {
            return Some(written.field.clone());
        }
        let limits = applied.iter().map(|one| (one.limit.name(), one.algorithm));
        let field = headers::rate_limit_policy(limits)?;
        let of = applied.iter().map(address).collect();
        *slot = Some(Written {
            of,
            field: field.clone(),
        });
        Some(field)
    }
}
