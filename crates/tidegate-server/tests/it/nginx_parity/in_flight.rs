//! `limit_conn` in all that it can say: requests in flight by client and in all, counted from the
//! end of their header to the end of their answer.
//!
//! Nothing here depends on time: each step is over when both sides have done it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::Builder;

use super::schedule::Random;
use super::sides::Sides;
use crate::client::{Said, Sent, read_head, read_until, soon};
use crate::held::Held;
use crate::running::status;

const OF_CLIENT: usize = 3;
const IN_ALL: usize = 5;
/// For so long a place may be taken whose request has just ended.
const SETTLED: Duration = Duration::from_secs(5);

/// A request that is inside, on both sides.
#[derive(Debug)]
struct Inside {
    paths: [String; 2],
    streams: [TcpStream; 2],
    client: i64,
    has_begun: bool,
}

/// Both sides, with the requests that are inside and some that never are.
#[derive(Debug)]
struct Play {
    sides: [SocketAddr; 2],
    held: Held,
    random: Random,
    inside: Vec<Inside>,
    requests: usize,
    refused: usize,
    gone: usize,
    /// What the limits said of those that came, by side.
    said: Vec<[Said; 2]>,
}

fn policy(limits: &str, names: &str, upstream: SocketAddr) -> String {
    format!(
        "limits:\n{limits}upstreams: {{ held: {{ servers: [\"{upstream}\"] }} }}\n\
         gateway:\n  routes: [{{ id: all, upstream: held, limits: [{names}] }}]\n"
    )
}

impl Play {
    async fn start(zones: &str, server: &str, limits: &str, names: &str) -> (Self, Sides) {
        let held = Held::start().await;
        let upstream = held.address;
        let server = format!(
            "{server}\nlocation / {{ proxy_pass http://{upstream}; proxy_buffering off; }}"
        );
        let sides = Sides::start(zones, &server, &policy(limits, names, upstream));
        let play = Self {
            sides: sides.addresses(),
            held,
            random: Random(4),
            inside: Vec::new(),
            requests: 0,
            refused: 0,
            gone: 0,
            said: Vec::new(),
        };
        (play, sides)
    }

    fn request(&self, client: i64, side: usize) -> (String, Sent) {
        let path = format!("/{side}/{}", self.requests);
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: a\r\nclient: {client}\r\nx-tidegate-debug: 1\r\n\r\n"
        );
        let from = Ipv4Addr::LOCALHOST;
        (path, Sent { from, head })
    }

    /// One side's answer to a request: it is inside, or refused with this status.
    async fn ask(&mut self, client: i64, side: usize) -> Result<(String, TcpStream), u16> {
        let (path, sent) = self.request(client, side);
        let mut stream = sent.connect(self.sides[side]).await;
        stream.write_all(sent.head.as_bytes()).await.unwrap();
        let came = tokio::select! {
            () = self.held.has_come(&path) => None,
            head = read_head(&mut stream) => Some(head),
        };
        match came {
            None => Ok((path, stream)),
            Some(head) => Err(status(&head)),
        }
    }

    /// Somebody comes; both have to agree.
    async fn comes(&mut self, client: i64) {
        self.requests += 1;
        let nginx = self.ask(client, 0).await;
        let mut ours = self.ask(client, 1).await;
        if nginx.is_ok() {
            // The last byte of an answer may be with the client before its place is free again.
            let deadline = Instant::now() + SETTLED;
            while ours.is_err() && Instant::now() < deadline {
                ours = self.ask(client, 1).await;
            }
        }
        match (nginx, ours) {
            (Err(nginx), Err(ours)) => {
                assert_eq!((nginx, ours), (503, 503));
                self.refused += 1;
            }
            (Ok((path, stream)), Ok((our_path, our_stream))) => self.inside.push(Inside {
                paths: [path, our_path],
                streams: [stream, our_stream],
                client,
                has_begun: false,
            }),
            (nginx, ours) => panic!(
                "client {client} with {:?} inside: nginx {:?}, the gateway {:?}",
                self.inside.iter().map(|one| one.client).collect::<Vec<_>>(),
                nginx.map(|(path, _)| path),
                ours.map(|(path, _)| path),
            ),
        }
    }

    /// The head of its answer, and the half of its body, are there.
    async fn begins(&mut self, at: usize) {
        let Inside { paths, streams, .. } = &mut self.inside[at];
        let mut said = Vec::new();
        for (path, stream) in paths.iter().zip(streams) {
            self.held.begin(path);
            let head = soon(read_head(stream)).await;
            assert_eq!(status(&head), 200);
            said.push(Said::in_head(&head).unwrap());
        }
        self.said.push(said.try_into().unwrap());
        self.inside[at].has_begun = true;
    }

    async fn ends(&mut self, at: usize) {
        if !self.inside[at].has_begun {
            self.begins(at).await;
        }
        let inside = self.inside.swap_remove(at);
        for (path, mut stream) in inside.paths.iter().zip(inside.streams) {
            self.held.finish(path);
            soon(read_until(&mut stream, "-last")).await;
        }
    }

    async fn goes_away(&mut self, at: usize) {
        let Inside { paths, streams, .. } = self.inside.swap_remove(at);
        drop(streams);
        self.gone += 1;
        for path in &paths {
            self.held.has_gone(path).await;
        }
    }

    /// Steps as they are drawn.
    async fn walk(&mut self, steps: usize) {
        for _ in 0..steps {
            let client = self.random.between(0, 2);
            let count = self.inside.len();
            // Nobody, if it is the one after the last.
            let at = self.random.between(0, count.try_into().unwrap());
            let at = usize::try_from(at).unwrap();
            match self.random.between(0, 9) {
                6 if at < count && !self.inside[at].has_begun => self.begins(at).await,
                7 | 8 if at < count => self.ends(at).await,
                9 if at < count => self.goes_away(at).await,
                _ => self.comes(client).await,
            }
        }
    }
}

