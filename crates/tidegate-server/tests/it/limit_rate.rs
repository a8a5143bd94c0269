//! nginx's `limit_rate`, and ours in its dialect, side by side on the same responses.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use crate::running::{DEADLINE, Folder, Nginx, Serve, get};

/// One case: KiB per second, KiB that are free, and the bytes of the response.
#[derive(Clone, Copy, Debug)]
struct Case {
    rate: usize,
    after: usize,
    length: usize,
}

const CASES: [Case; 8] = [
    case(100, 0, 250_000),
    case(100, 0, 50_000),
    case(100, 0, 102_400),
    case(50, 100, 200_000),
    case(20, 5, 60_000),
    case(300, 0, 1_000_000),
    case(1_000, 200, 2_500_000),
    case(1, 0, 2_500),
];

/// How far the two may be apart, and how late either may be woken on a busy machine.
const APART: Duration = Duration::from_millis(15);
const SCHEDULING: Duration = Duration::from_millis(35);

const fn case(rate: usize, after: usize, length: usize) -> Case {
    Case {
        rate,
        after,
        length,
    }
}

/// What has come, and when, of a response.
type Came = Vec<(Duration, usize)>;

/// Reads a response as it comes. The header is not counted.
fn read(address: SocketAddr, path: &str, length: usize, start: &Barrier) -> Came {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    start.wait();
    stream.write_all(request.as_bytes()).unwrap();
    let start = Instant::now();
    let (mut came, mut seen, mut buffer) = (Vec::new(), Vec::new(), vec![0; 1 << 20]);
    let mut body = None;
    loop {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{path} is broken off");
        let total = if let Some(total) = &mut body {
            *total += read;
            *total
        } else {
            seen.extend_from_slice(&buffer[..read]);
            let end = seen.windows(4).position(|window| window == b"\r\n\r\n");
            let Some(end) = end else { continue };
            assert!(seen.starts_with(b"HTTP/1.1 200"), "{path}");
            *body.insert(seen.len() - end - 4)
        };
        came.push((start.elapsed(), total));
        if total == length {
            return came;
        }
    }
}

/// How long after its first piece so much of a response had come: how soon a process is woken
/// for a new connection says nothing of its limits.
fn when(came: &Came, bytes: usize) -> Duration {
    let (first, _) = came.first().unwrap();
    let (at, _) = came.iter().find(|(_, total)| *total >= bytes).unwrap();
    at.saturating_sub(*first)
}

/// The same files, limited by nginx and by the gateway in front of it.
fn nginx_and_gateway() -> (Nginx, Serve, Folder) {
    let files = Folder::new();
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(files.path(""), everybody).unwrap();
    let mut locations = format!(
        "root {};\nsendfile off;\noutput_buffers 1 4m;\nlocation /free/ {{ }}\n",
        files.path("").display()
    );
    std::fs::create_dir(files.path("free")).unwrap();
    let (mut limits, mut routes) = (String::new(), String::new());
    for (at, case) in CASES.iter().enumerate() {
        let Case {
            rate,
            after,
            length,
        } = case;
        std::fs::create_dir(files.path(&format!("case{at}"))).unwrap();
        for folder in ["free".to_owned(), format!("case{at}")] {
            std::fs::write(files.path(&format!("{folder}/{at}")), vec![b'x'; *length]).unwrap();
        }
        writeln!(
            locations,
            "location /case{at}/ {{ limit_rate {rate}k; limit_rate_after {after}k; }}"
        )
        .unwrap();
        writeln!(
            limits,
            "  case{at}: {{ bandwidth: {rate}KiB/s, after: {after}KiB, algorithm: nginx }}"
        )
        .unwrap();
        writeln!(
            routes,
            "    - {{ id: case{at}, match: {{ path: /free/{at} }}, upstream: files, \
             limits: [case{at}] }}"
        )
        .unwrap();
    }
    std::fs::write(files.path("free/warm"), "warm").unwrap();
    routes += "    - { id: warm, match: { path: /free/warm }, upstream: files }\n";
    let nginx = Nginx::with("", &locations);
    let policy = format!(
        "limits:\n{limits}upstreams: {{ files: {{ servers: [\"{}\"] }} }}\n\
         gateway:\n  listen: [\"127.0.0.1:0\"]\n  routes:\n{routes}\
         admin: {{ listen: \"127.0.0.1:0\" }}\n",
        nginx.address
    );
    let serve = Serve::start(&files.write("policy.yaml", &policy));
    (nginx, serve, files)
}

// shows: A3 (nginx)
#[test]
fn alone_responses_come_when_nginxs_come() {
    /// A gap in what nginx sends the gateway, on a busy machine, is a pause.
    const ATTEMPTS: usize = 3;
    let (nginx, serve, _files) = nginx_and_gateway();
    // Connections, and the pages of both binaries.
    for _ in 0..3 {
        get(nginx.address, "/free/warm", "");
        get(serve.gateway, "/free/warm", "");
    }
    let mut apart = Vec::new();
    for _ in 0..ATTEMPTS {
        apart = side_by_side(nginx.address, serve.gateway);
        if apart.is_empty() {
            return;
        }
    }
    panic!("{apart:#?}");
}

/// What came earlier or later here than with nginx.
fn side_by_side(nginx: SocketAddr, gateway: SocketAddr) -> Vec<String> {
    let start = Arc::new(Barrier::new(2 * CASES.len()));
    let reading = |address, path: String, length| {
        let start = Arc::clone(&start);
        thread::spawn(move || read(address, &path, length, &start))
    };
    let pairs: Vec<_> = (CASES.iter().enumerate())
        .map(|(at, case)| {
            let theirs = reading(nginx, format!("/case{at}/{at}"), case.length);
            let ours = reading(gateway, format!("/free/{at}"), case.length);
            (case, theirs, ours)
        })
        .collect();
    let mut apart = Vec::new();
    for (case, theirs, ours) in pairs {
        let (theirs, ours) = (theirs.join().unwrap(), ours.join().unwrap());
        let differs = |tenth: &usize| {
            let bytes = case.length * tenth / 10;
            when(&theirs, bytes).abs_diff(when(&ours, bytes)) > APART + SCHEDULING
        };
        if (1..=10).any(|tenth| differs(&tenth)) {
            apart.push(format!("{case:?}: nginx {theirs:?}, here {ours:?}"));
        }
    }
    apart
}
