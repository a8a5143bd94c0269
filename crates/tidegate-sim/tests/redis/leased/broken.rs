//! Broken variants of the script, each one a rule left out: the comparison with the model must
//! notice every one of them.

use super::parity::compare;
use super::{Scripted, text};

/// Sequences of calls until a variant counts as unnoticed.
const SEQUENCES: u64 = 200;

/// What is left out, what stands there and what stands there instead.
const BROKEN: &[(&str, &str, &str)] = &[
    (
        "leases keep their room",
        "full - holds * den - out)\n\nlocal answer",
        "full - out)\n\nlocal answer",
    ),
    (
        "calls are counted",
        "if me and seq <= me.seq then",
        "if false then",
    ),
    (
        "shares are at most the whole",
        "MILLION - shares))",
        "MILLION))",
    ),
    (
        "a lease is counted until it ends",
        "if n.exp > last then",
        "if n.seen + T > now then",
    ),
    (
        "an ended lease is counted once more",
        "if n.exp > last then",
        "if n.exp > now then",
    ),
    (
        "an ended lease is worth nothing",
        "else n.hold = 0 end\n",
        "end\n",
    ),
    (
        "no more is held than was granted",
        "min(held, me.hold)",
        "held",
    ),
    (
        "no more comes back than was granted",
        "min(ret, me.hold - kept)",
        "ret",
    ),
    (
        "who is silent may be minting",
        "level + refill - withheld",
        "level + refill",
    ),
    (
        "a long outage is refilled as a whole",
        "M * num + 2 * full",
        "2 * full",
    ),
    (
        "what is out takes room",
        "full - holds * den - out)\n\nlocal",
        "full - holds * den)\n\nlocal",
    ),
    (
        "silence begins with the answer it got",
        "n.heard + G",
        "n.seen + G",
    ),
    (
        "what is kept back is there until it is back",
        "elseif ack == me.seq then",
        "else",
    ),
    (
        "an outage is credited up to a bucket",
        "left = min(left, part(num * T, me.share))\n",
        "",
    ),
    (
        "what was minted is spent",
        "max(0, minted - ",
        "max(0, 0 * minted - ",
    ),
    (
        "what was minted is spent once",
        "(ack == me.ack and me.told or 0)",
        "0",
    ),
    (
        "debt has an end",
        "max(level + left + known, -full)",
        "level + left + known",
    ),
    (
        "what a late call did not tell was kept back all the same",
        "min(-left, me.past)",
        "0",
    ),
    (
        "what was kept back and is known to be unused is gone",
        "me.heard, me.past, beyond = me.seen, 0,",
        "me.heard, beyond = me.seen,",
    ),
    (
        "a share goes down when its owner says so",
        "max(share, min(echo, me.share))",
        "share",
    ),
    ("a share is what was granted", "min(echo, me.share)", "echo"),
    (
        "who has gone has no share",
        "n.share, n.demand, changed[name] = 0, 0, true",
        "",
    ),
    (
        "what is lent leaves room to mint",
        "local room = floor((full - num * T)",
        "local room = floor((full)",
    ),
    (
        "demand divides",
        "floor(me.demand * MILLION / all)",
        "MILLION",
    ),
    (
        "others' next refresh is left to them",
        "ceil(part(num * T, MILLION - weight) / den)",
        "0",
    ),
    (
        "who comes twice gets no more",
        "min(now - me.seen, 2 * T)",
        "2 * T",
    ),
    (
        "a clock set back is no time",
        "n.exp - back, n.seen - back",
        "n.exp, n.seen",
    ),
    (
        "a clock set back stays back",
        "last, gap0, gap1 = now, gap0 - back",
        "last, gap0, gap1 = last, gap0 - back",
    ),
    (
        "a full bucket makes room to mint",
        "level = min(level + refill - withheld, full - holds * den - out)",
        "if level < full - holds * den - out then
           level = min(level + refill - withheld, full - holds * den - out) end",
    ),
    (
        "a clock set back is noted",
        "and back <= 0 then return",
        "then return",
    ),
    (
        "only common silence counts",
        "n.seen <= gap0 and",
        "true and",
    ),
    ("grace ends", "min(upto, gap1 + grace)", "upto"),
    (
        "what is spent is gone",
        "level = level - g * den\n  local live",
        "local live",
    ),
    ("only whole units are spent", "/ unit) * unit", "/ 1) * 1"),
    (
        "who leaves leaves nothing",
        "if leaves then keep = 0\n  elseif",
        "if",
    ),
    (
        "others may mint before it is full",
        "(next(nodes) and REMEMBERED * M or 0)",
        "0",
    ),
    ("numbers are written out", "'%.0f:'", "'%.14g:'"),
];

#[test]
fn each_broken_script_is_noticed() {
    let mut redis = Scripted::new();
    let whole = text();
    let mut unnoticed = Vec::new();
    for &(rule, stands, instead) in BROKEN {
        assert_eq!(
            whole.matches(stands).count(),
            1,
            "{rule}: {stands:?} is not there once"
        );
        redis.becomes(&whole.replace(stands, instead));
        redis.forget_all();
        if (0..SEQUENCES).all(|seed| compare(&mut redis, seed).is_ok()) {
            unnoticed.push(rule);
        }
    }
    assert!(unnoticed.is_empty(), "unnoticed: {unnoticed:?}");
}
