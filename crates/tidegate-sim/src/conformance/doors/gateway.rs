//! What the gateway answers, over real sockets, on a clock that the trace moves.
//!
//! The gateway is the real one; only its clock and the timer beside it are the test's. Requests
//! go one after the other, each on a connection of its own through a "trusted proxy", and the
//! next goes when the last has been answered, is being waited out, or (under a concurrency limit)
//! has reached its upstream.

mod upstream;
mod virtual_timer;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tidegate::{Clock, ManualClock, Timestamp};
use tidegate_gateway::{Bound, Gateway};
use tidegate_node::Node;
use tidegate_server::trace::{TraceLine, TraceRequest};
use tokio::sync::oneshot;

use self::upstream::Upstream;
use self::virtual_timer::VirtualTimer;
use super::read;
use crate::conformance::{Door, Told, ToldOutcome, ToldRetry};

/// How long anything may take in real time.
const DEADLINE: Duration = Duration::from_secs(20);

/// Runs a trace through a gateway of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct GatewayDoor;

/// What the driver waits for.
#[derive(Debug)]
enum Event {
    /// A request has reached the upstream.
    Arrived(usize),
    /// A client has read its whole answer, and its connection is closed.
    Answered(usize, String),
    /// The gateway makes a request wait until then.
    Waiting(Timestamp),
}

impl Door for GatewayDoor {
    fn run(&mut self, policy: &str, trace: &[String]) -> Result<Vec<Told>, String> {
        let driver = Driver::start(policy)?;
        let mut told = Vec::new();
        for (number, line) in read(trace)? {
            let at = Timestamp::from_nanos(line.at_ns());
            driver.clock.set(at);
            driver.timer.fire(driver.clock.now());
            match line {
                TraceLine::Request(request) => told.push(driver.request(number, &request)?),
                TraceLine::Release { line, .. } => driver.release(line)?,
                TraceLine::Reload { .. } => return Err("no reload here".to_owned()),
            }
        }
        driver.stop()?;
        Ok(told)
    }
}

struct Driver {
    clock: ManualClock,
    timer: Arc<VirtualTimer>,
    upstream: Upstream,
    /// Whether requests stay at the upstream until they are released.
    holds: bool,
    address: SocketAddr,
    events: Receiver<Event>,
    answers: Sender<Event>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Driver {
    fn start(limits: &str) -> Result<Self, String> {
        let (answers, events) = channel();
        let only_limits = tidegate_policy::parse("case", limits).map_err(|e| e.to_string())?;
        let rules = only_limits.policy.limits;
        let holds = rules.iter().any(|rule| rule.limit.algorithm().is_gate());
        let upstream = Upstream::start(holds, answers.clone()).map_err(|e| e.to_string())?;
        let limits_of_file = rules.iter().filter(|rule| rule.rate_index == 0);
        let names: Vec<&str> = limits_of_file.map(|rule| rule.limit.name()).collect();
        let text = format!(
            "{limits}upstreams: {{ up: {{ servers: [\"{}\"] }} }}\n\
             gateway:\n  listen: [\"127.0.0.1:0\"]\n  trusted_proxies: [\"127.0.0.0/8\"]\n\
             \x20 routes: [{{ id: all, upstream: up, limits: [{}] }}]\n",
            upstream.address(),
            names.join(", "),
        );
        let policy = tidegate_policy::parse("case", &text)
            .map_err(|e| e.to_string())?
            .policy;
        let config = policy.gateway.clone().ok_or("no gateway")?;
        let clock = ManualClock::new(Timestamp::EPOCH);
        let node = Node::new(policy, Arc::new(clock.clone())).map_err(|e| e.to_string())?;
        let timer = Arc::new(VirtualTimer::new(clock.clone(), answers.clone()));
        let of_gateway: Arc<dyn tidegate_node::Timer> = timer.clone();
        let bound = Gateway::bind_on(&config, node, of_gateway, NonZeroUsize::MIN)
            .map_err(|error| error.to_string())?;
        let address = bound.local_addrs()[0];
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || run(bound, stopped));
        let (stop, thread) = (Some(stop), Some(thread));
        Ok(Self {
            clock,
            timer,
            upstream,
            holds,
            address,
            events,
            answers,
            stop,
            thread,
        })
    }

