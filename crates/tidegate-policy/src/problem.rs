//! What is wrong with a policy file, drawn for whoever wrote it.

use std::fmt;

use annotate_snippets::{
    AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet, renderer::DecorStyle,
};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::source::Excerpt;

/// Something that is wrong, or likely to be, at one place of a policy file.
///
/// [`Display`](fmt::Display) draws it over several lines: what is wrong, the place, the text
/// there with a marker under it, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub(crate) severity: Severity,
    pub(crate) file: String,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// `None` where there is no place: the file cannot be read.
    pub(crate) excerpt: Option<Excerpt>,
    /// Another place that explains this one.
    pub(crate) related: Option<Excerpt>,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The policy is refused.
    Error,
    /// The policy holds, but is probably not what was meant.
    Warning,
}

impl Problem {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// The name of the file, as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1; 0 where the file cannot be read.
    pub fn line(&self) -> usize {
        self.excerpt.as_ref().map_or(0, |excerpt| excerpt.line)
    }

    /// The column in characters, from 1; 0 where the file cannot be read.
    pub fn column(&self) -> usize {
        self.excerpt.as_ref().map_or(0, |excerpt| excerpt.column)
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to write instead.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Draws it, in colour if asked to.
    pub fn render(&self, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(self.message.as_str()));
        group = match &self.excerpt {
            // The renderer would count columns from the cut.
            Some(excerpt) if excerpt.is_cut => group
                .element(self.origin(excerpt))
                .element(draw(excerpt, PRIMARY, None)),
            Some(excerpt) => group.element(draw(excerpt, PRIMARY, Some(&self.file))),
            None => group.element(Origin::path(self.file.as_str())),
        };
        if let Some(related) = &self.related {
            group = group.element(draw(related, AnnotationKind::Context, Some(&self.file)));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.decor_style(DecorStyle::Ascii).render(&[group])
    }

    fn origin(&self, excerpt: &Excerpt) -> Origin<'_> {
        Origin::path(self.file.as_str())
            .line(excerpt.line)
            .char_column(excerpt.column)
    }
}

/// An excerpt with its marker; `path` is drawn above it.
fn draw<'a>(excerpt: &'a Excerpt, kind: AnnotationKind, path: Option<&'a str>) -> Element<'a> {
    let annotation = kind
        .span(excerpt.marked.clone())
        .label(excerpt.label.as_deref());
    Snippet::source(excerpt.text.as_str())
        .line_start(excerpt.line)
        .path(path)
        .annotation(annotation)
        .into()
}

const PRIMARY: AnnotationKind = AnnotationKind::Primary;

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Problem {}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Problem", 7)?;
        fields.serialize_field("severity", &self.severity)?;
        fields.serialize_field("file", &self.file)?;
        fields.serialize_field("line", &self.line())?;
        fields.serialize_field("column", &self.column())?;
        fields.serialize_field("message", &self.message)?;
        fields.serialize_field("help", &self.help)?;
        let text = self.excerpt.as_ref().map(|excerpt| excerpt.text.as_str());
        fields.serialize_field("text", &text)?;
        fields.end()
    }
}

/// All that is wrong with a policy file, in the order of the file; warnings too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    pub(crate) problems: Vec<Problem>,
    /// How many more there are than [`Problems::MAX`].
    pub(crate) omitted: usize,
}

impl Problems {
    /// Most problems that are told of one file.
    pub const MAX: usize = 100;

    /// Each of them; at least one is an error.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.problems.iter()
    }

    /// The first error: what to say where there is room for one.
    pub fn first_error(&self) -> Option<&Problem> {
        self.problems
            .iter()
            .find(|problem| problem.severity == Severity::Error)
    }

    /// How many more there are than are told.
    pub fn omitted(&self) -> usize {
        self.omitted
    }

    /// Draws all of them, in colour if asked to.
    pub fn render(&self, color: bool) -> String {
        let mut drawn: Vec<_> = self.iter().map(|problem| problem.render(color)).collect();
        if self.omitted > 0 {
            drawn.push(format!("... and {} more", self.omitted));
        }
        drawn.join("\n\n")
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Problems {}

impl Serialize for Problems {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.problems.serialize(serializer)
    }
}
