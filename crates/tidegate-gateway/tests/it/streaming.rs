//! Bodies pass piece by piece, in both directions, in any length.

use std::fmt::Write;

use tokio::sync::{mpsc, oneshot};

use crate::gateway::Running;
use crate::upstream::{OK, Upstream};
use crate::wire::soon;

#[tokio::test]
async fn the_first_piece_of_an_answer_arrives_before_the_last_is_sent() {
    let (send, mut handles) = mpsc::unbounded_channel();
    let upstream = Upstream::start(move |mut served| {
        let send = send.clone();
        async move {
            served.request().await;
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            served.wire.send(head).await;
            for piece in ["5\r\nfirst\r\n", "6\r\nsecond\r\n", "0\r\n\r\n"] {
                let (go_on, wait) = oneshot::channel();
                send.send(go_on).unwrap();
                wait.await.unwrap();
                served.wire.send(piece).await;
            }
        }
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let head = client.head().await.unwrap();
    assert_eq!(head.get("transfer-encoding").unwrap(), "chunked");
    for piece in [Some("first"), Some("second"), None] {
        soon(handles.recv()).await.unwrap().send(()).unwrap();
        assert_eq!(
            client.chunk().await,
            piece.map(|piece| piece.as_bytes().to_vec())
        );
    }
}

#[tokio::test]
async fn the_first_piece_of_a_request_arrives_before_the_last_is_sent() {
    let (send, mut pieces) = mpsc::unbounded_channel();
    let upstream = Upstream::start(move |mut served| {
        let send = send.clone();
        async move {
            served.wire.head().await;
            while let Some(piece) = served.wire.chunk().await {
                send.send(piece).unwrap();
            }
            served.wire.send(OK).await;
        }
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    for piece in ["first", "second"] {
        client
            .send(format!("{:x}\r\n{piece}\r\n", piece.len()))
            .await;
        assert_eq!(soon(pieces.recv()).await.unwrap(), piece.as_bytes());
    }
    assert_eq!(client.ask("0\r\n\r\n").await.status(), 200);
}

#[tokio::test]
async fn long_bodies_are_whole_in_both_directions() {
    const LENGTH: usize = 8 << 20;
    let upstream = Upstream::start(|mut served| async move {
        while let Some(request) = served.request().await {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                request.body.len()
            );
            served.wire.send(head).await;
            served.wire.send(request.body).await;
        }
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    let body: Vec<u8> = (0..LENGTH).map(|at| (at * 31 % 251) as u8).collect();
    for _ in 0..2 {
        client
            .send(format!(
                "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n"
            ))
            .await;
        client.send(&body).await;
        let answer = client.message().await;
        assert!(answer.body == body, "{} bytes came back", answer.body.len());
    }
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn an_answer_without_a_length_ends_with_its_connection() {
    let upstream = Upstream::start(|mut served| async move {
        served.request().await;
        served
            .wire
            .send("HTTP/1.0 200 OK\r\n\r\nuntil the end")
            .await;
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    for _ in 0..2 {
        let answer = client.get("/").await;
        assert_eq!(answer.head.start, "HTTP/1.1 200 OK");
        assert_eq!(answer.text(), "until the end");
    }
}

#[tokio::test]
async fn requests_that_come_in_one_packet_are_answered_in_order() {
    let upstream = Upstream::start(|mut served| async move {
        while let Some(request) = served.request().await {
            let path = request.head.start.split(' ').nth(1).unwrap().to_owned();
            let length = path.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{path}");
            served.wire.send(answer).await;
        }
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    let mut requests = String::new();
    for at in 0..20 {
        write!(requests, "GET /{at} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    }
    client.send(requests).await;
    for at in 0..20 {
        assert_eq!(client.message().await.text(), format!("/{at}"));
    }
}
