//! Processes that share a limit, and what they did together.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::record::{Record, most_beyond_rate};

/// How long it may take until all have started: room for a busy machine.
const START: Duration = Duration::from_secs(20);
/// A limit counts as used when so much of it passed, of a stretch of so many microseconds.
const USED_PERCENT: u64 = 85;
const USED_OVER: u64 = 300_000;

/// The rate that all nodes of a fleet share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    pub(crate) kind: &'static str,
    pub(crate) rate: u64,
    pub(crate) burst: u64,
    /// Requests that each node gets in a second.
    pub(crate) offered: u64,
}

impl Shared {
    /// Refreshed every 50 ms; leased to four nodes or so.
    pub(crate) const LEASED: Self = Self {
        kind: "strict",
        rate: 4_000,
        burst: 800,
        offered: 2_000,
    };

    fn args(&self) -> Vec<String> {
        let numbers = [self.rate, self.burst, self.offered];
        let numbers = numbers.iter().map(ToString::to_string);
        std::iter::once(self.kind.to_owned())
            .chain(numbers)
            .collect()
    }
}

/// One process. It ends with the test.
#[derive(Debug)]
pub(crate) struct Node {
    child: Child,
    record: Arc<Mutex<Record>>,
}

impl Node {
    pub(crate) fn start(redis: [&str; 2], args: &[String]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_shared-node"))
            .args(redis)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let record = Arc::new(Mutex::new(Record::default()));
        let (lines, notes) = (child.stdout.take().unwrap(), Arc::clone(&record));
        std::thread::spawn(move || {
            let mut lines = BufReader::new(lines);
            let mut line = String::new();
            // A line that has no end was cut off with its process.
            while lines.read_line(&mut line).is_ok() && line.ends_with('\n') {
                notes.lock().unwrap().note(line.trim_end());
                line.clear();
            }
        });
        Self { child, record }
    }

    pub(crate) fn record(&self) -> Record {
        self.record.lock().unwrap().clone()
    }

    /// SIGKILL: it says goodbye to nobody.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGSTOP and SIGCONT.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// All processes of one limit.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) shared: Shared,
    pub(crate) nodes: Vec<Node>,
}

impl Fleet {
    /// Four nodes on one Redis; here when the limit is used.
    pub(crate) fn start(shared: Shared, url: &str) -> Self {
        Self::start_each(shared, &[["single", url]; 4])
    }

    /// One node for each way to a Redis.
    pub(crate) fn start_each(shared: Shared, redis: &[[&str; 2]]) -> Self {
        let args = shared.args();
        let nodes = redis.iter().map(|redis| Node::start(*redis, &args));
        let fleet = Self {
            shared,
            nodes: nodes.collect(),
        };
        fleet.until("all nodes pass something", START, || {
            let passes = |node: &Node| !node.record.lock().unwrap().passed.is_empty();
            fleet.nodes.iter().all(passes)
        });
        fleet.until_used(START);
        // What was the burst is gone, and a normal second begins.
        wait_until(now() + 700_000);
        fleet
    }

    pub(crate) fn start_one_more(&mut self, url: &str) {
        let node = Node::start(["single", url], &self.shared.args());
        self.nodes.push(node);
    }

    pub(crate) fn until(&self, what: &str, within: Duration, holds: impl Fn() -> bool) {
        let deadline = now() + within.as_micros() as u64;
        while !holds() {
            assert!(
                now() < deadline,
                "not within {within:?}: {what}; passed in the seconds before: {:?}",
                (1..6)
                    .map(|ago| self.passed(now() - ago * 1_000_000, now() - (ago - 1) * 1_000_000))
                    .collect::<Vec<_>>()
            );
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Waits until the limit is used (again).
    pub(crate) fn until_used(&self, within: Duration) {
        let enough = self.shared.rate * USED_OVER / 1_000_000 * USED_PERCENT / 100;
        let begin = now();
        self.until("the limit is used", within, || {
            let now = now();
            now >= begin + USED_OVER && self.passed(now - USED_OVER, now) >= enough
        });
    }

    /// How many were allowed from one time until another.
    pub(crate) fn passed(&self, from: u64, to: u64) -> u64 {
        let of = |node: &Node| {
            let record = node.record.lock().unwrap();
            let recent = record.passed.iter().rev();
            // Of one node they are in order, but for what tasks of one turn say.
            let recent = recent.take_while(|(_, answered)| answered + 100_000 >= from);
            recent
                .filter(|(_, answered)| (from..to).contains(answered))
                .count() as u64
        };
        self.nodes.iter().map(of).sum()
    }

    /// How often Redis was asked in the second after a time. Waits until that second is over.
    pub(crate) fn calls_in_the_second_after(&self, from: u64) -> u64 {
        let to = from + 1_000_000;
        wait_until(to + 50_000);
        self.calls(from, to)
    }

    /// How often Redis was asked from one time until another.
    pub(crate) fn calls(&self, from: u64, to: u64) -> u64 {
        let records = self.nodes.iter().map(Node::record);
        records
            .map(|record| record.calls_by(to) - record.calls_by(from))
            .sum()
    }

    /// The most that passed beyond burst + rate * t in any stretch, of requests that were made
    /// from one time on, and allowed until another.
    pub(crate) fn overshoot(&self, from: u64, to: u64) -> i64 {
        let records = self.nodes.iter().map(Node::record);
        let mut passed: Vec<_> = records.flat_map(|record| record.passed).collect();
        passed.retain(|(asked, answered)| from <= *asked && *answered <= to);
        most_beyond_rate(&passed, self.shared.rate) - self.shared.burst.cast_signed()
    }

    /// That burst + rate * t held in every stretch so far.
    pub(crate) fn kept_its_limit(&self) {
        let overshoot = self.overshoot(0, u64::MAX);
        assert!(overshoot <= 0, "{overshoot} too many");
    }

    /// The same where Redis has forgotten something: at most one burst is admitted again.
    pub(crate) fn gave_away_one_burst_at_most(&self) {
        let (again, burst) = (self.overshoot(0, u64::MAX), self.shared.burst);
        println!("most in a stretch: burst + rate * t, and {again} of {burst}");
        assert!(again <= burst.cast_signed(), "{again} too many");
    }

    /// That Redis was asked at most twice as often in the second after the fault as in one before.
    pub(crate) fn did_not_stampede(&self, fault: &Fault) {
        let normal = 2 * self.calls(fault.begin - 500_000, fault.begin);
        let after = self.calls_in_the_second_after(fault.end);
        println!("calls of Redis in a second: {normal} before, {after} after the fault");
        assert!(after <= 2 * normal, "{after} calls, normally {normal}");
    }
}

/// When something was wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

impl Fault {
    /// Something goes wrong, stays so for a time, and is made well.
    pub(crate) fn of(lasts: Duration, begin: impl FnOnce(), end: impl FnOnce()) -> Self {
        let from = now();
        begin();
        wait_until(from + lasts.as_micros() as u64);
        end();
        let (begin, end) = (from, now());
        Self { begin, end }
    }
}

/// Unix time in microseconds, as nodes have it.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_micros() as u64
}

pub(crate) fn wait_until(then: u64) {
    while now() < then {
        std::thread::park_timeout(Duration::from_micros(then.saturating_sub(now())));
    }
}
