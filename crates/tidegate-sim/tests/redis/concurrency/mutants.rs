//! Scripts that are wrong in one place, and the tests that notice.

use tidegate_redis::Script;
use tidegate_redis::concurrency::{DOUBLE_WINDOW, NODE_SHARE, SLOTS};

use super::parity::{Timed, compare};
use crate::server::RedisServer;

/// What is wrong, the right text, and the wrong one.
type Mutant = (&'static Script, &'static str, &'static str, &'static str);

const MUTANTS: &[Mutant] = &[
    (
        &SLOTS,
        "limit off by one",
        "inside + missing <= limit",
        "inside + missing <= limit + 1",
    ),
    (
        &SLOTS,
        "a renewal after a loss takes no room",
        "inside + missing, 1",
        "inside, 1",
    ),
    (
        &SLOTS,
        "who was asked to leave stays",
        "not leaving and",
        "true and",
    ),
    (
        &SLOTS,
        "places never expire",
        "'-inf', text(2 * now + 1)",
        "'-inf', '0'",
    ),
    (
        &SLOTS,
        "the key stays for ever",
        "redis.call('PEXPIRE', key,",
        "tostring(",
    ),
    (
        &NODE_SHARE,
        "ignores others' shares",
        "math.max(0, limit - others)",
        "limit",
    ),
    (
        &NODE_SHARE,
        "Redis shrinks a share on its own",
        "math.max(keep, math.min(free, target))",
        "math.min(free, target)",
    ),
    (
        &NODE_SHARE,
        "late calls count",
        "if known and seq < known then",
        "if false then",
    ),
    (
        &NODE_SHARE,
        "shares never expire",
        "elseif expiry <= now then",
        "elseif false then",
    ),
    (
        &NODE_SHARE,
        "a step back of the clock keeps the dead",
        "if expiry > now + ttl then",
        "if false then",
    ),
    (
        &NODE_SHARE,
        "the key stays for ever",
        "redis.call('PEXPIRE', key,",
        "tostring(",
    ),
    (
        &DOUBLE_WINDOW,
        "counts only the current window",
        "current + previous + places <= limit",
        "current + places <= limit",
    ),
    (
        &DOUBLE_WINDOW,
        "moving loses the request",
        "    current = current + places\n  end",
        "    current = current\n  end",
    ),
    (
        &DOUBLE_WINDOW,
        "the end is counted in the current window",
        "previous = math.max(0, previous - places)\n  end\n  changed",
        "current = current - places\n  end\n  changed",
    ),
    (
        &DOUBLE_WINDOW,
        "a window comes twice when the clock steps back",
        "window = math.max(window, number)",
        "window = window",
    ),
    (
        &DOUBLE_WINDOW,
        "the key stays for ever",
        "redis.call('PEXPIRE', key,",
        "tostring(",
    ),
];

#[test]
fn each_wrong_script_is_noticed() {
    let server = RedisServer::start();
    for (script, what, right, wrong) in MUTANTS {
        assert!(script.text.contains(right), "{}: {what}", script.name);
        let text = script.text.replacen(right, wrong, 1);
        assert!(
            compare(&server, script, &text).is_err(),
            "{}: {what}",
            script.name
        );
    }
}

/// Not only by comparison with the model, which might have the same fault: a node that holds all,
/// and has not heard the answer, is asked to shrink, and not made to.
#[test]
fn redis_does_not_shrink_a_share_that_may_be_in_use() {
    let server = RedisServer::start();
    let right = "math.max(keep, math.min(free, target))";
    let shrinks = NODE_SHARE.text.replace(right, "math.min(free, target)");
    for (text, is_right) in [(NODE_SHARE.text, true), (&*shrinks, false)] {
        let mut redis = Timed::new(&server, text);
        let key = if is_right { "right" } else { "wrong" };
        let mut call = |args: &str| {
            let args: Vec<String> = args.split(' ').map(str::to_owned).collect();
            redis.call(1_790_000_000_000_000, key, &args)
        };
        assert_eq!(call("a 1 0 0 4 4 1000000")[0], 4);
        assert_eq!(call("b 1 0 0 4 4 1000000")[0], 0);
        // It uses 1, and may begin 3 more until it hears the answer.
        let answer = call("a 2 1 4 4 4 1000000");
        assert_eq!(
            (answer[0] == 4, answer[1] < 4),
            (is_right, true),
            "{answer:?}"
        );
    }
}
