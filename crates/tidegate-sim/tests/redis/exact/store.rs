//! A Redis of a test's own whose scripts are told what time it is.

use std::sync::Mutex;
use std::time::Duration;

use redis::{Commands, Connection, RedisResult, cmd};
use tidegate_redis::exact::EXACT;
use tidegate_redis::{Answer, ScriptCall, Scripts, Unavailable};

use crate::server::RedisServer;

/// Where a test's copy of the script finds the time.
const TIME: &str = "time";

/// How many milliseconds longer than in truth that copy keeps what is at rest: its time is told,
/// but Redis expires keys in its own.
pub(crate) const GRACE_MS: i64 = 3_600_000;

/// A text of the script that finds the time there.
pub(crate) fn at_told_time(text: &str) -> String {
    let told = format!("{{redis.call('HGET','{TIME}','s'),redis.call('HGET','{TIME}','us')}}");
    let grace = format!("GRACE_MS = {}", 1_000 + GRACE_MS);
    let mut text = text.to_owned();
    for (from, to) in [("redis.call('TIME')", told), ("GRACE_MS = 1000", grace)] {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text = text.replace(from, &to);
    }
    text
}

/// A server, and a connection to it.
pub(crate) struct Store {
    connection: Mutex<Connection>,
    /// The script as it is called: with the time of a test, or with faults.
    text: String,
    server: RedisServer,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// With Redis's own time.
    pub(crate) fn start() -> Self {
        Self::start_with(EXACT.text.to_owned())
    }

    /// With the time that [`set_time`](Self::set_time) says.
    pub(crate) fn at_told_time() -> Self {
        Self::with_script(EXACT.text)
    }

    /// The same, with another text of the script.
    pub(crate) fn with_script(text: &str) -> Self {
        Self::start_with(at_told_time(text))
    }

    fn start_with(text: String) -> Self {
        let server = RedisServer::start();
        let client = redis::Client::open(server.url()).unwrap();
        Self {
            connection: Mutex::new(client.get_connection().unwrap()),
            text,
            server,
        }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// Begins anew.
    pub(crate) fn forget_all(&self) {
        let () = self.with(|redis| cmd("FLUSHALL").query(redis)).unwrap();
    }

    /// What time it is, in microseconds since the epoch.
    pub(crate) fn set_time(&self, us: u64) {
        let parts = [("s", us / 1_000_000), ("us", us % 1_000_000)];
        let () = self
            .with(|redis| redis.hset_multiple(TIME, &parts))
            .unwrap();
    }

    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut Connection) -> T) -> T {
        f(&mut self.connection.lock().unwrap())
    }

    /// Calls the script.
    pub(crate) fn run(&self, call: &ScriptCall) -> RedisResult<Vec<i64>> {
        let mut eval = cmd("EVAL");
        eval.arg(&self.text).arg(call.keys.len());
        for argument in call.keys.iter().chain(&call.args) {
            eval.arg(argument);
        }
        self.with(|redis| eval.query(redis))
    }

    /// A key's value, in the form in which Redis would hand it to another.
    pub(crate) fn dump(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.with(|redis| cmd("DUMP").arg(key).query(redis))
            .unwrap()
    }

    /// Milliseconds until a key is forgotten; -1 where it never is, -2 where there is none.
    pub(crate) fn pttl(&self, key: &[u8]) -> i64 {
        self.with(|redis| redis.pttl(key)).unwrap()
    }

    /// The value of a text.
    pub(crate) fn text(&self, key: &[u8]) -> String {
        self.with(|redis| redis.get(key)).unwrap()
    }

    /// A log: the time and the permits of each admission that it holds.
    pub(crate) fn log(&self, key: &[u8]) -> Vec<(i128, i128)> {
        let entries: Vec<String> = self.with(|redis| redis.lrange(key, 0, -1)).unwrap();
        let entries = entries.iter().map(|entry| {
            let (at, total) = entry.split_once(':').unwrap();
            (at.parse().unwrap(), total.parse().unwrap())
        });
        let entries: Vec<(i128, i128)> = entries.collect();
        let pairs = entries.windows(2);
        pairs
            .map(|pair| (pair[1].0, pair[1].1 - pair[0].1))
            .collect()
    }
}

impl Scripts for Store {
    fn call(&self, call: ScriptCall, _budget: Duration) -> Answer<'_> {
        let answer = self.run(&call);
        let answer = answer.map_err(|error| Unavailable::Server(error.to_string()));
        Box::pin(std::future::ready(answer))
    }
}
