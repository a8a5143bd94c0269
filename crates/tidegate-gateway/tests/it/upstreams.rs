//! Upstream servers that are down, slow, broken, or have hung up meanwhile.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::gateway::Running;
use crate::upstream::{OK, Upstream};
use crate::wire::soon;

#[tokio::test]
async fn a_server_that_is_not_there_is_502() {
    let gateway = Running::before(&[Upstream::nobody().await], "", "");
    let mut client = gateway.connect().await;
    for _ in 0..2 {
        let answer = client.get("/").await;
        assert_eq!(answer.status(), 502);
        assert_eq!(
            answer.get("content-type").unwrap(),
            "application/problem+json"
        );
        assert_eq!(
            answer.json()["detail"],
            "no server of upstream `shop` can be connected to"
        );
    }
    let counters = gateway.counters();
    assert_eq!(
        (
            counters.connections_accepted,
            counters.upstream_connect_errors
        ),
        (1, 2)
    );
}

// shows: D1 (HTTP/1.1 to fixed servers)
#[tokio::test]
async fn servers_take_turns_and_one_that_is_down_is_passed_over() {
    let servers = ["1", "2"].map(|name| {
        Upstream::start(move |mut served| async move {
            while served.request().await.is_some() {
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{name}");
                served.wire.send(answer).await;
            }
        })
    });
    let [first, second] = servers;
    let (first, second) = (first.await, second.await);
    let nobody = Upstream::nobody().await;
    let gateway = Running::before(&[first.address, nobody, second.address], "", "");
    let mut client = gateway.connect().await;
    let mut answers = String::new();
    for _ in 0..6 {
        answers.push_str(client.get("/").await.text());
    }
    assert_eq!(answers, "122122");
    assert_eq!((first.connections(), second.connections()), (1, 1));
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_time_is_504() {
    let upstream =
        Upstream::start(|mut served| async move { while served.request().await.is_some() {} })
            .await;
    let gateway = Running::before(&[upstream.address], "", "  response_timeout: 150ms");
    let mut client = gateway.connect().await;
    for _ in 0..2 {
        let answer = client.get("/").await;
        assert_eq!(answer.status(), 504);
        let detail = "a server of upstream `shop` did not answer in time";
        assert_eq!(answer.json()["detail"], detail);
    }
    let counters = gateway.counters();
    assert_eq!(
        (counters.connections_accepted, counters.upstream_timeouts),
        (1, 2)
    );
    assert_eq!(upstream.connections(), 2);
}

#[tokio::test]
async fn a_server_that_answers_no_http_is_502() {
    for nonsense in [
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "",
        "HTTP/1.1 101 X\r\n\r\n",
    ] {
        let upstream = Upstream::start(move |mut served| async move {
            served.request().await;
            served.wire.send(nonsense).await;
        })
        .await;
        let gateway = Running::before(&[upstream.address], "", "");
        let mut client = gateway.connect().await;
        assert_eq!(client.get("/").await.status(), 502, "{nonsense}");
        assert_eq!(client.get("/").await.status(), 502, "{nonsense}");
        let counters = gateway.counters();
        assert_eq!(
            (counters.connections_accepted, counters.upstream_broken),
            (1, 2)
        );
    }
}

/// A response that is cut off must not look like a whole one.
#[tokio::test]
async fn an_upstream_that_dies_within_its_response_ends_the_client_connection() {
    let halves = [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nhalf",
    ];
    for half in halves {
        let (send, mut sent) = mpsc::unbounded_channel();
        let upstream = Upstream::start(move |mut served| {
            let send = send.clone();
            async move {
                served.request().await;
                served.wire.send(half).await;
                let (go_on, wait) = oneshot::channel::<()>();
                send.send(go_on).unwrap();
                let _ = wait.await;
            }
        })
        .await;
        let gateway = Running::before(&[upstream.address], "", "");
        let mut client = gateway.connect().await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(client.head().await.unwrap().status(), 200);
        drop(soon(sent.recv()).await.unwrap());
        let rest = String::from_utf8(client.rest().await).unwrap();
        assert!(
            rest.contains("half") && !rest.contains("\r\n0\r\n"),
            "{rest:?}"
        );
        gateway
            .counted(|counters| counters.upstream_broken == 1)
            .await;
    }
}

/// Two lengths of one body: whoever believes the other one reads the next answer wrongly.
#[tokio::test]
async fn an_answer_with_two_lengths_is_502() {
    for lengths in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 5",
        "Content-Length: +5",
        "Content-Length: -5",
        "Content-Length: 99999999999999999999",
    ] {
        let mut upstream = Upstream::start(move |mut served| async move {
            while served.request().await.is_some() {
                let both = format!("HTTP/1.1 200 OK\r\n{lengths}\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
                if served.wire.try_send(both).await.is_err() {
                    return;
                }
            }
        })
        .await;
        let gateway = Running::before(&[upstream.address], "", "");
        let mut client = gateway.connect().await;
        for _ in 0..2 {
            assert_eq!(client.get("/").await.status(), 502, "{lengths}");
            upstream.seen().await;
        }
        assert!(!upstream.has_seen(), "{lengths}: nothing is sent twice");
        assert_eq!(gateway.counters().upstream_idle, 0, "{lengths}");
    }
}

#[tokio::test]
async fn a_transfer_coding_that_was_not_offered_is_502() {
    let gzip = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n";
    let upstream = Upstream::answering(gzip).await;
    let gateway = Running::before(&[upstream.address], "", "");
    assert_eq!(gateway.connect().await.get("/").await.status(), 502);
}

#[tokio::test]
async fn connections_to_a_server_are_used_again() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "");
    for _ in 0..3 {
        let mut client = gateway.connect().await;
        for _ in 0..3 {
            assert_eq!(client.get("/").await.status(), 200);
        }
    }
    assert_eq!(upstream.connections(), 1);
    assert_eq!(gateway.counters().upstream_idle, 1);
}

