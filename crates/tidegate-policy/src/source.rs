//! The text of a policy file, and places in it.

use std::ops::Range;

use crate::quote::without_logins;

/// A stretch of a source, in bytes. Four bytes each: sources are at most
/// [`MAX_FILE_BYTES`](crate::MAX_FILE_BYTES) long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) fn new(range: Range<usize>) -> Self {
        let saturate = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            start: saturate(range.start),
            end: saturate(range.end),
        }
    }
}

/// A source with its name and where its lines begin.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    name: &'a str,
    text: &'a str,
    /// Offsets of the first byte of each line; never empty.
    lines: Vec<usize>,
}

/// A line of a source with something marked in it, cut to what a terminal shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// Counts from 1.
    pub(crate) line: usize,
    /// In characters, from 1.
    pub(crate) column: usize,
    pub(crate) text: String,
    /// Whether something before the marker was cut off.
    pub(crate) is_cut: bool,
    /// What is marked in `text`, in bytes.
    pub(crate) marked: Range<usize>,
    /// What stands at the marker.
    pub(crate) label: Option<String>,
}

/// Most characters that an excerpt has before its marker (the renderer shows fewer of them),
/// and from its marker on.
const EXCERPT_CHARS: (usize, usize) = (2_000, 100);

impl<'a> Source<'a> {
    pub(crate) fn new(name: &'a str, text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let lines = std::iter::once(0)
            .chain(ends.map(|(at, _)| at + 1))
            .collect();
        Self { name, text, lines }
    }

    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    /// The text at `span`; empty where there is none.
    pub(crate) fn slice(&self, span: Span) -> &'a str {
        self.text
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }

    /// The place at `line` and `column`, both from 1, the column in characters.
    pub(crate) fn span_at(&self, line: u64, column: u64) -> Span {
        let index = usize::try_from(line)
            .unwrap_or(0)
            .clamp(1, self.lines.len())
            - 1;
        let line = self.line_text(index);
        let skip = usize::try_from(column)
            .unwrap_or(usize::MAX)
            .saturating_sub(1);
        let (at, width) = line
            .char_indices()
            .nth(skip)
            .map_or((line.len(), 0), |(at, character)| {
                (at, character.len_utf8())
            });
        let start = self.lines[index] + at;
        Span::new(start..start + width)
    }

    /// The first line of `span`, marked.
    pub(crate) fn excerpt(&self, span: Span) -> Excerpt {
        let start = self.floor(span.start as usize);
        let index = self.lines.partition_point(|&line| line <= start) - 1;
        let line = self.line_text(index);
        let from = (start - self.lines[index]).min(line.len());
        let to = self
            .floor(span.end as usize)
            .saturating_sub(self.lines[index]);
        let to = to.clamp(from, line.len());

        let column = line[..from].chars().count() + 1;
        let left = line[..from]
            .char_indices()
            .rev()
            .nth(EXCERPT_CHARS.0)
            .map(|(at, _)| at);
        let right = line[from..]
            .char_indices()
            .nth(EXCERPT_CHARS.1)
            .map(|(at, _)| from + at);
        let (cut_left, cut_right) = (left.unwrap_or(0), right.unwrap_or(line.len()));
        let mut text = String::new();
        if left.is_some() {
            text.push('\u{2026}');
        }
        let shift = text.len();
        text.push_str(&line[cut_left..cut_right]);
        let marked = from - cut_left + shift..to.min(cut_right) - cut_left + shift;
        if right.is_some() {
            text.push('\u{2026}');
        }
        let text = without_logins(&text);
        let is_cut = left.is_some();
        Excerpt {
            line: index + 1,
            column,
            text,
            is_cut,
            marked,
            label: None,
        }
    }

    /// A line without its end.
    fn line_text(&self, index: usize) -> &'a str {
        let end = self
            .lines
            .get(index + 1)
            .copied()
            .unwrap_or(self.text.len());
        self.text[self.lines[index]..end].trim_end_matches(['\n', '\r'])
    }

    /// The nearest character boundary at or before `at`.
    fn floor(&self, at: usize) -> usize {
        self.text.floor_char_boundary(at.min(self.text.len()))
    }
}

#[cfg(test)]
mod tests;
