//! `tidegate serve`.

use std::io::IsTerminal;
use std::mem;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::Arc;

use tidegate::{Clock, SharedStore, SystemClock};
use tidegate_gateway::{Bound, Gateway, Reopen, Shutdown, TokioTimer};
use tidegate_node::{Node, PolicyWatch};
use tidegate_policy::{Loaded, Policy};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

use crate::admin::Admin;
use crate::cli::{LogFormat, ServeArgs};
use crate::exit::{CommandError, Exit};
use crate::hand_over::Turn;
use crate::redis::Redis;
use crate::state::{self, Keeper, StateFile};
use crate::terminal::Terminal;
use crate::validation;

/// The environment variable that says what is logged (`info`, `tidegate_node=debug`, ...).
const LOG_VARIABLE: &str = "TIDEGATE_LOG";

/// Serves until it is told to stop.
pub(crate) fn run(args: &ServeArgs, terminal: &mut Terminal) -> Result<Exit, CommandError> {
    start_log(args.log_format)?;
    let (name, text, policy) = load(args, terminal)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::io("cannot start", error))?;
    let wrong = |error: &dyn std::error::Error| CommandError::new(format!("{name}: {error}"));
    let redis = {
        let _inside = runtime.enter();
        let started = policy.redis.as_ref().map(Redis::start).transpose();
        started.map(|redis| redis.map(Arc::new))
    };
    let redis = redis?;
    let store = redis.as_ref().map(|redis| redis.store.clone());
    let store = store.map(|store| Arc::new(store) as Arc<dyn SharedStore>);
    let state = StateFile::of(&policy, args.config.as_deref());
    // From here on a process that hands over waits for us. It has written its counts by then.
    let mut turn = runtime.block_on(Turn::take(args.hand_over.as_deref()))?;
    let node = state::start_node(state.as_ref(), policy, Arc::clone(&clock), store)
        .map_err(|error| wrong(&error))?;
    // All ports are bound before anything is served: a second `serve` fails as a whole.
    let policy = node.snapshot().policy().clone();
    let gateway = bind_gateway(&policy, &node, clock, mem::take(&mut turn.handed.gateway))?;
    let admin = bind_admin(&policy, turn.handed.admin.take())?;
    {
        let _inside = runtime.enter();
        turn.keep_for_next(gateway.as_ref(), admin.as_ref())?;
    }
    // It reloads while the value lives.
    let _watch = match &args.config {
        Some(path) => Some(
            PolicyWatch::start(Arc::clone(&node), path, &text)
                .map_err(|error| CommandError::new(error.to_string()))?,
        ),
        None => None,
    };
    terminal.note(&greeting(
        &name,
        args,
        &policy,
        gateway.as_ref(),
        admin.as_ref(),
    ));
    let keeper = state
        .as_ref()
        .map(|state| state.keep(Arc::clone(&node)))
        .transpose()
        .map_err(|error| CommandError::io("cannot start", error))?;
    let served = runtime.block_on(serve(node, gateway, admin, redis, turn, state.as_ref()));
    // What went wrong is in the log; the rest of the counts is as old as the last time.
    let _is_written = keeper.map(Keeper::finish);
    served?;
    tracing::info!("stopped");
    Ok(Exit::Fine)
}

/// The policy with its name and text, if it is right and serves something.
fn load(
    args: &ServeArgs,
    terminal: &mut Terminal,
) -> Result<(String, String, Policy), CommandError> {
    let (name, text) = match &args.config {
        Some(path) => {
            let name = path.display().to_string();
            let text = tidegate_policy::read(path)
                .map_err(|error| CommandError::io(format!("cannot read {name}"), error))?;
            (name, text)
        }
        None => (
            "built-in policy".to_owned(),
            tidegate_policy::DEFAULT.to_owned(),
        ),
    };
    let Loaded {
        policy,
        warnings,
        omitted_warnings,
    } = validation::parse(&name, &text, true)?;
    terminal.warn(&warnings, omitted_warnings);
    if policy.gateway.is_none() && policy.admin.is_none() {
        return Err(CommandError::new(format!(
            "{name} serves nothing: it has neither `gateway:` nor `admin:`"
        )));
    }
    Ok((name, text, policy))
}

fn start_log(format: LogFormat) -> Result<(), CommandError> {
    let filter = EnvFilter::builder()
        .with_default_directive(tracing::Level::INFO.into())
        .with_env_var(LOG_VARIABLE)
        .from_env()
        .map_err(|error| CommandError::new(format!("{LOG_VARIABLE}: {error}")))?;
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => log.with_ansi(color).with_target(false).try_init(),
        LogFormat::Json => log.json().try_init(),
    };
    started.map_err(|error| CommandError::new(format!("cannot start the log: {error}")))
}

fn bind_gateway(
    policy: &Policy,
    node: &Arc<Node>,
    clock: Arc<dyn Clock>,
    handed: Vec<TcpListener>,
) -> Result<Option<Bound>, CommandError> {
    let Some(config) = &policy.gateway else {
        return Ok(None);
    };
    let timer = Arc::new(TokioTimer::new(clock));
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Gateway::take_over(config, Arc::clone(node), timer, cores, handed)
        .map(Some)
        .map_err(|error| CommandError::new(format!("gateway: {error}")))
}

