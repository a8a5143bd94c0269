use super::*;
use crate::simulation::Simulation;
use crate::trace::TraceLine;

/// The picture of requests at these nanoseconds.
fn picture(policy: &str, times: impl IntoIterator<Item = u64>) -> String {
    let line = |at| format!("{{\"at_ns\":{at}}}");
    picture_of(policy, times.into_iter().map(line))
}

fn picture_of(policy: &str, trace: impl IntoIterator<Item = String>) -> String {
    let policy = tidegate_policy::parse("p.yaml", policy).unwrap().policy;
    let mut simulation = Simulation::new(policy).unwrap();
    simulation.keep_timeline();
    for (line, text) in trace.into_iter().enumerate() {
        simulation
            .step(line, TraceLine::parse(&text).unwrap())
            .unwrap();
    }
    svg(simulation.timeline().unwrap())
}

/// The path of this class: where each of its bars begins, how wide it is, and how high.
fn bars(svg: &str, class: &str) -> Vec<(f64, f64, f64)> {
    let start = format!("<path class=\"{class}\" d=\"");
    let Some(path) = svg
        .lines()
        .find_map(|line| line.strip_prefix(start.as_str()))
    else {
        return Vec::new();
    };
    let path = path.strip_suffix("Z\"/>").unwrap();
    let number = |text: &str| text.parse::<f64>().unwrap();
    path.split('Z')
        .map(|bar| {
            let (from, rest) = bar.strip_prefix('M').unwrap().split_once('v').unwrap();
            let (rise, rest) = rest.split_once('h').unwrap();
            let width = rest.split_once('V').unwrap().0;
            (
                number(from.split_once(' ').unwrap().0),
                number(width),
                number(rise),
            )
        })
        .collect()
}

const LINE: &str = "limits:\n  \
    line: { rate: 10/s, burst: 1, on_limit: { queue: { length: 2, max_wait: 1s } } }\n";

// shows: G3 (pictures)
#[test]
fn bars_stand_where_requests_went_ahead_and_hang_where_they_were_refused() {
    let svg = picture(LINE, [0; 5]);
    let (once, waited, refused) = (
        bars(&svg, "once"),
        bars(&svg, "waited"),
        bars(&svg, "refused"),
    );
    assert_eq!((once.len(), waited.len(), refused.len()), (1, 2, 1));
    // 0, 100 and 200 ms, evenly.
    let [first, second] = [waited[0].0 - once[0].0, waited[1].0 - waited[0].0];
    assert!(first > 100.0 && (first - second).abs() < 0.11, "{waited:?}");
    // Up and down from the line, each by its count.
    assert!(once[0].2 < 0.0 && refused[0].2 > 0.0);
    assert!(
        (refused[0].2 + 2.0 * once[0].2).abs() < 0.21,
        "{once:?} {refused:?}"
    );
    assert!(
        svg.contains("5 came, 1 at once, 2 after waiting, 2 refused"),
        "{svg}"
    );
    // One limit that all requests meet is one panel.
    assert!(!svg.contains("all requests"));
}

#[test]
fn bars_begin_at_multiples_of_their_length() {
    let millis = 1_000_000;
    let start = 1_700_000_000_030 * millis;
    let times = [0, 69, 70, 10_000].map(|after| start + after * millis);
    let svg = picture("limits: { l: { rate: 9/s } }", times);
    assert!(svg.contains("requests each 100 ms"), "{svg}");
    let bars: Vec<f64> = bars(&svg, "once").iter().map(|bar| bar.0).collect();
    let width = bars[1] - bars[0];
    assert_eq!(bars.len(), 3, "the first two in one");
    assert!((bars[2] - bars[0] - 100.0 * width).abs() < 6.0, "{bars:?}");
}

#[test]
fn who_has_waited_stands_on_who_goes_ahead_at_once() {
    let policy = format!("{LINE}  open: {{ rate: 1000/s }}\n");
    let of = |at: u64, limit: &str| format!("{{\"at_ns\":{at},\"limits\":[\"{limit}\"]}}");
    let svg = picture_of(
        &policy,
        [of(0, "line"), of(0, "line"), of(100_000_000, "open")],
    );
    let (once, waited) = (bars(&svg, "once"), bars(&svg, "waited"));
    assert!((once[1].0 - waited[0].0).abs() < 0.01, "at 100 ms both");
    let begins = |class: &str, bar: usize| {
        let path = svg
            .split_once(&format!("class=\"{class}\" d=\""))
            .unwrap()
            .1;
        let from = path.split('M').nth(bar + 1).unwrap();
        let y = from.split_once(' ').unwrap().1.split_once('v').unwrap().0;
        y.parse::<f64>().unwrap()
    };
    let top = begins("once", 1) + once[1].2;
    assert!((top - begins("waited", 0)).abs() < 0.11, "{svg}");
}

#[test]
fn one_of_many_is_seen_and_its_number_stands_on_no_other() {
    let policy = "limits: { l: { rate: 1/s, burst: 5000 } }";
    let svg = picture(policy, std::iter::repeat_n(0, 5_001));
    let refused = bars(&svg, "refused");
    assert!(refused.len() == 1 && refused[0].2 >= 1.0, "{refused:?}");
    assert!(
        svg.contains(">2000</text>") && !svg.contains(">1</text>"),
        "{svg}"
    );
}

#[test]
fn it_is_the_same_each_time_and_stays_small_however_long_the_trace() {
    let times = || (0..20_000_u64).map(|n| n * n * 97_777 + 1_700_000_000_000_000_000);
    let svg = picture(tidegate_policy::DEFAULT, times());
    assert_eq!(svg, picture(tidegate_policy::DEFAULT, times()));
    assert!(svg.len() < 30_000, "{} bytes", svg.len());
    assert!(svg.contains("20000 came"), "all are counted");
}

#[test]
fn each_tag_is_closed_and_numbers_are_numbers() {
    let shadow = "limits:\n  a: { rate: 1/s }\n  b: { rate: 2/s, shadow: true }\n";
    for svg in [
        picture(LINE, [0; 5]),
        picture(shadow, [0, 1, 7]),
        picture(LINE, []),
    ] {
        let mut open = Vec::new();
        for tag in svg
            .split('<')
            .skip(1)
            .map(|tag| tag.split_once('>').unwrap().0)
        {
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "{svg}");
            } else if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap());
            }
        }
        assert_eq!(open, Vec::<&str>::new());
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(svg.contains("<title ") && svg.contains("<desc "));
    }
}

#[test]
fn text_is_escaped() {
    let text = "<b onload=\"x('&')\">\u{1b}\n";
    let escaped = escaped(text);
    assert_eq!(
        escaped,
        "&lt;b onload=&quot;x('&amp;')&quot;&gt;\u{fffd}\u{fffd}"
    );
}

#[test]
fn many_limits_are_said_to_be_left_out() {
    let limits: Vec<String> = (0..11)
        .map(|n| format!("  l{n:02}: {{ rate: 1/s }}\n"))
        .collect();
    let svg = picture(&format!("limits:\n{}", limits.concat()), [0, 1]);
    assert!(
        svg.contains("3 more limits were met, and are not drawn"),
        "{svg}"
    );
}
