//! Broken scripts, each of which the comparison with the model has to notice.

use proptest::test_runner::Config;
use tidegate_redis::exact::EXACT;

use super::parity::differs;
use super::store::Store;

/// What stands in the script, what stands there in a broken one, and what is wrong with that.
const MUTANTS: &[(&str, &str, &str)] = &[
    (
        "ceil(times(s.before, left) / s.a)",
        "0",
        "the counter ignores the window before",
    ),
    (
        "s.used = used - passed * s.a end",
        "s.used = used - passed * s.a - 1 end",
        "a refill is a unit too much",
    ),
    (
        "redis.call('LTRIM', s.key, s.gone, -1)",
        "redis.call('LTRIM', s.key, 1, -1)",
        "a log is not cut where it has left",
    ),
    (
        "string.format",
        "function(_, number) return tostring(number) end",
        "large numbers are written as floats",
    ),
    (
        "if passed < 0 then s.stepped, passed = true, 0 end",
        "",
        "time that goes back takes permits",
    ),
    (
        "if passed < 0 then s.stepped, passed = true, 0 end",
        "if passed < 0 then passed = 0 end",
        "a bucket stands still after a step back",
    ),
    (
        "if passed >= ceil(used / s.a) then s.used = 0 else",
        "do",
        "a bucket fills up beyond its burst",
    ),
    (
        "if wait <= patience then return 0, wait end\nreturn wait - patience, 0",
        "if wait <= 0 then return 0, wait end\nreturn wait, 0",
        "a bucket lets nobody wait",
    ),
    (
        "local owed = ceil(max(0, s.used - capacity) / s.a)",
        "local owed = floor(max(0, s.used - capacity) / s.a)",
        "who pays later waits too little",
    ),
    (
        "local too_far = ceil(max(0, s.used + cost * s.b - capacity - s.y) / s.a)",
        "local too_far = 0",
        "debt is not bounded",
    ),
    (
        "s.since = since + periods * s.b end",
        "s.since = s.now end",
        "a started period is lost",
    ),
    (
        "(s.y == 0 or since - s.now > s.b)",
        "true",
        "an aligned period begins twice after a small step back",
    ),
    (
        "if start - s.now > s.a then",
        "if start > s.now then",
        "a window begins twice after a small step back",
    ),
    (
        "if s.now >= start + s.a then",
        "if s.now > start + s.a then",
        "a window ends a tick late",
    ),
    (
        "s.now - (s.now + s.y) % s.a",
        "s.now - s.now % s.a",
        "weeks begin on a Thursday",
    ),
    (
        "if index > current + 1 then",
        "if index > current then",
        "a counter's window begins twice after a small step back",
    ),
    (
        "if mark ~= s.start or s.count == 0",
        "if s.count == 0",
        "permits of an earlier window come back in this one",
    ),
    (
        "return floor(tick / s.a) * s.b + floor(tick % s.a * s.b / s.a)",
        "return floor(tick * s.b / s.a)",
        "parts are counted in products that are not exact",
    ),
    (
        "part(s, at) + s.b + 1",
        "part(s, at) + s.b",
        "a window of parts is a part too short",
    ),
    (
        "leaves(s, at) > s.at end) - 1",
        "leaves(s, at) >= s.at end) - 1",
        "an admission leaves a microsecond late",
    ),
    (
        "s.at = max(us, s.last)",
        "s.at = us",
        "a log goes back with the clock",
    ),
    (
        "total = tonumber(numbers[2]) - permits",
        "total = tonumber(numbers[2])",
        "a log gives nothing back",
    ),
    (
        "if granted > 0 and cost > 0 then",
        "if cost > 0 then granted = max(1, granted)",
        "a refused request is charged",
    ),
    (
        "granted = min(granted, floor(kind.free(s) / cost))",
        "granted = floor(kind.free(s) / cost)",
        "the last limit decides alone",
    ),
    (
        "if retry ~= 0 then granted = 0 end",
        "granted = retry == 0 and 1 or 0",
        "the last limit decides alone about a single request",
    ),
    (
        "if not kind.forced(s, cost) then granted = 0 end",
        "",
        "a forced ask takes what no state holds",
    ),
    (
        "if what == 'check' then\nfor i",
        "do\nfor i",
        "a peek takes",
    ),
    (
        "if s.is_taken or s.stepped or",
        "if s.is_taken or",
        "a step back is forgotten with a refusal",
    ),
    (
        "(s.is_new and s.is_told and s.first > 0)",
        "false",
        "a new key that is refused never begins to fill",
    ),
    (
        "if s.is_taken or s.stepped or (s.is_new and s.is_told and s.first > 0) then",
        "do",
        "a refusal writes",
    ),
    (
        "if string.sub(stored, 1, #s.numbers_of) == s.numbers_of then",
        "do",
        "other numbers are taken for these",
    ),
    (
        "if of ~= s.b and rest > 0 then rest = ceil(rest / of * s.b) end",
        "rest = 0",
        "a part of a permit is lost when numbers change",
    ),
    (
        "if s.first > 0 then ms = ms + KEPT_MS end",
        "",
        "a full bucket becomes a new one soon",
    ),
    (
        "local ms = ceil(times(reset, s.tick) / 1000) + GRACE_MS",
        "local ms = 86400000 + GRACE_MS",
        "all is kept for a day",
    ),
    (
        "redis.call('PEXPIRE', s.key,",
        "string.len(s.key,",
        "a log is kept for ever",
    ),
];

#[test]
fn the_comparison_notices_each_broken_script() {
    let config = || Config {
        cases: 2_000,
        failure_persistence: None,
        // It has only to be found.
        max_shrink_iters: 0,
        ..Config::default()
    };
    // Lua does not care how lines are indented.
    let lines: Vec<_> = EXACT.text.lines().map(str::trim_start).collect();
    let script = lines.join("\n");
    let mut missed = Vec::new();
    for (from, to, what) in MUTANTS {
        assert_eq!(
            script.matches(from).count(),
            1,
            "`{from}` stands in the script once"
        );
        let broken = script.replace(from, to);
        let Err(why) = differs(&Store::with_script(&broken), config()) else {
            missed.push(*what);
            continue;
        };
        // A script that Lua refuses, or that stumbles, would be no fault of the kind that is meant.
        assert!(!why.contains("user_script"), "{what}: {why}");
    }
    assert!(missed.is_empty(), "not noticed: {missed:#?}");
}
