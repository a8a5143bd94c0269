//! The scripts of leased limits on a real Redis, with time as an argument.

mod auto;
mod broken;
mod calls;
mod cost;
mod limiter;
mod many_keys;
mod parity;
mod window;

use redis::Connection;
use tidegate_redis::{LEASE, Script, ScriptCall};

use crate::server::RedisServer;

/// Where the test's copy of the script has the time from, instead of from Redis.
const TIME: &str = "redis.call('TIME')";
const TOLD: &str = "redis.call('HMGET', 'time', 'seconds', 'micros')";

/// The text of a script, with time from a key that the test writes.
fn text_of(script: &Script) -> String {
    assert_eq!(
        script.text.matches(TIME).count(),
        1,
        "the script asks for the time once"
    );
    script.text.replace(TIME, TOLD)
}

/// That of buckets.
fn text() -> String {
    text_of(&LEASE)
}

/// A Redis that runs the script (or a broken copy) at times that it is told.
pub(crate) struct Scripted {
    connection: Connection,
    script: redis::Script,
    _server: RedisServer,
}

impl Scripted {
    fn new() -> Self {
        Self::of(&LEASE)
    }

    fn of(script: &Script) -> Self {
        let server = RedisServer::start();
        let client = redis::Client::open(server.url()).unwrap();
        Self {
            connection: client.get_connection().unwrap(),
            script: redis::Script::new(&text_of(script)),
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
