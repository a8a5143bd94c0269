use std::time::Duration;

use super::*;

/// 2026-12-01T01:54:31.250Z
const AT: Timestamp = Timestamp::from_nanos(1_796_090_071_250_000_000);

fn asked<'a>() -> Asked<'a> {
    Asked {
        method: "GET",
        target: Cow::Borrowed("/a?b=c"),
        version: Version::HTTP_11,
        host: Some(b"example.com"),
        referer: None,
        user_agent: Some(b"curl/8"),
        authorization: None,
        headers: &[],
    }
}

fn entry(asked: Option<Asked<'_>>) -> Entry<'_> {
    Entry {
        at: AT,
        client: "192.0.2.1".parse().unwrap(),
        peer: "10.0.0.1".parse().unwrap(),
        asked,
        status: 200,
        bytes_sent: 12,
        bytes_received: 0,
        duration: Duration::from_micros(1_234_567),
        waited: Duration::from_millis(500),
        upstream: None,
        route: None,
        decision: None,
        limit: None,
        remaining: None,
        id: None,
        ended: Ended::Complete,
    }
}

fn written(write: fn(&Entry<'_>, &mut Vec<u8>), entry: &Entry<'_>) -> String {
    let mut out = Vec::new();
    write(entry, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn combined_is_as_nginx_writes_it() {
    assert_eq!(
        written(combined, &entry(Some(asked()))),
        "192.0.2.1 - - [01/Dec/2026:01:54:31 +0000] \"GET /a?b=c HTTP/1.1\" 200 12 \"-\" \
         \"curl/8\"\n"
    );
    assert_eq!(
        written(combined, &entry(None)),
        "192.0.2.1 - - [01/Dec/2026:01:54:31 +0000] \"-\" 200 12 \"-\" \"-\"\n"
    );
}

#[test]
fn no_client_writes_a_line_of_its_own() {
    let asked = Asked {
        referer: Some(Cow::Borrowed(b"\"\\\x7f\xc3\xa9\t")),
        user_agent: Some(b""),
        ..asked()
    };
    let line = written(combined, &entry(Some(asked.clone())));
    assert!(
        line.ends_with(" \"\\x22\\x5C\\x7F\\xC3\\xA9\\x09\" \"\"\n"),
        "{line}"
    );
    let headers: &[(&str, &[u8])] = &[("a", b"\"\n\xff"), ("b", b"")];
    let line = written(json, &entry(Some(Asked { headers, ..asked })));
    assert_eq!(line.lines().count(), 1);
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["headers"]["a"], "\"\n\u{fffd}");
    assert_eq!(value["headers"]["b"], "");
}

#[test]
fn combined_limits_says_which_limit_it_was() {
    let entry = Entry {
        decision: Some(Decided::Delayed),
        limit: Some("per-client"),
        id: Some(b"0af7"),
        ..entry(Some(asked()))
    };
    let line = written(combined_limits, &entry);
    let end = " limit=\"per-client\" decision=delayed waited=0.500 time=1.234 id=\"0af7\"\n";
    assert!(line.ends_with(end), "{line}");
}

#[test]
fn json_has_what_there_is() {
    let all = Entry {
        upstream: Some(Upstream {
            name: "shop",
            server: "127.0.0.1:9000",
            duration: Some(Duration::from_micros(900)),
        }),
        route: Some("all"),
        decision: Some(Decided::Allowed),
        limit: Some("per-client"),
        remaining: Some(19),
        id: Some(b"0af7"),
        ..entry(Some(asked()))
    };
    assert_eq!(
        written(json, &all),
        "{\"time\":\"2026-12-01T01:54:31.250Z\",\"client\":\"192.0.2.1\",\"peer\":\"10.0.0.1\",\
         \"method\":\"GET\",\"target\":\"/a?b=c\",\"host\":\"example.com\",\
         \"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes_sent\":12,\"bytes_received\":0,\
         \"duration\":1.234567,\"waited\":0.500000,\"upstream\":\"shop\",\
         \"server\":\"127.0.0.1:9000\",\"server_duration\":0.000900,\"route\":\"all\",\
         \"decision\":\"allowed\",\"limit\":\"per-client\",\"remaining\":19,\
         \"request_id\":\"0af7\",\"ended\":\"complete\"}\n"
    );
    let nothing = written(json, &entry(None));
    let value: serde_json::Value = serde_json::from_str(&nothing).unwrap();
    assert_eq!(value["method"], serde_json::Value::Null);
}

#[test]
fn a_long_value_is_cut() {
    let long = vec![b'\xff'; MAX_VALUE + 1];
    let asked = Asked {
        user_agent: Some(&long),
        ..asked()
    };
    let line = written(combined, &entry(Some(asked)));
    assert_eq!(line.matches("\\xFF").count(), MAX_VALUE);
}

#[test]
fn days_are_those_of_the_calendar() {
    let day = |seconds: u64| {
        let at = Timestamp::from_nanos(seconds * 1_000_000_000);
        let moment = text::Moment::of(at);
        (moment.year, moment.month, moment.day)
    };
    assert_eq!(day(0), (1970, 1, 1));
    assert_eq!(day(951_782_400), (2000, 2, 29));
    assert_eq!(day(951_868_800), (2000, 3, 1));
    assert_eq!(day(1_767_225_599), (2025, 12, 31));
    assert_eq!(day(1_767_225_600), (2026, 1, 1));
    assert_eq!(day(4_107_542_400), (2100, 3, 1));
}

#[test]
fn the_user_is_what_is_before_the_first_colon() {
    let user = |text: &str| {
        let user = basic_user(text.as_bytes())?;
        Some(String::from_utf8(user.into_owned()).unwrap())
    };
    assert_eq!(user("Basic YWxpY2U6czpy").as_deref(), Some("alice"));
    assert_eq!(user("basic  YWxpY2U6").as_deref(), Some("alice"));
    assert_eq!(user("Basic YWxpY2U="), None);
    assert_eq!(user("Basic !"), None);
    assert_eq!(user("Bearer YWxpY2U6czpy"), None);
    assert_eq!(user("Basic OnB3"), None);
}

#[test]
fn values_of_a_query_are_hidden_however_their_name_is_written() {
    let hide = Hide::values(["token", "api key"]);
    for (target, shown) in [
        ("/a?token=s", "/a?token=***"),
        ("/a?x=1&token=s&token=t", "/a?x=1&token=***&token=***"),
        ("/a?t%6Fken=s", "/a?t%6Fken=***"),
        ("/a?api+key=s&api%20key=t", "/a?api+key=***&api%20key=***"),
        ("/a?Token=s&tokens=t&token", "/a?Token=s&tokens=t&token"),
        ("/token=s", "/token=s"),
        ("/a?token=a=b?c", "/a?token=***"),
        ("/a?%zz=1&%=2", "/a?%zz=1&%=2"),
    ] {
        assert_eq!(hide.in_target(target), shown);
    }
    assert_eq!(Hide::default().in_target("/a?token=s"), "/a?token=s");
    assert_eq!(Hide::whole().in_target("/a?"), "/a");
}
