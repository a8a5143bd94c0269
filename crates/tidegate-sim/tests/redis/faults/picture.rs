//! A picture of a real run, for the guide: what passed on each of four nodes, against what is
//! allowed, through a node that dies and a Redis that stands still.

mod drawing;

use std::path::PathBuf;
use std::time::Duration;

use self::drawing::{BAR, Drawing};
use super::super::server::RedisServer;
use super::fleet::{Fault, Fleet, Shared, now, wait_until};

#[test]
#[ignore = "draws docs/guide/pictures/shared-limit-through-faults.svg: `cargo xtask faults`"]
fn alone_the_picture_of_a_shared_limit_through_faults() {
    let shared = Shared {
        kind: "strict",
        rate: 8_000,
        burst: 1_600,
        offered: 4_000,
    };
    let redis = RedisServer::start();
    let mut fleet = Fleet::start(shared, &redis.url());
    let start = now();
    wait_until(start + 1_000_000);
    let died = now();
    fleet.nodes[3].kill();
    wait_until(died + 4_500_000);
    let replaced = now();
    fleet.start_one_more(&redis.url());
    wait_until(replaced + 1_500_000);
    let away = Fault::of(
        Duration::from_secs(2),
        || redis.signal("-STOP"),
        || redis.signal("-CONT"),
    );
    wait_until(away.end + 1_500_000);
    fleet.kept_its_limit();
    let end = now() - 100_000;

    let seconds = |at: u64| (at - start) as f64 / 1e6;
    let drawing = Drawing {
        nodes: passed_by_bar(&fleet, start, end),
        shared,
        marks: [
            (seconds(died), "a node is killed"),
            (seconds(replaced), "another starts"),
            (seconds(away.begin), "Redis stands still"),
            (seconds(away.end), "it goes on"),
        ],
        away: [seconds(away.begin), seconds(away.end)],
    };
    let folder = std::env::var_os("TIDEGATE_PICTURES").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let path = folder.join("shared-limit-through-faults.svg");
    std::fs::write(&path, drawing.svg()).unwrap();
    println!("drawn: {}", path.display());
    for (what, from, to) in [
        ("before", start, died),
        ("3 s after the crash", died, died + 3_000_000),
        ("after that", died + 3_000_000, replaced),
        ("without Redis", away.begin, away.end),
        ("the second after", away.end, away.end + 1_000_000),
    ] {
        let seconds = (to - from) as f64 / 1e6;
        let used = 100.0 * fleet.passed(from, to) as f64 / (shared.rate as f64 * seconds);
        let calls = fleet.calls(from, to) as f64 / seconds;
        println!("{what}: {used:.1} % of the rate passed, {calls:.0} calls of Redis a second");
    }
    println!(
        "most beyond burst + rate * t: {}",
        fleet.overshoot(0, u64::MAX)
    );
}

/// What passed on each of four nodes; the fifth process takes the place of the fourth.
fn passed_by_bar(fleet: &Fleet, start: u64, end: u64) -> Vec<Vec<u64>> {
    let bars = ((end - start) / BAR) as usize;
    let mut nodes = vec![vec![0; bars]; 4];
    for (number, node) in fleet.nodes.iter().enumerate() {
        for (_, at) in node.record().passed {
            let bar = at.checked_sub(start).map(|since| (since / BAR) as usize);
            if let Some(passed) = bar.and_then(|bar| nodes[number.min(3)].get_mut(bar)) {
                *passed += 1;
            }
        }
    }
    nodes
}
