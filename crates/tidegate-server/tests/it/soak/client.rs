//! A client that mostly behaves, and often breaks off.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const PATHS: [&str; 10] = [
    "/fast", "/fast", "/fast", "/slow", "/stream", "/dies", "/resets", "/garbage", "/halves",
    "/never",
];
/// Longer than anything takes that the gateway answers by itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// One client, with its own dice.
#[derive(Debug)]
pub(super) struct Client {
    gateway: SocketAddr,
    dice: u64,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    pub(super) const fn new(gateway: SocketAddr, seed: u64) -> Self {
        Self {
            gateway,
            dice: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            connection: None,
        }
    }

    /// A number below `most`.
    fn roll(&mut self, most: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % most
    }

    /// Does one thing, and says what was answered, if it waited for that.
    pub(super) fn act(&mut self, answered: impl FnMut(u16)) {
        let pause = self.roll(20);
        std::thread::park_timeout(Duration::from_millis(pause));
        // What goes wrong here is the test's doing: it begins anew.
        if self.try_act(answered).is_err() {
            self.connection = None;
        }
    }

    fn try_act(&mut self, mut answered: impl FnMut(u16)) -> std::io::Result<()> {
        let path = PATHS[self.roll(PATHS.len() as u64) as usize];
        let get = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        let post = |length: usize| {
            format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n")
        };
        match self.roll(10) {
            // Within a head.
            0 => {
                let at = self.roll(get.len() as u64) as usize;
                self.connect()?.get_mut().write_all(&get.as_bytes()[..at])?;
                self.connection = None;
            }
            // Before the answer.
            1 => {
                self.connect()?.get_mut().write_all(get.as_bytes())?;
                self.connection = None;
            }
            // Within the answer.
            2 => {
                let connection = self.connect()?;
                connection.get_mut().write_all(get.as_bytes())?;
                let mut some = [0; 40];
                let _ = connection.read(&mut some);
                self.connection = None;
            }
            // Within a request's body.
            3 => {
                let connection = self.connect()?.get_mut();
                connection.write_all(post(100_000).as_bytes())?;
                connection.write_all(&[b'x'; 1_000])?;
                self.connection = None;
            }
            // With more requests behind the first.
            4 => {
                self.connect()?
                    .get_mut()
                    .write_all(get.repeat(3).as_bytes())?;
                self.read_answer().map(&mut answered)?;
                self.connection = None;
            }
            5 => {
                let connection = self.connect()?.get_mut();
                connection.write_all(post(10_000).as_bytes())?;
                connection.write_all(&[b'x'; 10_000])?;
                self.read_answer().map(&mut answered)?;
            }
            _ => {
                self.connect()?.get_mut().write_all(get.as_bytes())?;
                self.read_answer().map(&mut answered)?;
            }
        }
        Ok(())
    }

    fn connect(&mut self) -> std::io::Result<&mut BufReader<TcpStream>> {
        let connection = if let Some(connection) = self.connection.take() {
            connection
        } else {
            let stream = TcpStream::connect(self.gateway)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            BufReader::new(stream)
        };
        Ok(self.connection.insert(connection))
    }

    /// Reads an answer to its end, and its status.
    fn read_answer(&mut self) -> std::io::Result<u16> {
        let broken = || std::io::Error::other("no answer");
        let connection = self.connection.as_mut().ok_or_else(broken)?;
        let (mut status, mut length, mut chunked, mut close) = (None, 0, false, false);
        loop {
            let mut line = String::new();
            if connection.read_line(&mut line)? == 0 {
                return Err(broken());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest.get(..3).and_then(|status| status.parse().ok());
            } else if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().map_err(|_| broken())?;
            } else if line == "transfer-encoding: chunked" {
                chunked = true;
            } else if line == "connection: close" {
                close = true;
            } else if line.is_empty() {
                break;
            }
        }
        // The status is counted even where the body breaks off.
        let status = status.ok_or_else(broken)?;
        let read = if chunked {
            read_chunks(connection)
        } else {
            connection.read_exact(&mut vec![0; length])
        };
        if read.is_err() || close {
            self.connection = None;
        }
        Ok(status)
    }
}

fn read_chunks(connection: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    loop {
        let mut line = String::new();
        connection.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim_end(), 16).map_err(std::io::Error::other)?;
        connection.read_exact(&mut vec![0; length + 2])?;
        if length == 0 {
            return Ok(());
        }
    }
}
