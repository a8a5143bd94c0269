//! Ids of requests: whose is believed, and where it is told.

use crate::access_log::Log;
use crate::gateway::Running;
use crate::upstream::{OK, Upstream};

const ONE_AN_HOUR: &str = "  per-client: { rate: 1/h }";

fn asking(id: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: {id}\r\n\r\n")
}

fn is_drawn(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[tokio::test]
async fn an_id_is_drawn_and_told_to_everyone() {
    let mut upstream =
        Upstream::answering("HTTP/1.1 204 No Content\r\nX-Request-Id: its-own\r\n\r\n").await;
    let log = Log::new();
    let more = log.policy("") + "\n  request_id: true";
    let gateway = Running::before(&[upstream.address], ONE_AN_HOUR, &more);
    let mut client = gateway.connect().await;
    let answer = client.ask(&asking("forged")).await;
    let id = answer.get("x-request-id").unwrap();
    assert!(is_drawn(&id), "{id}");
    assert_eq!(upstream.seen().await.get("x-request-id").unwrap(), id);
    let refused = client.get("/").await;
    let other = refused.get("x-request-id").unwrap();
    assert!(is_drawn(&other) && other != id);
    assert_eq!(refused.json()["request-id"], other);
    assert_eq!(refused.json()["violated-policies"][0], "per-client");
    let entries = log.entries(2).await;
    assert_eq!(entries[0]["request_id"], id);
    assert_eq!(entries[1]["request_id"], other);
}

#[tokio::test]
async fn a_trusted_proxys_id_is_taken_over_if_it_is_fit_to_be() {
    let mut upstream = Upstream::answering(OK).await;
    let more = "  request_id: x-request-id\n  trusted_proxies: [127.0.0.1]";
    let gateway = Running::before(&[upstream.address], "", more);
    let mut client = gateway.connect().await;
    let longest = "x".repeat(128);
    for (id, taken) in [
        ("from-the-edge/1", true),
        (&*longest, true),
        (&*format!("{longest}x"), false),
        ("two words", false),
        ("", false),
        ("a\r\nX-Request-Id: b", false),
    ] {
        let answer = client.ask(&asking(id)).await.get("x-request-id").unwrap();
        assert_eq!(upstream.seen().await.get("x-request-id").unwrap(), answer);
        assert_eq!(answer == id, taken, "{id}: {answer}");
        assert!(taken || is_drawn(&answer), "{answer}");
    }
}

#[tokio::test]
async fn without_ids_a_header_of_that_name_is_one_as_any() {
    let mut upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    let answer = client.ask(&asking("mine")).await;
    assert_eq!(answer.get("x-request-id"), None);
    assert_eq!(upstream.seen().await.get("x-request-id").unwrap(), "mine");
}
