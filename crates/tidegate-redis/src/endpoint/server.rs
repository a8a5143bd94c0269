//! One server: the connections to it, who keeps them, and its breaker.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use redis::{Cmd, Pipeline, Value, cmd};
use tidegate::Timestamp;
use tokio::sync::{Notify, Semaphore};
use tokio::task::{AbortHandle, yield_now};
use tokio::time::{sleep, timeout, timeout_at};

use super::line::Line;
use super::sentinel::Sentinels;
use super::{Deadline, Shared, connect};
use crate::backoff::random;
use crate::breaker::{Breaker, Outcome, Pass, Phase};
use crate::fault::{Fault, integers};
use crate::health::{ServerHealth, State};
use crate::{Address, ScriptCall};

/// Until a socket has been read, and whoever waits for it has been told.
const TURNS_TO_READ: u32 = 3;

/// Where the server is.
#[derive(Debug)]
pub(super) enum Source {
    /// There.
    Fixed(Address),
    /// Where Sentinels say.
    Sentinels(Sentinels),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(address) => address.fmt(f),
            Self::Sentinels(sentinels) => f.write_str(&sentinels.primary),
        }
    }
}

/// One server. Who drops it ends its connections, and the task that keeps them.
#[derive(Debug)]
pub(super) struct Server {
    inner: Arc<Inner>,
    keeper: AbortHandle,
}

#[derive(Debug)]
struct Inner {
    name: String,
    source: Source,
    shared: Arc<Shared>,
    guarded: Mutex<Guarded>,
    /// Which connection the next call takes.
    turn: AtomicUsize,
    places: Semaphore,
    /// The breaker has opened.
    opened: Notify,
}

/// What changes, together: the connections are there exactly while the breaker is not open.
#[derive(Debug)]
struct Guarded {
    breaker: Breaker,
    lines: Vec<Arc<Line>>,
    /// `None` while calls are let through.
    down: Option<(Timestamp, String)>,
    /// Whether the world knows that it is down.
    is_told: bool,
}

impl Guarded {
    /// Notes a reason. It is an event only if it is the first: also of one that has never been up,
    /// or nobody would hear of a wrong password.
    fn goes_down(&mut self, now: Timestamp, why: String) -> Option<Event> {
        let since = self.down.as_ref().map_or(now, |(since, _)| *since);
        self.down = Some((since, why.clone()));
        let is_first = !std::mem::replace(&mut self.is_told, true);
        is_first.then_some(Event::Down { why })
    }
}

/// What is told to the world.
#[derive(Debug)]
enum Event {
    Up { after: Duration },
    Down { why: String },
}

impl Server {
    pub(super) fn start(source: Source, shared: Arc<Shared>) -> Self {
        let inner = Arc::new(Inner {
            name: source.to_string(),
            source,
            guarded: Mutex::new(Guarded {
                breaker: Breaker::new(),
                lines: Vec::new(),
                down: Some((shared.now(), "not connected yet".to_owned())),
                is_told: false,
            }),
            turn: AtomicUsize::new(0),
            places: Semaphore::new(shared.config.max_in_flight),
            opened: Notify::new(),
            shared,
        });
        let keeper = inner
            .shared
            .runtime
            .spawn(keep(Arc::clone(&inner)))
            .abort_handle();
        Self { inner, keeper }
    }

    pub(super) fn health(&self) -> ServerHealth {
        let state = match &self.inner.guarded().down {
            None => State::Up,
            Some((since, why)) => State::Down {
                since: *since,
                why: why.clone(),
            },
        };
        let server = self.inner.name.clone();
        ServerHealth { server, state }
    }

    pub(super) fn is_up(&self) -> bool {
        self.inner.guarded().down.is_none()
    }

    /// Where it is, if that is fixed.
    pub(super) fn address(&self) -> Option<&Address> {
        match &self.inner.source {
            Source::Fixed(address) => Some(address),
            Source::Sentinels(_) => None,
        }
    }

