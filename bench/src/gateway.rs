//! The gateway against nginx: the same upstream, the same client, five interleaved rounds.
//!
//! Both proxies use two threads and keep connections alive; nginx limits by `limit_req`, tidegate
//! by a token bucket per client (and says so in `RateLimit` fields, which nginx does not). What
//! counts is the processor time of the proxy's processes per million requests: on a machine that
//! client and upstream share, requests per second are compressed.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::gateway_limits;
use crate::gateway_shared;
use crate::idle;
use crate::pairs::spread;

const ROUNDS: usize = 5;
const SECONDS: u64 = 3;
const CONNECTIONS: u32 = 64;

/// Runs all rows whose title has `filter` in it: all allowed, (nearly) all refused, and connections
/// that say nothing.
pub(crate) fn run(filter: &str) -> Result<(), String> {
    let folder = Folder::new().map_err(|error| format!("no folder for the benchmark: {error}"))?;
    let upstream = start_upstream(&folder)?;
    println!(
        "gateway: CPU s per 1M requests of the proxy, wrk -t1 -c{CONNECTIONS}, {SECONDS} s, five \
         interleaved rounds; ratio = tidegate / nginx"
    );
    for row in [Row::Allowed, Row::Refused] {
        if !row.title().contains(filter) {
            continue;
        }
        let nginx = start_nginx(&folder, upstream.address, row)?;
        let tidegate = start_tidegate(&folder, upstream.address, row)?;
        let sides = [&nginx, &tidegate];
        for side in sides {
            wrk(side.address, 1)?;
        }
        let mut rounds = vec![Vec::new(); sides.len()];
        for _ in 0..ROUNDS {
            for (side, rounds) in sides.iter().zip(&mut rounds) {
                rounds.push(side.measure(row)?);
            }
        }
        row.print(&rounds[0], &rounds[1]);
    }
    let nginx = || start_nginx(&folder, upstream.address, Row::Allowed);
    let tidegate = || start_tidegate(&folder, upstream.address, Row::Allowed);
    idle::row(filter, ROUNDS, [&nginx, &tidegate])?;
    gateway_limits::row(filter, &folder, upstream.address)?;
    gateway_shared::row(filter, ROUNDS, &folder, upstream.address)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Allowed,
    Refused,
}

impl Row {
    const fn title(self) -> &'static str {
        match self {
            Self::Allowed => "proxied, limit on",
            Self::Refused => "refused (429)",
        }
    }

    fn print(self, nginx: &[Round], tidegate: &[Round]) {
        let median = |rounds: &[Round], of: fn(&Round) -> f64| {
            spread(&rounds.iter().map(of).collect::<Vec<_>>()).1
        };
        let ratios: Vec<f64> = tidegate
            .iter()
            .zip(nginx)
            .map(|(ours, theirs)| ours.cpu_per_million / theirs.cpu_per_million)
            .collect();
        let (least, middle, most) = spread(&ratios);
        println!(
            "{:<20} nginx {:.2} ({:.0}/s, p99 {:.0} us) | tidegate {:.2} ({:.0}/s, p99 {:.0} us)  \
             ratio {middle:.2} ({least:.2}..{most:.2})",
            self.title(),
            median(nginx, |round| round.cpu_per_million),
            median(nginx, |round| round.per_second),
            median(nginx, |round| round.p99),
            median(tidegate, |round| round.cpu_per_million),
            median(tidegate, |round| round.per_second),
            median(tidegate, |round| round.p99),
        );
    }
}

#[derive(Clone, Copy, Debug)]
struct Round {
    cpu_per_million: f64,
    per_second: f64,
    p99: f64,
}