/// Port 0 is a free port: the one of `handed` is as good as any.
fn bind_admin(
    policy: &Policy,
    handed: Option<TcpListener>,
) -> Result<Option<TcpListener>, CommandError> {
    let Some(config) = &policy.admin else {
        return Ok(None);
    };
    let address = config.listen;
    let fits = |bound: SocketAddr| {
        bound.ip() == address.ip() && [0, bound.port()].contains(&address.port())
    };
    if let Some(handed) = handed
        && handed.local_addr().is_ok_and(fits)
    {
        return Ok(Some(handed));
    }
    let listener = TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| CommandError::io(format!("admin: cannot listen on {address}"), error))?;
    Ok(Some(listener))
}

/// What a person wants to know first.
fn greeting(
    name: &str,
    args: &ServeArgs,
    policy: &Policy,
    gateway: Option<&Bound>,
    admin: Option<&TcpListener>,
) -> String {
    let limits: Vec<&str> = policy.limits.iter().map(|rule| rule.limit.name()).collect();
    let mut lines = vec![format!("tidegate {}: {name}", env!("CARGO_PKG_VERSION"))];
    let list = |addresses: &[SocketAddr]| {
        addresses
            .iter()
            .map(|address| format!("http://{address}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if let Some(gateway) = gateway {
        let routes = policy
            .gateway
            .as_ref()
            .map_or(0, |gateway| gateway.routes.len());
        let addresses = list(gateway.local_addrs());
        lines.push(format!("  gateway  {addresses}  ({routes} route(s))"));
    }
    let admin = admin.and_then(|admin| admin.local_addr().ok());
    if let Some(address) = admin {
        lines.push(format!(
            "  admin    http://{address}  (/healthz /metrics /api/v1/limits)"
        ));
    }
    lines.push(format!("  limits   {}", limits.join(", ")));
    let first = gateway.and_then(|gateway| gateway.local_addrs().first());
    if let (None, Some(first)) = (&args.config, first) {
        lines.push("try:".to_owned());
        lines.push(format!("  curl -i 'http://{first}/hello'"));
        lines.push(format!(
            "  curl -s -o /dev/null -w '%{{http_code}}\\n' 'http://{first}/[1-40]' | sort | uniq -c"
        ));
        lines.push(
            "  tidegate policy default > policy.yaml  # then: tidegate serve -c policy.yaml"
                .to_owned(),
        );
    }
    lines.join("\n")
}

async fn serve(
    node: Arc<Node>,
    gateway: Option<Bound>,
    admin: Option<TcpListener>,
    redis: Option<Arc<Redis>>,
    turn: Turn,
    state: Option<&StateFile>,
) -> Result<(), CommandError> {
    let (stop, stopped) = watch::channel(None);
    // The process after reads them before it serves.
    let lend = |is_lent: bool| match state {
        Some(state) if is_lent => state.lend(&node),
        Some(state) => state.take_back(),
        None => {}
    };
    let counters = gateway.as_ref().map(Bound::counters);
    let accepting = gateway.as_ref().map(Bound::accepting);
    let reopen = gateway.as_ref().map(Bound::reopen);
    let store = redis.as_ref().map(|redis| redis.store.clone());
    let admin = async {
        let Some(listener) = admin else { return Ok(()) };
        let admin = Admin::new(Arc::clone(&node), counters, redis);
        let shutdown = wait_for(stopped.clone());
        admin
            .serve(listener, async {
                let _ = shutdown.await;
            })
            .await
    };
    let gateway = async {
        let Some(gateway) = gateway else {
            return Ok(());
        };
        let ended = gateway.run_until(wait_for(stopped.clone())).await;
        // Before it was told to: nothing is left to serve for.
        stop.send_if_modified(|stop| {
            let is_news = stop.is_none();
            stop.get_or_insert(Shutdown::Stop);
            is_news
        });
        ended
    };
    let signals = async {
        let stopping = tokio::select! {
            signal = wait_for_signal(reopen.as_ref()) => signal.map(|()| Shutdown::Stop),
            handed = turn.pass_on(accepting, &lend) => handed,
            shutdown = wait_for(stopped.clone()) => Ok(shutdown),
        };
        // What fails is a hand-over: the process before goes on, from the same sockets.
        let shutdown = *stopping.as_ref().unwrap_or(&Shutdown::HandOver);
        if let (Shutdown::HandOver, Some(state)) = (shutdown, state) {
            state.give_up();
        }
        stop.send_replace(Some(shutdown));
        stopping.map(|_| ())
    };
    let failed = |error| CommandError::io("serving ended", error);
    let (signals, gateway, admin) = tokio::join!(signals, gateway, admin);
    if let Some(store) = store {
        // Nothing that is begun when this is dropped would come to pass: the runtime ends.
        store.leave().await;
    }
    signals.and(gateway).and(admin).map_err(failed)
}

async fn wait_for(mut stopped: watch::Receiver<Option<Shutdown>>) -> Shutdown {
    // An error means that whoever says stop is gone, which says stop as well.
    let said = stopped.wait_for(Option::is_some).await;
    said.ok().and_then(|said| *said).unwrap_or(Shutdown::Stop)
}

/// Waits for SIGINT or SIGTERM. SIGHUP opens the access log anew; the policy is watched anyway.
async fn wait_for_signal(access_log: Option<&Reopen>) -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            _ = hang_up.recv() => {
                tracing::info!("SIGHUP: the access log is opened anew, the policy watched anyway");
                if let Some(log) = access_log {
                    log.reopen();
                }
            }
        }
    }
    tracing::info!("stopping: requests in flight are finished");
    Ok(())
}
