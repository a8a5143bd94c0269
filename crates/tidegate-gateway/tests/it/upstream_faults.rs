//! Upstream servers that die, dawdle or talk nonsense: 502, or an answer that is visibly broken
//! off; never a hang.

use std::io::ErrorKind;

use crate::gateway::Running;
use crate::upstream::{OK, Upstream};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A server that answers with these bytes and closes.
async fn once(answer: impl Into<Vec<u8>>) -> Upstream {
    let answer: Vec<u8> = answer.into();
    Upstream::start(move |mut served| {
        let answer = answer.clone();
        async move {
            if served.request().await.is_some() {
                let _ = served.wire.try_send(&answer).await;
            }
        }
    })
    .await
}

const HALVES: [&str; 6] = [
    "Content-Length: 10\r\n\r\nhalf",
    "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    "Transfer-Encoding: chunked\r\n\r\n8\r\nhalf",
    "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nnonsense\r\n",
    "Transfer-Encoding: chunked\r\n\r\n4\r\nhalfway\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nffffffffffffffffff\r\n",
];

/// All of it came in one piece: the client has to have the header before it is cut off.
// shows: H1 (upstream faults)
#[tokio::test]
async fn an_upstream_that_breaks_off_at_once_is_not_an_empty_connection() {
    for half in HALVES {
        let upstream = once(format!("HTTP/1.1 200 OK\r\n{half}")).await;
        let gateway = Running::before(&[upstream.address], "", "");
        let mut client = gateway.connect().await;
        client.send(GET).await;
        let head = client.head().await.unwrap_or_else(|| panic!("{half}"));
        assert_eq!(head.status(), 200, "{half}");
        let rest = String::from_utf8(client.rest().await).unwrap();
        assert!(!rest.contains("\r\n0\r\n"), "{half}: {rest:?}");
        assert!(rest.len() < 10 + "4\r\n\r\n".len(), "{half}: {rest:?}");
        assert_eq!(gateway.counters().upstream_broken, 1, "{half}");
        assert_eq!(gateway.counters().upstream_idle, 0, "{half}");
    }
}

/// To HTTP/1.0 the end of a connection is the end of a body: only a reset tells it otherwise.
#[tokio::test]
async fn an_old_client_is_reset_when_its_answer_breaks_off() {
    let upstream = once(format!("HTTP/1.1 200 OK\r\n{}", HALVES[1])).await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    client.send("GET / HTTP/1.0\r\n\r\n").await;
    let (came, end) = client.end().await;
    assert!(
        came.starts_with(b"HTTP/1.0 200 OK\r\n"),
        "{}",
        came.escape_ascii()
    );
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn answers_that_are_none_are_502() {
    let many_fields = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(200));
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let endless = "x".repeat(1 << 20);
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: y\r\n folded\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "\0\0\0\0",
        "\x16\x03\x01",
        &many_fields,
        &long,
        &endless,
    ] {
        let shown = &answer[..answer.len().min(60)];
        let upstream = once(answer).await;
        let gateway = Running::before(&[upstream.address], "", "");
        let mut client = gateway.connect().await;
        for _ in 0..2 {
            assert_eq!(client.get("/").await.status(), 502, "{shown:?}");
        }
        assert_eq!(gateway.counters().upstream_broken, 2, "{shown:?}");
        assert_eq!(gateway.counters().upstream_idle, 0, "{shown:?}");
    }
}

#[tokio::test]
async fn interim_answers_are_passed_over() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let upstream = once(format!(
        "HTTP/1.1 100 Continue\r\n\r\n{}{OK}",
        interim.repeat(20)
    ))
    .await;
    let gateway = Running::before(&[upstream.address], "", "");
    let answer = gateway.connect().await.get("/").await;
    assert_eq!((answer.status(), answer.text()), (200, "ok"));
    assert_eq!(answer.get("link"), None);
}

/// They are no answer, however many come.
#[tokio::test]
async fn interim_answers_without_end_are_504() {
    let upstream = Upstream::start(|mut served| async move {
        served.request().await;
        while served
            .wire
            .try_send("HTTP/1.1 102 Processing\r\n\r\n")
            .await
            .is_ok()
        {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "  response_timeout: 200ms");
    assert_eq!(gateway.connect().await.get("/").await.status(), 504);
}

#[tokio::test]
async fn an_answer_that_comes_byte_by_byte_arrives() {
    let upstream = Upstream::start(|mut served| async move {
        while served.request().await.is_some() {
            for byte in OK.as_bytes() {
                served.wire.send([*byte]).await;
                tokio::task::yield_now().await;
            }
        }
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    for _ in 0..3 {
        assert_eq!(client.get("/").await.text(), "ok");
    }
    assert_eq!(upstream.connections(), 1);
}

/// It has said all, and reads no more: its answer counts, and its connection is not used again.
#[tokio::test]
async fn an_upstream_that_closes_its_half_has_answered() {
    let upstream = Upstream::start(|mut served| async move {
        if served.request().await.is_some() {
            served.wire.send(OK).await;
            served.wire.shut().await;
            served.wire.rest().await;
        }
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    for _ in 0..3 {
        assert_eq!(client.get("/").await.text(), "ok");
    }
}

/// What comes behind an answer is nobody's: the next request must not be given it.
#[tokio::test]
async fn an_answer_too_many_is_not_the_next_ones() {
    const EVIL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let upstream = once(format!("{OK}{EVIL}")).await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    for _ in 0..10 {
        assert_eq!(client.get("/").await.text(), "ok");
    }
    assert_eq!(upstream.connections(), 10);
}

/// It dies while the request's body is on its way.
#[tokio::test]
async fn an_upstream_that_dies_within_the_request_is_502() {
    let upstream = Upstream::start(|mut served| async move {
        served.wire.head().await;
        served.wire.reset();
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhalf")
        .await;
    let answer = client.message().await;
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.get("connection").unwrap(), "close");
    assert_eq!(upstream.connections(), 1, "it is not sent again");
}
