//! Limits that several machines share through one Redis.

mod call;
mod leased;

pub use self::call::{Answer, Script, ScriptCall, Scripts, Unavailable};
pub use self::leased::{
    Checked, LEASE, LEASE_BUDGET, LeaseError, LeaseNode, LeaseReply, LeaseRequest, LeaseState,
    LeaseTerms, NodeId, Scheme, SpendReply, SpendRequest,
};
