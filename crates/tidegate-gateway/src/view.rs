//! A request as the policy sees it.

use std::borrow::Cow;
use std::net::IpAddr;

use http::request::Parts;
use http::{HeaderMap, Method, Uri};
use tidegate_http::extract;
use tidegate_policy::Request;

/// An HTTP request, for routes and keys.
///
/// ```
/// use tidegate_gateway::RequestView;
/// use tidegate_policy::Request;
///
/// let (parts, ()) = http::Request::get("/a/%62?user=7").header("host", "example.com:8080")
///     .body(())?
///     .into_parts();
/// let view = RequestView::new(&parts, Some("192.0.2.1".parse()?));
/// assert_eq!(view.path(), "/a/b");
/// assert_eq!(view.host(), Some("example.com"));
/// assert_eq!(view.query("user").as_deref(), Some(&b"7"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RequestView<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    client_ip: Option<IpAddr>,
    path: Cow<'a, str>,
}

impl<'a> RequestView<'a> {
    /// `parts`, sent by `client_ip` (found through trusted proxies already).
    pub fn new(parts: &'a Parts, client_ip: Option<IpAddr>) -> Self {
        Self::made_of(&parts.method, &parts.uri, &parts.headers, client_ip)
    }

    /// `request`, sent by `client_ip` (found through trusted proxies already).
    pub fn of<B>(request: &'a http::Request<B>, client_ip: Option<IpAddr>) -> Self {
        Self::made_of(
            request.method(),
            request.uri(),
            request.headers(),
            client_ip,
        )
    }

    fn made_of(
        method: &'a Method,
        uri: &'a Uri,
        headers: &'a HeaderMap,
        client_ip: Option<IpAddr>,
    ) -> Self {
        Self {
            method,
            uri,
            headers,
            client_ip,
            path: extract::path(uri),
        }
    }
}

impl Request for RequestView<'_> {
    fn client_ip(&self) -> Option<IpAddr> {
        self.client_ip
    }

    fn method(&self) -> &str {
        self.method.as_str()
    }

    fn host(&self) -> Option<&str> {
        extract::host(self.uri, self.headers)
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        extract::header(self.headers, name)
    }

    fn cookie(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        extract::cookie(self.headers, name)
    }

    fn query(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        extract::query(self.uri, name)
    }
}
