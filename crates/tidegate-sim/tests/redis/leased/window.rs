//! The script of leased windows and its model answer the same, whatever they are asked; and broken
//! variants of it, each one a rule left out, are all noticed.

use std::time::Duration;

use tidegate_redis::{LEASE_WINDOW, LeaseRequest, LeaseTerms, NodeId, ScriptCall};
use tidegate_sim::cluster_sim::chance::Chance;
use tidegate_sim::cluster_sim::window::SharedWindow;

use super::broken::each_is_noticed;
use super::calls::Step;
use super::{Scripted, text_of};

/// 2026-09-21, in microseconds.
const START: u64 = 1_790_000_000_000_000;
const SEQUENCES: u64 = 60;
/// Sequences of calls until a variant counts as unnoticed.
const OF_BROKEN: u64 = 200;
const STEPS: usize = 80;
/// The server's clock goes on between the calls of a test.
const SLACK_MILLIS: i128 = 5_000;

fn terms(chance: &mut Chance) -> LeaseTerms {
    let windows = [
        (5_000, Duration::from_millis(250)),
        (64, Duration::from_secs(1)),
        (1_000_003, Duration::from_mins(1)),
        (1 << 40, Duration::from_hours(24)),
    ];
    let (permits, window) = windows[chance.below(4) as usize];
    LeaseTerms::window(permits, window).unwrap()
}

/// A sequence of calls of one key: sequence numbers that go back, claims of what never was, clocks
/// that are set both ways, silence of all lengths. It follows the answers of a model of its own,
/// so that most of what nodes say of a window is of one that there is.
fn sequence(seed: u64) -> Vec<Step> {
    let mut chance = Chance::new(seed);
    let terms = terms(&mut chance);
    let length = terms.window_length().unwrap().as_micros() as u64;
    let key = format!("window-{seed}");
    let mut now = START + chance.below(1_000_000_000);
    let (mut seqs, mut windows, mut taken) = ([0_u64; 6], [0_u64; 6], [0_u64; 6]);
    let mut redis = SharedWindow::default();
    let mut made = Vec::new();
    for _ in 0..STEPS {
        let most = [
            100,
            length / 20,
            length / 2,
            3_100_000,
            31_000_000,
            3 * length,
        ];
        let weighed = [0, 0, 1, 1, 1, 1, 2, 2, 3, 4, 5][chance.below(11) as usize];
        now += chance.below(most[weighed] + 1);
        match chance.below(40) {
            0 => now -= chance.below(length),
            1 => now -= chance.below(4 * length),
            _ => {}
        }
        let who = chance.below(6) as usize;
        seqs[who] = match chance.below(15) {
            0 => seqs[who].saturating_sub(chance.below(3)),
            _ => seqs[who] + 1,
        };
        let returned = chance.rarely(2, taken[who] / 2 + 1);
        let request = LeaseRequest {
            node: NodeId(who as u64),
            seq: seqs[who],
            ack: 0,
            demand: chance.below(1 << [4, 12, 33][seed as usize % 3]),
            held: 0,
            returned,
            want: chance.below(terms.burst() / [2, 10][seed as usize % 2]),
            minted: 0,
            share: 0,
            leaves: chance.below(25) == 0,
            window: windows[who],
            taken: match chance.below(30) {
                0 => chance.below(2 * terms.burst()),
                _ => taken[who].saturating_sub(returned),
            },
        };
        let mut call = request.call(key.as_bytes(), &terms);
        if chance.below(40) == 0 {
            call = reset(call);
        }
        let answer = redis.call(now, &call);
        // Some answers get lost.
        if answer[0] >= 0 && chance.below(5) > 0 {
            (windows[who], taken[who]) = (answer[1].cast_unsigned(), answer[2].cast_unsigned());
        }
        made.push(Step { now, call });
        if chance.below(20) == 0 {
            let again = made[made.len() - 1].call.clone();
            let _ = redis.call(now, &again);
            made.push(Step { now, call: again });
        }
    }
    made
}

/// As `LeasedLimiter::reset` makes it.
fn reset(mut call: ScriptCall) -> ScriptCall {
    for (at, said) in ["reset", "1", "0", "0", "0", "0", "2"].iter().enumerate() {
        call.args[at] = said.as_bytes().to_vec();
    }
    call
}

