//! Cases that must come out (SEMANTICS, section 2), from a real gateway in real time.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::Builder;

use crate::client::{Sent, read_head, read_until, soon};
use crate::held::Held;
use crate::running::{DEADLINE, Folder, Serve, status};

mod in_time;

/// So far may an answer be from its time.
const WITHIN: Duration = Duration::from_millis(15);

/// A gateway in front of this server (or one that echoes), with these limits on these paths.
fn serve(limits: &str, routes: &[(&str, &str)], server: Option<SocketAddr>) -> (Serve, Folder) {
    let upstream = match server {
        None => "builtin: echo".to_owned(),
        Some(server) => format!("servers: [\"{server}\"]"),
    };
    let routes = routes.iter().map(|(path, limits)| {
        let id = path.trim_matches(['/', '*']);
        format!(
            "    - {{ id: \"r{id}\", match: {{ path: \"{path}\" }}, upstream: it, \
             limits: [{limits}] }}\n"
        )
    });
    let routes: String = routes.collect();
    let policy = format!(
        "limits:\n{limits}upstreams: {{ it: {{ {upstream} }} }}\n\
         gateway:\n  listen: [\"127.0.0.1:0\"]\n  header_timeout: 1m\n  routes:\n{routes}\
         admin: {{ listen: \"127.0.0.1:0\" }}\n"
    );
    let folder = Folder::new();
    let serve = Serve::start(&folder.write("policy.yaml", &policy));
    (serve, folder)
}

/// What became of a request that was sent.
enum Came {
    Inside(TcpStream),
    Answered(u16),
}

async fn send(gateway: SocketAddr, held: &Held, path: &str, from: u8, headers: &str) -> Came {
    let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\n{headers}\r\n");
    let from = Ipv4Addr::new(127, 0, 1, from);
    let sent = Sent { from, head };
    let mut stream = sent.connect(gateway).await;
    stream.write_all(sent.head.as_bytes()).await.unwrap();
    let came = async {
        tokio::select! {
            () = held.has_come(path) => Came::Inside(stream),
            head = read_head(&mut stream) => Came::Answered(status(&head)),
        }
    };
    soon(came).await
}

impl Came {
    #[track_caller]
    fn inside(self) -> TcpStream {
        match self {
            Self::Inside(stream) => stream,
            Self::Answered(status) => panic!("answered with {status}"),
        }
    }

    #[track_caller]
    fn refused(self) {
        assert!(matches!(self, Self::Answered(429)), "let in");
    }
}

// shows: A2 (refusing), A2 (bounded waiting), A8 (queue)
#[test]
fn case_22_five_in_flight_of_a_user_and_an_api() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let held = Held::start().await;
        let key = "concurrency: 5, key: [\"header:user\", route]";
        let queue = "on_limit: { queue: { length: 10, max_wait: 300ms } }";
        let patient = "on_limit: { queue: { length: 10, max_wait: 30s } }";
        let limits = format!(
            "  refuses: {{ {key} }}\n  waits: {{ {key}, {queue} }}\n  \
             patient: {{ {key}, {patient} }}\n"
        );
        let routes = [
            ("/a/**", "refuses"),
            ("/b/**", "refuses"),
            ("/queue/**", "waits"),
            ("/patient/**", "patient"),
        ];
        let (serve, _folder) = serve(&limits, &routes, Some(held.address));
        let gateway = serve.gateway;
        let user = "user: u\r\n";
        let mut inside = Vec::new();
        for at in 0..5 {
            for api in ["a", "queue"] {
                let path = format!("/{api}/{at}");
                inside.push(send(gateway, &held, &path, 1, user).await.inside());
            }
        }
        send(gateway, &held, "/a/sixth", 1, user).await.refused();
        let other_user = send(gateway, &held, "/a/other", 1, "user: v\r\n").await;
        let other_api = send(gateway, &held, "/b/0", 1, user).await;
        inside.extend([other_user.inside(), other_api.inside()]);

        // The sixth waits, and at most 300 ms.
        let mut most = Duration::MAX;
        for at in 0..5 {
            let start = Instant::now();
            let path = format!("/queue/late-{at}");
            send(gateway, &held, &path, 1, user).await.refused();
            let took = start.elapsed();
            assert!(took >= Duration::from_millis(300), "{took:?}");
            most = most.min(took);
            if most <= Duration::from_millis(300) + WITHIN {
                break;
            }
        }
        assert!(most <= Duration::from_millis(300) + WITHIN, "{most:?}");

        // Who waits enters when one leaves.
        let path = |at: &str| format!("/patient/{at}");
        let mut leaver = send(gateway, &held, &path("first"), 1, user).await.inside();
        for at in ["2", "3", "4", "5"] {
            inside.push(send(gateway, &held, &path(at), 1, user).await.inside());
        }
        let sixth = path("sixth");
        let leaves = async {
            while serve.metric("tidegate_limit_waiting{limit=\"patient\"}") != Ok(1.0) {
                tokio::task::yield_now().await;
            }
            held.begin(&path("first"));
            held.finish(&path("first"));
            read_until(&mut leaver, "-last").await;
        };
        let (came, ()) = tokio::join!(send(gateway, &held, &sixth, 1, user), soon(leaves));
        came.inside();
    });
}