    /// Calls a script here, once; with `asking`, although its slot is another server's still.
    pub(super) async fn call(
        &self,
        call: &ScriptCall,
        asking: bool,
        deadline: Deadline,
    ) -> Result<Vec<i64>, Fault> {
        let inner = &*self.inner;
        let (line, ticket) = inner.admit()?;
        let Ok(_place) = inner.places.try_acquire() else {
            return Err(Fault::Full(inner.shared.config.max_in_flight));
        };
        let running = async {
            if asking {
                inner.ask(&line, call).await
            } else {
                inner.run(&line, call).await
            }
        };
        let mut running = pin!(running);
        let answer = match timeout_at(deadline.at, running.as_mut()).await {
            Ok(answer) => Some(answer),
            Err(_) => already(running).await,
        };
        let answer = answer.unwrap_or(Err(Fault::TimedOut(deadline.budget)));
        ticket.record(&answer);
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Inner {
    fn guarded(&self) -> MutexGuard<'_, Guarded> {
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self) -> Result<(Arc<Line>, Ticket<'_>), Fault> {
        let mut guarded = self.guarded();
        if guarded.lines.is_empty() {
            return Err(Fault::Open);
        }
        let pass = guarded.breaker.admit().ok_or(Fault::Open)?;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % guarded.lines.len();
        let line = Arc::clone(&guarded.lines[turn]);
        let ticket = Ticket {
            server: self,
            pass,
            told: false,
        };
        Ok((line, ticket))
    }

    /// By the hash; and by the text if the server does not know it: then nothing has run yet.
    async fn run(&self, line: &Line, call: &ScriptCall) -> Result<Vec<i64>, Fault> {
        let sha = self.shared.texts.sha(call.script);
        let answer = integers(line.send(&eval("EVALSHA", sha.as_bytes(), call)).await?);
        if answer != Err(Fault::NoScript) {
            return answer;
        }
        self.shared.counts.scripts_sent.add();
        let text = call.script.text.as_bytes();
        integers(line.send(&eval("EVAL", text, call)).await?)
    }

    /// `ASKING` holds for the next command only: both go in one piece. The text is sent along,
    /// since this server has seen none of the slot's calls yet.
    async fn ask(&self, line: &Line, call: &ScriptCall) -> Result<Vec<i64>, Fault> {
        let mut commands = Pipeline::new();
        commands.cmd("ASKING");
        commands.add_command(eval("EVAL", call.script.text.as_bytes(), call));
        let answers = line.send_all(&commands).await?;
        let last = answers.into_iter().next_back().unwrap_or(Value::Nil);
        integers(last)
    }

    /// Does something to the breaker, and tells the world what changed by it.
    fn change<T>(&self, change: impl FnOnce(&mut Breaker) -> T, why: impl FnOnce() -> String) -> T {
        let mut guarded = self.guarded();
        let before = guarded.breaker.probe_at();
        let result = change(&mut guarded.breaker);
        let after = guarded.breaker.probe_at();
        let event = if after.is_some() && before != after {
            guarded.lines.clear();
            if before.is_none() {
                self.opened.notify_one();
                self.shared.changed.notify_one();
            }
            guarded.goes_down(self.shared.now(), why())
        } else if guarded.breaker.phase() == Phase::Closed {
            guarded.is_told = false;
            let since = guarded.down.take().map(|(since, _)| since);
            since.map(|since| Event::Up {
                after: self.shared.now().since(since),
            })
        } else {
            None
        };
        // Nobody waits for who listens.
        drop(guarded);
        match event {
            Some(Event::Up { after }) => {
                tracing::info!(server = self.name, ?after, "Redis answers");
            }
            Some(Event::Down { why }) => {
                tracing::warn!(server = self.name, why, "Redis is not asked any more");
            }
            None => {}
        }
        result
    }

    /// Finds the server, and connects to it.
    async fn connect(&self) -> Result<Connected, String> {
        let (address, is_known_primary) = match &self.source {
            Source::Fixed(address) => (address.clone(), true),
            Source::Sentinels(sentinels) => (sentinels.resolve(&self.shared).await?, false),
        };
        let limit = self.shared.config.connect_timeout;
        let connected = timeout(limit, self.connect_to(&address, is_known_primary)).await;
        connected.unwrap_or_else(|_| Err(format!("{address} has not answered within {limit:?}")))
    }

    async fn connect_to(
        &self,
        address: &Address,
        is_known_primary: bool,
    ) -> Result<Connected, String> {
        let ended = Arc::new(Notify::new());
        let mut lines = Vec::new();
        for _ in 0..self.shared.config.connections {
            let line = connect::for_calls(&self.shared, address, &ended).await?;
            if !is_known_primary {
                connect::must_be_primary(&line).await?;
            }
            self.shared.counts.connects.add();
            lines.push(Arc::new(line));
        }
        Ok(Connected { lines, ended })
    }
}

/// All connections, and what is told when one of them ends.
struct Connected {
    lines: Vec<Arc<Line>>,
    ended: Arc<Notify>,
}

/// Keeps a server's connections: opens them, and opens them anew when one is lost or the breaker
/// opens. One attempt at a time, and never within a call.
async fn keep(server: Arc<Inner>) {
    let shared = &server.shared;
    let mut ended = Arc::new(Notify::new());
    loop {
        let due = server.guarded().breaker.probe_at();
        if let Some(due) = due {
            sleep(due.since(shared.now())).await;
            match server.connect().await {
                Err(why) => {
                    shared.counts.failed_connects.add();
                    let now = shared.now();
                    server.change(|breaker| breaker.probe_failed(now, random()), || why);
                }
                Ok(connected) => {
                    ended = connected.ended;
                    server.guarded().lines = connected.lines;
                    let now = shared.now();
                    server.change(|breaker| breaker.probe_passed(now), String::new);
                }
            }
            continue;
        }
        let settle = server.guarded().breaker.settle_at();
        let settled = async {
            match settle {
                Some(due) => sleep(due.since(shared.now())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = server.opened.notified() => {}
            () = settled => {
                let now = shared.now();
                server.change(|breaker| breaker.settle(now), String::new);
            }
            () = ended.notified() => {
                let why = || "the connection is lost".to_owned();
                let now = shared.now();
                server.change(|breaker| breaker.lost(now, random()), why);
            }
        }
    }
}

/// A call that was let through. Dropped, it says that its caller gave up.
#[derive(Debug)]
struct Ticket<'a> {
    server: &'a Inner,
    pass: Pass,
    told: bool,
}

impl Ticket<'_> {
    fn record(mut self, answer: &Result<Vec<i64>, Fault>) {
        let outcome = answer
            .as_ref()
            .err()
            .map_or(Outcome::Answered, Fault::outcome);
        self.tell(outcome, || {
            answer.as_ref().err().map(Fault::why).unwrap_or_default()
        });
    }

    fn tell(&mut self, outcome: Outcome, why: impl FnOnce() -> String) {
        self.told = true;
        let now = self.server.shared.now();
        let pass = self.pass;
        self.server
            .change(|breaker| breaker.record(now, pass, outcome, random()), why);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.told {
            self.tell(Outcome::Unknown, String::new);
        }
    }
}

/// What is there already where time is up: this process may have stood still, and not the server.
/// Then the answer waits in the socket, to be read before timers are looked at again.
async fn already<T>(mut running: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    for _ in 0..TURNS_TO_READ {
        yield_now().await;
        let look = poll_fn(|context| Poll::Ready(running.as_mut().poll(context)));
        if let Poll::Ready(answer) = look.await {
            return Some(answer);
        }
    }
    None
}

fn eval(command: &str, script: &[u8], call: &ScriptCall) -> Cmd {
    let mut command = cmd(command);
    command
        .arg(script)
        .arg(call.keys.len())
        .arg(&call.keys)
        .arg(&call.args);
    command
}
