//! The debug header: who may ask, and what is told.

use crate::gateway::Running;
use crate::upstream::{OK, Upstream};

const LIMITS: &str = "  hourly: { rate: 2/h }\n  daily: { rate: 1/d, shadow: true }\n  \
                      mine: { rate: 1/h, key: [\"header:user\"], on_missing: deny }";

fn asking(with: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\nUser: someone\r\nX-Tidegate-Debug: {with}\r\n\r\n")
}

// shows: D4, G1
#[tokio::test]
async fn who_may_ask_is_told_what_each_limit_said() {
    let mut upstream = Upstream::answering(OK).await;
    let from = "  debug_header: { from: 127.0.0.0/8 }";
    let gateway = Running::before(&[upstream.address], LIMITS, from);
    let mut client = gateway.connect().await;
    assert_eq!(
        client.get("/").await.get("x-tidegate-debug").as_deref(),
        None
    );
    let told = client.ask(&asking("1")).await;
    let said = told.get("x-tidegate-debug").unwrap();
    let members: Vec<_> = said.split(", ").collect();
    assert_eq!(members[0], r#""all";route"#);
    let begins = |at: usize, text: &str| {
        let member: &str = members[at];
        assert!(member.starts_with(text), "{member}");
    };
    begins(
        1,
        r#""hourly";decision=allowed;limit=2;remaining=1;reset_ms=1"#,
    );
    begins(
        2,
        r#""mine";decision=allowed;limit=1;remaining=0;reset_ms=3600000;told"#,
    );
    begins(
        3,
        r#""daily";decision=allowed;limit=1;remaining=0;reset_ms=86400000;shadow"#,
    );
    assert_eq!(upstream.seen().await.get("x-tidegate-debug"), None);
    let refused = client.ask(&asking("1")).await;
    assert_eq!(refused.status(), 429);
    let said = refused.get("x-tidegate-debug").unwrap();
    assert!(
        said.contains(r#""mine";decision=denied;limit=1;remaining=0;"#),
        "{said}"
    );
    assert!(
        said.contains(";wait_ms=3") && said.ends_with(";shadow"),
        "{said}"
    );
    // What stands in a key is not told.
    assert!(!said.contains("someone"), "{said}");
    let lacks = "GET / HTTP/1.1\r\nHost: a\r\nX-Tidegate-Debug: 1\r\n\r\n";
    let said = client.ask(lacks).await.get("x-tidegate-debug").unwrap();
    assert!(
        said.contains(r#""mine";decision=denied"#) && said.contains(";never"),
        "{said}"
    );
}

#[tokio::test]
async fn nobody_else_is_told_anything() {
    let mut upstream = Upstream::answering(OK).await;
    let token = "0123456789abcdef";
    let who = format!("  debug_header: {{ from: 192.0.2.1, token: {token} }}");
    for (lines, with, is_told) in [
        ("", "1", false),
        (&*who, "1", false),
        (&*who, "0123456789abcdeg", false),
        (&*who, "0123456789abcde", false),
        (&*who, "0123456789abcdef0", false),
        (&*who, token, true),
        ("  debug_header: { from: 127.0.0.1 }", "0", false),
    ] {
        let gateway = Running::before(&[upstream.address], LIMITS, lines);
        let answer = gateway.connect().await.ask(&asking(with)).await;
        assert_eq!(
            answer.get("x-tidegate-debug").is_some(),
            is_told,
            "{lines} {with}"
        );
        // With nobody who may ask it is a header as any; else no server learns of the token.
        let seen = upstream.seen().await.get("x-tidegate-debug");
        assert_eq!(seen.is_some(), lines.is_empty());
    }
}
