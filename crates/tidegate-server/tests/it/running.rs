//! Processes that tests start on free ports and stop by their id.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up: room for a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// The binary under test.
pub(crate) fn tidegate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.env("NO_COLOR", "1");
    command
}

/// Runs the binary to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    tidegate().args(args).stdin(Stdio::null()).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder that is removed again.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate-it-{}-{next}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that is killed when the test is done with it.
#[derive(Debug)]
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A `tidegate serve`.
#[derive(Debug)]
pub(crate) struct Serve {
    child: Running,
    pub(crate) gateway: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// What it wrote to standard error before that, and in its greeting.
    pub(crate) greeting: Vec<String>,
    /// What it writes there after its greeting.
    pub(crate) log: Receiver<String>,
}

impl Serve {
    /// Starts it on this policy, whose ports are 0.
    pub(crate) fn start(policy: &Path) -> Self {
        Self::start_by(tidegate().args(["serve", "-c"]).arg(policy))
    }

    /// Starts it by a command of the test's own.
    pub(crate) fn start_by(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = child.stderr.take().unwrap();
        let child = Running(child);
        let (lines, log) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    break;
                }
            }
        });
        let (mut gateway, mut admin) = (None, None);
        let mut greeting = Vec::new();
        while gateway.is_none() || admin.is_none() {
            let line = log.recv_timeout(DEADLINE).unwrap_or_else(|_| {
                panic!("serve did not say where it listens: {greeting:#?}");
            });
            let address = || {
                let url = line.split_whitespace().nth(1)?;
                url.trim_end_matches(',')
                    .strip_prefix("http://")?
                    .parse()
                    .ok()
            };
            if line.starts_with("  gateway") {
                gateway = address();
            } else if line.starts_with("  admin") {
                admin = address();
            }
            greeting.push(line);
        }
        Self {
            child,
            gateway: gateway.unwrap(),
            admin: admin.unwrap(),
            greeting,
            log,
        }
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.0.id()
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(self) -> bool {
        let id = self.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
        self.ended()
    }

    /// Waits until it has ended: whether all went well.
    pub(crate) fn ended(mut self) -> bool {
        let deadline = Instant::now() + DEADLINE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.0.try_wait().unwrap() {
                return status.success();
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        false
    }

    /// Waits for a line of the log.
    pub(crate) fn logged(&self, wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + DEADLINE;
        let mut seen = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.log.recv_timeout(left) {
                Ok(line) if wanted(&line) => return line,
                Ok(line) => seen.push(line),
                Err(error) => panic!("not in the log ({error}): {seen:#?}"),
            }
        }
    }

    /// The value of a metric (with its labels), or what there is instead.
    pub(crate) fn metric(&self, name: &str) -> Result<f64, String> {
        let (_, body) = get(self.admin, "/metrics", "");
        let line = body
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).ok_or(body)
    }
}

/// nginx, by default one that answers everything with 100 bytes; says how often it answered.
#[derive(Debug)]
pub(crate) struct Nginx {
    _child: Running,
    _folder: Folder,
    pub(crate) address: SocketAddr,
    log: PathBuf,
}

impl Nginx {
    pub(crate) fn start() -> Self {
        Self::with("", &Self::hundred_bytes())
    }

    /// Another one: `http` stands before its server, `server` in it.
    pub(crate) fn with(http: &str, server: &str) -> Self {
        let folder = Folder::new();
        let log = folder.path("access.log");
        Self::in_folder(folder, log, "one", http, server)
    }

    /// The usual one, with its usual log in this file, in UTC.
    pub(crate) fn logging_combined(log: &Path) -> Self {
        let (folder, log) = (Folder::new(), log.to_owned());
        Self::in_folder(folder, log, "combined", "", &Self::hundred_bytes())
    }

    fn hundred_bytes() -> String {
        let body = "0123456789".repeat(10);
        format!("location / {{ default_type text/plain; return 200 \"{body}\"; }}")
    }

    fn in_folder(folder: Folder, log: PathBuf, format: &str, http: &str, server: &str) -> Self {
        let address = free_address();
        let config = format!(
            "master_process off;\nworker_processes 1;\ndaemon off;\n\
             pid {pid};\nerror_log {error};\n\
             events {{ worker_connections 8192; }}\n\
             http {{\n  log_format one '$status';\n  access_log {log} {format};\n\
             client_body_temp_path {temp};\n proxy_temp_path {temp};\n fastcgi_temp_path {temp};\n\
             uwsgi_temp_path {temp};\n scgi_temp_path {temp};\n\
             keepalive_requests 100000000;\n{http}\n\
             server {{ listen {address} backlog=4096;\n{server} }}\n}}\n",
            pid = folder.path("pid").display(),
            error = folder.path("error.log").display(),
            log = log.display(),
            temp = folder.path("temp").display(),
        );
        let config = folder.write("nginx.conf", &config);
        let child = Command::new("nginx")
            .env("TZ", "UTC")
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx is installed (`cargo xtask setup`)");
        let child = Running(child);
        until_open(address);
        Self {
            _child: child,
            _folder: folder,
            address,
            log,
        }
    }

    /// How many requests have reached it.
    pub(crate) fn requests(&self) -> usize {
        self.statuses().len()
    }

    /// What it has answered them, which is all that its log says.
    pub(crate) fn statuses(&self) -> Vec<u16> {
        let log = fs::read_to_string(&self.log).unwrap();
        let statuses = log.lines().filter_map(|line| line.parse().ok());
        statuses.collect()
    }
}

/// A Redis of a test's own.
#[derive(Debug)]
pub(crate) struct Redis {
    child: Running,
    folder: Folder,
    pub(crate) address: SocketAddr,
}

impl Redis {
    pub(crate) fn start() -> Self {
        let (folder, address) = (Folder::new(), free_address());
        let child = Self::spawn(&folder, address);
        until_open(address);
        Self {
            child,
            folder,
            address,
        }
    }

    fn spawn(folder: &Folder, address: SocketAddr) -> Running {
        let child = Command::new("redis-server")
            .args(["--port", &address.port().to_string(), "--save", ""])
            .args(["--bind", "127.0.0.1", "--dir"])
            .arg(folder.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is installed (`cargo xtask setup`)");
        Running(child)
    }

    /// What it held in memory is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.0.kill();
        let _ = self.child.0.wait();
    }

    /// Stops the process without ending it (SIGSTOP), or lets it go on (SIGCONT).
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.0.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status();
        assert!(status.is_ok_and(|status| status.success()));
    }

    pub(crate) fn start_again(&mut self) {
        self.child = Self::spawn(&self.folder, self.address);
        until_open(self.address);
    }
}

/// An address that nobody listens on just now.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

fn until_open(address: SocketAddr) {
    let deadline = Instant::now() + DEADLINE;
    while Instant::now() < deadline {
        if TcpStream::connect(address).is_ok() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("nobody listens on {address}");
}

/// One GET on a connection of its own: the head, and the body.
pub(crate) fn get(address: SocketAddr, path: &str, headers: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

/// The status of an answer's head.
pub(crate) fn status(head: &str) -> u16 {
    head.split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap()
}

/// How many of `n` requests pass, one after the other.
pub(crate) fn passed(address: SocketAddr, n: usize, headers: &str) -> usize {
    (0..n)
        .filter(|_| status(&get(address, "/", headers).0) == 200)
        .count()
}
