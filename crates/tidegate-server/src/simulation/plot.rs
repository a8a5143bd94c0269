//! A timeline as a picture: SVG, by hand.
//!
//! Above the line of each panel is what went ahead, when it did; below it what was refused; the
//! outline is what came. Panels have one axis of time. The picture brings its own background, in
//! light and dark; it has no script, and all text of the policy's is escaped.

use std::fmt::Write;

use super::ticks::{self, label};
use super::timeline::{Piece, Timeline, Track};

/// The most bars of a panel.
const BARS: u64 = 160;
const WIDTH: f64 = 860.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 20.0;
/// Height of what is above and below the line of a panel, together.
const BODY: f64 = 150.0;
/// The least height of a bar, and the least distance of two numbers on the axis.
const LEAST: f64 = 1.0;
const APART: f64 = 13.0;
/// A panel's title and its distance from the one above.
const HEAD: f64 = 44.0;
/// The legend at the top, and the labels of time at the bottom.
const TOP: f64 = 40.0;
const BOTTOM: f64 = 42.0;

const STYLE: &str = "\
svg{--paper:#fff;--ink:#1c2430;--soft:#5b6675;--grid:#e3e7ec;--came:#8b96a5;--wash:#eef1f5;\
--once:#2467c9;--waited:#e08b00;--refused:#c62f3b}\
@media(prefers-color-scheme:dark){svg{--paper:#12161c;--ink:#e6eaf0;--soft:#9aa6b5;\
--grid:#2a313b;--came:#74808f;--wash:#1d232c;--once:#5b9bf0;--waited:#f0ad3e;--refused:#f0656f}}\
text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:var(--soft)}\
.name{font-weight:600;fill:var(--ink)}.end{text-anchor:end}.middle{text-anchor:middle}\
.paper{fill:var(--paper)}.grid{stroke:var(--grid)}.line{stroke:var(--soft)}\
.came{fill:var(--wash);stroke:var(--came)}.once{fill:var(--once)}.waited{fill:var(--waited)}\
.refused{fill:var(--refused)}";

