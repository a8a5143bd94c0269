//! Opens a connection: the socket, who we are, which database, and the scripts.

use std::io;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Pipeline, RedisConnectionInfo, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::Shared;
use super::line::Line;
use super::metered::{Meter, Metered};
use crate::fault::Fault;
use crate::{Address, Login};

/// Opens a connection to a server for calls. `ended` is told when it is lost.
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
    // Only what is loaded so stays: from 7.4 on, Redis forgets scripts that EVAL brought.
    for text in shared.texts.all() {
        setup.may("SCRIPT", &[b"LOAD", text.script.text.as_bytes()]);
    }
    let line = dial(shared, address, config.max_in_flight, ended).await?;
    setup.run(&line).await?;
    Ok(line)
}

/// Opens the socket.
async fn dial(
    shared: &Shared,
    address: &Address,
    buffer: usize,
    ended: &Arc<Notify>,
) -> Result<Line, String> {
    let stream = TcpStream::connect((address.host.as_str(), address.port)).await;
    let stream = stream.map_err(|error| cannot_connect(address, &error))?;
    stream
        .set_nodelay(true)
        .map_err(|error| cannot_connect(address, &error))?;
    speak(shared, stream, buffer, ended).await
}

fn cannot_connect(address: &Address, error: &io::Error) -> String {
    format!("cannot connect to {address}: {error}")
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
    fn new(login: &Login) -> Self {
        let mut setup = Self {
            commands: Pipeline::new(),
            needed: Vec::new(),
        };
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
