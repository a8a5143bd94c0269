//! Long bodies through a real process: its memory does not grow with them.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use crate::running::{Folder, Serve};

/// Most that a process may grow while bodies pass through it, in bytes.
const MOST: u64 = 24 << 20;

/// A server that sends back the bodies of requests while they come, of one connection.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || send_back(stream));
        }
    });
    address
}

fn send_back(mut stream: TcpStream) {
    let mut seen = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let (head, length) = loop {
        let Ok(read @ 1..) = stream.read(&mut buffer) else {
            return;
        };
        seen.extend_from_slice(&buffer[..read]);
        if let Some(end) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&seen[..end]).to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse::<u64>().unwrap());
            break (end + 4, length);
        }
    };
    let start = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(start.as_bytes()).unwrap();
    stream.write_all(&seen[head..]).unwrap();
    let mut left = length - (seen.len() - head) as u64;
    while left > 0 {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{left} bytes did not come");
        stream.write_all(&buffer[..read]).unwrap();
        left -= read as u64;
    }
}

/// The most memory that the process has had, in bytes.
fn peak(serve: &Serve) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", serve.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() << 10
}

/// Sends so many bytes there and back, and says what comes of each at its place.
fn there_and_back(gateway: SocketAddr, length: u64) {
    let mut stream = TcpStream::connect(gateway).unwrap();
    let mut sends = stream.try_clone().unwrap();
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    let sending = std::thread::spawn(move || {
        sends.write_all(head.as_bytes()).unwrap();
        let piece: Vec<u8> = (0..251_u8).cycle().take(251 << 8).collect();
        let mut left = length;
        while left > 0 {
            let now = left.min(piece.len() as u64);
            sends.write_all(&piece[..now as usize]).unwrap();
            left -= now;
        }
    });
    let mut buffer = vec![0; 1 << 16];
    let (mut head, mut at) = (Vec::new(), None);
    while at != Some(length) {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{at:?} of {length} bytes came back");
        let mut bytes = &buffer[..read];
        if at.is_none() {
            head.extend_from_slice(bytes);
            let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") else {
                continue;
            };
            assert!(head.starts_with(b"HTTP/1.1 200 "));
            bytes = &head[end + 4..];
            at = Some(0);
        }
        let start = at.unwrap();
        for (place, &byte) in (start..).zip(bytes).step_by(101) {
            assert_eq!(u64::from(byte), place % 251, "byte {place}");
        }
        at = Some(start + bytes.len() as u64);
    }
    sending.join().unwrap();
    let _ = stream.shutdown(Shutdown::Both);
}

#[track_caller]
fn passes_in_constant_memory(length: u64) {
    let folder = Folder::new();
    let policy = folder.write(
        "policy.yaml",
        &format!(
            "upstreams:\n  shop: {{ servers: [\"{}\"] }}\nadmin: {{ listen: 127.0.0.1:0 }}\n\
             gateway:\n  listen: 127.0.0.1:0\n  routes: [{{ id: all, upstream: shop }}]\n",
            echo()
        ),
    );
    let serve = Serve::start(&policy);
    // What a body needs at all is there after the first.
    there_and_back(serve.gateway, 1 << 20);
    let before = peak(&serve);
    there_and_back(serve.gateway, length);
    let grown = peak(&serve) - before;
    assert!(grown < MOST, "{grown} bytes more for a body of {length}");
}

// shows: H1 (bounded memory)
#[test]
fn two_hundred_megabytes_there_and_back_take_no_memory() {
    passes_in_constant_memory(200_000_000);
}

// shows: H1 (bounded memory)
#[test]
#[ignore = "long: a gigabyte each way"]
fn a_gigabyte_there_and_back_takes_no_memory() {
    passes_in_constant_memory(1_000_000_000);
}
