//! What a call costs Redis, with few nodes and with many.

use tidegate::Quota;
use tidegate_redis::{LeaseReply, LeaseRequest, LeaseTerms, NodeId, Scheme};

use super::Scripted;

const START: u64 = 1_790_000_000_000_000;
/// Refreshes of each node before it is measured, and while it is.
const BEFORE: u64 = 4;
const MEASURED: u64 = 20;

/// What Redis says about a command since it was last asked to forget that: calls, and microseconds.
fn spent_on(redis: &mut Scripted, command: &str) -> (u64, u64) {
    let all: String = redis.query(&["INFO", "commandstats"]);
    let number = |name: &str| {
        let line = all
            .lines()
            .find(|line| line.starts_with(&format!("cmdstat_{command}:")));
        let value = line.and_then(|line| {
            line.split(&[':', ','][..])
                .find_map(|field| field.strip_prefix(name))
        });
        value.map_or(0, |value| value.parse().unwrap())
    };
    (number("calls="), number("usec="))
}

/// How long a call that looks at all nodes takes, in microseconds: the middle one of the longest,
/// as many as there are of those.
fn of_a_sweep(redis: &mut Scripted, sweeps: u64) -> i64 {
    type Entry = (i64, i64, i64, Vec<String>, String, String);
    let slow: Vec<Entry> = redis.query(&["SLOWLOG", "GET", "-1"]);
    let mut micros: Vec<i64> = slow.iter().map(|entry| entry.2).collect();
    micros.sort_unstable_by(|a, b| b.cmp(a));
    micros.get(sweeps as usize / 2).copied().unwrap_or(0)
}

/// So many nodes refresh one after the other, each after the time that it should.
fn run(redis: &mut Scripted, nodes: u64) -> (u64, u64, u64) {
    let quota = Quota::per_second(20_000).burst(20_000);
    let terms = LeaseTerms::new(&quota, Scheme::Strict).unwrap();
    let refresh = terms.refresh().as_micros() as u64;
    let mut shares = vec![0; nodes as usize];
    redis.forget_all();
    for seq in 1..=BEFORE + MEASURED {
        if seq == BEFORE + 1 {
            redis.query::<()>(&["CONFIG", "RESETSTAT"]);
            redis.query::<()>(&["SLOWLOG", "RESET"]);
        }
        for node in 0..nodes {
            let request = LeaseRequest {
                node: NodeId(node),
                seq,
                ack: seq - 1,
                demand: 20_000 / nodes,
                held: 1,
                returned: 0,
                want: 2_000 / nodes,
                minted: 0,
                share: shares[node as usize],
                leaves: false,
                window: 0,
                taken: 0,
            };
            let now = START + seq * refresh + node * refresh / nodes;
            let answer = redis.try_call(now, &request.call(b"key", &terms)).unwrap();
            shares[node as usize] = LeaseReply::from_answer(&answer).unwrap().share;
        }
    }
    let (calls, micros) = spent_on(redis, "evalsha");
    assert_eq!(calls, nodes * MEASURED);
    (calls, micros, spent_on(redis, "hgetall").0)
}

/// (Measured in microseconds a call: 25, 25, 25 and 27, and 40, 100, 340 and 1330 where all nodes
/// are looked at. When each call did that: 34, 73, 272 and 1118.)
#[test]
fn a_call_looks_at_its_own_node_and_two_a_refresh_at_all() {
    let mut redis = Scripted::new();
    redis.query::<()>(&["CONFIG", "SET", "slowlog-log-slower-than", "10"]);
    redis.query::<()>(&["CONFIG", "SET", "slowlog-max-len", "10000"]);
    for nodes in [8, 24, 100, 400] {
        let (calls, micros, sweeps) = run(&mut redis, nodes);
        let each = micros as f64 / calls as f64;
        let core = each * 10.0 * nodes as f64 / 1e6 * 100.0;
        println!(
            "{nodes} nodes: {each:.1} us a call, {core:.2} % of a core at a refresh of 100 ms; \
             {sweeps} of {calls} calls looked at all nodes, {} us each",
            of_a_sweep(&mut redis, sweeps)
        );
        assert!(
            sweeps <= 2 * MEASURED + 1,
            "{sweeps} of {calls} calls of {nodes} nodes"
        );
    }
}
