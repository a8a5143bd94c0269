//! An upstream that tells who comes, and can keep them.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::Event;

/// Answers 200 to everything; at once, or when the line of the request is released.
#[derive(Debug)]
pub(super) struct Upstream {
    address: SocketAddr,
    released: Arc<Released>,
}

#[derive(Debug, Default)]
struct Released {
    state: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    lines: HashSet<usize>,
    all: bool,
}

impl Upstream {
    pub(super) fn start(holds: bool, events: Sender<Event>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let released = Arc::new(Released::default());
        let of_thread = Arc::clone(&released);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if of_thread.lock().all {
                    break;
                }
                let (released, events) = (Arc::clone(&of_thread), events.clone());
                std::thread::spawn(move || serve(stream, holds, &released, &events));
            }
        });
        Ok(Self { address, released })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers the request of this line.
    pub(super) fn release(&self, line: usize) {
        self.released.lock().lines.insert(line);
        self.released.changed.notify_all();
    }

    /// Answers all that are here, and listens no more.
    pub(super) fn release_all(&self) {
        self.released.lock().all = true;
        self.released.changed.notify_all();
        // Wakes the listener, which then sees that it is over.
        drop(TcpStream::connect(self.address));
    }
}

impl Released {
    fn lock(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for(&self, line: usize) {
        let waits = |lines: &mut Lines| !lines.all && !lines.lines.contains(&line);
        drop(
            self.changed
                .wait_while(self.lock(), waits)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
}

fn serve(stream: TcpStream, holds: bool, released: &Released, events: &Sender<Event>) {
    let Ok(mut writer) = stream.try_clone() else {
        return;
    };
    let mut reader = BufReader::new(stream);
    while let Some(line) = read_head(&mut reader) {
        if events.send(Event::Arrived(line)).is_err() {
            return;
        }
        if holds {
            released.wait_for(line);
        }
        if writer
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .is_err()
        {
            return;
        }
    }
}

/// Reads a request without a body; its line, from the header that says it.
fn read_head(reader: &mut impl BufRead) -> Option<usize> {
    let mut line = 0;
    loop {
        let mut header = Vec::new();
        if reader.read_until(b'\n', &mut header).ok()? == 0 {
            return None;
        }
        let header = String::from_utf8_lossy(&header);
        if header.trim_end().is_empty() {
            return Some(line);
        }
        if let Some(number) = header.to_ascii_lowercase().strip_prefix("x-line:") {
            line = number.trim().parse().unwrap_or(0);
        }
    }
}