// shows: A2 (refusing), D3 (limit_conn)
#[test]
fn case_23_ten_of_an_address_and_a_hundred_in_all() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let held = Held::start().await;
        let limits = "  of-address: { concurrency: 10, key: client_ip }\n  \
                      in-all: { concurrency: 100 }\n";
        let routes = [("/**", "of-address, in-all")];
        let (serve, _folder) = serve(limits, &routes, Some(held.address));
        let gateway = serve.gateway;
        let mut inside = Vec::new();
        for from in 1..=10 {
            for at in 0..10 {
                let path = format!("/{from}/{at}");
                inside.push(send(gateway, &held, &path, from, "").await.inside());
            }
            if from < 10 {
                let path = format!("/{from}/eleventh");
                send(gateway, &held, &path, from, "").await.refused();
            }
        }
        send(gateway, &held, "/11/0", 11, "").await.refused();
        // Places come back when clients go away: one each.
        inside.truncate(97);
        let mut entered = Vec::new();
        let back = async {
            for at in 0.. {
                let came = send(gateway, &held, &format!("/11/back-{at}"), 11, "").await;
                entered.extend(match came {
                    Came::Inside(stream) => Some(stream),
                    Came::Answered(_) => None,
                });
                if entered.len() == 3 {
                    break;
                }
            }
        };
        soon(back).await;
        send(gateway, &held, "/12/0", 12, "").await.refused();
    });
}

// shows: A5 (HTTP parts), D4 (RateLimit and Retry-After)
#[test]
fn case_36_what_is_missing_sent_twice_no_utf_8_and_a_megabyte() {
    let limits = "  deny: { rate: 1/h, key: \"header:k\", on_missing: deny }\n  \
                  pass: { rate: 1/h, key: \"header:k\", on_missing: pass }\n  \
                  shared: { rate: 1/h, key: \"header:k\" }\n";
    let routes = [("/deny", "deny"), ("/pass", "pass"), ("/shared", "shared")];
    let (serve, _folder) = serve(limits, &routes, None);
    let gateway = serve.gateway;
    let statuses = |path: &str, header: &[u8]| {
        [0, 1].map(|_| {
            let mut request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n").into_bytes();
            request.extend_from_slice(header);
            request.extend_from_slice(b"connection: close\r\n\r\n");
            status(&ask(gateway, &request))
        })
    };
    // Missing.
    assert_eq!(statuses("/deny", b""), [429, 429]);
    assert_eq!(statuses("/pass", b""), [200, 200]);
    assert_eq!(statuses("/shared", b""), [200, 429]);
    // Sent twice: joined in order.
    assert_eq!(statuses("/shared", b"k: 1\r\nk: 2\r\n"), [200, 429]);
    assert_eq!(statuses("/shared", b"k: 1, 2\r\n"), [429, 429]);
    assert_eq!(statuses("/shared", b"k: 2\r\nk: 1\r\n"), [200, 429]);
    // Bytes, whatever they are.
    assert_eq!(statuses("/shared", b"k: \xff\xfe\r\n"), [200, 429]);
    assert_eq!(statuses("/shared", b"k: \xff\xfd\r\n"), [200, 429]);
    let megabyte = [b"k: ".as_slice(), &vec![b'x'; 1 << 20], b"\r\n"].concat();
    assert_eq!(statuses("/shared", &megabyte), [431, 431]);
}

/// The head of the answer to these bytes.
fn ask(gateway: SocketAddr, request: &[u8]) -> String {
    let mut stream = std::net::TcpStream::connect(gateway).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // Who is refused halfway may be cut off while it is still sending.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
