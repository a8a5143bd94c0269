//! The simplest way to carry calls to Redis: one connection, no breaker.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tidegate_redis::{Answer, ScriptCall, Scripts, Unavailable};

#[derive(Clone)]
pub(super) struct Carrier {
    connection: MultiplexedConnection,
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Carrier")
    }
}

impl Carrier {
    pub(super) async fn connect(url: &str) -> Self {
        let client = redis::Client::open(url).unwrap();
        let connection = client.get_multiplexed_async_connection().await.unwrap();
        Self { connection }
    }

    /// The members, fields or places of a key.
    pub(super) async fn query(&self, command: &str, key: &str) -> i64 {
        let mut connection = self.connection.clone();
        let mut ask = redis::cmd(command);
        ask.arg(key).query_async(&mut connection).await.unwrap()
    }
}

impl Scripts for Carrier {
    fn call(&self, call: ScriptCall, budget: Duration) -> Answer<'_> {
        let mut connection = self.connection.clone();
        Box::pin(async move {
            let script = redis::Script::new(call.script.text);
            let mut invocation = script.prepare_invoke();
            for key in &call.keys {
                invocation.key(key);
            }
            for one in &call.args {
                invocation.arg(one);
            }
            match tokio::time::timeout(budget, invocation.invoke_async(&mut connection)).await {
                Err(_) => Err(Unavailable::TimedOut(budget)),
                Ok(answer) => answer.map_err(|why| Unavailable::Server(why.to_string())),
            }
        })
    }
}
