//! What a client may send, byte by byte: how each is answered, and what the upstream saw of it.
//!
//! All that is refused is answered with a problem and the end of the connection. What stands behind
//! a refused request is not looked at.

mod cases;

use crate::gateway::Running;
use crate::recorder::Recorder;
use crate::wire::{Wire, soon};

use self::cases::{Beginnings, Case, GET, cases};

/// Longer things have a policy with lower bounds than by default.
const BOUNDS: &str =
    "  max_header_bytes: 8KiB\n  max_headers: 10\n  max_trailer_bytes: 64\n  idle_timeout: 5s";

async fn answers(client: &mut Wire, case: &Case) {
    let name = case.name;
    for (at, &status) in case.statuses.iter().enumerate() {
        let Some(answer) = client.next_message().await else {
            panic!("{name}: no answer {at}");
        };
        assert_eq!(answer.status(), status, "{name}, answer {at}: {answer:?}");
        if status >= 400 {
            assert_eq!(answer.get("connection").as_deref(), Some("close"), "{name}");
            let problem = answer.json();
            assert!(problem["detail"].is_string(), "{name}: {problem}");
            assert!(client.closes_quietly().await, "{name}: more came");
        }
    }
}

// shows: H1 (raw requests)
#[tokio::test]
async fn what_clients_send_and_what_the_upstream_sees_of_it() {
    let upstream = Recorder::start().await;
    let gateway = Running::before(&[upstream.address], "", BOUNDS);
    let (all, mut beginnings) = (cases(), Beginnings::default());
    assert!(all.len() > 80, "{}", all.len());
    for case in &all {
        let mut client = gateway.connect().await;
        let _ = client.try_send(&case.sent).await;
        answers(&mut client, case).await;
        case.check(&upstream.take(), &mut beginnings, 0);
    }
    assert_eq!(gateway.connect().await.ask(GET).await.status(), 200);
}

// shows: H1 (raw requests in pieces)
#[tokio::test]
async fn where_a_request_is_split_makes_no_difference() {
    let upstream = Recorder::start().await;
    let gateway = Running::before(&[upstream.address], "", BOUNDS);
    let mut beginnings = Beginnings::default();
    for case in cases().iter().filter(|case| case.sent.len() < 300) {
        for at in 1..case.sent.len() {
            let mut client = gateway.connect().await;
            let _ = client.try_send(&case.sent[..at]).await;
            // Mostly long enough for the gateway to read so far: the framer's own tests split
            // where they want to.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            let _ = client.try_send(&case.sent[at..]).await;
            answers(&mut client, case).await;
            case.check(&upstream.take(), &mut beginnings, at);
        }
    }
    beginnings.check();
}

/// The classics: a front end and a back end that disagree about where a request ends.
// shows: H1 (smuggling)
#[tokio::test]
async fn no_smuggled_request_reaches_the_upstream() {
    const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";
    let chunk = format!("{:x}\r\n{HIDDEN}\r\n0\r\n\r\n", HIDDEN.len());
    let post =
        |fields: &str, body: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}");
    let both =
        |length: usize| format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n");
    let mut attacks = vec![
        // CL.TE and TE.CL.
        post(&both(5 + HIDDEN.len()), &format!("0\r\n\r\n{HIDDEN}")),
        post(&both(4), &chunk),
        // CL.CL and CL.0.
        post("Content-Length: 0\r\nContent-Length: 35\r\n", HIDDEN),
        post("Content-Length: 35\r\nContent-Length: 0\r\n", HIDDEN),
    ];
    // TE.TE: one of the two is to overlook a coding.
    for coding in [
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding:\u{b}chunked",
        " Transfer-Encoding: chunked",
        "X: y\nTransfer-Encoding: chunked",
        "Transfer-Encoding\r\n: chunked",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: chunked, identity",
        "Transfer_Encoding: chunked",
        "Transfer-Encoding: chunk\\ed",
        "\u{feff}Transfer-Encoding: chunked",
    ] {
        attacks.push(post(&format!("{coding}\r\nContent-Length: 4\r\n"), &chunk));
        attacks.push(post(&format!("Content-Length: 4\r\n{coding}\r\n"), &chunk));
    }
    let upstream = Recorder::start().await;
    let gateway = Running::before(&[upstream.address], "", "");
    for attack in attacks {
        let mut client = gateway.connect().await;
        client.send(&attack).await;
        let answer = client.message().await;
        assert!(
            (400..=501).contains(&answer.status()),
            "{attack} {answer:?}"
        );
        assert!(client.closes_quietly().await, "{attack}");
        assert_eq!(upstream.take(), "", "{attack}");
    }
}

/// What was asked before something that is refused is answered first, and all in order.
#[tokio::test]
async fn requests_in_front_of_a_bad_one_are_answered() {
    let upstream = Recorder::start().await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    let good = GET.repeat(20);
    client
        .send(format!("{good}GET / HTTP/1.1\r\n\r\n{GET}"))
        .await;
    for _ in 0..20 {
        assert_eq!(client.message().await.status(), 200);
    }
    assert_eq!(client.message().await.status(), 400);
    assert!(client.closes_quietly().await);
    assert_eq!(upstream.take().matches("GET / HTTP/1.1").count(), 20);
    soon(gateway.counted(|counters| counters.connections_open == 0)).await;
}
