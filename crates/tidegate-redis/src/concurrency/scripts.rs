//! The scripts of the three schemes. Each has its own kind of key, so that a limit may change its
//! scheme.

use crate::Script;

/// One node's share of a limit.
pub static NODE_SHARE: Script = Script {
    name: "concurrency_node_share",
    text: include_str!("node_share.lua"),
};

/// Places with a deadline each.
pub static SLOTS: Script = Script {
    name: "concurrency_slots",
    text: include_str!("slots.lua"),
};

/// Who holds such places.
pub static SLOTS_LIST: Script = Script {
    name: "concurrency_slots_list",
    text: include_str!("slots_list.lua"),
};

/// Asks a holder of such places to leave.
pub static SLOTS_KILL: Script = Script {
    name: "concurrency_slots_kill",
    text: include_str!("slots_kill.lua"),
};

/// Counts in two windows.
pub static DOUBLE_WINDOW: Script = Script {
    name: "concurrency_double_window",
    text: include_str!("double_window.lua"),
};
