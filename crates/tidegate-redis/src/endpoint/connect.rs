//! Opens a connection: the socket, TLS, who we are, which database, and the scripts.

use std::io;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, Value, cmd};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::Shared;
use super::line::Line;
use super::metered::{Meter, Metered};
use crate::fault::Fault;
use crate::{Address, Login};

/// Opens a connection for calls. `ended` is told when it is lost.
pub(super) async fn for_calls(
    shared: &Shared,
    address: &Address,
    ended: &Arc<Notify>,
) -> Result<Line, String> {
    let config = &shared.config;
    let mut setup = Setup::new(&config.login);
    if config.database != 0 {
        let database = config.database.to_string();
        setup.must("SELECT", &[database.as_bytes()]);
    }
    setup.may("PING", &[]);
    let line = dial(
        shared,
        address,
        shared.tls.as_ref(),
        config.max_in_flight,
        ended,
    )
    .await?;
    setup.run(&line).await?;
    // Not before: of somebody unknown Redis takes 16 KiB at most, and hangs up with its reason
    // unread. Only what is loaded so stays: from 7.4 on, it forgets scripts that EVAL brought.
    let mut setup = Setup::empty();
    for text in shared.texts.all() {
        setup.may("SCRIPT", &[b"LOAD", text.script.text.as_bytes()]);
    }
    setup.run(&line).await?;
    Ok(line)
}

/// That a server is a primary; or that it does not say so because the user may not know.
pub(super) async fn must_be_primary(line: &Line) -> Result<(), String> {
    match line.send(&cmd("ROLE")).await.map_err(|fault| fault.why())? {
        Value::ServerError(error) if error.code() == "NOPERM" => Ok(()),
        Value::ServerError(error) => Err(Fault::of(&error).why()),
        Value::Array(role) if role.first() == Some(&Value::BulkString(b"master".to_vec())) => {
            Ok(())
        }
        _ => Err("Sentinel names a server that is no primary (yet)".to_owned()),
    }
}

/// Asks one question on a connection of its own.
pub(super) async fn question(
    shared: &Shared,
    address: &Address,
    login: &Login,
    tls: Option<&TlsConnector>,
    question: &Cmd,
) -> Result<Value, String> {
    let nobody = Arc::new(Notify::new());
    let line = dial(shared, address, tls, 1, &nobody).await?;
    Setup::new(login).run(&line).await?;
    match line.send(question).await {
        Ok(Value::ServerError(error)) => Err(Fault::of(&error).why()),
        Ok(answer) => Ok(answer),
        Err(fault) => Err(fault.why()),
    }
}

/// Opens the socket, and TLS on it.
async fn dial(
    shared: &Shared,
    address: &Address,
    tls: Option<&TlsConnector>,
    buffer: usize,
    ended: &Arc<Notify>,
) -> Result<Line, String> {
    let cannot = |error: io::Error| format!("cannot connect to {address}: {error}");
    let stream = TcpStream::connect((address.host.as_str(), address.port)).await;
    let stream = stream.map_err(cannot)?;
    stream.set_nodelay(true).map_err(cannot)?;
    let Some(tls) = tls else {
        return speak(shared, stream, buffer, ended).await;
    };
    let name = ServerName::try_from(address.host.clone());
    let name = name.map_err(|error| format!("TLS with {address}: {error}"))?;
    let stream = tls.connect(name, stream).await;
    let stream = stream.map_err(|error| format!("TLS with {address}: {error}"))?;
    speak(shared, stream, buffer, ended).await
}

/// Makes a stream a connection that calls can share.
async fn speak<S>(
    shared: &Shared,
    stream: S,
    buffer: usize,
    ended: &Arc<Notify>,
) -> Result<Line, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // Time is kept by who calls: then a call has one deadline, however often it is sent on.
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_pipeline_buffer_size(buffer);
    // Says nothing by itself: what is said first, and what the answers mean, is said here.
    let silent = RedisConnectionInfo::default().set_skip_set_lib_name();
    let meter = Meter::default();
    let stream = Metered::new(stream, meter.clone());
    let opened = MultiplexedConnection::new_with_config(&silent, stream, config).await;
    let (connection, driver) = opened.map_err(|error| error.to_string())?;
    let ended = Arc::clone(ended);
    let driver = shared.runtime.spawn(async move {
        driver.await;
        ended.notify_one();
    });
    Ok(Line::new(connection, meter, driver.abort_handle()))
}

/// The first commands on a connection.
struct Setup {
    commands: Pipeline,
    /// Which of them must succeed. Others may be forbidden, but not fail in another way.
    needed: Vec<bool>,
}

impl Setup {
    fn empty() -> Self {
        Self {
            commands: Pipeline::new(),
            needed: Vec::new(),
        }
    }

    fn new(login: &Login) -> Self {
        let mut setup = Self::empty();
        match (&login.user, &login.password) {
            (Some(user), Some(password)) => {
                setup.must("AUTH", &[user.as_bytes(), password.as_bytes()]);
            }
            (None, Some(password)) => setup.must("AUTH", &[password.as_bytes()]),
            (_, None) => {}
        }
        setup
    }

    fn must(&mut self, command: &str, arguments: &[&[u8]]) {
        self.commands.cmd(command).arg(arguments);
        self.needed.push(true);
    }

    fn may(&mut self, command: &str, arguments: &[&[u8]]) {
        self.commands.cmd(command).arg(arguments);
        self.needed.push(false);
    }

    async fn run(self, line: &Line) -> Result<(), String> {
        if self.needed.is_empty() {
            return Ok(());
        }
        let answers = line
            .send_all(&self.commands)
            .await
            .map_err(|fault| fault.why())?;
        for (needed, answer) in self.needed.into_iter().zip(answers) {
            if let Value::ServerError(error) = answer
                && (needed || error.code() != "NOPERM")
            {
                return Err(Fault::of(&error).why());
            }
        }
        Ok(())
    }
}
