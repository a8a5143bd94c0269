//! An upstream that does what it is asked by path: to answer, to dawdle, to die.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// It serves until the test's process ends.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
}

impl Upstream {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    // The gateway breaks off when its client does.
                    let _ = serve(stream);
                });
            }
        });
        Self { address }
    }
}

/// Answers requests until the connection ends.
fn serve(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(path) = read_request(&mut stream)? {
        let out = stream.get_mut();
        match path.as_str() {
            "/slow" => {
                pause(30);
                out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
            }
            "/stream" => {
                out.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                for _ in 0..20 {
                    pause(1);
                    out.write_all(b"400\r\n")?;
                    out.write_all(&[b'x'; 1024])?;
                    out.write_all(b"\r\n")?;
                }
                out.write_all(b"0\r\n\r\n")?;
            }
            "/dies" => {
                out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc")?;
                return Ok(());
            }
            "/resets" => return Ok(()),
            "/garbage" => {
                out.write_all(b"What?\r\n\r\n")?;
                return Ok(());
            }
            "/halves" => {
                out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcde")?;
                out.shutdown(Shutdown::Write)?;
                std::io::copy(&mut stream, &mut std::io::sink())?;
                return Ok(());
            }
            // Longer than the gateway waits, which ends it.
            "/never" => {
                std::io::copy(&mut stream, &mut std::io::sink())?;
                return Ok(());
            }
            _ => out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?,
        }
    }
    Ok(())
}

/// The path of the next request, which is read to its end; `None` where there is no more.
fn read_request(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<String>> {
    let (mut path, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().map_err(std::io::Error::other)?;
        }
        if line.is_empty() {
            break;
        }
        path = path.or_else(|| line.split(' ').nth(1).map(str::to_owned));
    }
    stream.read_exact(&mut vec![0; length])?;
    Ok(path)
}

fn pause(millis: u64) {
    std::thread::park_timeout(Duration::from_millis(millis));
}
