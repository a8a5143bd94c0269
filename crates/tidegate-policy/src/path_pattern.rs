//! Patterns of paths: `/api/*/items/**`.

use std::fmt;
use std::str::FromStr;

/// A pattern of paths, segment by segment.
///
/// `*` is any text within a segment, `**` any number of whole segments (also none: `/api/**`
/// is `/api`, `/api/` and everything below), `{name}` one segment that has a name. A segment
/// that is only `*` or `{name}` is not empty. Case and a trailing slash matter. Paths are
/// compared in their normal form (RFC 3986 section 6.2.2), and patterns are written in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// This text.
    Literal(String),
    /// A text with `*` in it, each any text.
    Glob(String),
    /// One segment that is not empty.
    One,
    /// Any number of segments.
    Any,
}

impl PathPattern {
    /// Longest pattern, in bytes.
    pub const MAX_BYTES: usize = 1_024;

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether `path` is of this pattern. Allocates nothing.
    pub fn matches(&self, path: &str) -> bool {
        let mut rest = path.strip_prefix('/');
        if rest.is_none() {
            return false;
        }
        let mut index = 0;
        // Behind the last `**`: where the pattern goes on, and what it has not swallowed yet.
        let mut swallow = None;
        loop {
            match (self.segments.get(index), rest) {
                (Some(Segment::Any), _) => {
                    index += 1;
                    swallow = Some((index, rest));
                    continue;
                }
                (Some(segment), Some(text)) => {
                    let (head, tail) = split_segment(text);
                    if segment.matches(head) {
                        index += 1;
                        rest = tail;
                        continue;
                    }
                }
                (None, None) => return true,
                (Some(_), None) | (None, Some(_)) => {}
            }
            let Some((behind, Some(text))) = swallow else {
                return false;
            };
            if behind == self.segments.len() {
                return true;
            }
            rest = split_segment(text).1;
            index = behind;
            swallow = Some((behind, rest));
        }
    }

    /// Whether every path of `other` is surely one of this pattern too. False may mean that
    /// nobody has found out.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        // `reached[i]`: the first i segments of this pattern can swallow what was read of
        // `other` so far.
        let mut reached = vec![false; self.segments.len() + 1];
        reached[0] = true;
        self.skip_any(&mut reached);
        for theirs in &other.segments {
            let mut next = vec![false; reached.len()];
            for (i, ours) in self.segments.iter().enumerate() {
                if *ours == Segment::Any {
                    next[i + 1] |= reached[i + 1];
                } else if reached[i] && ours.covers(theirs) {
                    next[i + 1] = true;
                }
            }
            self.skip_any(&mut next);
            reached = next;
        }
        reached.last() == Some(&true)
    }

    /// `**` may swallow nothing.
    fn skip_any(&self, reached: &mut [bool]) {
        for (i, segment) in self.segments.iter().enumerate() {
            if *segment == Segment::Any {
                reached[i + 1] |= reached[i];
            }
        }
    }

    /// The segments up to the first that is no plain text.
    pub(crate) fn literal_prefix(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().map_while(|segment| match segment {
            Segment::Literal(text) => Some(text.as_str()),
            _ => None,
        })
    }
}

impl Segment {
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Literal(literal) => literal == text,
            Self::Glob(glob) => glob_matches(glob.as_bytes(), text.as_bytes()),
            Self::One => !text.is_empty(),
            Self::Any => true,
        }
    }

    /// Whether every segment of `other` is surely one of this, which is not `**`. Where `other`
    /// is, nothing but `**` covers it.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Literal(text)) => self.matches(text),
            // There is more than `*` in a glob, so that it is never empty.
            (Self::One, Self::One | Self::Glob(_)) => true,
            (Self::Glob(ours), Self::Glob(theirs)) => ours == theirs,
            _ => false,
        }
    }
}

impl FromStr for PathPattern {
    type Err = PathPatternError;

    fn from_str(text: &str) -> Result<Self, PathPatternError> {
        if text.len() > Self::MAX_BYTES {
            return Err(PathPatternError::TooLong);
        }
        let inner = text.strip_prefix('/').ok_or(PathPatternError::NoSlash)?;
        if text.contains(['?', '#']) {
            return Err(PathPatternError::Query);
        }
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(PathPatternError::Space);
        }
        if !is_normal(inner) {
            return Err(PathPatternError::NotNormal);
        }
        let segments = inner
            .split('/')
            .map(parse_segment)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            text: text.to_owned(),
            segments,
        })
    }
}

