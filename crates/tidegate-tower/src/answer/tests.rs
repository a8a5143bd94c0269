use std::time::Duration;

use http::header::ACCEPT;
use tidegate::{Retry, Verdict};

use super::*;

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

fn decision(retry: Retry) -> Decision {
    Decision {
        verdict: Verdict::Denied { retry },
        limit: 5,
        remaining: 0,
        reset_after: Duration::ZERO,
    }
}

fn respond(answer: &Answer, accept: &'static str, retry: Retry) -> Response<Bytes> {
    let mut request = HeaderMap::new();
    if !accept.is_empty() {
        request.insert(ACCEPT, HeaderValue::from_static(accept));
    }
    let decision = decision(retry);
    let refused = Refused {
        limit: "a/b",
        decision: &decision,
    };
    let target = Uri::from_static("/shop?item=1&x='");
    answer.response(&request, &target, refused)
}

fn in_two_seconds() -> Retry {
    Retry::After(Duration::from_millis(1_001))
}

#[test]
fn without_pages_the_problem_is_told() {
    let answer = Answer::new(StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.is_plain());
    let response = respond(&answer, "text/html", in_two_seconds());
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()[CONTENT_TYPE], PROBLEM_JSON);
    let body = std::str::from_utf8(response.body()).unwrap();
    assert!(body.contains("\"status\":503"), "{body}");
    assert!(body.contains("`a/b` allows this request in 2 s"), "{body}");
}

#[test]
fn the_client_gets_the_page_that_it_accepts() {
    let answer = Answer::new(StatusCode::TOO_MANY_REQUESTS)
        .page(HTML, "<p>{limit}: {retry_after} s {uri}</p>")
        .page(HeaderValue::from_static("text/plain"), "wait");
    for (accept, content_type, body) in [
        ("", "text/html; charset=utf-8", "<p>a/b: 2 s {uri}</p>"),
        ("text/plain", "text/plain", "wait"),
        ("*/*", "text/html; charset=utf-8", "<p>a/b: 2 s {uri}</p>"),
    ] {
        let response = respond(&answer, accept, in_two_seconds());
        assert_eq!(response.headers()[CONTENT_TYPE], content_type, "{accept}");
        assert_eq!(response.body(), body, "{accept}");
        assert_eq!(response.headers()[VARY], "accept");
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    }
    let response = respond(&answer, "application/json", in_two_seconds());
    assert_eq!(response.headers()[CONTENT_TYPE], PROBLEM_JSON);
}

#[test]
fn a_wait_that_nobody_knows_leaves_its_place_empty() {
    let answer = Answer::new(StatusCode::TOO_MANY_REQUESTS).page(HTML, "[{retry_after}]");
    assert_eq!(respond(&answer, "", Retry::Never).body(), "[]");
    assert_eq!(respond(&answer, "", Retry::OnRelease).body(), "[1]");
}

#[test]
fn a_redirect_says_where_the_client_came_from_and_lets_nothing_through_as_it_is() {
    let answer = Answer::redirect(
        StatusCode::FOUND,
        "https://example.com/busy?from={uri}&l={limit}&in={retry_after}",
    );
    let response = respond(&answer, "", in_two_seconds());
    assert_eq!(response.status(), 302);
    assert_eq!(
        response.headers()[LOCATION],
        "https://example.com/busy?from=%2Fshop%3Fitem%3D1%26x%3D%27&l=a%2Fb&in=2"
    );
    assert!(response.body().is_empty());
}

#[test]
fn fields_of_the_policy_stand_in_the_header() {
    let answer = Answer::new(StatusCode::OK)
        .header(CACHE_CONTROL, HeaderValue::from_static("max-age=5"))
        .page(HTML, "less");
    let response = respond(&answer, "", in_two_seconds());
    assert_eq!(response.headers().get_all(CACHE_CONTROL).iter().count(), 1);
    assert_eq!(response.headers()[CACHE_CONTROL], "max-age=5");
}
