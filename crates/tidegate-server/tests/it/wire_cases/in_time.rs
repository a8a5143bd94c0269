//! The cases in which times are told: who is let through when.

use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::{WITHIN, serve};
use crate::client::{Answer, LATE, Sent, play};

/// Attempts at one case, under a key of its own each.
const ATTEMPTS: usize = 5;

/// When a request is sent, and when it is answered, in milliseconds since the first is sent;
/// `None` is refused at once.
type Row = (i64, Option<i64>);

struct Case {
    path: &'static str,
    limit: &'static str,
    /// Those that are sent within 2 ms after each other may change places.
    rows: Vec<Row>,
}

/// All are sent within 10 ms; so many are answered at these times, the others are refused.
fn burst(count: i64, answered: &[i64]) -> Vec<Row> {
    let answered = answered.iter().copied().map(Some);
    let all = answered.chain(std::iter::repeat(None));
    (0..count).zip(all).collect()
}

/// Answered at once, and refused.
const fn passes(at: i64) -> Row {
    (at, Some(at))
}

const fn refused(at: i64) -> Row {
    (at, None)
}

fn cases() -> Vec<Case> {
    let case = |path, limit, first: Vec<Row>, then: &[Row]| Case {
        path,
        limit,
        rows: [&first, then].concat(),
    };
    vec![
        case(
            "case-3",
            "algorithm: nginx, rate: 2/s",
            burst(6, &[0]),
            &[refused(480), passes(520), refused(990)],
        ),
        case(
            "case-4",
            "algorithm: nginx, rate: 2/s, burst: 5",
            burst(6, &[0, 500, 1_000, 1_500, 2_000]),
            &[],
        ),
        case(
            "case-5",
            "algorithm: nginx, rate: 2/s, burst: 5, nodelay: true",
            burst(6, &[0, 0, 0, 0, 0]),
            &[refused(480), passes(520), refused(980), passes(1_020)],
        ),
        case(
            "case-16-one",
            "rate: 10/min, burst: 1",
            burst(2, &[0]),
            &[
                refused(5_980),
                passes(6_020),
                refused(12_000),
                passes(12_040),
            ],
        ),
        case(
            "case-16-three",
            "rate: 1/s, burst: 3",
            burst(4, &[0, 0, 0]),
            &[
                refused(980),
                passes(1_020),
                refused(1_060),
                refused(1_980),
                passes(2_020),
                passes(3_020),
            ],
        ),
        // In order: so far apart that none overtakes another.
        case(
            "case-18",
            "rate: 2/s, burst: 1, on_limit: { queue: { length: 10 } }",
            (0..15)
                .map(|at| (10 * at, (at <= 10).then_some(500 * at)))
                .collect(),
            &[],
        ),
    ]
}

impl Case {
    /// Whether the answers are as they must be.
    fn is_met(&self, answers: &[[Answer; 1]]) -> bool {
        let rows: Vec<_> = self.rows.iter().zip(answers).collect();
        rows.chunk_by(|((before, _), _), ((after, _), _)| after - before <= 2)
            .all(|group| {
                let mut expected: Vec<_> = group.iter().map(|((_, at), _)| *at).collect();
                expected.sort_unstable();
                let mut came: Vec<_> = group
                    .iter()
                    .map(|(row, [answer])| came(row, answer))
                    .collect();
                came.sort_unstable();
                let mut pairs = expected.iter().zip(came);
                pairs.all(|(expected, came)| match (*expected, came) {
                    (None, None) => true,
                    (Some(expected), Some(came)) => millis(expected).abs_diff(came) <= WITHIN,
                    _ => false,
                })
            })
    }

    fn table(&self, answers: &[[Answer; 1]]) -> String {
        let mut table = format!(
            "{}: {}\nsent, to be answered; late, came\n",
            self.path, self.limit
        );
        for (row, [answer]) in self.rows.iter().zip(answers) {
            let came = came(row, answer);
            writeln!(table, "{row:?}; {:?}, {came:?}", answer.late).unwrap();
        }
        table
    }

    async fn play(&self, gateway: SocketAddr) -> Result<(), String> {
        let micros: Vec<_> = self.rows.iter().map(|(at, _)| 1_000 * at).collect();
        let (mut differed, mut last) = (0, String::new());
        for attempt in 0..ATTEMPTS {
            let request = |_| Sent {
                from: Ipv4Addr::LOCALHOST,
                head: format!(
                    "GET /{} HTTP/1.1\r\nhost: a\r\nclient: {attempt}\r\n\r\n",
                    self.path
                ),
            };
            let answers = play([gateway], &micros, request).await;
            if self.is_met(&answers) {
                return Ok(());
            }
            last = self.table(&answers);
            let is_late = answers.iter().flatten().any(|answer| answer.late > LATE);
            differed += u32::from(!is_late);
            if differed == 2 {
                break;
            }
        }
        Err(last)
    }
}

const fn millis(millis: i64) -> Duration {
    Duration::from_millis(millis.unsigned_abs())
}

/// When it came, since the first was to be sent; `None` if it was refused.
fn came((sent, _): &Row, answer: &Answer) -> Option<Duration> {
    match answer.status {
        200 => Some(millis(*sent) + answer.late + answer.took),
        429 => None,
        other => panic!("status {other}"),
    }
}

// shows: A1, A8 (queue), B4 (meter), B4 (queue), B4 (nginx), B5 (greedy refill), D3 (limit_req)
#[test]
fn alone_cases_3_4_5_16_18_in_real_time() {
    let cases = cases();
    let mut limits = String::new();
    for Case { path, limit, .. } in &cases {
        writeln!(limits, "  {path}: {{ {limit}, key: \"header:client\" }}").unwrap();
    }
    let paths: Vec<_> = cases.iter().map(|case| format!("/{}", case.path)).collect();
    let routes = paths.iter().zip(&cases);
    let routes: Vec<_> = routes.map(|(path, case)| (&**path, case.path)).collect();
    let (serve, _folder) = serve(&limits, &routes, None);
    let gateway = serve.gateway;
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let faults = runtime.block_on(async {
        let mut playing = JoinSet::new();
        for case in cases {
            playing.spawn(async move { case.play(gateway).await });
        }
        playing.join_all().await
    });
    let faults: String = faults.into_iter().filter_map(Result::err).collect();
    assert!(faults.is_empty(), "{faults}");
}
