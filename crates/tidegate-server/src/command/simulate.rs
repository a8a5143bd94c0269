//! `tidegate simulate`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::path::Path;

use comfy_table::presets;
use comfy_table::{Cell, CellAlignment, Table};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tidegate_policy::{Loaded, Policy};

use crate::cli::{Format, SimulateArgs};
use crate::exit::{CommandError, Exit};
use crate::simulation::{Simulation, Summary, svg};
use crate::terminal::Terminal;
use crate::trace::{TraceError, TraceLine, TraceReader};

/// How many keys of a limit the table shows.
const TOP_KEYS: usize = 3;
/// Lines between two moves of the progress bar.
const PROGRESS_STEP: u64 = 4_096;

/// Runs traces against a policy in virtual time.
pub(crate) fn run(args: &SimulateArgs, terminal: &mut Terminal) -> Result<Exit, CommandError> {
    let policy = match &args.config {
        Some(path) => load(path, terminal)?,
        None => tidegate_policy::parse("built-in policy", tidegate_policy::DEFAULT)?.policy,
    };
    let mut simulation = Simulation::new(policy).map_err(|e| CommandError::new(e.to_string()))?;
    let picture = match args.plot.as_deref() {
        None => None,
        Some(path) => {
            simulation.keep_timeline();
            Some((path, open_picture(path, args)?))
        }
    };
    let decisions: Option<Box<dyn Write>> = match args.decisions.as_deref() {
        None => None,
        Some(path) if path == Path::new("-") => Some(Box::new(BufWriter::new(io::stdout()))),
        Some(path) => {
            spare_inputs("--decisions", path, args)?;
            let file = File::create(path).map_err(|error| cannot_write(path, error))?;
            Some(Box::new(BufWriter::new(file)))
        }
    };
    let mut run = Run {
        simulation,
        decisions,
    };
    for trace in &args.traces {
        run.trace(trace, terminal)?;
    }
    run.finish()?;
    if let (Some((path, file)), Some(timeline)) = (picture, run.simulation.timeline()) {
        draw(file, &svg(timeline)).map_err(|error| cannot_write(path, error))?;
    }
    if args.decisions.is_none() {
        let summary = run.simulation.summary();
        match args.format {
            Format::Text => terminal.print(&table(summary))?,
            Format::Json => terminal.print(&format!("{:#}\n", as_json(summary)))?,
        }
    }
    Ok(Exit::Fine)
}

/// What is read must not be what is written over.
fn spare_inputs(option: &str, out: &Path, args: &SimulateArgs) -> Result<(), CommandError> {
    let Ok(written) = out.canonicalize() else {
        return Ok(());
    };
    let mut inputs = args.traces.iter().chain(&args.config);
    if inputs.any(|input| input.canonicalize().is_ok_and(|read| read == written)) {
        let path = out.display();
        let message = format!("{option} {path} would write over what is read");
        return Err(CommandError::new(message));
    }
    Ok(())
}

/// Opens the file before a long trace is run, and leaves what is in it until that has ended well.
fn open_picture(path: &Path, args: &SimulateArgs) -> Result<File, CommandError> {
    if path == Path::new("-") {
        let message = "--plot writes a file: name it, as in `--plot out.svg`";
        return Err(CommandError::new(message));
    }
    spare_inputs("--plot", path, args)?;
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    let file = file.map_err(|error| cannot_write(path, error))?;
    let canonical = |path: &Path| path.canonicalize().ok();
    let decisions = args.decisions.as_deref().and_then(canonical);
    if decisions.is_some() && decisions == canonical(path) {
        let message = "--plot and --decisions are the same file: each needs its own";
        return Err(CommandError::new(message));
    }
    Ok(file)
}

fn draw(mut file: File, picture: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(picture.as_bytes())
}

fn cannot_write(path: &Path, error: io::Error) -> CommandError {
    CommandError::io(format!("cannot write {}", path.display()), error)
}

fn load(path: &Path, terminal: &mut Terminal) -> Result<Policy, CommandError> {
    let Loaded {
        policy,
        warnings,
        omitted_warnings,
    } = tidegate_policy::load(path)?;
    terminal.warn(&warnings, omitted_warnings);
    tell_of_bandwidths(&policy, terminal);
    Ok(policy)
}

/// A trace has no bodies, so that nothing is held back here.
fn tell_of_bandwidths(policy: &Policy, terminal: &mut Terminal) {
    for rule in &policy.limits {
        if rule.bandwidth.is_some() {
            let name = rule.limit.name();
            terminal.note(&format!(
                "note: `{name}` is not simulated: it limits bandwidth, and a trace has no bodies"
            ));
        }
    }
}

struct Run {
    simulation: Simulation,
    decisions: Option<Box<dyn Write>>,
}

