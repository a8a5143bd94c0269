//! What is not held back: messages without a body, and what frames one.

use tidegate_node::Outcome;
use tidegate_policy::BodyOf;

use super::byte_server;
use crate::gateway::Running;
use crate::upstream::Upstream;

// shows: A3 (no body)
#[tokio::test]
async fn messages_without_a_body_and_answers_of_the_gateway_are_not_held_back() {
    // The first byte is free, the next comes in an hour.
    let limit = "  slow:\n    bandwidth: 1B/h\n    direction: both";
    let upstream = Upstream::start(|mut served| async move {
        while let Some(request) = served.request().await {
            let answer = match request.head.start.split(' ').nth(1).unwrap() {
                "/head" => "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
                "/204" => "HTTP/1.1 204 No Content\r\n\r\n",
                "/304" => "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n",
                "/empty" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                "/garbage" => "what is no HTTP\r\n\r\n",
                _ => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            };
            served.wire.send(answer).await;
        }
    })
    .await;
    let gateway = Running::before(&[upstream.address], limit, "");
    let mut client = gateway.connect().await;
    client.send("HEAD /head HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(client.head().await.unwrap().status(), 200);
    for (path, status) in [("/204", 204), ("/304", 304), ("/0", 200), ("/empty", 200)] {
        client
            .send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
            .await;
        let head = client.head().await.unwrap();
        assert_eq!(head.status(), status);
        if path == "/empty" {
            assert_eq!(client.chunk().await, None);
        }
    }
    let answer = client.get("/garbage").await;
    assert_eq!(answer.status(), 502);
    assert!(answer.body.len() > 1);
    let counts = gateway.node.snapshot();
    let counts = counts.limits()[0].counts();
    assert_eq!(counts.bytes(BodyOf::Response), 0);
    assert_eq!(counts.get(Outcome::Allowed), 6);
}

#[tokio::test]
async fn chunks_and_trailers_pass_as_they_were() {
    let upstream = Upstream::start(|mut served| async move {
        let request = served.request().await.unwrap();
        assert_eq!(request.body, b"0123456789");
        served
            .wire
            .send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: sum\r\n\r\n\
                 a\r\n0123456789\r\n0\r\nsum: 45\r\n\r\n",
            )
            .await;
    })
    .await;
    let limit = "  slow:\n    bandwidth: 100B/s\n    burst: 5B\n    direction: both";
    let gateway = Running::before(&[upstream.address], limit, "");
    let mut client = gateway.connect().await;
    client
        .send(
            "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n\
             a\r\n0123456789\r\n0\r\n\r\n",
        )
        .await;
    assert_eq!(client.head().await.unwrap().status(), 200);
    // Pieces of five, each a chunk.
    assert_eq!(client.chunk().await.unwrap(), b"01234");
    assert_eq!(client.chunk().await.unwrap(), b"56789");
    let end = client.exactly("0\r\nsum: 45\r\n\r\n".len()).await;
    assert_eq!(String::from_utf8(end).unwrap(), "0\r\nsum: 45\r\n\r\n");
}

#[tokio::test]
async fn a_client_that_waits_to_be_asked_for_its_body_is_asked() {
    let upstream = byte_server().await;
    let limit = "  slow:\n    bandwidth: 10KB/s\n    direction: requests";
    let gateway = Running::before(&[upstream.address], limit, "");
    let mut client = gateway.connect().await;
    client
        .send(
            "POST /up HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\
             Content-Length: 1000\r\n\r\n",
        )
        .await;
    assert_eq!(client.head().await.unwrap().status(), 100);
    client.send(vec![b'y'; 1_000]).await;
    assert_eq!(client.message().await.text(), "1000");
}
