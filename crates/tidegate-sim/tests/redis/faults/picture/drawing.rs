//! SVG, by hand: with a background of its own, in light and dark, and without a script.

use std::fmt::Write;

use crate::faults::fleet::Shared;

/// A bar, in microseconds.
pub(super) const BAR: u64 = 50_000;
const WIDTH: f64 = 860.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 62.0;
const BODY: f64 = 200.0;
const BOTTOM: f64 = 46.0;
const FOOT: f64 = TOP + BODY;
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

pub(super) struct Drawing {
    /// What passed on each node in each bar.
    pub(super) nodes: Vec<Vec<u64>>,
    pub(super) shared: Shared,
    /// When what happened, in seconds.
    pub(super) marks: [(f64, &'static str); 4],
    /// From when until when Redis was away.
    pub(super) away: [f64; 2],
}

impl Drawing {
    pub(super) fn svg(&self) -> String {
        let height = TOP + BODY + BOTTOM;
        let mut lines = vec![
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
                 width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\">"
            ),
            "<title id=\"title\">What passes on four nodes that lease one limit, through \
             faults</title>"
                .to_owned(),
            format!(
                "<desc id=\"desc\">{} a second are allowed, {} at once, twice as many are asked. \
                 One node is killed and replaced; then Redis stands still.</desc>",
                self.shared.rate, self.shared.burst
            ),
            format!("<style>{STYLE}</style>"),
            "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>".to_owned(),
        ];
        let [from, until] = self.away.map(|at| self.x(at));
        lines.push(format!(
            "<rect class=\"away\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{BODY}\"/>",
            until - from
        ));
        for bar in 0..self.bars() {
            self.bar(bar, &mut lines);
        }
        self.axes(&mut lines);
        self.marks(&mut lines);
        legend(&mut lines);
        lines.push("</svg>".to_owned());
        let mut out = String::new();
        for line in lines {
            writeln!(out, "{line}").unwrap();
        }
        out
    }

    fn bars(&self) -> usize {
        self.nodes[0].len()
    }

    /// What the rate allows in one bar.
    fn allowed(&self) -> f64 {
        self.shared.rate as f64 * BAR as f64 / 1e6
    }

    fn x(&self, seconds: f64) -> f64 {
        LEFT + seconds * 1e6 / BAR as f64 * self.bar_width()
    }

    fn y(&self, permits: f64) -> f64 {
        FOOT - BODY * (permits / self.allowed() / HIGHEST).min(1.0)
    }

    fn bar_width(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.bars() as f64
    }

    fn bar(&self, bar: usize, lines: &mut Vec<String>) {
        let (mut below, wide) = (0.0, self.bar_width());
        for (number, passed) in self.nodes.iter().enumerate() {
            let above = below + passed[bar] as f64;
            if passed[bar] > 0 {
                lines.push(format!(
                    "<rect class=\"n{number}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
                     height=\"{:.1}\"/>",
                    LEFT + bar as f64 * wide,
                    self.y(above),
                    wide - 0.4,
                    self.y(below) - self.y(above)
                ));
            }
            below = above;
        }
    }

    fn axes(&self, lines: &mut Vec<String>) {
        let (allowed, right) = (self.allowed(), WIDTH - RIGHT);
        let bound = self.y(allowed);
        lines.push(format!(
            "<path class=\"bound\" d=\"M{LEFT} {bound:.1}H{right}\"/>"
        ));
        for permits in [0.0, allowed / 2.0, allowed] {
            let (x, y) = (LEFT - 8.0, self.y(permits) + 4.0);
            lines.push(format!(
                "<text class=\"end\" x=\"{x}\" y=\"{y:.1}\">{permits:.0}</text>"
            ));
        }
        let seconds = self.bars() as u64 * BAR / 1_000_000;
        for second in 0..=seconds {
            let (x, unit) = (self.x(second as f64), if second == 0 { "" } else { " s" });
            let (tick, text) = (FOOT + 5.0, FOOT + 20.0);
            lines.push(format!(
                "<path class=\"grid\" d=\"M{x:.1} {FOOT}V{tick}\"/>"
            ));
            lines.push(format!(
                "<text class=\"middle\" x=\"{x:.1}\" y=\"{text}\">{second}{unit}</text>"
            ));
        }
    }

    fn marks(&self, lines: &mut Vec<String>) {
        for (at, what) in self.marks {
            let (x, top) = (self.x(at), TOP - 14.0);
            let (text, base) = (x + 3.0, TOP - 6.0);
            lines.push(format!("<path class=\"mark\" d=\"M{x:.1} {top}V{FOOT}\"/>"));
            lines.push(format!(
                "<text class=\"name\" x=\"{text:.1}\" y=\"{base}\">{what}</text>"
            ));
        }
    }
}

fn legend(lines: &mut Vec<String>) {
    for number in 0..4 {
        let (box_at, text) = (
            LEFT + f64::from(number) * 84.0,
            LEFT + f64::from(number) * 84.0 + 18.0,
        );
        let name = number + 1;
        lines.push(format!(
            "<rect class=\"n{number}\" x=\"{box_at}\" y=\"13\" width=\"12\" height=\"12\"/>"
        ));
        lines.push(format!("<text x=\"{text}\" y=\"24\">node {name}</text>"));
    }
    let (line, text, right) = (LEFT + 340.0, LEFT + 364.0, WIDTH - RIGHT);
    lines.push(format!("<path class=\"bound\" d=\"M{line} 19h18\"/>"));
    lines.push(format!(
        "<text x=\"{text}\" y=\"24\">allowed by the rate</text>"
    ));
    let millis = BAR / 1000;
    lines.push(format!(
        "<text class=\"end\" x=\"{right}\" y=\"24\">passed each {millis} ms</text>"
    ));
}