// shows: A2 (refusing), D3 (limit_conn)
#[test]
fn nginx_and_the_gateway_have_as_many_requests_in_flight() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let zones = "limit_conn_zone $http_client zone=client:64k;\n\
                     limit_conn_zone $server_name zone=all:64k;";
        let server =
            format!("server_name all;\nlimit_conn client {OF_CLIENT};\nlimit_conn all {IN_ALL};");
        let reject = "on_limit: { reject: { status: 503 } }";
        let limits = format!(
            "  client: {{ concurrency: {OF_CLIENT}, key: [\"header:client\"], {reject} }}\n  \
             all: {{ concurrency: {IN_ALL}, {reject} }}\n"
        );
        let (mut play, _sides) = Play::start(zones, &server, &limits, "client, all").await;
        // Connections that have sent half of a header, or nothing more after an answer, hold none.
        let mut halves = Vec::new();
        for side in play.sides {
            for _ in 0..=IN_ALL {
                let mut stream = TcpStream::connect(side).await.unwrap();
                stream
                    .write_all(b"GET / HTTP/1.1\r\nclient: 0\r\n")
                    .await
                    .unwrap();
                halves.push(stream);
            }
        }
        play.walk(300).await;
        assert!(play.refused > 20 && play.gone > 10, "{play:?}");
        let of_one = |one: i64| {
            play.inside
                .iter()
                .filter(|inside| inside.client == one)
                .count()
        };
        assert!(play.inside.len() <= IN_ALL && (0..3).all(|one| of_one(one) <= OF_CLIENT));
    });
}

// shows: A2 (refusing), A9, D3 (limit_conn)
#[test]
fn nginx_and_the_gateway_would_refuse_the_same_requests_in_flight() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let zones = "limit_conn_zone $http_client zone=client:64k;";
        let server = "limit_conn client 2;\nlimit_conn_dry_run on;";
        let limits = "  client: { concurrency: 2, key: [\"header:client\"], shadow: true }\n";
        let (mut play, _sides) = Play::start(zones, server, limits, "client").await;
        play.walk(200).await;
        while !play.inside.is_empty() {
            play.ends(0).await;
        }
        let rejected = play.said.iter().filter(|said| said[0] == Said::Rejected);
        assert!(rejected.count() > 10);
        assert!(
            play.said.iter().all(|[nginx, ours]| nginx == ours),
            "{:?}",
            play.said
        );
    });
}
