//! Traces: requests with their times, one JSON object a line.
//!
//! A line is a request, all of it optional but `at_ns`:
//!
//! ```json
//! {"at_ns":0,"client_ip":"192.0.2.1","method":"GET","host":"a","path":"/?q=1",
//!  "headers":{"user-id":"7","blob":{"base64":"/w=="}},"permits":1}
//! ```
//!
//! (`"headers"` may also be a list of `[name, value]`; `"limits":["a","b"]` names limits instead of
//! a route; `"timeout_ns"` is how long the caller would wait; `"peek":true` takes nothing), or a
//! reload, `{"at_ns":5,"policy":"other.yaml"}`, or the end of the request of an earlier line (they
//! count from 1), `{"at_ns":9,"release":3}`. Blank lines are passed over.

mod raw;

use std::fmt;
use std::io::{self, BufRead, Read};
use std::net::IpAddr;

use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Uri};

/// Longest line, in bytes.
pub const MAX_LINE_BYTES: usize = 1 << 20;
/// Most headers of a request.
pub const MAX_HEADERS: usize = 1_000;

/// One line of a trace.
#[derive(Debug)]
pub enum TraceLine {
    /// A request comes.
    Request(Box<TraceRequest>),
    /// Another policy comes into force.
    Reload {
        /// When, in nanoseconds.
        at_ns: u64,
        /// The policy file, from the folder of the trace.
        policy: String,
    },
    /// The request of an earlier line ends.
    Release {
        /// When, in nanoseconds.
        at_ns: u64,
        /// The line of the request, from 1.
        line: usize,
    },
}

/// A request of a trace.
#[derive(Debug)]
pub struct TraceRequest {
    /// When it comes, in nanoseconds.
    pub at_ns: u64,
    /// Who sends it.
    pub client_ip: Option<IpAddr>,
    /// Method, target, and headers (`Host` among them).
    pub parts: Parts,
    /// How many permits it takes.
    pub permits: u64,
    /// The limits that it meets, by name; `None` for those of its route.
    pub limits: Option<Vec<String>>,
    /// How long the caller would wait, in nanoseconds; `None` for as long as the limits allow.
    pub timeout_ns: Option<u64>,
    /// Whether it takes nothing.
    pub peek: bool,
}

impl TraceLine {
    /// When it happens, in nanoseconds.
    pub fn at_ns(&self) -> u64 {
        match self {
            Self::Request(request) => request.at_ns,
            Self::Reload { at_ns, .. } | Self::Release { at_ns, .. } => *at_ns,
        }
    }

    /// Reads one line.
    ///
    /// # Errors
    /// What is wrong with it, and the column where that shows (0 where it is the line as a whole).
    pub fn parse(text: &str) -> Result<Self, LineError> {
        let raw: raw::Line = serde_json::from_str(text).map_err(|error| LineError {
            column: error.column(),
            reason: reason(&error),
        })?;
        let whole = |reason: String| LineError { column: 0, reason };
        raw.into_line().map_err(whole)
    }
}

/// The text of a JSON error, without the place that we tell ourselves.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ")
        .map_or(text.clone(), |end| text[..end].to_owned())
}

/// Why a line is no line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The column, from 1; 0 for the line as a whole.
    pub column: usize,
    /// What is wrong.
    pub reason: String,
}

/// Why a trace cannot be read on.
#[derive(Debug)]
pub enum TraceError {
    /// Reading failed.
    Io(io::Error),
    /// A line is wrong.
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong with it.
        error: LineError,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(_) => f.write_str("the trace cannot be read"),
            Self::Line {
                line,
                error: LineError { column: 0, reason },
            } => {
                write!(f, "line {line}: {reason}")
            }
            Self::Line {
                line,
                error: LineError { column, reason },
            } => {
                write!(f, "line {line}, column {column}: {reason}")
            }
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Line { .. } => None,
        }
    }
}

/// Reads a trace line by line, in bounded memory.
#[derive(Debug)]
pub struct TraceReader<R> {
    input: R,
    line: usize,
    bytes: Vec<u8>,
}

impl<R: BufRead> TraceReader<R> {
    /// Reads from `input`.
    pub const fn new(input: R) -> Self {
        Self {
            input,
            line: 0,
            bytes: Vec::new(),
        }
    }

    fn next_line(&mut self) -> Result<Option<TraceLine>, TraceError> {
        loop {
            self.bytes.clear();
            self.line += 1;
            let wrong = |line, reason: &str| TraceError::Line {
                line,
                error: LineError {
                    column: 0,
                    reason: reason.to_owned(),
                },
            };
            let limit = MAX_LINE_BYTES as u64 + 1;
            let read = self
                .input
                .by_ref()
                .take(limit)
                .read_until(b'\n', &mut self.bytes);
            if read.map_err(TraceError::Io)? == 0 {
                return Ok(None);
            }
            if self.bytes.len() > MAX_LINE_BYTES {
                return Err(wrong(self.line, "a line has at most 1 MiB"));
            }
            let Ok(text) = std::str::from_utf8(&self.bytes) else {
                return Err(wrong(
                    self.line,
                    "a trace is UTF-8 text; bytes go as base64",
                ));
            };
            if text.trim().is_empty() {
                continue;
            }
            let line = self.line;
            let parsed = TraceLine::parse(text.trim_end());
            return parsed
                .map(Some)
                .map_err(|error| TraceError::Line { line, error });
        }
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    /// The number of the line, and what it says.
    type Item = Result<(usize, TraceLine), TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_line()
            .map(|line| line.map(|line| (self.line, line)))
            .transpose()
    }
}

/// The head of a request.
fn head(
    method: &str,
    host: Option<&str>,
    target: &str,
    headers: Vec<(String, Vec<u8>)>,
) -> Result<Parts, String> {
    let method: Method = method
        .parse()
        .map_err(|_| format!("`{method}` is no method"))?;
    let uri: Uri = target
        .parse()
        .map_err(|_| format!("`{target}` is no path"))?;
    if !target.starts_with('/') && target != "*" && uri.scheme().is_none() {
        return Err(format!("`{target}` is no path: it begins with `/`"));
    }
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = method;
    parts.uri = uri;
    if let Some(host) = host {
        let value = HeaderValue::from_str(host).map_err(|_| format!("`{host}` is no host"))?;
        parts.headers.insert(http::header::HOST, value);
    }
    if headers.len() > MAX_HEADERS {
        return Err(format!("{} headers: at most {MAX_HEADERS}", headers.len()));
    }
    for (name, value) in headers {
        let parsed: HeaderName = name
            .parse()
            .map_err(|_| format!("`{name}` is no name of a header"))?;
        let value = HeaderValue::from_bytes(&value)
            .map_err(|_| format!("the value of the header `{name}` has control characters"))?;
        parts.headers.append(parsed, value);
    }
    Ok(parts)
}

#[cfg(test)]
mod tests;
