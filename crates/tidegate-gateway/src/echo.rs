//! The built-in upstream: answers with what it was asked.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Request, Response};
use tidegate_http::extract;

use crate::answer::Local;

/// Method, path and header as an upstream sees them, as JSON. Header values are text, with
/// what is no UTF-8 replaced; a repeated field is its values joined.
pub(crate) fn answer<B>(request: &Request<B>) -> Local {
    let value = |name: &HeaderName| {
        let value = extract::header(request.headers(), name.as_str()).unwrap_or_default();
        serde_json::Value::from(String::from_utf8_lossy(&value))
    };
    let headers = request
        .headers()
        .keys()
        .map(|name| (name.as_str().to_owned(), value(name)));
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let body = serde_json::json!({
        "method": request.method().as_str(),
        "path": target,
        "headers": headers.collect::<serde_json::Map<_, _>>(),
    });
    let mut response = Response::new(Bytes::from(format!("{body:#}\n")));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
