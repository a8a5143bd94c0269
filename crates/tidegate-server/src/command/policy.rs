//! `tidegate policy check | default | schema`.

use serde_json::json;
use tidegate_policy::{Loaded, Problem, Problems};

use crate::cli::{CheckArgs, Format};
use crate::exit::{CommandError, Exit};
use crate::terminal::Terminal;
use crate::validation;

/// Checks a file.
pub(crate) fn check(args: &CheckArgs, terminal: &mut Terminal) -> Result<Exit, CommandError> {
    let name = args.file.display().to_string();
    let text = tidegate_policy::read(&args.file)
        .map_err(|error| CommandError::io(format!("cannot read {name}"), error))?;
    let result = validation::parse(&name, &text, false);
    match args.format {
        Format::Text => print_text(&name, &result, terminal)?,
        Format::Json => print_json(&name, &result, terminal)?,
    }
    Ok(if result.is_ok() { Exit::Fine } else { Exit::No })
}

fn print_text(
    name: &str,
    result: &Result<Loaded, Problems>,
    terminal: &mut Terminal,
) -> Result<(), CommandError> {
    match result {
        Ok(loaded) => {
            terminal.warn(&loaded.warnings, loaded.omitted_warnings);
            let policy = &loaded.policy;
            let routes = policy
                .gateway
                .as_ref()
                .map_or(0, |gateway| gateway.routes.len());
            // Not each rate of a limit: what the file names.
            let limits = policy.limits.iter().filter(|rule| rule.rate_index == 0);
            let warnings = loaded.warnings.len() + loaded.omitted_warnings;
            terminal.print(&format!(
                "{name}: fine: {}, {}, {}, {}\n",
                count(limits.count(), "limit"),
                count(routes, "route"),
                count(policy.upstreams.len(), "upstream"),
                count(warnings, "warning"),
            ))
        }
        Err(problems) => {
            terminal.problems(problems);
            Ok(())
        }
    }
}

fn print_json(
    name: &str,
    result: &Result<Loaded, Problems>,
    terminal: &mut Terminal,
) -> Result<(), CommandError> {
    let problems: Vec<&Problem> = match result {
        Ok(loaded) => loaded.warnings.iter().collect(),
        Err(problems) => problems.iter().collect(),
    };
    let answer = json!({ "file": name, "ok": result.is_ok(), "problems": problems });
    terminal.print(&format!("{answer:#}\n"))
}

fn count(n: usize, what: &str) -> String {
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}

/// Prints the built-in policy.
pub(crate) fn default(terminal: &mut Terminal) -> Result<Exit, CommandError> {
    terminal.print(tidegate_policy::DEFAULT)?;
    Ok(Exit::Fine)
}

/// Prints the JSON Schema.
pub(crate) fn schema(terminal: &mut Terminal) -> Result<Exit, CommandError> {
    terminal.print(&format!("{:#}\n", tidegate_policy::schema()))?;
    Ok(Exit::Fine)
}
