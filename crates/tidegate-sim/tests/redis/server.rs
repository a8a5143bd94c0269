//! A Redis of a test's own: on a free port of loopback, in a folder of its own, stopped with the
//! test.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take to start.
const DEADLINE: Duration = Duration::from_mins(1);

/// A running `redis-server`.
#[derive(Debug)]
pub(crate) struct RedisServer {
    child: Child,
    folder: PathBuf,
    arguments: Vec<String>,
    pub(crate) address: SocketAddr,
}

impl RedisServer {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With further lines of a configuration, as arguments (`--name value`).
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        Self::start_at(free_address(), arguments)
    }

    /// At an address of the test's choice.
    pub(crate) fn start_at(address: SocketAddr, arguments: &[&str]) -> Self {
        Self::start_with_file(address, "", arguments)
    }

    /// With a configuration file: Sentinels want one.
    pub(crate) fn start_with_file(address: SocketAddr, file: &str, arguments: &[&str]) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Each test begins here, and before it has an endpoint.
        crate::events::listen();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("tidegate-redis-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("redis.conf"), file).unwrap();
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let child = spawn(address, &folder, &arguments);
        let server = Self {
            child,
            folder,
            arguments,
            address,
        };
        server.until_ready();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Sends a command by `redis-cli`, and answers with what it prints.
    pub(crate) fn command(&self, command: &[&str]) -> String {
        redis_cli(self.address, command)
    }

    /// The same, where the answer may be an error.
    pub(crate) fn try_command(&self, command: &[&str]) -> String {
        try_redis_cli(self.address, command).1
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process (SIGKILL): what it held in memory is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again on the same port.
    pub(crate) fn start_again(&mut self) {
        self.kill();
        self.child = spawn(self.address, &self.folder, &self.arguments);
        self.until_ready();
    }

    /// Stops the process without ending it (SIGSTOP), or lets it go on (SIGCONT).
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.pid().to_string();
        let status = Command::new("kill").args([signal, &pid]).status();
        assert!(status.is_ok_and(|status| status.success()));
    }

    fn until_ready(&self) {
        let deadline = Instant::now() + DEADLINE;
        while Instant::now() < deadline {
            if answers(self.address) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        panic!("no Redis on {}", self.address);
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn spawn(address: SocketAddr, folder: &std::path::Path, arguments: &[String]) -> Child {
    Command::new("redis-server")
        .arg(folder.join("redis.conf"))
        .args(["--port", &address.port().to_string()])
        .args(["--bind", "127.0.0.1", "--save", "", "--dir"])
        .arg(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is installed (`cargo xtask setup`)")
}

pub(crate) fn redis_cli(address: SocketAddr, command: &[&str]) -> String {
    let (well, printed) = try_redis_cli(address, command);
    assert!(well, "{command:?}: {printed}");
    printed
}

fn try_redis_cli(address: SocketAddr, command: &[&str]) -> (bool, String) {
    let output = Command::new("redis-cli")
        .args(["-e", "-h", "127.0.0.1", "-p", &address.port().to_string()])
        .args(command)
        .stdin(Stdio::null())
        .output()
        .expect("redis-cli is installed (`cargo xtask setup`)");
    let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success(), printed)
}

fn answers(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    let mut answer = [0; 5];
    stream.write_all(b"PING\r\n").is_ok()
        && stream.read_exact(&mut answer).is_ok()
        // One that wants a login is ready, too.
        && matches!(&answer, b"+PONG" | b"-NOAU")
}

/// An address that nobody listens on just now.
pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

#[test]
fn a_server_stops_and_starts_again_where_it_was() {
    let mut server = RedisServer::start_with(&["--maxmemory", "10mb"]);
    let ping = |url: &str| {
        let client = redis::Client::open(url).unwrap();
        let answer = client
            .get_connection_with_timeout(Duration::from_secs(1))
            .and_then(|mut connection| redis::cmd("PING").query::<String>(&mut connection));
        answer.is_ok()
    };
    assert!(ping(&server.url()));
    server.signal("-STOP");
    server.signal("-CONT");
    server.kill();
    assert!(!ping(&server.url()));
    server.start_again();
    assert!(ping(&server.url()));
}
