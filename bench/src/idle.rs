//! Idle connections: what one more client costs a proxy that it says nothing to.
//!
//! Each is kept alive after one request. What counts is all resident memory of the proxy: nginx has
//! set a slot aside for each connection before it comes. What came with them is printed beside it.

use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::{Resource, getrlimit};

use crate::gateway::Server;
use crate::pairs::{ratios, spread};

/// Connections, where so many files may be open.
const CONNECTIONS: usize = 10_000;
/// Files that may be open beside them.
const OTHER_FILES: u64 = 200;

/// What one proxy took in one round, in bytes.
#[derive(Clone, Copy, Debug)]
struct Round {
    in_all: f64,
    with_each: f64,
}

/// Prints the row if its title has `filter` in it: both proxies are started anew in each round.
pub(crate) fn row(
    filter: &str,
    rounds: usize,
    start: [&dyn Fn() -> Result<Server, String>; 2],
) -> Result<(), String> {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = CONNECTIONS.min(usize::try_from(most.saturating_sub(OTHER_FILES)).unwrap_or(0));
    let title = format!("idle, {count}");
    if !title.contains(filter) {
        return Ok(());
    }
    let mut sides = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (start, rounds) in start.iter().zip(&mut sides) {
            rounds.push(measure(&start()?, count)?);
        }
    }
    let [nginx, tidegate] = &sides;
    let median = |rounds: &[Round], of: fn(&Round) -> f64| {
        spread(&rounds.iter().map(of).collect::<Vec<_>>()).1
    };
    let in_all: [Vec<f64>; 2] =
        [nginx, tidegate].map(|rounds| rounds.iter().map(|round| round.in_all).collect());
    let (least, middle, most) = spread(&ratios(&in_all[1], &in_all[0]));
    let (in_all, each) = (
        |round: &Round| round.in_all / 1e6,
        |round: &Round| round.with_each,
    );
    println!(
        "{title:<20} nginx {:.1} MB ({:.0} B with each) | tidegate {:.1} MB ({:.0} B with each)  \
         ratio {middle:.2} ({least:.2}..{most:.2})",
        median(nginx, in_all),
        median(nginx, each),
        median(tidegate, in_all),
        median(tidegate, each),
    );
    Ok(())
}

fn measure(server: &Server, count: usize) -> Result<Round, String> {
    let failed = |error: std::io::Error| format!("an idle connection: {error}");
    // The first request makes what all of them share: the way to the upstream, for one.
    let mut connections = Vec::with_capacity(count);
    for _ in 0..16 {
        let mut first = TcpStream::connect(server.address()).map_err(failed)?;
        ask(&mut first)?;
    }
    let before = server.resident_bytes()?;
    for _ in 0..count {
        let mut connection = TcpStream::connect(server.address()).map_err(failed)?;
        ask(&mut connection)?;
        connections.push(connection);
    }
    let with = server.resident_bytes()?;
    // All of them were there: each is answered again.
    for connection in &mut connections {
        ask(connection)?;
    }
    Ok(Round {
        in_all: with,
        with_each: (with - before) / count as f64,
    })
}

/// One request, and its whole answer, which has to be a 200.
fn ask(connection: &mut TcpStream) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("an idle connection: {error}");
    connection
        .write_all(b"GET / HTTP/1.1\r\nhost: example.org\r\n\r\n")
        .map_err(failed)?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    while !is_whole(&answer) {
        match connection.read(&mut buffer).map_err(failed)? {
            0 => return Err("an idle connection was closed".to_owned()),
            read => answer.extend_from_slice(&buffer[..read]),
        }
    }
    if answer.starts_with(b"HTTP/1.1 200 ") {
        return Ok(());
    }
    Err(format!("not allowed: {}", String::from_utf8_lossy(&answer)))
}

fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    length.and_then(|length| length.trim().parse().ok()) == Some(body.len())
}
