//! From a file, or its text, to a policy.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::compile::compile;
use crate::complaint::{self, Complaint};
use crate::file::PolicyFile;
use crate::policy::Policy;
use crate::problem::{Problem, Problems, Severity};
use crate::report::{Finding, Report};
use crate::source::{Source, Span};
use crate::yaml;

/// Largest policy file, in bytes: room for 10,000 routes and 100,000 overrides.
pub const MAX_FILE_BYTES: usize = 32 << 20;

/// What `tidegate serve` runs without a file: a gateway before a built-in echo upstream, with
/// one limit for each client.
pub const DEFAULT: &str = include_str!("default.yaml");

/// A policy, and what is probably not meant about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// What the file says.
    pub policy: Policy,
    /// What is harmless but odd, in the order of the file; at most [`Problems::MAX`].
    pub warnings: Vec<Problem>,
    /// How many more warnings there are.
    pub omitted_warnings: usize,
}

/// Reads the policy file at `path`.
///
/// # Errors
/// [`Problems`]: all that is wrong with it, or that it cannot be read.
pub fn load(path: &Path) -> Result<Loaded, Problems> {
    let name = path.display().to_string();
    let bytes = match read_bytes(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("the policy cannot be read: {error}");
            return Err(without_place(&name, message, None));
        }
    };
    match String::from_utf8(bytes) {
        Ok(text) => parse(&name, &text),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes());
            let source = Source::new(&name, &text);
            let report = Report::new(&source);
            let span = Span::new(valid..valid + char::REPLACEMENT_CHARACTER.len_utf8());
            report.push(Finding::error(span, NOT_UTF8).help("save the file as UTF-8"));
            Err(report.finish().0)
        }
    }
}

/// Only the text of the policy file at `path`, for whoever wants to see whether it has changed
/// before it is [parsed](parse). Never more than [`MAX_FILE_BYTES`].
///
/// # Errors
/// What the system says; that it is too large; or that it is no text.
pub fn read(path: &Path) -> io::Result<String> {
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, NOT_UTF8);
    String::from_utf8(read_bytes(path)?).map_err(invalid)
}

const NOT_UTF8: &str = "a policy is UTF-8 text; this is not";

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed, to see that it is too much.
    let bytes_read = File::open(path)?
        .take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    if bytes_read > MAX_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, too_large()));
    }
    Ok(bytes)
}

fn too_large() -> String {
    format!("a policy file has at most {} MiB", MAX_FILE_BYTES >> 20)
}

/// Reads a policy from `text`; `name` is what problems call the file. Any text is safe to try:
/// what it can cost is bounded by its length and by the bounds of this crate.
///
/// # Errors
/// [`Problems`]: all that is wrong with it.
pub fn parse(name: &str, text: &str) -> Result<Loaded, Problems> {
    parse_with(name, text, &|_| Vec::new())
}

/// The same, where a policy without errors is also shown to `check`: what that complains about is
/// told with its place in the file.
///
/// # Errors
/// [`Problems`]: all that is wrong with it; of `check`, if nothing else is.
pub fn parse_with(
    name: &str,
    text: &str,
    check: &dyn Fn(&Policy) -> Vec<Complaint>,
) -> Result<Loaded, Problems> {
    if text.len() > MAX_FILE_BYTES {
        let message = too_large();
        return Err(without_place(
            name,
            message,
            Some("split it into several policies"),
        ));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = Source::new(name, text);
    let report = Report::new(&source);
    let policy = read_policy(text, &report, check);
    let (problems, has_errors) = report.finish();
    match policy {
        Some(policy) if !has_errors => Ok(Loaded {
            policy,
            warnings: problems.problems,
            omitted_warnings: problems.omitted,
        }),
        _ => Err(problems),
    }
}

fn read_policy(
    text: &str,
    report: &Report<'_>,
    check: &dyn Fn(&Policy) -> Vec<Complaint>,
) -> Option<Policy> {
    let tree = yaml::parse(text, report)?;
    let file = if tree.is_null() {
        PolicyFile::default()
    } else {
        yaml::read(&tree, report)?
    };
    let policy = compile(&file, report);
    if report.errors() == 0 {
        complaint::tell_all(check(&policy), &file, report);
    }
    Some(policy)
}

fn without_place(file: &str, message: String, help: Option<&str>) -> Problems {
    let problem = Problem {
        severity: Severity::Error,
        file: file.to_owned(),
        message,
        help: help.map(str::to_owned),
        excerpt: None,
        related: None,
    };
    Problems {
        problems: vec![problem],
        omitted: 0,
    }
}