fn parse_segment(text: &str) -> Result<Segment, PathPatternError> {
    if text == "**" {
        return Ok(Segment::Any);
    }
    if text.contains("**") {
        return Err(PathPatternError::DoubleStarInSegment);
    }
    if text == "*" {
        return Ok(Segment::One);
    }
    if text.contains(['{', '}']) {
        let name = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        return match name {
            Some(name) if !name.is_empty() && name.bytes().all(is_name_byte) => Ok(Segment::One),
            _ => Err(PathPatternError::Capture),
        };
    }
    if text.contains('*') {
        return Ok(Segment::Glob(text.to_owned()));
    }
    Ok(Segment::Literal(text.to_owned()))
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a text is no pattern of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPatternError {
    /// Longer than [`PathPattern::MAX_BYTES`].
    TooLong,
    /// It does not start with `/`.
    NoSlash,
    /// There is a `?` or `#` in it.
    Query,
    /// There is a space or a control character in it.
    Space,
    /// Requests have such a path in another form.
    NotNormal,
    /// `**` is only a part of a segment.
    DoubleStarInSegment,
    /// `{` or `}` that is not around a whole segment, or around no name.
    Capture,
}

impl fmt::Display for PathPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => {
                write!(
                    f,
                    "a path pattern has at most {} bytes",
                    PathPattern::MAX_BYTES
                )
            }
            Self::NoSlash => f.write_str("a path starts with `/`"),
            Self::Query => f.write_str("a path has no query and no fragment"),
            Self::Space => f.write_str("a path has no spaces"),
            Self::NotNormal => f.write_str("no request has this: paths are normalised first"),
            Self::DoubleStarInSegment => f.write_str("`**` stands alone between two slashes"),
            Self::Capture => f.write_str("a capture is a whole segment"),
        }
    }
}

impl std::error::Error for PathPatternError {}

impl PathPatternError {
    /// What to write instead.
    pub(crate) fn help(self) -> &'static str {
        match self {
            Self::TooLong => "use `*` or `**` for a part of it",
            Self::NoSlash => "write it with the `/`, such as `/api/**`",
            Self::Query => "routes look at the path alone; a key can have `query:NAME`",
            Self::Space => "write a space as `%20`, as clients send it",
            Self::NotNormal => NORMAL_FORM,
            Self::DoubleStarInSegment => {
                "write `*` for any text within a segment, `/**` for whatever follows"
            }
            Self::Capture => {
                "write `/{name}/` with letters, digits, `_` or `-` as the name; \
                 within a segment write `*`"
            }
        }
    }
}

/// The first segment, and what follows its `/`.
pub(crate) fn split_segment(text: &str) -> (&str, Option<&str>) {
    match text.split_once('/') {
        Some((head, tail)) => (head, Some(tail)),
        None => (text, None),
    }
}

/// How to write a path so that requests can have it.
pub(crate) const NORMAL_FORM: &str = "write it without `//`, `.` and `..`, unreserved characters \
     as themselves, others as `%C3%A9` in upper case";

/// Whether `path`, without its first `/`, is in the form that requests are brought into before
/// they are compared: no empty segments but the last, dots resolved, and percent-encoding as
/// RFC 3986 section 6.2.2 wants it.
pub(crate) fn is_normal(path: &str) -> bool {
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_gone = segment.is_empty() && segments.peek().is_some();
        if is_gone || segment == "." || segment == ".." {
            return false;
        }
    }
    let is_upper = |digits: &str| !digits.bytes().any(|byte| byte.is_ascii_lowercase());
    path.is_ascii()
        && path
            .match_indices('%')
            .all(|(at, _)| match path.get(at + 1..at + 3) {
                Some(digits) => match u8::from_str_radix(digits, 16).map(char::from) {
                    Ok('-' | '.' | '_' | '~' | 'a'..='z' | 'A'..='Z' | '0'..='9') => false,
                    Ok(_) => is_upper(digits),
                    // No encoding: it stays what it is.
                    Err(_) => true,
                },
                None => true,
            })
}

/// Each `*` in `glob` is any text, also none.
fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Behind the last `*`, and up to where it has swallowed.
    let mut star = None;
    loop {
        match (glob.get(at), text.get(read)) {
            (Some(b'*'), _) => {
                at += 1;
                star = Some((at, read));
            }
            (Some(a), Some(b)) if a == b => {
                at += 1;
                read += 1;
            }
            (None, None) => return true,
            _ => {
                let Some((behind, swallowed)) = star else {
                    return false;
                };
                if swallowed == text.len() {
                    return false;
                }
                star = Some((behind, swallowed + 1));
                at = behind;
                read = swallowed + 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
