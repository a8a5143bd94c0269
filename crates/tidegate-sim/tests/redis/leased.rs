//! The script of leased limits on a real Redis, with time as an argument.

mod auto;
mod broken;
mod calls;
mod cost;
mod limiter;
mod many_keys;
mod parity;

use redis::Connection;
use tidegate_redis::{LEASE, ScriptCall};

use crate::server::RedisServer;

/// Where the test's copy of the script has the time from, instead of from Redis.
const TIME: &str = "redis.call('TIME')";
const TOLD: &str = "redis.call('HMGET', 'time', 'seconds', 'micros')";

/// The text of the script, with time from a key that the test writes.
fn text() -> String {
    assert_eq!(
        LEASE.text.matches(TIME).count(),
        1,
        "the script asks for the time once"
    );
    LEASE.text.replace(TIME, TOLD)
}

/// A Redis that runs the script (or a broken copy) at times that it is told.
pub(crate) struct Scripted {
    connection: Connection,
    script: redis::Script,
    _server: RedisServer,
}

impl Scripted {
    fn new() -> Self {
        let server = RedisServer::start();
        let client = redis::Client::open(server.url()).unwrap();
        Self {
            connection: client.get_connection().unwrap(),
            script: redis::Script::new(&text()),
            _server: server,
        }
    }

    /// From here on runs this text.
    fn becomes(&mut self, text: &str) {
        self.script = redis::Script::new(text);
    }

    fn query<T: redis::FromRedisValue>(&mut self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut self.connection).unwrap()
    }

    fn forget_all(&mut self) {
        self.query::<()>(&["FLUSHDB"]);
    }

    /// An error where the script itself fails, as a broken one may.
    fn try_call(&mut self, now_micros: u64, call: &ScriptCall) -> redis::RedisResult<Vec<i64>> {
        let (seconds, micros) = (now_micros / 1_000_000, now_micros % 1_000_000);
        let time = ["HSET", "time", "seconds", &seconds.to_string(), "micros"];
        self.query::<()>(&[&time[..], &[&micros.to_string()]].concat());
        let mut invocation = self.script.prepare_invoke();
        for key in &call.keys {
            invocation.key(key.as_slice());
        }
        for arg in &call.args {
            invocation.arg(arg.as_slice());
        }
        invocation.invoke(&mut self.connection)
    }
}
