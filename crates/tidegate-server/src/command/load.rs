//! `tidegate load`: a bounded load on loopback, for trying a policy out.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use comfy_table::presets;
use comfy_table::{Cell, CellAlignment, Table};
use hdrhistogram::Histogram;
use http::Uri;
use http::header::HOST;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tokio::task::LocalSet;

use crate::cli::{Format, LoadArgs};
use crate::exit::{CommandError, Exit};
use crate::terminal::Terminal;

/// Bounds of a load: it is for trying things out, not for harm.
const MAX_CONNECTIONS: usize = 1_000;
const MAX_SECONDS: u64 = 600;
const MAX_REQUESTS: u64 = 100_000_000;
/// The longest wait that is told apart, in microseconds.
const MAX_MICROS: u64 = 60_000_000;
/// Connections that fail so often in a row are given up.
const MAX_FAILURES: u32 = 10;

/// Sends requests, and says what came back.
pub(crate) fn run(args: &LoadArgs, terminal: &mut Terminal) -> Result<Exit, CommandError> {
    let target = Target::of(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::io("cannot start", error))?;
    let bar = progress(args.seconds);
    let tally = runtime.block_on(LocalSet::new().run_until(load(args, target, &bar)));
    bar.finish_and_clear();
    match args.format {
        Format::Text => terminal.print(&tally.table())?,
        Format::Json => terminal.print(&format!("{:#}\n", tally.as_json()))?,
    }
    Ok(if tally.statuses.is_empty() {
        Exit::No
    } else {
        Exit::Fine
    })
}

/// Where requests go.
#[derive(Clone, Debug)]
struct Target {
    address: SocketAddr,
    host: String,
    path: String,
    headers: Vec<(String, String)>,
}

impl Target {
    fn of(args: &LoadArgs) -> Result<Self, CommandError> {
        let wrong = |what: &str| CommandError::new(format!("`{}`: {what}", args.url));
        let uri: Uri = args.url.parse().map_err(|_| wrong("this is no URL"))?;
        if uri.scheme_str() != Some("http") {
            return Err(wrong("the load goes to http://ADDRESS:PORT/PATH"));
        }
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        let port = uri.port_u16().unwrap_or(80);
        let name = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let address = (name, port)
            .to_socket_addrs()
            .ok()
            .and_then(|mut addresses| addresses.find(|address| address.ip().is_loopback()))
            .ok_or_else(|| wrong("the load goes to this machine only (127.0.0.1 or [::1])"))?;
        for (what, value, most) in [
            (
                "connections",
                args.connections as u64,
                MAX_CONNECTIONS as u64,
            ),
            ("seconds", args.seconds, MAX_SECONDS),
            ("requests", args.requests, MAX_REQUESTS),
        ] {
            if !(1..=most).contains(&value) {
                return Err(CommandError::new(format!("--{what} is from 1 to {most}")));
            }
        }
        let path = uri
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned();
        let headers = args.headers.iter().map(|header| {
            let (name, value) = header.split_once(':').ok_or_else(|| {
                CommandError::new(format!("--header `{header}`: write it as `name: value`"))
            })?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        });
        let headers = headers.collect::<Result<Vec<_>, CommandError>>()?;
        let target = Self {
            address,
            host,
            path,
            headers,
        };
        target
            .request()
            .map_err(|error| CommandError::new(format!("--header: {error}")))?;
        Ok(target)
    }

    fn request(&self) -> Result<http::Request<Empty<Bytes>>, http::Error> {
        let mut request = http::Request::get(&self.path).header(HOST, &self.host);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Empty::new())
    }
}

/// When requests go out, and when to end.
#[derive(Debug)]
struct Pace {
    start: Instant,
    end: Instant,
    /// Time between two requests over all connections; zero for as fast as they come.
    interval: Duration,
    left: std::cell::Cell<u64>,
    sent: std::cell::Cell<u32>,
}

impl Pace {
    /// The time of the next request; `None` when it is over.
    fn next(&self) -> Option<Instant> {
        let at = (self.start + self.interval * self.sent.get()).max(Instant::now());
        if self.left.get() == 0 || at >= self.end {
            return None;
        }
        self.left.set(self.left.get() - 1);
        self.sent.set(self.sent.get().saturating_add(1));
        Some(at)
    }
}

async fn load(args: &LoadArgs, target: Target, bar: &ProgressBar) -> Tally {
    let start = Instant::now();
    let pace = Rc::new(Pace {
        start,
        end: start + Duration::from_secs(args.seconds),
        interval: args
            .rate
            .map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate.get()),
        left: std::cell::Cell::new(args.requests),
        sent: std::cell::Cell::new(0),
    });
    let target = Rc::new(target);
    let workers: Vec<_> = (0..args.connections)
        .map(|_| tokio::task::spawn_local(connection(Rc::clone(&target), Rc::clone(&pace))))
        .collect();
    let bar = bar.clone();
    let ticking = tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            bar.set_position(start.elapsed().as_millis() as u64);
        }
    });
    let mut tally = Tally::default();
    for worker in workers {
        match worker.await {
            Ok(of_worker) => tally.add(&of_worker),
            Err(_) => tally.failures += 1,
        }
    }
    ticking.abort();
    tally.elapsed = start.elapsed();
    tally
}

