//! A real nginx and a real gateway, told the same limits and sent the same requests at the same
//! times: what is let through, what is refused, and how long each waits.
//!
//! Times on a busy machine are never quite those that were meant. So schedules stay away from
//! where a few milliseconds decide; a difference in an attempt in which requests were sent (or, as
//! far as nginx tells, received) late is none, but a reason to try again, under new keys; and any
//! other has to come out twice at the same place. Requests of one client that are sent at about
//! the same time may overtake each other: they are compared in the order of what became of them.

mod client;
mod compare;
mod schedule;
mod sides;
mod zone;

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::JoinSet;

use client::play;
use compare::{Judgement, judge};
use schedule::{Group, schedule};
use sides::{Place, Sides};
use zone::{Delay, Zone};

/// Attempts at one case.
const ATTEMPTS: usize = 5;
/// Cases begin so far apart, so that their bursts do not meet.
const APART: Duration = Duration::from_millis(60);

/// Before the second attempt; before each other so much more.
const PAUSE: Duration = Duration::from_millis(300);

/// A place, and when it is asked.
struct Case {
    place: Place,
    groups: Vec<Group>,
}

/// What came of one case.
enum Outcome {
    Same,
    Different(String),
    /// Its requests were late each time (or never twice the same came out).
    NotJudged(String),
}

/// rate x burst x delay x dry run x one or two zones.
fn matrix() -> Vec<Case> {
    let second = [
        Zone {
            rate: (5, false),
            burst: 7,
            delay: Delay::None,
        },
        Zone {
            rate: (300, true),
            burst: 9,
            delay: Delay::Beyond(4),
        },
    ];
    let mut cases = Vec::new();
    for rate in [(2, false), (10, false), (100, true)] {
        for burst in [0, 4, 8] {
            for delay in [Delay::All, Delay::Beyond(2), Delay::None] {
                for clients in [1, 2] {
                    for dry_run in [false, true] {
                        let at = cases.len();
                        let mut of_place = vec![Zone { rate, burst, delay }];
                        of_place.extend((clients == 2).then(|| second[at / 4 % 2]));
                        let place = Place {
                            name: format!("c{at}"),
                            zones: of_place,
                            dry_run,
                        };
                        let groups = schedule(&place.zones, clients, at as u64);
                        cases.push(Case { place, groups });
                    }
                }
            }
        }
    }
    cases
}

/// 7 a minute are cut to 116 thousandths a second: the second waits 8.620 s, not 8.571.
fn cut_rate() -> Case {
    let zone = Zone {
        rate: (7, true),
        burst: 1,
        delay: Delay::All,
    };
    let three_at_once = Group {
        millis: 0,
        client: 0,
        count: 3,
    };
    Case {
        place: Place {
            name: "cut".to_owned(),
            zones: vec![zone],
            dry_run: false,
        },
        groups: vec![three_at_once],
    }
}

async fn attempt(case: &Case, sides: [SocketAddr; 2], number: usize) -> Judgement {
    let requests = case.groups.iter().enumerate().flat_map(|(at, group)| {
        let micros = group.micros();
        micros.map(move |micros| (micros, group.client, at))
    });
    let requests: Vec<_> = requests.collect();
    let micros: Vec<_> = requests.iter().map(|(micros, ..)| *micros).collect();
    let name = &case.place.name;
    let head = |at: usize| {
        let (_, client, _) = requests[at];
        format!(
            "GET /{name} HTTP/1.1\r\nhost: a\r\nclient: {client}-{number}\r\n\
             group: {number}\r\nx-tidegate-debug: 1\r\n\r\n"
        )
    };
    judge(case, &requests, &play(sides, &micros, head).await)
}

async fn play_case(case: &Case, sides: [SocketAddr; 2]) -> Outcome {
    let mut before: Vec<(Vec<usize>, String)> = Vec::new();
    let mut late = String::new();
    for number in 0..ATTEMPTS {
        tokio::time::sleep(PAUSE * number as u32).await;
        match attempt(case, sides, number).await {
            Judgement::Same => return Outcome::Same,
            Judgement::Late(table) => late = table,
            Judgement::Different(groups, table) => {
                let is_again =
                    |(others, _): &&(Vec<usize>, _)| groups.iter().any(|at| others.contains(at));
                if let Some((_, first)) = before.iter().find(is_again) {
                    return Outcome::Different(format!("{first}and again\n{table}"));
                }
                before.push((groups, table));
            }
        }
    }
    before.extend((!late.is_empty()).then_some((Vec::new(), late)));
    let (_, table) = before.pop().expect("an attempt");
    Outcome::NotJudged(table)
}

/// Plays all cases, side by side.
fn play_all(cases: Vec<Case>) {
    let sides = Sides::start(cases.iter().map(|case| &case.place));
    let addresses = sides.addresses();
    let all = cases.len();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let outcomes = runtime.block_on(async {
        let mut playing = JoinSet::new();
        for (at, case) in cases.into_iter().enumerate() {
            playing.spawn(async move {
                tokio::time::sleep(APART * at as u32).await;
                play_case(&case, addresses).await
            });
        }
        playing.join_all().await
    });
    let (mut differences, mut not_judged) = (String::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Outcome::Same => {}
            Outcome::Different(table) => writeln!(differences, "{table}").unwrap(),
            Outcome::NotJudged(table) => not_judged.push(table),
        }
    }
    assert!(differences.is_empty(), "{differences}");
    let count = not_judged.len();
    let tables = not_judged.concat();
    assert!(count * 10 <= all, "{count} of {all} not judged:\n{tables}");
}

// shows: A1, A6, A9, B4 (nginx), D3 (limit_req)
#[test]
fn alone_nginx_and_the_gateway_let_through_refuse_and_delay_alike() {
    let mut cases = matrix();
    cases.insert(0, cut_rate());
    play_all(cases);
}