/// The server closes a connection while it rests in the pool: no request may be lost to that,
/// not even one that must not be sent twice.
// shows: D1 (HTTP/1.1 to fixed servers)
#[tokio::test]
async fn a_stale_pooled_connection_loses_no_request() {
    let mut upstream = Upstream::start(|mut served| async move {
        // One request per connection, and no word of closing it.
        if served.request().await.is_some() {
            served.wire.send(OK).await;
        }
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    for _ in 0..50 {
        assert_eq!(client.ask(post).await.status(), 200);
        assert_eq!(upstream.seen().await.body, b"hello");
    }
    assert_eq!(upstream.connections(), 50);
    assert_eq!(gateway.counters().upstream_broken, 0);
}

/// A server that answers the first request of its first connection, and hangs up upon the second,
/// having sent `last`; further connections it hangs up at once if it is `rude`.
async fn hangs_up_upon_the_second(last: &'static str, rude: bool) -> Upstream {
    let connections = std::sync::atomic::AtomicUsize::new(0);
    Upstream::start(move |mut served| {
        let is_first = connections.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        async move {
            if !is_first && !rude {
                while served.request().await.is_some() {
                    served.wire.send(OK).await;
                }
                return;
            }
            served.request().await;
            if is_first {
                served.wire.send(OK).await;
                served.request().await;
            }
            served.wire.send(last).await;
        }
    })
    .await
}

/// What has been sent may have been done: what must not be done twice is not sent again.
#[tokio::test]
async fn a_request_that_was_sent_is_not_sent_again() {
    for request in [
        "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "PATCH /2 HTTP/1.1\r\nHost: a\r\n\r\n",
        // It may be, and cannot: its body has gone.
        "PUT /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
    ] {
        let mut upstream = hangs_up_upon_the_second("", false).await;
        let gateway = Running::before(&[upstream.address], "", "");
        let mut client = gateway.connect().await;
        assert_eq!(client.get("/1").await.status(), 200);
        assert_eq!(client.ask(request).await.status(), 502, "{request}");
        assert!(upstream.seen().await.head.start.contains("/1"));
        assert!(upstream.seen().await.head.start.contains("/2"));
        assert!(!upstream.has_seen());
        assert_eq!(upstream.connections(), 1);
        assert_eq!(gateway.counters().upstream_retries, 0);
    }
}

/// Its server may have closed the connection before it saw the request.
// shows: D1 (HTTP/1.1 to fixed servers)
#[tokio::test]
async fn a_request_that_may_be_done_twice_is_sent_again_where_a_rested_connection_breaks_off() {
    for request in [
        "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
        "DELETE /2 HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    ] {
        let mut upstream = hangs_up_upon_the_second("", false).await;
        let gateway = Running::before(&[upstream.address], "", "");
        let mut client = gateway.connect().await;
        assert_eq!(client.get("/1").await.status(), 200);
        assert_eq!(client.ask(request).await.text(), "ok", "{request}");
        // The new connection is as good as any.
        assert_eq!(client.get("/3").await.status(), 200);
        for path in ["/1", "/2", "/2", "/3"] {
            assert!(upstream.seen().await.head.start.contains(path));
        }
        assert_eq!(upstream.connections(), 2);
        let counters = gateway.counters();
        assert_eq!(counters.upstream_retries, 1);
        assert_eq!(counters.upstream_connections, 2);
        assert_eq!(counters.upstream_broken, 0);
    }
}

#[tokio::test]
async fn a_request_is_sent_again_once_and_never_behind_the_beginning_of_an_answer() {
    let mut upstream = hangs_up_upon_the_second("", true).await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    assert_eq!(client.get("/1").await.status(), 200);
    assert_eq!(client.get("/2").await.status(), 502);
    for path in ["/1", "/2", "/2"] {
        assert!(upstream.seen().await.head.start.contains(path));
    }
    assert!(!upstream.has_seen());

    let upstream = hangs_up_upon_the_second("HTTP/1.1 2", false).await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    assert_eq!(client.get("/1").await.status(), 200);
    assert_eq!(client.get("/2").await.status(), 502);
    assert_eq!(upstream.connections(), 1);

    // On a new connection there is no doubt: the server has hung up upon the request.
    let upstream = hangs_up_upon_the_second("", true).await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    assert_eq!(client.get("/1").await.status(), 200);
    assert_eq!(client.get("/2").await.status(), 502);
    assert_eq!(client.get("/3").await.status(), 502);
    assert_eq!(upstream.connections(), 3);
    assert_eq!(gateway.counters().upstream_retries, 1);
}

#[tokio::test]
async fn a_connection_that_its_server_closes_is_not_pooled() {
    let upstream = Upstream::start(|mut served| async move {
        served.request().await;
        let close = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
        served.wire.send(close).await;
        assert!(served.request().await.is_none());
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    for _ in 0..3 {
        let answer = client.get("/").await;
        assert_eq!((answer.status(), answer.get("connection")), (200, None));
    }
    assert_eq!(upstream.connections(), 3);
    assert_eq!(
        (
            gateway.counters().upstream_idle,
            gateway.counters().upstream_retries
        ),
        (0, 0)
    );
}

/// An answer that comes before the whole request: it is passed on at once.
#[tokio::test]
async fn an_early_answer_does_not_wait_for_the_rest_of_the_request() {
    let upstream = Upstream::start(|mut served| async move {
        served.wire.head().await;
        served
            .wire
            .send("HTTP/1.1 413 No\r\nContent-Length: 3\r\n\r\nbig")
            .await;
        served.wire.rest().await;
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbegin")
        .await;
    let answer = client.message().await;
    assert_eq!((answer.status(), answer.text()), (413, "big"));
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_in_time_is_504() {
    // A listener whose backlog is full does not answer: nobody accepts, and two have come.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = socket2::SockRef::from(&listener);
    socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) =
        std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100))
    {
        waiting.push(stream);
        assert!(waiting.len() < 100);
    }
    let gateway = Running::before(&[address], "", "  connect_timeout: 150ms");
    assert_eq!(gateway.connect().await.get("/").await.status(), 504);
}
