//! Collects what is found wrong while a file is read, so that all of it is told at once.

use std::cell::RefCell;
use std::collections::HashSet;

use crate::problem::{Problem, Problems, Severity};
use crate::source::{Source, Span};

/// The findings about one source.
///
/// Shared by reference between the readers of a file: finding something wrong does not end the
/// reading.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    source: &'a Source<'a>,
    found: RefCell<Found>,
}

#[derive(Debug, Default)]
struct Found {
    /// With the place, to sort by.
    problems: Vec<(Span, Problem)>,
    errors: usize,
    omitted: usize,
    /// Where the maps stand in which a key was unknown.
    misread: HashSet<Span>,
}

/// Something that was found, before it is put into its place.
#[derive(Debug)]
#[must_use = "a finding is told only once it is pushed to a report"]
pub(crate) struct Finding {
    severity: Severity,
    span: Span,
    message: String,
    help: Option<String>,
    related: Option<(Span, String)>,
}

impl Finding {
    pub(crate) fn error(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, span, message.into())
    }

    pub(crate) fn warning(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, span, message.into())
    }

    fn new(severity: Severity, span: Span, message: String) -> Self {
        Self {
            severity,
            span,
            message,
            help: None,
            related: None,
        }
    }

    /// What to write instead.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Another place, and what it has to do with this one.
    pub(crate) fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related = Some((span, label.into()));
        self
    }
}

impl<'a> Report<'a> {
    pub(crate) fn new(source: &'a Source<'a>) -> Self {
        Self {
            source,
            found: RefCell::default(),
        }
    }

    pub(crate) fn source(&self) -> &'a Source<'a> {
        self.source
    }

    /// Adds a finding. The same one at the same place (through an alias) is told once.
    pub(crate) fn push(&self, finding: Finding) {
        let mut found = self.found.borrow_mut();
        let is_error = finding.severity == Severity::Error;
        found.errors += usize::from(is_error);
        // Errors make room for themselves: a hundred warnings must not hide one.
        if found.problems.len() >= Problems::MAX {
            found.omitted += 1;
            let warning = found
                .problems
                .iter()
                .rposition(|(_, told)| told.severity == Severity::Warning);
            match warning {
                Some(at) if is_error => drop(found.problems.remove(at)),
                _ => return,
            }
        }
        let excerpt = self.source.excerpt(finding.span);
        let related = finding.related.map(|(span, label)| {
            let mut excerpt = self.source.excerpt(span);
            excerpt.label = Some(label);
            excerpt
        });
        let problem = Problem {
            severity: finding.severity,
            file: self.source.name().to_owned(),
            message: finding.message,
            help: finding.help,
            excerpt: Some(excerpt),
            related,
        };
        let told = (finding.span, problem);
        if !found.problems.contains(&told) {
            found.problems.push(told);
        }
    }

    /// Notes that a key of the map at `place` was unknown: it may be one that seems to be missing.
    pub(crate) fn note_unknown_key(&self, place: Span) {
        self.found.borrow_mut().misread.insert(place);
    }

    /// Whether a key of the map at `place` was unknown.
    pub(crate) fn has_unknown_key(&self, place: Span) -> bool {
        self.found.borrow().misread.contains(&place)
    }

    /// Whether another finding would be told, or only counted.
    pub(crate) fn has_room(&self) -> bool {
        self.found.borrow().problems.len() < Problems::MAX
    }

    /// How many errors there are so far.
    pub(crate) fn errors(&self) -> usize {
        self.found.borrow().errors
    }

    /// Everything found, in the order of the source, and whether any of it is an error.
    pub(crate) fn finish(self) -> (Problems, bool) {
        let mut found = self.found.into_inner();
        found
            .problems
            .sort_by_key(|(span, problem)| (*span, problem.severity));
        let problems = found
            .problems
            .into_iter()
            .map(|(_, problem)| problem)
            .collect();
        (
            Problems {
                problems,
                omitted: found.omitted,
            },
            found.errors > 0,
        )
    }
}
