//! A client that sends the same to several sides at the same times, and notes what comes when.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep_until, timeout};

use crate::running::DEADLINE;

/// A request that was sent later than this is another schedule than the one that was meant.
pub(crate) const LATE: Duration = Duration::from_millis(7);

/// What the limits of a side have said together, enforced or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Said {
    Passed,
    Delayed,
    Rejected,
}

impl Said {
    /// From nginx's `$limit_req_status` and `$limit_conn_status`, or from what each of the
    /// gateway's limits decided; `None` where the head says neither.
    pub(crate) fn in_head(head: &str) -> Option<Self> {
        let (status, debug) = (field(head, "x-limit:"), field(head, "x-tidegate-debug:"));
        let any = |nginx: &str, ours: &str| {
            let ours = format!(";decision={ours};");
            status.contains(nginx) || debug.contains(&ours)
        };
        let said = [
            (any("rejected", "denied"), Self::Rejected),
            (any("delayed", "delayed"), Self::Delayed),
            (any("passed", "allowed"), Self::Passed),
        ];
        said.into_iter()
            .find_map(|(is_so, said)| is_so.then_some(said))
    }
}

/// What one side answered to one request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// How much later than meant it was sent; or, where the side tells, received.
    pub(crate) late: Duration,
    /// From sending it until the answer's head was there.
    pub(crate) took: Duration,
    pub(crate) status: u16,
    pub(crate) said: Option<Said>,
}

/// A request: from which address, and its head.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) from: Ipv4Addr,
    pub(crate) head: String,
}

impl Sent {
    pub(crate) async fn connect(&self, side: SocketAddr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((self.from, 0).into()).unwrap();
        let stream = socket.connect(side).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }
}

/// Sends at these times (in microseconds since a start that it chooses) what `request` says of
/// each, to each side on a connection of its own. What comes back is in the order of the requests,
/// by side.
pub(crate) async fn play<const SIDES: usize>(
    sides: [SocketAddr; SIDES],
    micros: &[i64],
    request: impl Fn(usize) -> Sent,
) -> Vec<[Answer; SIDES]> {
    let mut connections = Vec::new();
    for at in 0..micros.len() {
        let request = request(at);
        let mut pair = Vec::new();
        for side in sides {
            pair.push(request.connect(side).await);
        }
        connections.push((request.head, pair));
    }
    let start = Instant::now() + Duration::from_millis(20);
    let mut asked = Vec::new();
    for (&micros, (head, pair)) in micros.iter().zip(connections) {
        let meant = start + Duration::from_micros(micros.unsigned_abs());
        sleep_until(meant.into()).await;
        let mut of_both = Vec::new();
        for mut stream in pair {
            stream.write_all(head.as_bytes()).await.unwrap();
            let (sent, sent_at) = (Instant::now(), SystemTime::now());
            of_both.push(tokio::spawn(answer(stream, meant, sent, sent_at)));
        }
        asked.push(of_both);
    }
    let mut answers = Vec::new();
    for of_both in asked {
        let mut sides = Vec::new();
        for side in of_both {
            sides.push(side.await.unwrap());
        }
        answers.push(sides.try_into().unwrap());
    }
    answers
}

async fn answer(
    mut stream: TcpStream,
    meant: Instant,
    sent: Instant,
    sent_at: SystemTime,
) -> Answer {
    let head = soon(read_head(&mut stream)).await;
    let took = sent.elapsed();
    let late = sent - meant;
    Answer {
        late: late.max(received_late(field(&head, "x-time:"), sent_at)),
        took,
        status: crate::running::status(&head),
        said: Said::in_head(&head),
    }
}

/// A field of a head in lower case, or nothing.
fn field<'a>(head: &'a str, name: &str) -> &'a str {
    let mut lines = head.lines();
    let line = lines.find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim()
}

/// An answer up to the end of its head, in lower case.
pub(crate) async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // A byte at a time, since what comes after is not ours to read.
        head.push(stream.read_u8().await.expect("an answer"));
    }
    String::from_utf8_lossy(&head).to_lowercase()
}

/// Reads up to and with this piece.
pub(crate) async fn read_until(stream: &mut TcpStream, piece: &str) {
    let mut body = Vec::new();
    while !body.ends_with(piece.as_bytes()) {
        body.push(stream.read_u8().await.expect("a body"));
    }
}

/// What is done before any test gives up.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future).await.expect("it does not hang")
}

/// How much later than it was sent it was received, if this says: the time of the answer, and how
/// long the request took, both in seconds.
fn received_late(times: &str, sent_at: SystemTime) -> Duration {
    let mut seconds = times.split(' ').map(str::parse::<f64>);
    let (Some(Ok(answered)), Some(Ok(took))) = (seconds.next(), seconds.next()) else {
        return Duration::ZERO;
    };
    let sent_at = sent_at.duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    Duration::from_secs_f64((answered - took - sent_at).max(0.0))
}