    fn request(&self, line: usize, request: &TraceRequest) -> Result<Told, String> {
        if request.permits != 1 || request.peek || request.limits.is_some() {
            return Err(format!("line {line}: plain HTTP cannot ask that"));
        }
        let head = head(line, request);
        let (address, answers) = (self.address, self.answers.clone());
        std::thread::spawn(move || {
            let answer = exchange(address, &head).unwrap_or_else(|error| error.to_string());
            // Nobody listens any more when the case is over.
            let _ = answers.send(Event::Answered(line, answer));
        });
        loop {
            match self.next_event()? {
                Event::Arrived(arrived) if self.holds && arrived == line => {
                    return Ok(Told::ALLOWED);
                }
                Event::Answered(answered, answer) if answered == line => return tell(&answer),
                Event::Waiting(until) => {
                    return Ok(Told::delayed(until.nanos_since(self.clock.now())));
                }
                // Of requests that were made to wait, before.
                Event::Arrived(_) | Event::Answered(..) => {}
            }
        }
    }

    fn release(&self, line: usize) -> Result<(), String> {
        self.upstream.release(line);
        loop {
            if let Event::Answered(answered, _) = self.next_event()?
                && answered == line
            {
                return Ok(());
            }
        }
    }

    fn next_event(&self) -> Result<Event, String> {
        self.events
            .recv_timeout(DEADLINE)
            .map_err(|_| "the gateway says nothing".to_owned())
    }

    fn stop(mut self) -> Result<(), String> {
        self.upstream.release_all();
        self.timer.fire(Timestamp::MAX);
        drop(self.stop.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Ok(()))) | None => Ok(()),
            Some(Ok(Err(error))) => Err(error.to_string()),
            Some(Err(_)) => Err("the gateway panicked".to_owned()),
        }
    }
}

fn run(bound: Bound, stopped: oneshot::Receiver<()>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(bound.run(async {
        // Dropping the sender stops it too.
        let _ = stopped.await;
    }))
}

/// A request's head as it goes over the wire.
fn head(line: usize, request: &TraceRequest) -> Vec<u8> {
    let parts = &request.parts;
    let mut head = format!("{} {} HTTP/1.1\r\n", parts.method, parts.uri).into_bytes();
    for (name, value) in &parts.headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    if !parts.headers.contains_key("host") {
        head.extend_from_slice(b"host: case\r\n");
    }
    if let Some(ip) = request.client_ip {
        head.extend_from_slice(format!("x-forwarded-for: {ip}\r\n").as_bytes());
    }
    head.extend_from_slice(format!("x-line: {line}\r\nconnection: close\r\n\r\n").as_bytes());
    head
}

fn exchange(address: SocketAddr, head: &[u8]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.write_all(head)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// What an answer says.
fn tell(answer: &str) -> Result<Told, String> {
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| format!("no head: {answer}"))?;
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found
                .eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    };
    let status = head.split(' ').nth(1).unwrap_or_default();
    let mut told = match status {
        "200" => Told::ALLOWED,
        "429" => Told::DENIED,
        _ => return Err(format!("unexpected: {answer}")),
    };
    // With one limit met, the field says what remains of it.
    if let Some(field) = header("ratelimit").filter(|field| !field.contains(',')) {
        let (name, parameters) = field.split_once(';').unwrap_or((&field, ""));
        told.limit = Some(name.trim_matches('"').to_owned());
        let remaining = parameters
            .split(';')
            .find_map(|p| p.trim().strip_prefix("r="));
        told.remaining = remaining.and_then(|remaining| remaining.parse().ok());
    }
    if told.outcome == ToldOutcome::Denied {
        let problem: serde_json::Value =
            serde_json::from_str(body).map_err(|error| format!("{error}: {body}"))?;
        let violated = problem["violated-policies"][0].as_str();
        told.limit = violated.map(ToOwned::to_owned).or(told.limit);
        let seconds = header("retry-after").and_then(|seconds| seconds.parse().ok());
        told.retry = Some(seconds.map_or(ToldRetry::Never, ToldRetry::AfterSeconds));
    }
    Ok(told)
}
