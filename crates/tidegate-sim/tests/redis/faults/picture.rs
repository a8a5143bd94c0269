//! A picture of a real run, for the guide: what passed on each of four nodes, against what is
//! allowed, through a node that dies and a Redis that stands still.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use super::super::server::RedisServer;
use super::fleet::{Fault, Fleet, Shared, now, wait_until};

/// A bar, in microseconds.
const BAR: u64 = 50_000;
const WIDTH: f64 = 860.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 62.0;
const BODY: f64 = 200.0;
const BOTTOM: f64 = 46.0;
/// The height of the axis, in parts of what is allowed.
const HIGHEST: f64 = 1.5;

const STYLE: &str = "\
svg{--paper:#fff;--ink:#1c2430;--soft:#5b6675;--grid:#e3e7ec;--a:#2467c9;--b:#6b9be0;--c:#16857a;\
--d:#e08b00;--bound:#c62f3b}\
@media(prefers-color-scheme:dark){svg{--paper:#12161c;--ink:#e6eaf0;--soft:#9aa6b5;--grid:#2a313b;\
--a:#5b9bf0;--b:#3768ab;--c:#3db3a6;--d:#f0ad3e;--bound:#f0656f}}\
text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:var(--soft)}\
.name{font-weight:600;fill:var(--ink)}.end{text-anchor:end}.middle{text-anchor:middle}\
.paper{fill:var(--paper)}.grid{stroke:var(--grid)}.n0{fill:var(--a)}.n1{fill:var(--b)}\
.n2{fill:var(--c)}.n3{fill:var(--d)}.bound{stroke:var(--bound);stroke-width:2}\
.mark{stroke:var(--ink);stroke-dasharray:4 3}.away{fill:var(--soft);opacity:.16}";

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

    let bars = ((end - start) / BAR) as usize;
    let mut nodes = vec![vec![0_u64; bars]; 4];
    for (number, node) in fleet.nodes.iter().enumerate() {
        for (_, at) in node.record().passed {
            let bar = at.checked_sub(start).map(|since| (since / BAR) as usize);
            // The fifth process takes the place of the fourth.
            if let Some(passed) = bar.and_then(|bar| nodes[number.min(3)].get_mut(bar)) {
                *passed += 1;
            }
        }
    }
    let seconds = |at: u64| (at - start) as f64 / 1e6;
    let marks = [
        (seconds(died), "a node is killed"),
        (seconds(replaced), "another starts"),
        (seconds(away.begin), "Redis stands still"),
        (seconds(away.end), "it goes on"),
    ];
    let away = (seconds(away.begin), seconds(away.end));
    let picture = draw(&nodes, &shared, &marks, away);
    let folder = std::env::var_os("TIDEGATE_PICTURES").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let path = folder.join("shared-limit-through-faults.svg");
    std::fs::write(&path, picture).unwrap();
    println!("drawn: {}", path.display());
    for (what, from, to) in [
        ("before", start, died),
        ("3 s after the crash", died, died + 3_000_000),
        ("after that", died + 3_000_000, replaced),
        (
            "without Redis",
            start + (away.0 * 1e6) as u64,
            start + (away.1 * 1e6) as u64,
        ),
    ] {
        let allowed = shared.rate as f64 * (to - from) as f64 / 1e6;
        let used = 100.0 * fleet.passed(from, to) as f64 / allowed;
        let calls = fleet.calls(from, to) as f64 / ((to - from) as f64 / 1e6);
        println!("{what}: {used:.1} % of the rate passed, {calls:.0} calls of Redis a second");
    }
}

fn draw(nodes: &[Vec<u64>], shared: &Shared, marks: &[(f64, &str)], away: (f64, f64)) -> String {
    let bars = nodes[0].len();
    let allowed = shared.rate as f64 * BAR as f64 / 1e6;
    let height = TOP + BODY + BOTTOM;
    let foot = TOP + BODY;
    let wide = (WIDTH - LEFT - RIGHT) / bars as f64;
    let x = |seconds: f64| LEFT + seconds * 1e6 / BAR as f64 * wide;
    let y = |permits: f64| foot - BODY * (permits / allowed / HIGHEST).min(1.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\">\n\
         <title id=\"title\">What passes on four nodes that lease one limit, through faults</title>\n\
         <desc id=\"desc\">{} a second are allowed, {} at once, twice as many asked. One node is \
         killed and replaced; then Redis stands still.</desc>\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
        shared.rate, shared.burst
    );
    let mut line = |text: String| writeln!(out, "{text}").unwrap();
    line(format!(
        "<rect class=\"away\" x=\"{:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{BODY}\"/>",
        x(away.0),
        x(away.1) - x(away.0)
    ));
    for bar in 0..bars {
        let mut below = 0.0;
        for (number, passed) in nodes.iter().enumerate() {
            let passed = passed[bar] as f64;
            if passed > 0.0 {
                line(format!(
                    "<rect class=\"n{number}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                    LEFT + bar as f64 * wide,
                    y(below + passed),
                    wide - 0.4,
                    y(below) - y(below + passed)
                ));
            }
            below += passed;
        }
    }
    line(format!(
        "<path class=\"bound\" d=\"M{LEFT} {0:.1}H{1}\"/>",
        y(allowed),
        WIDTH - RIGHT
    ));
    for (part, permits) in [(0.0, 0.0), (0.5, allowed / 2.0), (1.0, allowed)] {
        let at = foot - BODY * part / HIGHEST + 4.0;
        line(format!(
            "<text class=\"end\" x=\"{}\" y=\"{at:.1}\">{permits:.0}</text>",
            LEFT - 8.0
        ));
    }
    let seconds = bars as u64 * BAR / 1_000_000;
    for second in 0..=seconds {
        let (at, s) = (x(second as f64), if second == 0 { "" } else { " s" });
        line(format!(
            "<path class=\"grid\" d=\"M{at:.1} {foot}V{}\"/>\
             <text class=\"middle\" x=\"{at:.1}\" y=\"{}\">{second}{s}</text>",
            foot + 5.0,
            foot + 20.0
        ));
    }
    for (at, what) in marks {
        let at = x(*at);
        line(format!(
            "<path class=\"mark\" d=\"M{at:.1} {}V{foot}\"/>\
             <text class=\"name\" x=\"{:.1}\" y=\"{}\">{what}</text>",
            TOP - 14.0,
            at + 3.0,
            TOP - 6.0
        ));
    }
    for (number, name) in ["node 1", "node 2", "node 3", "node 4"].iter().enumerate() {
        let at = LEFT + number as f64 * 84.0;
        line(format!(
            "<rect class=\"n{number}\" x=\"{at}\" y=\"13\" width=\"12\" height=\"12\"/>\
             <text x=\"{}\" y=\"24\">{name}</text>",
            at + 18.0
        ));
    }
    line(format!(
        "<path class=\"bound\" d=\"M{0} 19h18\"/><text x=\"{1}\" y=\"24\">allowed by the rate</text>\
         <text class=\"end\" x=\"{2}\" y=\"24\">passed each {3} ms</text>",
        LEFT + 340.0,
        LEFT + 364.0,
        WIDTH - RIGHT,
        BAR / 1000
    ));
    line("</svg>".to_owned());
    out
}
