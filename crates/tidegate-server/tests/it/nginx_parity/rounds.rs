//! Cases in which both are sent the same requests at the same times, tried until they can be
//! judged.
//!
//! Times on a busy machine are never quite those that were meant. So schedules stay away from
//! where a few milliseconds decide; a difference in an attempt in which requests were sent (or, as
//! far as nginx tells, received) late is none, but a reason to try again, under new keys; and any
//! other has to come out twice at the same place. Requests of one client that are sent at about
//! the same time may overtake each other: they are compared in the order of what became of them.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;

use super::compare::{Judgement, judge};
use super::schedule::Group;
use crate::client::{Sent, play};

/// Attempts at one case.
const ATTEMPTS: u8 = 5;
/// Cases begin so far apart, so that their bursts do not meet.
const APART: Duration = Duration::from_millis(60);
/// Before the second attempt; before each other so much more.
const PAUSE: Duration = Duration::from_millis(300);

/// Who is asked what, and when.
pub(crate) struct Case {
    /// What is limited how.
    pub(crate) title: String,
    /// nginx, and the gateway.
    pub(crate) sides: [SocketAddr; 2],
    pub(crate) groups: Vec<Group>,
    /// What a client sends in an attempt: in each it is another to the limits.
    pub(crate) request: Box<dyn Fn(i64, u8) -> Sent + Send + Sync>,
}

/// What came of one case.
enum Outcome {
    Same,
    Different(String),
    /// Its requests were late each time (or never twice the same came out).
    NotJudged(String),
}

async fn attempt(case: &Case, number: u8) -> Judgement {
    let requests = case.groups.iter().enumerate().flat_map(|(at, group)| {
        let micros = group.micros();
        micros.map(move |micros| (micros, group.client, at))
    });
    let requests: Vec<_> = requests.collect();
    let micros: Vec<_> = requests.iter().map(|(micros, ..)| *micros).collect();
    let request = |at: usize| (case.request)(requests[at].1, number);
    judge(case, &requests, &play(case.sides, &micros, request).await)
}

async fn play_case(case: &Case) -> Outcome {
    let mut before: Vec<(Vec<usize>, String)> = Vec::new();
    let mut late = String::new();
    for number in 0..ATTEMPTS {
        tokio::time::sleep(PAUSE * number.into()).await;
        match attempt(case, number).await {
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
pub(crate) async fn play_all(cases: Vec<Case>) {
    let all = cases.len();
    let mut playing = JoinSet::new();
    for (at, case) in cases.into_iter().enumerate() {
        playing.spawn(async move {
            tokio::time::sleep(APART * at as u32).await;
            play_case(&case).await
        });
    }
    let outcomes = playing.join_all().await;
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
