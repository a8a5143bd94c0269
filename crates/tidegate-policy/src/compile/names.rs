//! Names of limits and upstreams, and who uses them.

use std::collections::HashMap;
use std::ops::Range;

use crate::file::{Field, Map};
use crate::quote::quote;
use crate::report::{Finding, Report};
use crate::source::Span;
use crate::suggest::closest;

/// Longest name of a limit, route or upstream, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 100;

/// What routes name.
#[derive(Debug)]
pub(super) struct Names<'f> {
    pub(super) limits: NameSet<'f>,
    /// Which rules each limit becomes.
    pub(super) rules: Vec<Range<usize>>,
    pub(super) upstreams: NameSet<'f>,
}

/// The names of one kind of thing, and which of them are used.
#[derive(Debug)]
pub(super) struct NameSet<'f> {
    /// `limit` or `upstream`.
    kind: &'static str,
    /// In the order of the file, with their places.
    names: Vec<(&'f str, Span)>,
    indices: HashMap<&'f str, usize>,
    used: Vec<bool>,
    /// Whether what uses them could be read in full: else "unused" would be a guess.
    pub(super) all_seen: bool,
}

impl<'f> NameSet<'f> {
    pub(super) fn of<T>(kind: &'static str, map: &'f Field<Map<T>>, report: &Report<'_>) -> Self {
        let names: Vec<_> = map
            .get()
            .into_iter()
            .flat_map(Map::iter)
            .map(|(name, place, _)| (name, place))
            .collect();
        for &(name, place) in &names {
            check_name(name, place, report);
        }
        let indices = names
            .iter()
            .enumerate()
            .map(|(index, &(name, _))| (name, index))
            .collect();
        let used = vec![false; names.len()];
        Self {
            kind,
            names,
            indices,
            used,
            all_seen: !map.is_wrong(),
        }
    }

    /// The index of `name`, which is used from now on.
    pub(super) fn use_name(&mut self, name: &str) -> Option<usize> {
        let index = self.indices.get(name).copied();
        match index {
            Some(index) => self.used[index] = true,
            // It may be a misspelling of one that then seems unused.
            None => self.all_seen = false,
        }
        index
    }

    /// The index of `name` and where it stands, without using it.
    pub(super) fn find(&self, name: &str) -> Option<(usize, Span)> {
        let &index = self.indices.get(name)?;
        self.names.get(index).map(|&(_, place)| (index, place))
    }

    /// What to do about a name that is none.
    pub(super) fn suggest(&self, name: &str, report: &Report<'_>) -> String {
        let kind = self.kind;
        if !report.has_room() || self.names.is_empty() {
            return format!("write it under `{kind}s:`");
        }
        match closest(name, self.names.iter().map(|&(name, _)| name)) {
            Some(meant) => format!("did you mean {}?", quote(meant)),
            None if self.names.len() <= 5 => {
                let known: Vec<_> = self.names.iter().map(|&(name, _)| quote(name)).collect();
                format!(
                    "write it under `{kind}s:`, or name one of {}",
                    known.join(", ")
                )
            }
            None => format!("write it under `{kind}s:`"),
        }
    }

    pub(super) fn report_unused(&self, report: &Report<'_>) {
        let kind = self.kind;
        if !self.all_seen {
            return;
        }
        for (&(name, place), _) in self
            .names
            .iter()
            .zip(&self.used)
            .filter(|(_, used)| !**used)
        {
            let message = format!("no route uses the {kind} {}", quote(name));
            let help = match kind {
                "limit" => format!("add it to a route: `limits: [{name}]`"),
                _ => format!("add a route to it: `{kind}: {name}`"),
            };
            report.push(Finding::warning(place, message).help(help));
        }
    }
}

/// Names go into headers, metrics and logs: nothing that would have to be escaped there.
pub(super) fn check_name(name: &str, place: Span, report: &Report<'_>) {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_name_byte) {
        let message = format!("{} is no name", quote(name));
        report.push(Finding::error(place, message).help(format!(
            "a name is letters, digits and `-`, `_`, `.`, `:`, `/`; at most {MAX_NAME_BYTES}"
        )));
    }
}
