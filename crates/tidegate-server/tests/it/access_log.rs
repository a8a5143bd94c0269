//! The access log of a real process: beside nginx's, and when it is moved away.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::running::{DEADLINE, Folder, Nginx, Serve, get};

/// Waits until a file has so many lines.
fn lines(path: &Path, count: usize) -> Vec<String> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let bytes = fs::read(path).unwrap_or_default();
        let text = String::from_utf8(bytes).expect("a log is text");
        if text.matches('\n').count() >= count {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(Instant::now() < deadline, "{}: {text}", path.display());
        std::thread::park_timeout(std::time::Duration::from_millis(2));
    }
}

/// Sends a request on a connection of its own, which is to be closed, and waits until it is.
fn send(address: SocketAddr, request: &[u8]) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let line = request.windows(2).position(|end| end == b"\r\n").unwrap() + 2;
    let (line, rest) = request.split_at(line);
    let request = [line, b"Connection: close\r\n", rest].concat();
    stream.write_all(&request).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
}

/// A line without its time, which is the same to the second only with luck; and that time.
fn split(line: &str) -> (String, String) {
    let (before, rest) = line.split_once('[').expect("a time");
    let (time, after) = rest.split_once(']').expect("a time");
    (format!("{before}[]{after}"), time.to_owned())
}

/// Policy lines of a gateway in front of `server` with this access log.
fn policy(folder: &Folder, server: SocketAddr, log: &str) -> std::path::PathBuf {
    folder.write(
        "policy.yaml",
        &format!(
            "limits: {{ a: {{ rate: 1000/s }} }}\n\
             upstreams: {{ u: {{ servers: [\"{server}\"] }} }}\n\
             gateway:\n  listen: [\"127.0.0.1:0\"]\n  access_log: {log}\n  \
             routes: [{{ id: all, upstream: u, limits: a }}]\nadmin: {{ listen: 127.0.0.1:0 }}\n"
        ),
    )
}

#[test]
fn a_line_of_combined_is_nginxs_to_the_byte() {
    let folder = Folder::new();
    let nginx = Nginx::logging_combined(&folder.path("nginx.log"));
    let ours = folder.path("ours.log");
    let log = format!("{{ path: \"{}\", format: combined }}", ours.display());
    // In front of another nginx, which gives the same answers and logs elsewhere.
    let upstream = Nginx::start();
    let serve = Serve::start(&policy(&folder, upstream.address, &log));
    let requests: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /a?b=c&d=%22+e HTTP/1.1\r\nHost: a\r\nUser-Agent: curl/8\r\nReferer: http://a/\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: \"q\\\"\t\xc3\xa9\x80~\r\nReferer: \xff\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent:\r\nReferer: \r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YWxpY2U6czpy\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: basic YcOpIjpz\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YWxpY2U=\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic OnM=\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer YWxpY2U6czpy\r\n\r\n",
        b"HEAD /head HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /old HTTP/1.0\r\nHost: a\r\n\r\n",
        b"POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
    ];
    for (index, request) in requests.iter().enumerate() {
        send(nginx.address, request);
        send(serve.gateway, request);
        // One after the other, so that neither log has another order.
        lines(&folder.path("nginx.log"), index + 1);
        lines(&ours, index + 1);
    }
    let theirs = lines(&folder.path("nginx.log"), requests.len());
    let ours = lines(&ours, requests.len());
    for ((theirs, ours), request) in theirs.iter().zip(&ours).zip(requests) {
        let (theirs, their_time) = split(theirs);
        let (ours, our_time) = split(ours);
        assert_eq!(ours, theirs, "{}", request.escape_ascii());
        assert_eq!(our_time.len(), their_time.len());
        let day_and_zone = |time: &str| (time[..12].to_owned(), time[20..].to_owned());
        assert_eq!(day_and_zone(&our_time), day_and_zone(&their_time));
    }
}

#[test]
fn a_log_that_was_moved_away_is_opened_anew_on_sighup_and_is_whole_after_a_stop() {
    let folder = Folder::new();
    let nginx = Nginx::start();
    let log = folder.path("access.log");
    let serve = Serve::start(&policy(
        &folder,
        nginx.address,
        &format!("{}", log.display()),
    ));
    get(serve.gateway, "/first", "");
    lines(&log, 1);
    let moved = folder.path("access.log.1");
    fs::rename(&log, &moved).unwrap();
    let id = serve.id().to_string();
    let sent = Command::new("kill").args(["-HUP", &id]).status().unwrap();
    assert!(sent.success());
    get(serve.gateway, "/second", "");
    get(serve.gateway, "/third", "");
    assert_eq!(serve.metric("tidegate_access_log_dropped_total"), Ok(0.0));
    assert!(serve.stop());
    let (old, new) = (lines(&moved, 1), lines(&log, 2));
    assert!(
        old.len() == 1 && old[0].contains("\"target\":\"/first\""),
        "{old:?}"
    );
    // Two cores may have written them, each in its own time.
    let new = new.join("\n");
    assert!(new.lines().count() == 2, "{new}");
    for target in ["second", "third"] {
        assert!(new.contains(&format!("\"target\":\"/{target}\"")), "{new}");
    }
}