impl Run {
    fn trace(&mut self, path: &Path, terminal: &mut Terminal) -> Result<(), CommandError> {
        let name = path.display().to_string();
        if path == Path::new("-") {
            let input = io::stdin().lock();
            return self.lines("standard input", input, Path::new(""), None, terminal);
        }
        let cannot = |error| CommandError::io(format!("cannot read {name}"), error);
        let file = File::open(path).map_err(cannot)?;
        let bytes = file.metadata().map_err(cannot)?.len();
        let bar = progress(bytes, &name);
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let input = BufReader::with_capacity(1 << 16, bar.wrap_read(file));
        let result = self.lines(&name, input, folder, Some(&bar), terminal);
        bar.finish_and_clear();
        result
    }

    fn lines(
        &mut self,
        name: &str,
        input: impl BufRead,
        folder: &Path,
        bar: Option<&ProgressBar>,
        terminal: &mut Terminal,
    ) -> Result<(), CommandError> {
        let mut done = 0;
        for line in TraceReader::new(input) {
            let (number, event) = line.map_err(|error| trace_error(name, error))?;
            if let TraceLine::Reload { at_ns, policy } = &event {
                let policy = load(&folder.join(policy), terminal)?;
                let reloaded = self.simulation.reload(*at_ns, policy);
                reloaded.map_err(|error| at_line(name, number, &error.to_string()))?;
                continue;
            }
            let step = self.simulation.step(number, event);
            step.map_err(|error| at_line(name, number, &error.to_string()))?;
            if !self.write_decisions()? {
                return Ok(());
            }
            done += 1;
            if let Some(bar) = bar.filter(|_| done % PROGRESS_STEP == 0) {
                bar.set_message(format!("{done} lines"));
            }
        }
        Ok(())
    }

    /// Writes what has been decided; whether anybody reads on.
    fn write_decisions(&mut self) -> Result<bool, CommandError> {
        while let Some(decision) = self.simulation.next_decision() {
            let Some(out) = &mut self.decisions else {
                continue;
            };
            let written = serde_json::to_writer(&mut *out, &decision)
                .map_err(io::Error::from)
                .and_then(|()| out.write_all(b"\n"));
            if !is_still_read(written)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<(), CommandError> {
        let finished = self.simulation.finish();
        finished.map_err(|error| CommandError::new(error.to_string()))?;
        if !self.write_decisions()? {
            return Ok(());
        }
        match &mut self.decisions {
            Some(out) => is_still_read(out.flush()).map(drop),
            None => Ok(()),
        }
    }
}

/// Whether anybody reads on: a reader that has gone away (`| head`) is no fault.
fn is_still_read(written: io::Result<()>) -> Result<bool, CommandError> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(CommandError::io("cannot write decisions", error)),
    }
}

fn at_line(name: &str, line: usize, what: &str) -> CommandError {
    CommandError::new(format!("{name}: line {line}: {what}"))
}

fn trace_error(name: &str, error: TraceError) -> CommandError {
    match error {
        TraceError::Io(error) => CommandError::io(format!("cannot read {name}"), error),
        error @ TraceError::Line { .. } => CommandError::new(format!("{name}: {error}")),
    }
}

/// A bar for whoever looks; nothing where nobody does.
fn progress(bytes: u64, name: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(bytes).with_prefix(name.to_owned());
    match ProgressStyle::with_template("{prefix} {wide_bar} {percent:>3}% {msg} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn table(summary: &Summary) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["limit", "allowed", "delayed", "denied", "denied most"]);
    for (name, limit) in summary.limits() {
        let keys = limit.denied_keys.most(TOP_KEYS);
        let keys: Vec<String> = keys
            .iter()
            .map(|(key, count)| format!("{} {count}", shown(key)))
            .collect();
        let name = if limit.shadow {
            format!("{name} (shadow)")
        } else {
            name.to_owned()
        };
        let number = |n: u64| Cell::new(n).set_alignment(CellAlignment::Right);
        table.add_row(vec![
            Cell::new(name),
            number(limit.allowed),
            number(limit.delayed),
            number(limit.denied),
            Cell::new(keys.join(", ")),
        ]);
    }
    let Summary {
        requests, allowed, ..
    } = summary;
    let refused = requests - allowed;
    format!("{table}\n{requests} requests: {allowed} went ahead, {refused} were refused\n")
}

/// A key as the table shows it: the one key of a limit that counts all together has no text.
fn shown(key: &str) -> String {
    const LONGEST: usize = 40;
    match key.char_indices().nth(LONGEST) {
        _ if key.is_empty() => "(all)".to_owned(),
        Some((end, _)) => format!("{}…", &key[..end]),
        None => key.to_owned(),
    }
}

fn as_json(summary: &Summary) -> serde_json::Value {
    let limits: Vec<_> = summary
        .limits()
        .map(|(name, limit)| {
            let keys: Vec<_> = limit
                .denied_keys
                .most(TOP_KEYS)
                .into_iter()
                .map(|(key, count)| json!({ "key": key, "denied": count }))
                .collect();
            json!({
                "limit": name,
                "shadow": limit.shadow,
                "allowed": limit.allowed,
                "delayed": limit.delayed,
                "denied": limit.denied,
                "denied_most": keys,
            })
        })
        .collect();
    json!({ "requests": summary.requests, "allowed": summary.allowed, "limits": limits })
}
