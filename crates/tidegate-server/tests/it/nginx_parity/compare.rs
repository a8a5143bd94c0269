//! What both sides made of one schedule, compared.

use std::fmt::Write;
use std::time::Duration;

use super::Case;
use super::client::{Answer, LATE};
use super::sides::Counted;

/// So far may the waits of the two sides be apart.
const WITHIN: Duration = Duration::from_millis(15);

/// What one attempt has shown.
pub(crate) enum Judgement {
    Same,
    /// In these groups (all, where it is the counts), with a table of both sides.
    Different(Vec<usize>, String),
    /// They differ, and requests were late: nothing can be said.
    Late(String),
}

/// When a request is sent (microseconds since the start), its client and its group.
pub(crate) type Request = (u64, usize, usize);

pub(crate) fn judge(
    case: &Case,
    requests: &[Request],
    answers: &[[Answer; 2]],
    counted: &Counted,
) -> Judgement {
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
    let mut different: Vec<_> = groups.clone().filter(differs).collect();
    if case.place.dry_run && !counted.agrees_with(answers) {
        different = groups.collect();
    }
    if different.is_empty() {
        return Judgement::Same;
    }
    let table = table(case, requests, answers, counted);
    if answers.iter().flatten().any(|answer| answer.late > LATE) {
        Judgement::Late(table)
    } else {
        Judgement::Different(different, table)
    }
}

/// What became of a request, as its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    Answered(Duration),
    Refused(Duration),
}

impl Wait {
    fn of(answer: &Answer) -> Self {
        match answer.status {
            200 => Self::Answered(answer.took),
            429 | 503 => Self::Refused(answer.took),
            other => panic!("status {other}"),
        }
    }

    fn is_like(self, other: Self) -> bool {
        match (self, other) {
            (Self::Answered(a), Self::Answered(b)) | (Self::Refused(a), Self::Refused(b)) => {
                a.abs_diff(b) <= WITHIN
            }
            _ => false,
        }
    }
}

fn table(case: &Case, requests: &[Request], answers: &[[Answer; 2]], counted: &Counted) -> String {
    let mut table = String::new();
    let place = &case.place;
    for zone in &place.zones {
        let (rate, words) = (zone.nginx_rate(), zone.nginx_words());
        write!(table, "rate={rate}{words}; ").unwrap();
    }
    writeln!(table, "dry run: {}", place.dry_run).unwrap();
    writeln!(
        table,
        "   at ms  client |  late  nginx      ms                    |  late  gateway    ms"
    )
    .unwrap();
    for ((micros, client, _), [nginx, ours]) in requests.iter().zip(answers) {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        writeln!(
            table,
            "{:8.1}  {client:6} | {:5.1}  {:5}  {:6.1}  {:21} | {:5.1}  {:7}  {:6.1}",
            *micros as f64 / 1e3,
            millis(nginx.late),
            nginx.status,
            millis(nginx.took),
            nginx.limit_status,
            millis(ours.late),
            ours.status,
            millis(ours.took),
        )
        .unwrap();
    }
    if place.dry_run {
        writeln!(table, "the gateway's {counted:?}").unwrap();
    }
    table
}
