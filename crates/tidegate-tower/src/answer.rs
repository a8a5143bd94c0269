//! What a refused request is answered with.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri};
use tidegate::Decision;
use tidegate_http::headers::retry_after_seconds;
use tidegate_http::{PROBLEM_JSON, Problem};

use crate::accept;
use crate::template::{Place, Template};

/// Who refused a request.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    /// The limit's name.
    pub limit: &'a str,
    /// What it said.
    pub decision: &'a Decision,
}

/// What a refused request is answered with.
///
/// ```
/// use http::{HeaderMap, StatusCode};
/// use tidegate::{Decision, Retry, Verdict};
/// use tidegate_tower::{Answer, Refused};
///
/// let busy = Answer::new(StatusCode::SERVICE_UNAVAILABLE)
///     .page("text/html; charset=utf-8".parse()?, "Come back in {retry_after} seconds.");
/// let retry = Retry::After(std::time::Duration::from_millis(4_200));
/// let decision = Decision {
///     verdict: Verdict::Denied { retry },
///     limit: 10,
///     remaining: 0,
///     reset_after: std::time::Duration::from_secs(9),
/// };
/// let refused = Refused { limit: "visitors", decision: &decision };
/// let response = busy.response(&HeaderMap::new(), &"/".parse()?, refused);
/// assert_eq!(response.status(), 503);
/// assert_eq!(response.body(), "Come back in 5 seconds.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Empty: a problem.
    Pages(Vec<Page>),
    Redirect(Template),
}

/// A body, with places to fill in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Page {
    content_type: HeaderValue,
    body: Template,
}

const PROBLEM_TYPES: [&str; 2] = [PROBLEM_JSON, "application/json"];

impl Answer {
    /// An answer with a problem in JSON (RFC 9457) that says which limit refused, and when to come
    /// again.
    pub fn new(status: StatusCode) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            kind: Kind::Pages(Vec::new()),
        }
    }

    /// A redirect to `to`, a URL or a path in ASCII. `{limit}`, `{retry_after}` (in seconds) and
    /// `{uri}` (the target of the request) in it are filled in, percent-encoded.
    pub fn redirect(status: StatusCode, to: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            kind: Kind::Redirect(Template::new(to)),
        }
    }

    /// The same with another body to choose from, by what the client accepts. Where it does not
    /// say, it gets the first. `{limit}` and `{retry_after}` (in seconds) in it are filled in.
    /// Clients that want JSON and are offered none get the problem.
    #[must_use]
    pub fn page(mut self, content_type: HeaderValue, body: impl Into<Bytes>) -> Self {
        let body = Template::new(body);
        if let Kind::Pages(pages) = &mut self.kind {
            pages.push(Page { content_type, body });
        }
        self
    }

    /// The same with another field in its header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Its status.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Whether it is nothing but a status and a problem.
    pub fn is_plain(&self) -> bool {
        self.headers.is_empty() && matches!(&self.kind, Kind::Pages(pages) if pages.is_empty())
    }

    /// The answer to a request with these fields and this target.
    ///
    /// What the limit says in fields of its own (`RateLimit`, `Retry-After`) is for the caller to
    /// add.
    pub fn response(
        &self,
        request: &HeaderMap,
        target: &Uri,
        refused: Refused<'_>,
    ) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.clone_from(&self.headers);
        // It holds for this request now, and for no other.
        let no_store = HeaderValue::from_static("no-store");
        headers.entry(CACHE_CONTROL).or_insert(no_store);
        match &self.kind {
            Kind::Pages(pages) => {
                let (content_type, body) = choose(pages, request, self.status, refused);
                headers.insert(CONTENT_TYPE, content_type);
                if !pages.is_empty() {
                    headers.append(VARY, HeaderValue::from_static("accept"));
                }
                *response.body_mut() = body;
            }
            Kind::Redirect(to) => {
                let to = to.fill(|place, out| write_encoded(place, target, refused, out));
                // Templates are ASCII, and so is what is percent-encoded.
                if let Ok(to) = HeaderValue::from_maybe_shared(to) {
                    headers.insert(LOCATION, to);
                }
            }
        }
        response
    }
}

/// The body that the client wants, and its type.
fn choose(
    pages: &[Page],
    request: &HeaderMap,
    status: StatusCode,
    refused: Refused<'_>,
) -> (HeaderValue, Bytes) {
    let mut offered: Vec<&str> = pages
        .iter()
        .map(|page| essence(&page.content_type))
        .collect();
    let has_json = offered
        .iter()
        .any(|offered| PROBLEM_TYPES.contains(offered));
    if !has_json {
        offered.extend(PROBLEM_TYPES);
    }
    let Some(page) = pages.get(accept::best(request, &offered)) else {
        let Refused { limit, decision } = refused;
        let problem = Problem::quota_exceeded(status, [limit], limit, decision);
        let body = Bytes::from(problem.to_json());
        return (HeaderValue::from_static(PROBLEM_JSON), body);
    };
    let body = page.body.fill(|place, out| write(place, refused, out));
    (page.content_type.clone(), body)
}

/// A media type without its parameters.
fn essence(content_type: &HeaderValue) -> &str {
    let text = content_type.to_str().unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim()
}

fn write(place: Place, refused: Refused<'_>, out: &mut Vec<u8>) {
    match place {
        Place::Limit => out.extend_from_slice(refused.limit.as_bytes()),
        Place::RetryAfter => {
            if let Some(seconds) = retry_after_seconds(refused.decision) {
                out.extend_from_slice(seconds.to_string().as_bytes());
            }
        }
        // Of pages: the target of a request is anything at all, and no text for a page.
        Place::Uri => out.extend_from_slice(b"{uri}"),
    }
}

fn write_encoded(place: Place, target: &Uri, refused: Refused<'_>, out: &mut Vec<u8>) {
    match place {
        Place::Uri => {
            let target = target
                .path_and_query()
                .map_or("/", |target| target.as_str());
            encode(target.as_bytes(), out);
        }
        Place::Limit | Place::RetryAfter => {
            let mut plain = Vec::new();
            write(place, refused, &mut plain);
            encode(&plain, out);
        }
    }
}

/// Percent-encodes all but what is unreserved (RFC 3986 section 2.3).
fn encode(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            out.push(b'%');
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
        }
    }
}

#[cfg(test)]
mod tests;
