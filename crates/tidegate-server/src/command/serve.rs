//! `tidegate serve`.

use std::io::IsTerminal;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use tidegate::{Clock, SystemClock};
use tidegate_gateway::{Bound, Gateway, Reopen, TokioTimer};
use tidegate_node::{Node, PolicyWatch};
use tidegate_policy::{Loaded, Policy};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

use crate::admin::Admin;
use crate::cli::{LogFormat, ServeArgs};
use crate::exit::{CommandError, Exit};
use crate::redis::Redis;
use crate::terminal::Terminal;
use crate::validation;

/// The environment variable that says what is logged (`info`, `tidegate_node=debug`, ...).
const LOG_VARIABLE: &str = "TIDEGATE_LOG";

/// Serves until it is told to stop.
pub(crate) fn run(args: &ServeArgs, terminal: &mut Terminal) -> Result<Exit, CommandError> {
    start_log(args.log_format)?;
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
    let node = match &redis {
        Some(redis) => {
            let store = Arc::new(redis.store.clone());
            Node::with_store(policy, Arc::clone(&clock), store)
        }
        None => Node::new(policy, Arc::clone(&clock)),
    };
    let node = node.map_err(|error| wrong(&error))?;
    // All ports are bound before anything is served: a second `serve` fails as a whole.
    let policy = node.snapshot().policy().clone();
    let gateway = bind_gateway(&policy, &node, clock)?;
    let admin = bind_admin(&policy)?;
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
    runtime.block_on(serve(node, gateway, admin, redis))?;
    tracing::info!("stopped");
    Ok(Exit::Fine)
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
) -> Result<Option<Bound>, CommandError> {
    let Some(config) = &policy.gateway else {
        return Ok(None);
    };
    let timer = Arc::new(TokioTimer::new(clock));
    Gateway::bind(config, Arc::clone(node), timer)
        .map(Some)
        .map_err(|error| CommandError::new(format!("gateway: {error}")))
}

fn bind_admin(policy: &Policy) -> Result<Option<TcpListener>, CommandError> {
    let Some(config) = &policy.admin else {
        return Ok(None);
    };
    let address = config.listen;
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
) -> Result<(), CommandError> {
    let (stop, stopped) = watch::channel(false);
    let counters = gateway.as_ref().map(Bound::counters);
    let reopen = gateway.as_ref().map(Bound::reopen);
    let store = redis.as_ref().map(|redis| redis.store.clone());
    let admin = async {
        let Some(listener) = admin else { return Ok(()) };
        let admin = Admin::new(Arc::clone(&node), counters, redis);
        admin.serve(listener, wait_for(stopped.clone())).await
    };
    let gateway = async {
        let Some(gateway) = gateway else {
            return Ok(());
        };
        gateway.run(wait_for(stopped.clone())).await
    };
    let signals = async {
        let result = wait_for_signal(reopen.as_ref()).await;
        stop.send_replace(true);
        result
    };
    let failed = |error| CommandError::io("serving ended", error);
    let (signals, gateway, admin) = tokio::join!(signals, gateway, admin);
    if let Some(store) = store {
        // Nothing that is begun when this is dropped would come to pass: the runtime ends.
        store.leave().await;
    }
    signals.and(gateway).and(admin).map_err(failed)
}

async fn wait_for(mut stopped: watch::Receiver<bool>) {
    // An error means that whoever says stop is gone, which says stop as well.
    let _ = stopped.wait_for(|stop| *stop).await;
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
