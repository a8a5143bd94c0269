use super::*;

fn request(text: &str) -> TraceRequest {
    match TraceLine::parse(text) {
        Ok(TraceLine::Request(request)) => *request,
        other => panic!("{other:?}"),
    }
}

fn reason(text: &str) -> (usize, String) {
    match TraceLine::parse(text) {
        Err(LineError { column, reason }) => (column, reason),
        Ok(line) => panic!("{line:?}"),
    }
}

#[test]
fn everything_but_the_time_has_a_default() {
    let request = request(r#"{"at_ns":7}"#);
    assert_eq!(
        (request.at_ns, request.permits, request.peek),
        (7, 1, false)
    );
    assert_eq!(request.parts.method, Method::GET);
    assert_eq!(request.parts.uri, "/");
    assert!(request.parts.headers.is_empty() && request.client_ip.is_none());
    assert!(request.limits.is_none() && request.timeout_ns.is_none());
}

#[test]
fn headers_are_a_map_or_a_list_and_values_text_or_base64() {
    let map = request(r#"{"at_ns":0,"headers":{"a":"1","b":{"base64":"/w=="},"a":"2"}}"#);
    let list = request(r#"{"at_ns":0,"headers":[["a","1"],["b",{"base64":"/w=="}],["a","2"]]}"#);
    for request in [map, list] {
        let all: Vec<_> = request.parts.headers.get_all("a").iter().collect();
        assert_eq!(all, ["1", "2"]);
        assert_eq!(request.parts.headers["b"].as_bytes(), [0xff]);
    }
}

#[test]
fn reloads_and_releases() {
    assert!(matches!(
        TraceLine::parse(r#"{"at_ns":5,"policy":"other.yaml"}"#),
        Ok(TraceLine::Reload { at_ns: 5, policy }) if policy == "other.yaml"
    ));
    assert!(matches!(
        TraceLine::parse(r#"{"at_ns":9,"release":3}"#),
        Ok(TraceLine::Release { at_ns: 9, line: 3 })
    ));
    assert!(
        reason(r#"{"at_ns":9,"release":3,"path":"/"}"#)
            .1
            .contains("nothing else")
    );
    assert!(
        reason(r#"{"at_ns":9,"release":3,"policy":"p"}"#)
            .1
            .contains("two lines")
    );
}

#[test]
fn what_is_wrong_is_said_with_its_column() {
    assert_eq!(reason("{").1, "EOF while parsing an object");
    assert!(reason("{}").1.contains("missing field `at_ns`"));
    assert!(
        reason(r#"{"at_ns":0,"pth":"/"}"#)
            .1
            .contains("unknown field `pth`")
    );
    let (column, text) = reason(r#"{"at_ns":0,"permits":"x"}"#);
    assert_eq!(
        (column, text.contains("invalid type")),
        (24, true),
        "{text}"
    );
    assert!(reason(r#"{"at_ns":-1}"#).1.contains("-1"));
    assert!(
        reason(r#"{"at_ns":0,"client_ip":"nobody"}"#)
            .1
            .contains("IP")
    );
    assert!(reason(r#"{"at_ns":0,"path":"a b"}"#).1.contains("no path"));
    assert!(
        reason(r#"{"at_ns":0,"path":"a"}"#)
            .1
            .contains("begins with")
    );
    assert!(
        reason(r#"{"at_ns":0,"method":"G T"}"#)
            .1
            .contains("no method")
    );
    assert!(
        reason(r#"{"at_ns":0,"headers":{"a b":"1"}}"#)
            .1
            .contains("no name")
    );
    assert!(
        reason(r#"{"at_ns":0,"headers":{"a":"1\n"}}"#)
            .1
            .contains("control")
    );
    assert!(
        reason(r#"{"at_ns":0,"headers":{"a":{"base64":"*"}}}"#)
            .1
            .contains("base64")
    );
    assert!(
        reason(r#"{"at_ns":0,"headers":7}"#)
            .1
            .contains("object of headers")
    );
}

#[test]
fn lines_are_counted_with_blank_ones() {
    let text = "{\"at_ns\":0}\n\n  \n{\"at_ns\":1}\r\n{\"at_ns\":x}\n";
    let mut reader = TraceReader::new(text.as_bytes());
    assert!(matches!(reader.next(), Some(Ok((1, _)))));
    assert!(matches!(reader.next(), Some(Ok((4, line))) if line.at_ns() == 1));
    let error = reader.next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "line 5, column 10: expected value");
}

#[test]
fn a_line_is_bounded() {
    let text = "x".repeat(MAX_LINE_BYTES + 2);
    let error = TraceReader::new(text.as_bytes())
        .next()
        .unwrap()
        .unwrap_err();
    assert_eq!(error.to_string(), "line 1: a line has at most 1 MiB");
    let error = TraceReader::new(&b"\xff\n"[..])
        .next()
        .unwrap()
        .unwrap_err();
    assert!(error.to_string().contains("UTF-8"));
}