/// Draws a timeline.
pub fn svg(timeline: &Timeline) -> String {
    let axis = Axis::of(timeline);
    // Where there is one limit, all requests are its requests, or none of ours.
    let limits: Vec<&Track> = timeline.limits().collect();
    let total = timeline.all().total();
    let alone = matches!(limits[..], [only] if only.total() == total);
    let mut tracks = if alone {
        Vec::new()
    } else {
        vec![timeline.all()]
    };
    tracks.extend(limits);
    let foot = TOP + tracks.len() as f64 * (HEAD + BODY);
    let omitted = timeline.omitted_limits();
    let height = foot + BOTTOM + if omitted > 0 { 20.0 } else { 0.0 };

    let mut out = Svg(String::new());
    out.line(&format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" "#,
    ));
    out.line(&format!(
        r#"width="{WIDTH}" height="{height}" role="img" aria-labelledby="title desc">"#
    ));
    let title = "Requests over time: what came, what went ahead, what was refused";
    out.line(&format!(r#"<title id="title">{title}</title>"#));
    let description = escaped(&description(&tracks, omitted));
    out.line(&format!(r#"<desc id="desc">{description}</desc>"#));
    out.line(&format!("<style>{STYLE}</style>"));
    out.line(r#"<rect class="paper" width="100%" height="100%"/>"#);
    legend(&mut out, &axis, timeline.all().total());
    time_labels(&mut out, &axis, foot);
    for (at, track) in tracks.iter().enumerate() {
        let top = TOP + at as f64 * (HEAD + BODY) + HEAD;
        panel(&mut out, track, &axis, top);
    }
    if omitted > 0 {
        let more = format!("{omitted} more limits were met, and are not drawn");
        out.text(LEFT, height - 10.0, "", &more);
    }
    out.line("</svg>");
    out.0
}

/// Where times are.
#[derive(Debug)]
struct Axis {
    /// Nanoseconds of a bar.
    bar: u64,
    bars: u64,
    /// Pieces of the timeline in a bar, and those before the first one in the first bar.
    pieces: usize,
    skipped: usize,
}

impl Axis {
    fn of(timeline: &Timeline) -> Self {
        let (piece, first) = (timeline.piece_nanos(), timeline.first_piece());
        let pieces = timeline.all().pieces.len().max(1) as u64;
        let bars = |bar: u64| (first + pieces - 1) / (bar / piece) - first / (bar / piece) + 1;
        let fits = |bar: &u64| bar.is_multiple_of(piece) && bars(*bar) <= BARS;
        let bar = ticks::STEPS.into_iter().find(fits).unwrap_or(piece);
        Self {
            bar,
            bars: bars(bar),
            pieces: usize::try_from(bar / piece).unwrap_or(usize::MAX),
            skipped: (first % (bar / piece)) as usize,
        }
    }

    /// The pieces of a track, put together.
    fn bars_of(&self, track: &Track) -> Vec<Piece> {
        let mut bars = vec![Piece::default(); self.bars as usize];
        for (at, piece) in track.pieces.iter().enumerate() {
            if let Some(bar) = bars.get_mut((self.skipped + at) / self.pieces) {
                *bar = bar.and(*piece);
            }
        }
        bars
    }

    fn x(&self, bar: usize) -> f64 {
        LEFT + bar as f64 * self.width()
    }

    /// Of a bar.
    fn width(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.bars as f64
    }

    fn nanos(&self) -> u64 {
        self.bars * self.bar
    }
}

fn description(tracks: &[&Track], omitted: usize) -> String {
    let mut text = String::new();
    for track in tracks {
        let _ = write!(text, "{}: {}. ", name(track), counts(track));
    }
    if omitted > 0 {
        let _ = write!(text, "{omitted} more limits are not drawn.");
    }
    text.trim_end().to_owned()
}

fn name(track: &Track) -> String {
    let name = track.name.as_deref().unwrap_or("all requests");
    let shadow = if track.shadow { " (shadow)" } else { "" };
    format!("{name}{shadow}")
}

fn counts(track: &Track) -> String {
    let Piece {
        came,
        at_once,
        waited,
        refused,
    } = track.total();
    let would = if track.shadow {
        "would be refused"
    } else {
        "refused"
    };
    let mut text = format!("{came} came, {at_once} at once");
    if waited > 0 {
        let _ = write!(text, ", {waited} after waiting");
    }
    let _ = write!(text, ", {refused} {would}");
    text
}

fn legend(out: &mut Svg, axis: &Axis, total: Piece) {
    let mut x = LEFT;
    for (class, what, drawn) in [
        ("came", "came", true),
        ("once", "went ahead at once", true),
        ("waited", "went ahead after waiting", total.waited > 0),
        ("refused", "refused", true),
    ] {
        if drawn {
            out.line(&format!(
                r#"<rect class="{class}" x="{}" y="17" width="12" height="12"/>"#,
                tenth(x)
            ));
            out.text(x + 18.0, 28.0, "", what);
            x += 44.0 + 6.6 * what.len() as f64;
        }
    }
    let each = format!("requests each {}", label(axis.bar, axis.bar, axis.bar));
    out.text(WIDTH - RIGHT, 28.0, "end", &each);
}

fn panel(out: &mut Svg, track: &Track, axis: &Axis, top: f64) {
    let bars = axis.bars_of(track);
    let most = |count: fn(&Piece) -> u64| bars.iter().map(count).max().unwrap_or(0);
    let up = most(|bar| bar.came.max(bar.at_once + bar.waited)).max(1);
    let down = most(|bar| bar.refused);
    let each = BODY / (up + down) as f64;
    let line = top + each * up as f64;
    out.line(&format!(
        r#"<text x="{LEFT}" y="{}"><tspan class="name">{}</tspan><tspan dx="10">{}</tspan></text>"#,
        top - 12.0,
        escaped(&name(track)),
        escaped(&counts(track)),
    ));
    // Numbers that would stand on each other are left out.
    for (count, sign) in heights(up)
        .map(|n| (n, -1.0))
        .chain(heights(down).map(|n| (n, 1.0)))
    {
        let y = line + sign * each * count as f64;
        if each * count as f64 >= APART {
            out.rule("grid", (LEFT, y), (WIDTH - RIGHT, y));
            out.text(LEFT - 8.0, y + 4.5, "end", &count.to_string());
        }
    }
    out.text(LEFT - 8.0, line + 4.5, "end", "0");
    out.outline(&bars, axis, line, each);
    out.bars("once", axis, &bars, line, each, |bar| (0, bar.at_once));
    out.bars("waited", axis, &bars, line, each, |bar| {
        (bar.at_once, bar.waited)
    });
    out.bars("refused", axis, &bars, line, -each, |bar| (0, bar.refused));
    out.rule("line", (LEFT, line), (WIDTH - RIGHT, line));
}

/// Which heights of up to `most` requests are marked: about three.
fn heights(most: u64) -> impl Iterator<Item = u64> {
    let step = ticks::count_step(most, 3);
    (1..=3).map(move |n| n * step).filter(move |n| *n <= most)
}

fn time_labels(out: &mut Svg, axis: &Axis, foot: f64) {
    let step = ticks::time_step(axis.nanos(), 9);
    let mut at = 0;
    while at <= axis.nanos() {
        let x = LEFT + (WIDTH - LEFT - RIGHT) * (at as f64 / axis.nanos() as f64);
        out.rule("grid", (x, TOP + HEAD), (x, foot + 7.0));
        out.text(x, foot + 22.0, "middle", &label(at, step, axis.nanos()));
        at += step;
    }
}

/// Text that is written line by line.
#[derive(Debug)]
struct Svg(String);

impl Svg {
    fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escaped(text);
        self.line(&format!(
            r#"<text x="{}" y="{}" class="{class}">{text}</text>"#,
            tenth(x),
            tenth(y)
        ));
    }

    fn rule(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.line(&format!(
            r#"<path class="{class}" d="M{} {}L{} {}"/>"#,
            tenth(from.0),
            tenth(from.1),
            tenth(to.0),
            tenth(to.1)
        ));
    }

    /// What came, as steps.
    fn outline(&mut self, bars: &[Piece], axis: &Axis, line: f64, each: f64) {
        let mut path = format!("M{} {}", tenth(LEFT), tenth(line));
        let mut height = 0;
        for (at, bar) in bars.iter().enumerate() {
            if bar.came != height {
                height = bar.came;
                let y = line - each * height as f64;
                let _ = write!(path, "H{}V{}", tenth(axis.x(at)), tenth(y));
            }
        }
        let _ = write!(path, "H{}V{}", tenth(axis.x(bars.len())), tenth(line));
        self.line(&format!(r#"<path class="came" d="{path}Z"/>"#));
    }

    /// One bar each for those that have any: from so many on, so many more.
    fn bars(
        &mut self,
        class: &str,
        axis: &Axis,
        bars: &[Piece],
        line: f64,
        each: f64,
        span: impl Fn(&Piece) -> (u64, u64),
    ) {
        let mut path = String::new();
        // A little air where there is room for it.
        let air = if axis.width() >= 4.0 { 1.0 } else { 0.0 };
        for (at, bar) in bars.iter().enumerate() {
            let (from, more) = span(bar);
            if more > 0 {
                let (x, y) = (axis.x(at) + air / 2.0, line - each * from as f64);
                let width = tenth(axis.width() - air);
                // One of many is still seen.
                let rise = each * more as f64;
                let rise = tenth(-rise.signum() * rise.abs().max(LEAST));
                let _ = write!(path, "M{} {}v{rise}h{width}V{1}Z", tenth(x), tenth(y));
            }
        }
        if !path.is_empty() {
            self.line(&format!(r#"<path class="{class}" d="{path}"/>"#));
        }
    }
}

/// A coordinate: a tenth of a pixel is as much as anybody sees.
fn tenth(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Control characters are no characters of XML.
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
