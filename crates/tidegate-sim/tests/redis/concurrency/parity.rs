//! The scripts on a real server and their models, under the same random calls and times.

use redis::Connection;
use tidegate_redis::Script;
use tidegate_redis::concurrency::{DOUBLE_WINDOW, NODE_SHARE, SLOTS, SLOTS_KILL};
use tidegate_sim::redis_concurrency::{DoubleWindowModel, NodeShareModel, ScriptModel, SlotsModel};

use crate::server::RedisServer;

const BEGIN_US: u64 = 1_790_000_000_000_000;
/// Of leases and windows, in microseconds.
const LEASE: u64 = 1_000_000;

/// Random numbers (an xorshift with a multiplication; Vigna, 2016).
pub(super) struct Chance(u64);

impl Chance {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) const fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A script whose time the test says.
pub(super) struct Timed {
    connection: Connection,
    script: redis::Script,
}

const TIME: &str = "redis.call('TIME')";

impl Timed {
    pub(super) fn new(server: &RedisServer, text: &str) -> Self {
        let client = redis::Client::open(server.url()).unwrap();
        assert_eq!(text.matches(TIME).count(), 1, "time is read once");
        let told = "{redis.call('HGET', 'time', 's'), redis.call('HGET', 'time', 'us')}";
        Self {
            connection: client.get_connection().unwrap(),
            script: redis::Script::new(&text.replace(TIME, told)),
        }
    }

    pub(super) fn call(&mut self, now_us: u64, key: &str, args: &[String]) -> Vec<i64> {
        let (s, us) = (now_us / 1_000_000, now_us % 1_000_000);
        let mut time = redis::cmd("HSET");
        time.arg("time").arg("s").arg(s).arg("us").arg(us);
        time.query::<()>(&mut self.connection).unwrap();
        let mut call = self.script.key(key);
        for one in args {
            call.arg(one);
        }
        call.invoke(&mut self.connection).unwrap_or_default()
    }

    /// -1 where it has none, -2 where there is no such key.
    fn ttl_ms(&mut self, key: &str) -> i64 {
        let mut ask = redis::cmd("PTTL");
        ask.arg(key).query(&mut self.connection).unwrap()
    }
}

fn bytes(args: &[String]) -> Vec<Vec<u8>> {
    args.iter().map(|one| one.clone().into_bytes()).collect()
}

/// Times go on by a little or by a lease, and now and then back.
fn later(chance: &mut Chance, now: u64) -> u64 {
    match chance.below(40) {
        0 => now - chance.below(3 * LEASE),
        1 => now + chance.below(4 * LEASE),
        _ => now + chance.below(LEASE / 6),
    }
}

fn strings(numbers: &[u64]) -> Vec<String> {
    numbers.iter().map(ToString::to_string).collect()
}

fn node_share_args(chance: &mut Chance, limit: u64) -> Vec<String> {
    let in_use = chance.below(limit + 1);
    let held = in_use + chance.below(limit + 1);
    let want = held + chance.one_of(&[0, 1, limit]);
    let bye = chance.below(8) == 0;
    let numbers = if bye { [0, 0, 0] } else { [in_use, held, want] };
    let mut args = vec![format!("node{}", chance.below(5))];
    // Numbers of calls ascend, but for those that come late.
    args.push((chance.below(6) + chance.below(6)).to_string());
    args.extend(strings(&numbers));
    args.extend(strings(&[limit, LEASE]));
    args
}

fn pairs(chance: &mut Chance, most: u64, mut one: impl FnMut(&mut Chance) -> u64) -> Vec<String> {
    let count = chance.below(most + 1);
    (0..count)
        .flat_map(|_| strings(&[one(chance), 1 + chance.below(3)]))
        .collect()
}

fn slots_args(chance: &mut Chance, limit: u64) -> Vec<String> {
    let mut args = strings(&[limit, LEASE]);
    args.push(format!("7:{}", chance.below(2)));
    let left = pairs(chance, 2, |chance| chance.below(12));
    args.push((left.len() / 2).to_string());
    args.extend(left);
    args.extend(pairs(chance, 3, |chance| chance.below(12)));
    args
}

fn double_window_args(chance: &mut Chance, limit: u64, now: u64) -> Vec<String> {
    let mut args = strings(&[limit, LEASE]);
    let window = now / LEASE;
    for _ in 0..2 {
        let counts = pairs(chance, 1, |chance| window + 1 - chance.below(4));
        args.push((counts.len() / 2).to_string());
        args.extend(counts);
    }
    let asks = chance.below(3);
    args.extend((0..asks).map(|_| (1 + chance.below(3)).to_string()));
    args
}

/// Whether a text does what the script's model does; where not, after how many calls.
pub(super) fn compare(server: &RedisServer, script: &Script, text: &str) -> Result<(), String> {
    let mut redis = Timed::new(server, text);
    let mut kill = Timed::new(server, SLOTS_KILL.text);
    for case in 0..40 {
        let mut chance = Chance::new(case + 1);
        let limit = chance.one_of(&[0, 1, 3, 10, 40]);
        let key = format!("{}:{}:{case}", script.name, std::ptr::from_ref(text).addr());
        let mut slots = SlotsModel::default();
        let mut model: Box<dyn ScriptModel> = match script.name {
            name if name == NODE_SHARE.name => Box::<NodeShareModel>::default(),
            _ => Box::<DoubleWindowModel>::default(),
        };
        let is_slots = script.name == SLOTS.name;
        let mut now = BEGIN_US + chance.below(LEASE);
        for step in 0..150 {
            now = later(&mut chance, now);
            let args = match script.name {
                _ if is_slots => slots_args(&mut chance, limit),
                name if name == NODE_SHARE.name => node_share_args(&mut chance, limit),
                _ => double_window_args(&mut chance, limit, now),
            };
            let answer = redis.call(now, &key, &args);
            let expected = if is_slots {
                slots.call(now, &bytes(&args))
            } else {
                model.call(now, &bytes(&args))
            };
            if answer != expected {
                return Err(format!("{case}:{step} {args:?} {answer:?} {expected:?}"));
            }
            let ttl = redis.ttl_ms(&key);
            if ttl == -1 {
                return Err(format!("{case}:{step} {args:?}: a key that stays for ever"));
            }
            if is_slots && chance.below(20) == 0 {
                let (node, ticket) = (format!("7:{}", chance.below(2)), chance.below(12));
                let marked = kill.call(now, &key, &[node.clone(), ticket.to_string()]);
                let expected = slots.kill(&node, ticket);
                if marked.first() != i64::try_from(expected).ok().as_ref() {
                    return Err(format!("{case}:{step} kill {marked:?} {expected}"));
                }
            }
        }
    }
    Ok(())
}

#[test]
fn scripts_and_models_answer_the_same() {
    let server = RedisServer::start();
    for script in [&NODE_SHARE, &SLOTS, &DOUBLE_WINDOW] {
        compare(&server, script, script.text).unwrap();
    }
}
