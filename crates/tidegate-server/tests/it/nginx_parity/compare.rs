//! What both sides made of one schedule, compared.

use std::fmt::Write;
use std::time::Duration;

use super::rounds::Case;
use crate::client::{Answer, LATE, Said};

/// So far may the waits of the two sides be apart.
const WITHIN: Duration = Duration::from_millis(15);

/// What one attempt has shown.
pub(crate) enum Judgement {
    Same,
    /// In these groups, with a table of both sides.
    Different(Vec<usize>, String),
    /// They differ, and requests were late: nothing can be said.
    Late(String),
}

/// When a request is sent (microseconds since the start), its client and its group.
pub(crate) type Request = (i64, i64, usize);

pub(crate) fn judge(case: &Case, requests: &[Request], answers: &[[Answer; 2]]) -> Judgement {
    let differs = |group: &usize| {
        let of_group = requests.iter().zip(answers);
        let of_group = of_group.filter(|((_, _, at), _)| at == group);
        let both: Vec<_> = of_group.map(|(_, both)| both).collect();
        let waits = [0, 1].map(|side| {
            let mut waits: Vec<_> = both.iter().map(|both| Wait::of(&both[side])).collect();
            waits.sort_unstable();
            waits
        });
        let mut pairs = waits[0].iter().zip(&waits[1]);
        !pairs.all(|(nginx, ours)| nginx.is_like(*ours))
    };
    let groups = 0..case.groups.len();
    let different: Vec<_> = groups.filter(differs).collect();
    if different.is_empty() {
        return Judgement::Same;
    }
    let table = table(case, requests, answers);
    if answers.iter().flatten().any(|answer| answer.late > LATE) {
        Judgement::Late(table)
    } else {
        Judgement::Different(different, table)
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    said: Option<Said>,
    status: u16,
    took: Duration,
}

impl Wait {
    fn of(answer: &Answer) -> Self {
        assert!([200, 429, 503].contains(&answer.status), "{answer:?}");
        Self {
            said: answer.said,
            status: answer.status,
            took: answer.took,
        }
    }

    fn is_like(self, other: Self) -> bool {
        let what = |wait: Self| (wait.said, wait.status);
        what(self) == what(other) && self.took.abs_diff(other.took) <= WITHIN
    }
}

fn table(case: &Case, requests: &[Request], answers: &[[Answer; 2]]) -> String {
    let mut table = String::new();
    writeln!(table, "{}", case.title).unwrap();
    writeln!(
        table,
        "   at ms  client |  late  nginx      ms            |  late  gateway    ms"
    )
    .unwrap();
    for ((micros, client, _), [nginx, ours]) in requests.iter().zip(answers) {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        writeln!(
            table,
            "{:8.1}  {client:6} | {:5.1}  {:5}  {:6.1}  {:8} | {:5.1}  {:7}  {:6.1}  {}",
            *micros as f64 / 1e3,
            millis(nginx.late),
            nginx.status,
            millis(nginx.took),
            word(nginx.said),
            millis(ours.late),
            ours.status,
            millis(ours.took),
            word(ours.said),
        )
        .unwrap();
    }
    table
}

fn word(said: Option<Said>) -> String {
    said.map_or_else(String::new, |said| format!("{said:?}"))
}
