//! Limits that several machines share through one Redis.

mod call;
mod leased;

pub use self::call::{Answer, Script, ScriptCall, Scripts, Unavailable};
pub use self::leased::{
    LEASE, LeaseError, LeaseReply, LeaseRequest, LeaseTerms, NodeId, Scheme, SpendReply,
    SpendRequest,
};
