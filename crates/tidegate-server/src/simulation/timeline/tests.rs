use super::*;
use crate::simulation::Simulation;
use crate::trace::TraceLine;

const POLICY: &str = "limits:\n  \
    line: { rate: 10/s, burst: 1, on_limit: { queue: { length: 2, max_wait: 1s } } }\n  \
    few: { rate: 1/d, burst: 4 }\n";

/// The timeline of requests at these nanoseconds.
fn timeline(policy: &str, times: &[u64]) -> Timeline {
    let policy = tidegate_policy::parse("p.yaml", policy).unwrap().policy;
    let mut simulation = Simulation::new(policy).unwrap();
    simulation.keep_timeline();
    for (line, at) in times.iter().enumerate() {
        let event = TraceLine::parse(&format!("{{\"at_ns\":{at}}}")).unwrap();
        simulation.step(line, event).unwrap();
    }
    simulation.timeline().unwrap().clone()
}

#[test]
fn each_length_divides_the_next_and_the_longest_reaches_the_end_of_time() {
    for pair in LENGTHS.windows(2) {
        assert!(
            pair[0] < pair[1] && pair[1].is_multiple_of(pair[0]),
            "{pair:?}"
        );
    }
    let longest = LENGTHS[LENGTHS.len() - 1];
    assert!(Timestamp::MAX.as_nanos() / longest < PIECES as u64);
}

// shows: G3 (pictures)
#[test]
fn who_waits_goes_ahead_when_it_has_waited() {
    let millis = 1_000_000;
    let timeline = timeline(POLICY, &[7_000 * millis; 4]);
    let slots = |track: &Track| {
        let mut slots = Vec::new();
        for (at, piece) in track.pieces.iter().enumerate() {
            if *piece != Piece::default() {
                let start = (timeline.first_piece() + at as u64) * timeline.piece_nanos();
                slots.push((start / millis, *piece));
            }
        }
        slots
    };
    let waited = Piece {
        waited: 1,
        ..Piece::default()
    };
    let (came, at_once, refused) = (4, 1, 1);
    let first = Piece {
        came,
        at_once,
        refused,
        waited: 0,
    };
    let expected = [(7_000, first), (7_100, waited), (7_200, waited)];
    assert_eq!(slots(timeline.all()), expected);
    let [few, line] = &timeline.limits().collect::<Vec<_>>()[..] else {
        panic!("two limits: {timeline:?}");
    };
    assert_eq!(slots(line), expected);
    // It refused nobody: the line did.
    let first = Piece {
        refused: 0,
        ..first
    };
    assert_eq!(
        slots(few),
        [(7_000, first), (7_100, waited), (7_200, waited)]
    );
}

#[test]
fn a_longer_trace_puts_pieces_together_and_loses_nothing() {
    // From nanoseconds to years: at each length of a piece there is something to put together.
    let start = 1_700_000_000_123_456_789;
    let spread = (0..61).map(|power| start + (1 << power));
    let dense = (0..300).map(|n| start + n * 7_919_000_000_000_000);
    let mut times: Vec<u64> = spread.chain(dense).collect();
    times.sort_unstable();
    let timeline = timeline("limits: { open: { rate: 1000000000/s } }", &times);
    let total = timeline.all().total();
    assert_eq!((total.came, total.at_once), (361, 361));
    let length = timeline.piece_nanos();
    assert!(timeline.all().pieces.len() <= PIECES && length > 1 << 40);
    for (at, piece) in timeline.all().pieces.iter().enumerate() {
        let number = timeline.first_piece() + at as u64;
        let came = times.iter().filter(|time| *time / length == number).count();
        assert_eq!(piece.came, came as u64, "piece {at}");
    }
}

#[test]
fn at_most_eight_limits_are_kept_apart() {
    let limits: Vec<String> = (0..11)
        .map(|n| format!("  l{n:02}: {{ rate: 1/s }}\n"))
        .collect();
    let timeline = timeline(&format!("limits:\n{}", limits.concat()), &[0, 0]);
    assert_eq!(timeline.limits().count(), LIMITS);
    assert_eq!(timeline.omitted_limits(), 3);
    assert!(timeline.limits().all(|limit| limit.total().came == 2));
}
