use http::HeaderValue;

use super::*;

fn headers(lines: &[(&'static str, &[u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_bytes(value).unwrap());
    }
    headers
}

#[track_caller]
fn check_host(target: &str, header: &str, host_found: Option<&str>) {
    let headers = headers(&[("host", header.as_bytes())]);
    assert_eq!(host(&target.parse().unwrap(), &headers), host_found);
}

#[test]
fn the_host_is_without_its_port() {
    check_host("/", "example.com", Some("example.com"));
    check_host("/", "Example.com:8080", Some("Example.com"));
    check_host("/", "[::1]", Some("[::1]"));
    check_host("/", "[::1]:8080", Some("[::1]"));
    check_host("/", "", None);
    check_host("/", ":80", None);
    assert_eq!(host(&Uri::from_static("/"), &HeaderMap::new()), None);
    assert_eq!(
        host(&Uri::from_static("/"), &headers(&[("host", b"\xff")])),
        None
    );
}

#[test]
fn the_authority_of_an_absolute_target_wins_over_host() {
    check_host("http://a.example/x", "b.example", Some("a.example"));
    check_host("http://a.example:81/x", "b.example", Some("a.example"));
    check_host("http://user@a.example:81/x", "b.example", Some("a.example"));
    check_host(
        "http://[2001:db8::1]:81/x",
        "b.example",
        Some("[2001:db8::1]"),
    );
}

#[track_caller]
fn check_path(target: &str, path_found: &str) {
    assert_eq!(path(&target.parse().unwrap()), path_found);
}

#[test]
fn a_stray_percent_makes_no_escape_with_what_follows() {
    check_path("/%%41B", "/%25AB");
    check_path("/%%63E", "/%25cE");
    check_path("/%25cE", "/%25cE");
}

#[test]
fn a_plain_path_is_as_it_came() {
    for plain in ["/", "/a", "/a/b/", "/a.b/c..d/e.", "/a~b-c_d", "/a;b=c/d,e"] {
        check_path(plain, plain);
        assert!(matches!(path(&plain.parse().unwrap()), Cow::Borrowed(_)));
    }
    check_path("/a?b=/../c", "/a");
    check_path("http://example.com/a/b?c", "/a/b");
    check_path("http://example.com", "/");
    check_path("*", "*");
}

#[test]
fn spellings_of_one_path_are_one_path() {
    check_path("/%61pi", "/api");
    check_path("/a%2db%2Dc%2e%5f%7e", "/a-b-c._~");
    check_path("//api//x", "/api/x");
    check_path("/./api", "/api");
    check_path("/api/.", "/api/");
    check_path("/x/../api", "/api");
    check_path("/x/%2e%2E/api", "/api");
    check_path("/../../api", "/api");
    check_path("/api/x/..", "/api/");
    check_path("/api//", "/api/");
    check_path("//", "/");
    check_path("/..", "/");
    check_path("/.well-known/x", "/.well-known/x");
    check_path("/...", "/...");
}

#[test]
fn what_a_server_may_tell_apart_stays_apart() {
    check_path("/a%2fb", "/a%2Fb");
    check_path("/a%2Fb", "/a%2Fb");
    check_path("/%c3%a9", "/%C3%A9");
    check_path("/a%20b", "/a%20b");
    check_path("/a%25", "/a%25");
    check_path("/100%", "/100%25");
    check_path("/%zz/%4", "/%25zz/%254");
    check_path("/%2561", "/%2561");
}

#[test]
fn repeated_headers_are_joined_in_order() {
    let headers = headers(&[
        ("x-user", b"a"),
        ("other", b"-"),
        ("x-user", b"b"),
        ("x-user", b""),
    ]);
    assert_eq!(header(&headers, "x-user").unwrap(), &b"a, b, "[..]);
    assert!(matches!(
        header(&headers, "other"),
        Some(Cow::Borrowed(b"-"))
    ));
    assert_eq!(header(&headers, "missing"), None);
}

#[test]
fn a_header_that_is_not_utf8_is_bytes() {
    let headers = headers(&[("x-user", b"\xff\xfe"), ("x-user", b"\x80")]);
    assert_eq!(header(&headers, "x-user").unwrap(), &b"\xff\xfe, \x80"[..]);
}

#[test]
fn cookies_are_found_by_name() {
    let headers = headers(&[
        ("cookie", b"a=1; session=\"x y\";b = 2 "),
        ("cookie", b"a=3;c=d=e"),
    ]);
    let check = |name: &str, value: Option<&[u8]>| {
        assert_eq!(cookie(&headers, name).as_deref(), value, "{name}");
    };
    check("a", Some(b"1"));
    check("session", Some(b"x y"));
    check("b", Some(b"2"));
    check("c", Some(b"d=e"));
    check("A", None);
    check("", None);
    assert_eq!(
        cookie(&self::headers(&[("cookie", b"novalue; ;=")]), "novalue"),
        None
    );
    assert_eq!(
        cookie(&self::headers(&[("cookie", b"a=\"")]), "a").unwrap(),
        &b"\""[..]
    );
}

#[track_caller]
fn check_query(target: &str, name: &str, value: Option<&[u8]>) {
    assert_eq!(query(&target.parse().unwrap(), name).as_deref(), value);
}

#[test]
fn query_values_are_decoded_and_the_first_counts() {
    check_query("/?user=7", "user", Some(b"7"));
    check_query("/?a=1&user=7&user=8", "user", Some(b"7"));
    check_query("/?user=a+b%20c%2B", "user", Some(b"a b c+"));
    check_query("/?us%65r=7", "user", Some(b"7"));
    check_query("/?user=%ff%00", "user", Some(b"\xff\x00"));
    check_query("/?user=%zz%4", "user", Some(b"%zz%4"));
    check_query("/?user=a=b", "user", Some(b"a=b"));
    check_query("/?user", "user", Some(b""));
    check_query("/?user=", "user", Some(b""));
    check_query("/?User=7", "user", None);
    check_query("/?&&=x", "user", None);
    check_query("/?&", "", None);
    check_query("/?=x", "", Some(b"x"));
    check_query("/", "user", None);
}