/// One connection, reopened when it is closed.
async fn connection(target: Rc<Target>, pace: Rc<Pace>) -> Tally {
    let mut tally = Tally::default();
    let mut sender = None;
    let mut failures = 0;
    while failures < MAX_FAILURES {
        let Some(at) = pace.next() else { break };
        tokio::time::sleep_until(at.into()).await;
        let begun = Instant::now();
        let deadline = pace.end + Duration::from_secs(5);
        let answer = tokio::time::timeout_at(deadline.into(), exchange(&target, &mut sender));
        if let Ok(Ok(status)) = answer.await {
            failures = 0;
            tally.record(status, begun.elapsed());
        } else {
            failures += 1;
            tally.failures += 1;
            sender = None;
        }
    }
    tally
}

type Sender = SendRequest<Empty<Bytes>>;

async fn exchange(target: &Target, sender: &mut Option<Sender>) -> io::Result<u16> {
    let mut open = match sender.take() {
        Some(open) if !open.is_closed() => open,
        _ => connect(target).await?,
    };
    open.ready().await.map_err(io::Error::other)?;
    let request = target.request().map_err(io::Error::other)?;
    let response = open.send_request(request).await.map_err(io::Error::other)?;
    let status = response.status().as_u16();
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        frame.map_err(io::Error::other)?;
    }
    *sender = Some(open);
    Ok(status)
}

async fn connect(target: &Target) -> io::Result<Sender> {
    let stream = tokio::net::TcpStream::connect(target.address).await?;
    stream.set_nodelay(true)?;
    let (open, connection) = handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    tokio::task::spawn_local(connection);
    Ok(open)
}

impl Answers {
    fn none() -> Self {
        let micros = Histogram::new_with_max(MAX_MICROS, 3);
        Self {
            count: 0,
            micros: micros.expect("a minute of microseconds to 3 digits is in bounds"),
        }
    }
}

/// What came back.
#[derive(Debug, Default)]
struct Tally {
    statuses: BTreeMap<u16, Answers>,
    failures: u64,
    elapsed: Duration,
}

#[derive(Debug)]
struct Answers {
    count: u64,
    micros: Histogram<u64>,
}

impl Tally {
    fn record(&mut self, status: u16, took: Duration) {
        let answers = self.statuses.entry(status).or_insert_with(Answers::none);
        answers.count += 1;
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        answers.micros.saturating_record(micros);
    }

    fn add(&mut self, other: &Self) {
        self.failures += other.failures;
        for (&status, answers) in &other.statuses {
            let ours = self.statuses.entry(status).or_insert_with(Answers::none);
            ours.count += answers.count;
            // Both have the same bounds, so that adding cannot fail.
            let _ = ours.micros.add(&answers.micros);
        }
    }

    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }

    fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(["status", "answers", "per second", "p50", "p99", "longest"]);
        let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        for (status, answers) in &self.statuses {
            let at = |quantile| millis(answers.micros.value_at_quantile(quantile));
            table.add_row(vec![
                Cell::new(status),
                right(answers.count.to_string()),
                right(format!("{:.1}", self.per_second(answers.count))),
                right(at(0.5)),
                right(at(0.99)),
                right(millis(answers.micros.max())),
            ]);
        }
        let all: u64 = self.statuses.values().map(|answers| answers.count).sum();
        let seconds = self.elapsed.as_secs_f64();
        format!(
            "{table}\n{all} answers in {seconds:.1} s, {} without an answer\n",
            self.failures
        )
    }

    fn as_json(&self) -> serde_json::Value {
        let statuses: Vec<_> = self
            .statuses
            .iter()
            .map(|(status, answers)| {
                json!({
                    "status": status,
                    "answers": answers.count,
                    "per_second": self.per_second(answers.count),
                    "p50_us": answers.micros.value_at_quantile(0.5),
                    "p99_us": answers.micros.value_at_quantile(0.99),
                    "max_us": answers.micros.max(),
                })
            })
            .collect();
        json!({
            "seconds": self.elapsed.as_secs_f64(),
            "without_answer": self.failures,
            "statuses": statuses,
        })
    }
}

fn millis(micros: u64) -> String {
    format!("{:.2} ms", micros as f64 / 1_000.0)
}

fn progress(seconds: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(seconds * 1_000);
    match ProgressStyle::with_template("{wide_bar} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
