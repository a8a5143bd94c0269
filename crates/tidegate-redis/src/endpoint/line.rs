//! One connection, which calls share.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, Value};
use tokio::task::AbortHandle;

use super::metered::Meter;
use crate::fault::Fault;

/// One connection. It ends when nobody holds it any more: calls that are under way hold it.
#[derive(Debug)]
pub(super) struct Line {
    connection: MultiplexedConnection,
    meter: Meter,
    driver: AbortHandle,
}

impl Line {
    pub(super) fn new(
        connection: MultiplexedConnection,
        meter: Meter,
        driver: AbortHandle,
    ) -> Self {
        Self {
            connection,
            meter,
            driver,
        }
    }

    /// Sends a command, and waits for its answer, which may be a server's error.
    ///
    /// Answers are told apart by their order. A command whose caller gave up keeps its place in
    /// that order, so that its answer, when it comes, goes to nobody.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, Fault> {
        let mut connection = self.connection.clone();
        let answer = connection.send_packed_command(command).await;
        self.meter.answered();
        answer.map_err(|error| Fault::from(&error))
    }

    /// Sends commands in one piece, and waits for all of their answers.
    pub(super) async fn send_all(&self, commands: &Pipeline) -> Result<Vec<Value>, Fault> {
        let mut connection = self.connection.clone();
        let answers = connection
            .send_packed_commands(commands, 0, commands.len())
            .await;
        self.meter.answered();
        answers.map_err(|error| Fault::from(&error))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // By itself it would wait until all is written: a server that does not read would keep it.
        self.driver.abort();
    }
}