/// A server, killed with its workers when the row is done.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn measure(&self, row: Row) -> Result<Round, String> {
        let before = self.cpu_seconds()?;
        let answers = wrk(self.address, SECONDS)?;
        let requests = match row {
            Row::Allowed => answers.all_passed()?,
            Row::Refused => answers.nearly_all_refused()?,
        };
        let cpu = self.cpu_seconds()? - before;
        Ok(Round {
            cpu_per_million: cpu / requests * 1e6,
            per_second: requests / SECONDS as f64,
            p99: answers.p99,
        })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What `/proc` says in this file about the process, and about each of its children.
    fn proc(&self, file: &str) -> Result<Vec<String>, String> {
        let own = self.child.id().to_string();
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
        let children = children.unwrap_or_default();
        let ids = children.split_whitespace().chain([&*own]);
        ids.map(|id| {
            fs::read_to_string(format!("/proc/{id}/{file}"))
                .map_err(|error| format!("process {id}: {error}"))
        })
        .collect()
    }

    /// Resident memory of the process and its children; what they share counts for each.
    pub(crate) fn resident_bytes(&self) -> Result<f64, String> {
        let all = self.proc("statm")?;
        let pages = all.iter().filter_map(|statm| {
            let resident = statm.split_whitespace().nth(1)?;
            resident.parse::<f64>().ok()
        });
        Ok(pages.sum::<f64>() * 4096.0)
    }

    /// User and system time of the process and its children.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, String> {
        let mut ticks = 0.0;
        for stat in self.proc("stat")? {
            let fields: Vec<&str> = stat
                .rsplit(')')
                .next()
                .unwrap_or_default()
                .split_whitespace()
                .collect();
            let field = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
            // utime and stime: fields 14 and 15 of the line, 12 and 13 after the name.
            ticks += field(11).unwrap_or(0.0) + field(12).unwrap_or(0.0);
        }
        // Linux has 100 ticks a second on every machine that this runs on.
        Ok(ticks / 100.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx stops its workers when it is asked to, not when it is killed.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn start(mut command: Command, address: SocketAddr) -> Result<Server, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{name}: {error} (`cargo xtask setup` installs it)"))?;
    let mut server = Server { child, address };
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        if TcpStream::connect(address).is_ok() {
            return Ok(server);
        }
        if let Ok(Some(status)) = server.child.try_wait() {
            return Err(format!("{name} ended: {status}"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(format!("{name} does not listen on {address}"))
}

fn start_upstream(folder: &Folder) -> Result<Server, String> {
    let address = free_address()?;
    let body = "0123456789".repeat(10);
    let http = format!(
        "server {{ listen {address} reuseport backlog=4096; location / {{ \
         default_type text/plain; return 200 \"{body}\"; }} }}"
    );
    start(nginx(folder, "upstream", 1, "", &http)?, address)
}

fn start_nginx(folder: &Folder, upstream: SocketAddr, row: Row) -> Result<Server, String> {
    let address = free_address()?;
    let (rate, limit) = match row {
        Row::Allowed => ("1000000r/s", "limit_req zone=z burst=1000000 nodelay;"),
        Row::Refused => ("1r/m", "limit_req zone=z;"),
    };
    let http = format!(
        "limit_req_log_level info; limit_req_status 429;\n\
         limit_req_zone $binary_remote_addr zone=z:10m rate={rate};\n\
         upstream up {{ server {upstream}; keepalive 128; keepalive_requests 100000000; }}\n\
         proxy_http_version 1.1; proxy_set_header Connection \"\";\n\
         proxy_set_header Host $http_host;\n\
         proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n\
         server {{ listen {address} reuseport; location / {{ {limit} \
         proxy_pass http://up; }} }}"
    );
    let name = format!("nginx-{row:?}");
    start(nginx(folder, &name, 2, "", &http)?, address)
}

/// An nginx of its own; `head` is what stands before all blocks.
pub(crate) fn nginx(
    folder: &Folder,
    name: &str,
    workers: u32,
    head: &str,
    http: &str,
) -> Result<Command, String> {
    let path = |what: &str| {
        folder
            .0
            .join(format!("{name}.{what}"))
            .display()
            .to_string()
    };
    let temp = path("temp");
    let config = format!(
        "{head}worker_processes {workers};\npid {};\nerror_log {} crit;\ndaemon off;\n\
         events {{ worker_connections 16384; }}\nhttp {{\naccess_log off; tcp_nodelay on;\n\
         keepalive_requests 100000000; keepalive_timeout 600s;\n\
         client_body_temp_path {temp}; proxy_temp_path {temp}; fastcgi_temp_path {temp};\n\
         uwsgi_temp_path {temp}; scgi_temp_path {temp};\n{http}\n}}\n",
        path("pid"),
        path("error"),
    );
    let file = path("conf");
    fs::write(&file, config).map_err(|error| format!("{file}: {error}"))?;
    let mut command = Command::new("nginx");
    command.args(["-c", &file]);
    Ok(command)
}

fn start_tidegate(folder: &Folder, upstream: SocketAddr, row: Row) -> Result<Server, String> {
    let limit = match row {
        Row::Allowed => "rate: 1000000/s, burst: 1000000",
        Row::Refused => "rate: 1/min",
    };
    start_tidegate_with(folder, upstream, &format!("{row:?}"), limit, "")
}

/// With a limit per client, and further lines of the policy.
pub(crate) fn start_tidegate_with(
    folder: &Folder,
    upstream: SocketAddr,
    name: &str,
    limit: &str,
    further: &str,
) -> Result<Server, String> {
    start_policy(folder, name, |address| {
        format!(
            "limits:\n  per-client: {{ {limit}, key: client_ip }}\n\
             upstreams: {{ up: {{ servers: [\"{upstream}\"] }} }}\n\
             gateway:\n  listen: [\"{address}\"]\n  max_connections: 20000\n\
             \x20 routes: [{{ id: all, upstream: up, limits: [per-client] }}]\n{further}"
        )
    })
}

/// With this policy.
pub(crate) fn start_policy(
    folder: &Folder,
    name: &str,
    policy: impl FnOnce(SocketAddr) -> String,
) -> Result<Server, String> {
    let address = free_address()?;
    let policy = policy(address);
    let file = folder.0.join(format!("{name}.yaml"));
    fs::write(&file, policy).map_err(|error| format!("{}: {error}", file.display()))?;
    let binary = binary()?;
    let mut command = Command::new(binary);
    command.arg("serve").arg("-c").arg(file);
    start(command, address)
}

/// The release binary beside this one.
fn binary() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let binary = here
        .parent()
        .unwrap_or_else(|| Path::new("."))
        .join("tidegate");
    if binary.exists() {
        return Ok(binary);
    }
    Err("build it first: cargo build --release --package tidegate-server".to_owned())
}

/// What `wrk` counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answers {
    all: f64,
    /// Neither 2xx nor 3xx.
    refused: f64,
    /// The time that 99 of 100 answers took at most, in microseconds.
    p99: f64,
}

impl Answers {
    /// How many there were, if none was refused.
    pub(crate) fn all_passed(self) -> Result<f64, String> {
        if self.refused > 0.0 {
            let Self { all, refused, .. } = self;
            return Err(format!(
                "{refused} of {all} refused: this measures something else"
            ));
        }
        Ok(self.all)
    }

    /// How many there were, if all but a few were refused.
    fn nearly_all_refused(self) -> Result<f64, String> {
        let passed = self.all - self.refused;
        if passed > 10.0 {
            return Err(format!(
                "{passed} of {} passed: this measures something else",
                self.all
            ));
        }
        Ok(self.all)
    }
}

/// What was answered in so many seconds.
pub(crate) fn wrk(address: SocketAddr, seconds: u64) -> Result<Answers, String> {
    let url = format!("http://{address}/");
    let output = Command::new("wrk")
        .args([
            "-t1",
            &format!("-c{CONNECTIONS}"),
            &format!("-d{seconds}s"),
            "--latency",
            &url,
        ])
        .output()
        .map_err(|error| format!("wrk: {error} (`cargo xtask setup` installs it)"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if printed.contains("Socket errors") {
        return Err(format!("wrk met errors:\n{printed}"));
    }
    let all = printed
        .lines()
        .find_map(|line| line.split_once(" requests in "))
        .and_then(|(count, _)| count.trim().parse().ok())
        .ok_or_else(|| format!("wrk said:\n{printed}"))?;
    let refused = printed
        .lines()
        .find_map(|line| line.trim().strip_prefix("Non-2xx or 3xx responses: "))
        .map_or(Ok(0.0), |count| count.trim().parse())
        .map_err(|_| format!("wrk said:\n{printed}"))?;
    let p99 = printed
        .lines()
        .find_map(|line| line.trim().strip_prefix("99%"))
        .and_then(|time| micros(time.trim()))
        .ok_or_else(|| format!("wrk said:\n{printed}"))?;
    Ok(Answers { all, refused, p99 })
}

/// `1.25ms` as `wrk` prints it, in microseconds.
fn micros(time: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((time.strip_suffix(unit)?, factor)))?;
    number.parse::<f64>().ok().map(|number| number * factor)
}

pub(crate) fn free_address() -> Result<SocketAddr, String> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|error| error.to_string())
}

/// A folder that is removed again.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let name = format!("tidegate-bench-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
