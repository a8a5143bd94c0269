//! What a node and the script of leased windows tell each other.
//!
//! The node's calls and Redis's answers are those of a bucket ([`LeaseRequest`], [`LeaseReply`])
//! as far as they go. What a node has of a window is told as one number, from its beginning:
//! whatever was lost or doubled before, Redis has noted that and no other.

use super::terms::LeaseTerms;
use super::wire::{LeaseReply, LeaseRequest, MOST_DEMAND, numbers};
use crate::{Script, ScriptCall, Unavailable};

/// The script of leased fixed windows.
pub static LEASE_WINDOW: Script = Script {
    name: "lease_window",
    text: include_str!("window.lua"),
};

/// What stands for whether a node leaves where nobody does, and a window begins anew.
const RESETS: u64 = 2;

/// As a call of the script; `length` is that of a window, in microseconds.
pub(super) fn call(
    request: &LeaseRequest,
    key: &[u8],
    terms: &LeaseTerms,
    length: u64,
) -> ScriptCall {
    let numbers = [
        request.seq,
        request.window,
        request.taken,
        request.demand.min(MOST_DEMAND),
        request.want,
        u64::from(request.leaves),
        terms.burst,
        length,
        terms.refresh,
        terms.membership_ticks(),
    ];
    script_call(key, &request.node.to_string(), &numbers)
}

/// The call with which a key's window begins anew.
pub(super) fn reset(key: &[u8], terms: &LeaseTerms, length: u64) -> ScriptCall {
    let numbers = [
        1,
        0,
        0,
        0,
        0,
        RESETS,
        terms.burst,
        length,
        terms.refresh,
        terms.membership_ticks(),
    ];
    script_call(key, "reset", &numbers)
}

fn script_call(key: &[u8], node: &str, numbers: &[u64]) -> ScriptCall {
    let mut args = vec![node.as_bytes().to_vec()];
    args.extend(numbers.iter().map(|n| n.to_string().into_bytes()));
    ScriptCall {
        script: &LEASE_WINDOW,
        keys: vec![key.to_vec()],
        args,
    }
}

/// From the script's answer.
pub(super) fn reply(answer: &[i64]) -> Result<LeaseReply, Unavailable> {
    let [
        granted,
        window,
        taken,
        nodes,
        remaining,
        before,
        ends_micros,
    ] = numbers(answer)?;
    Ok(LeaseReply {
        granted,
        // All of it, in the same window.
        kept: u64::MAX,
        share: 0,
        nodes,
        remaining,
        before,
        window,
        taken,
        ends_micros,
    })
}

#[cfg(test)]
mod tests {
    use super::super::wire::NodeId;
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_call_says_everything_in_the_order_of_the_script() {
        let terms = LeaseTerms::window(1_000, Duration::from_secs(1)).unwrap();
        let request = LeaseRequest {
            node: NodeId(255),
            seq: 2,
            ack: 1,
            demand: u64::MAX,
            held: 5,
            returned: 6,
            want: 7,
            minted: 8,
            share: 9,
            leaves: true,
            window: 10,
            taken: 11,
        };
        let call = request.call(b"k", &terms);
        let text: Vec<_> = call
            .args
            .iter()
            .map(|a| String::from_utf8_lossy(a))
            .collect();
        let said = "n00000000000000ff 2 10 11 4294967296 7 1 1000 1000000 100000 3000000";
        assert_eq!(text.join(" "), said);
        assert_eq!(call.keys, vec![b"k".to_vec()]);
        assert_eq!(call.script.name, "lease_window");
    }

    #[test]
    fn answers_say_of_which_window_they_are() {
        let terms = LeaseTerms::window(1_000, Duration::from_secs(1)).unwrap();
        let reply = LeaseReply::of(&terms, &[1, 2, 3, 4, 5, 6, 7]).unwrap();
        assert_eq!((reply.granted, reply.window, reply.taken), (1, 2, 3));
        assert_eq!((reply.nodes, reply.remaining, reply.before), (4, 5, 6));
        assert_eq!(reply.ends_micros, 7);
        assert!(LeaseReply::of(&terms, &[-1, 0, 0, 0, 0, 9, 0]).is_err());
    }
}
