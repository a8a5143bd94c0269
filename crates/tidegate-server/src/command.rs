//! The commands, one file each.

pub(crate) mod load;
pub(crate) mod policy;
pub(crate) mod serve;
pub(crate) mod simulate;