/// Runs a sequence on both, and says where they part.
fn compare(redis: &mut Scripted, seed: u64) -> Result<(), String> {
    let mut model = SharedWindow::default();
    for (at, Step { now, call }) in sequence(seed).iter().enumerate() {
        let key = String::from_utf8_lossy(&call.keys[0]).into_owned();
        if model.is_forgotten(*now) {
            // The server's own clock does not know that.
            redis.query::<()>(&["DEL", &key]);
        }
        let expected = model.call(*now, call).to_vec();
        let answer = redis
            .try_call(*now, call)
            .map_err(|error| error.to_string())?;
        if answer != expected {
            return Err(format!(
                "seed {seed}, step {at}: {answer:?}, not {expected:?}: {call:?}"
            ));
        }
        let lasts: i128 = redis.query::<i64>(&["PTTL", &key]).into();
        let expected = model.lasts_millis();
        if (lasts - expected).abs() > SLACK_MILLIS {
            return Err(format!(
                "seed {seed}, step {at}: lasts {lasts} ms, not {expected}"
            ));
        }
        let fields: i128 = redis.query::<i64>(&["HLEN", &key]).into();
        if fields != model.fields() {
            return Err(format!(
                "seed {seed}, step {at}: {fields} fields, not {}",
                model.fields()
            ));
        }
    }
    Ok(())
}

// shows: C2 (fixed windows)
#[test]
fn script_and_model_of_windows_answer_the_same() {
    let mut redis = Scripted::of(&LEASE_WINDOW);
    for seed in 0..SEQUENCES {
        compare(&mut redis, seed).unwrap();
    }
}

/// What is left out, what stands there and what stands there instead.
const BROKEN: &[(&str, &str, &str)] = &[
    (
        "calls are counted",
        "if seq <= before then",
        "if false then",
    ),
    (
        "a doubled call is none",
        "if seq <= before then",
        "if seq < before then",
    ),
    ("no name comes twice", "max(begins, name + 1)", "begins"),
    (
        "windows are aligned to the epoch",
        "begins + length, 0\n",
        "now + length, 0\n",
    ),
    (
        "a window begins with nothing taken",
        "begins + length, 0\n",
        "begins + length, given\n",
    ),
    (
        "windows end",
        "if now >= ends then",
        "if now > ends + 1000 then",
    ),
    (
        "a step back of a window stays in it",
        "elseif ends - now > 2 * length",
        "elseif ends - now > length",
    ),
    (
        "a long step back comes to an end",
        "elseif ends - now > 2 * length then ends = begins + length end",
        "end",
    ),
    (
        "what was taken of another window is none of this one (noted)",
        "me.window == name and me.taken or 0",
        "me.taken",
    ),
    (
        "what was taken of another window is none of this one (said)",
        "window == name and min(a[4], permits) or 0",
        "min(a[4], permits)",
    ),
    (
        "nobody says more than there is",
        "min(a[4], permits)",
        "a[4]",
    ),
    ("what a node says counts", "given + has - had", "given"),
    (
        "what was noted is not counted twice",
        "given + has - had",
        "given + has",
    ),
    (
        "what was lost is told again",
        "given + has - had",
        "given + min(0, has - had)",
    ),
    ("what is given is gone", "given = given + g\n", ""),
    (
        "no more than there is",
        "max(0, permits - given)",
        "permits",
    ),
    (
        "demand divides",
        "floor(demand * MILLION / (demand + others))",
        "MILLION",
    ),
    (
        "the last permit is had by somebody",
        "ceil(there % MILLION",
        "floor(there % MILLION",
    ),
    (
        "others' next refresh is left to them",
        "ceil(min(others, 2 ^ 32) * T / MILLION)",
        "0",
    ),
    ("who leaves gets nothing", "(leaves or resets) and 0 or", ""),
    (
        "a reset begins another window",
        "name, given = name + 1, 0 end",
        "given = 0 end",
    ),
    (
        "a reset gives all that there is",
        "name, given = name + 1, 0 end",
        "name = name + 1 end",
    ),
    (
        "who leaves is forgotten",
        "gone[#gone + 1], changed[id] = id, nil else changed[id] = true end",
        "changed[id] = true else changed[id] = true end",
    ),
    (
        "who is silent asks for nothing",
        "and now - n.seen < M then",
        "then",
    ),
    (
        "who is silent is forgotten",
        "now - n.seen >= REMEMBERED * M",
        "false",
    ),
    (
        "a clock set back is no silence",
        "n.seen, changed[other] = now, true",
        "changed[other] = true",
    ),
    ("numbers are written out", "'%.0f:'", "'%.14g:'"),
    (
        "who asked is known in the next window",
        "(ends - now + M) / 1000) + 1000",
        "0) + 1000",
    ),
];

#[test]
fn each_broken_script_of_windows_is_noticed() {
    let mut redis = Scripted::of(&LEASE_WINDOW);
    each_is_noticed(&mut redis, &text_of(&LEASE_WINDOW), BROKEN, |redis| {
        (0..OF_BROKEN).all(|seed| compare(redis, seed).is_ok())
    });
}
