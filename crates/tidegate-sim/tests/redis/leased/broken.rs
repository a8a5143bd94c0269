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
        "withheld, full - holds * den - outs)\n\nlocal answer",
        "withheld, full - outs)\n\nlocal answer",
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
        "if n.exp <= last and",
        "if n.seen + T <= now and",
    ),
    (
        "an ended lease is counted once more",
        "if n.exp <= last and",
        "if n.exp <= now and",
    ),
    (
        "an ended lease is worth nothing",
        "n.hold, n.changed = 0, true",
        "n.hold, n.changed = n.hold, true",
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
        "withheld, full - holds * den - outs)\n\nlocal",
        "withheld, full - holds * den)\n\nlocal",
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
        "n.share, n.demand, n.changed = 0, 0, true",
        "",
    ),
    (
        "what is lent leaves room to mint",
        "local room = floor((full - num * T)",
        "local room = floor((full)",
    ),
    (
        "demand divides",
        "floor(me.demand * MILLION / (demands + me.demand))",
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
        "last, gap0, gap1 = last - back, gap0 - back",
        "last, gap0, gap1 = last, gap0 - back",
    ),
    (
        "a full bucket makes room to mint",
        "level = min(level + refill - withheld, full - holds * den - outs)",
        "if level < full - holds * den - outs then
           level = min(level + refill - withheld, full - holds * den - outs) end",
    ),
    (
        "a clock set back is noted",
        "and back == 0 and not sweeps then return",
        "and not sweeps then return",
    ),
    (
        "only common silence counts",
        "n.seen <= gap0 and",
        "true and",
    ),
    ("grace ends", "min(to, gap1 + grace)", "to"),
    (
        "what is spent is gone",
        "level = level - g * den\n  local wait",
        "local wait",
    ),
    ("only whole units are spent", "/ unit) * unit", "/ 1) * 1"),
    (
        "who leaves leaves nothing",
        "if leaves then keep = 0\n  elseif",
        "if",
    ),
    (
        "others may mint before it is full",
        "(members > 0 and REMEMBERED * M or 0)",
        "0",
    ),
    ("numbers are written out", "'%.0f:'", "'%.14g:'"),
    // What keeps the sums true, and safe while nobody looks at all nodes.
    (
        "all are looked at twice a refresh",
        "now >= swept + sweep or",
        "false or",
    ),
    (
        "all are looked at when the clock is set back",
        "swept + sweep or back > 0)",
        "swept + sweep)",
    ),
    (
        "where there is nobody there is nothing to look at",
        "local sweeps = members > 0 and",
        "local sweeps = true and",
    ),
    (
        "it is noted when all were looked at",
        "swept, withheld = now, 0",
        "swept, withheld = swept, 0",
    ),
    (
        "what each may mint is kept back once",
        "swept, withheld = now, 0",
        "swept, withheld = now, withheld",
    ),
    (
        "who looks at all adds up anew",
        "members, live, demands, shares, holds, outs, silent = 0, 0, 0, 0, 0, 0, 0\n  local all",
        "local all",
    ),
    (
        "what time did to a node is kept",
        "if n.changed then",
        "if false then",
    ),
    (
        "who is forgotten is gone",
        "redis.call('HDEL', KEYS[1], name)",
        "count(n, 0)",
    ),
    (
        "a member is remembered for a while",
        "n.seen + REMEMBERED * M then",
        "n.seen + M then",
    ),
    (
        "that all were looked at is kept",
        "and not sweeps then return",
        "then return",
    ),
    (
        "who could fall silent counts as silent",
        "if silence(n, now, now + sweep) > 0 then n.since, n.changed = now, true end",
        "",
    ),
    (
        "until the next look at all",
        "silence(n, now, now + sweep)",
        "silence(n, now, now)",
    ),
    (
        "also who comes and has heard nothing for long",
        "if silence(me, now, swept + sweep) > 0 then me.since = now end",
        "",
    ),
    (
        "but not beyond that",
        "silence(me, now, swept + sweep)",
        "silence(me, now, now + M)",
    ),
    (
        "room is made for it at once",
        "count(me, 1)\n    level = min(level, full - holds * den - outs)",
        "count(me, 1)",
    ),
    (
        "what silent nodes may mint is kept back at each call",
        "local withheld = part(num * passed, silent)",
        "local withheld = 0",
    ),
    (
        "and it is what is out",
        "w, n.since, n.changed = w + last - n.since, 0, true",
        "w, n.since, n.changed = w, 0, true",
    ),
    (
        "what is out is so once",
        "w, n.since, n.changed = w + last - n.since, 0, true",
        "w, n.changed = w + last - n.since, true",
    ),
    (
        "what is out is rounded down",
        "n.out - part(-num * w, n.share)",
        "n.out + part(num * w, n.share)",
    ),
    (
        "who calls is brought up to now",
        "catch_up(me, me.since > 0 and passed or 0)",
        "",
    ),
    (
        "with what was kept back since the last call",
        "me.since > 0 and passed or 0",
        "0",
    ),
    (
        "only with what was kept back",
        "me.since > 0 and passed or 0",
        "passed",
    ),
    (
        "a silent node may have saved up a refresh",
        "silent = silent + sign * n.share else most = min(n.out, most) end",
        "silent = silent + sign * n.share end most = min(n.out, most)",
    ),
    (
        "others no more than what was kept back",
        "else most = min(n.out, most) end",
        "end",
    ),
    (
        "shares of silent nodes are added up",
        "silent = silent + sign * n.share",
        "silent = silent",
    ),
    ("what is out is added up", "outs = outs + sign * most", ""),
    ("leases are added up", "holds + sign * n.hold", "holds"),
    ("shares are added up", "shares + sign * n.share", "shares"),
    ("demand is added up", "demands + sign * n.demand", "demands"),
    ("nodes are counted", "members + sign", "members"),
    (
        "nodes that are asked are counted",
        "live = live + sign",
        "live = live",
    ),
    ("who calls is taken out of the sums", "count(me, -1)", ""),
    ("and comes back in", "count(me, 1)\n    level", "level"),
    (
        "silence moves with a clock that is set back",
        "n.since = max(0, n.since - back)",
        "",
    ),
];

/// That no broken script (a rule, what stands in the script, what stands there instead) answers
/// as the model does in all sequences.
pub(super) fn each_is_noticed(
    redis: &mut Scripted,
    whole: &str,
    broken: &[(&str, &str, &str)],
    agrees: impl Fn(&mut Scripted) -> bool,
) {
    let mut unnoticed = Vec::new();
    for &(rule, stands, instead) in broken {
        assert_eq!(
            whole.matches(stands).count(),
            1,
            "{rule}: {stands:?} is not there once"
        );
        redis.becomes(&whole.replace(stands, instead));
        redis.forget_all();
        if agrees(redis) {
            unnoticed.push(rule);
        }
    }
    assert!(unnoticed.is_empty(), "unnoticed: {unnoticed:?}");
}

#[test]
fn each_broken_script_is_noticed() {
    let mut redis = Scripted::new();
    each_is_noticed(&mut redis, &text(), BROKEN, |redis| {
        (0..SEQUENCES).all(|seed| compare(redis, seed).is_ok())
    });
}
