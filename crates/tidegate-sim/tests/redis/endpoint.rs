//! An endpoint and one server that fails in every way a server can.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_redis::{Endpoint, EndpointConfig, Script, ScriptCall, Scripts, State, Unavailable};

use crate::server::{RedisServer, free_address};

/// Counts, and says how often; so a call that ran twice would be seen.
pub(crate) static COUNT: Script = Script {
    name: "count",
    text: "return {redis.call('INCRBY', KEYS[1], ARGV[1])}",
};

/// Answers with its argument.
pub(crate) static ECHO: Script = Script {
    name: "echo",
    text: "return {tonumber(ARGV[1])}",
};

/// Far more than any call here takes, and far less than a test may take.
pub(crate) const BUDGET: Duration = Duration::from_secs(5);

/// What a call in production has.
const SHORT: Duration = Duration::from_millis(25);

/// How long to wait for something that must come.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) fn call(script: &'static Script, key: &str, argument: i64) -> ScriptCall {
    ScriptCall {
        script,
        keys: vec![key.as_bytes().to_vec()],
        args: vec![argument.to_string().into_bytes()],
    }
}

pub(crate) async fn count(endpoint: &Endpoint, key: &str) -> Result<i64, Unavailable> {
    endpoint
        .call(call(&COUNT, key, 1), BUDGET)
        .await
        .map(|answer| answer[0])
}

/// Waits until something holds, and says what did hold if it does not come to that.
pub(crate) async fn until(endpoint: &Endpoint, holds: impl Fn(&Endpoint) -> bool) {
    let start = Instant::now();
    while !holds(endpoint) {
        assert!(start.elapsed() < DEADLINE, "{:?}", endpoint.health());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The same for something that takes calls to find out.
pub(crate) async fn until_async(holds: impl AsyncFn() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < DEADLINE, "not in time");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

pub(crate) fn is_up(endpoint: &Endpoint) -> bool {
    endpoint.health().state == State::Up
}

pub(crate) fn why(endpoint: &Endpoint) -> String {
    match endpoint.health().state {
        State::Down { why, .. } => why,
        _ => String::new(),
    }
}

pub(crate) async fn start(config: EndpointConfig) -> Endpoint {
    let endpoint = Endpoint::start(config, &[&COUNT]).unwrap();
    until(&endpoint, is_up).await;
    endpoint
}

async fn endpoint_of(server: &RedisServer) -> Endpoint {
    start(EndpointConfig::single(&server.url()).unwrap()).await
}

#[tokio::test]
async fn scripts_are_called_and_those_unknown_are_sent_along() {
    let server = RedisServer::start();
    let endpoint = endpoint_of(&server).await;
    assert_eq!(count(&endpoint, "k").await, Ok(1));
    let counts = endpoint.health().counts;
    assert_eq!(counts.scripts_sent, 0, "loaded with the connection");
    for argument in [7, 8] {
        let answer = endpoint.call(call(&ECHO, "k", argument), BUDGET).await;
        assert_eq!(answer, Ok(vec![argument]));
        assert_eq!(endpoint.health().counts.scripts_sent, 1, "the first time");
    }
    server.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(count(&endpoint, "k").await, Ok(2));
    assert_eq!(count(&endpoint, "k").await, Ok(3));
    let counts = endpoint.health().counts;
    assert_eq!(counts.scripts_sent, 2, "once after the flush");
    assert_eq!((counts.calls, counts.answered), (5, 5));
}

#[tokio::test]
async fn it_starts_without_a_server_and_finds_it() {
    let address = free_address();
    let config = EndpointConfig::single(&format!("redis://{address}")).unwrap();
    let endpoint = Endpoint::start(config, &[]).unwrap();
    until(&endpoint, |endpoint| {
        endpoint.health().counts.failed_connects > 2
    })
    .await;
    let start = Instant::now();
    for _ in 0..1_000 {
        assert_eq!(count(&endpoint, "k").await, Err(Unavailable::Open));
    }
    assert!(start.elapsed() < BUDGET, "nobody waits");
    assert!(
        why(&endpoint).contains("cannot connect"),
        "{}",
        why(&endpoint)
    );
    let _server = RedisServer::start_at(address, &[]);
    until(&endpoint, is_up).await;
    assert_eq!(count(&endpoint, "k").await, Ok(1));
}

#[tokio::test]
async fn a_server_that_is_killed_is_found_again() {
    let mut server = RedisServer::start();
    let endpoint = endpoint_of(&server).await;
    for round in 1..4 {
        assert_eq!(count(&endpoint, "k").await, Ok(1), "round {round}");
        server.kill();
        until(&endpoint, |endpoint| !is_up(endpoint)).await;
        assert_eq!(count(&endpoint, "k").await, Err(Unavailable::Open));
        server.start_again();
        until(&endpoint, is_up).await;
    }
}

#[tokio::test]
async fn a_server_that_stands_still_costs_a_few_calls_their_budget() {
    let server = RedisServer::start();
    let endpoint = endpoint_of(&server).await;
    server.signal("-STOP");
    let timed_out = Err(Unavailable::TimedOut(SHORT));
    for _ in 0..5 {
        assert_eq!(endpoint.call(call(&COUNT, "k", 1), SHORT).await, timed_out);
    }
    let open = Err(Unavailable::Open);
    assert_eq!(endpoint.call(call(&COUNT, "k", 1), SHORT).await, open);
    assert!(why(&endpoint).contains("within 25ms"), "{}", why(&endpoint));
    server.signal("-CONT");
    until(&endpoint, is_up).await;
    // The five ran, or not; none ran twice.
    let counted = count(&endpoint, "k").await.unwrap();
    assert!((1..=6).contains(&counted), "{counted}");
}

#[tokio::test]
async fn a_late_answer_is_nobody_elses() {
    let server = RedisServer::start();
    let mut config = EndpointConfig::single(&server.url()).unwrap();
    config.connections = 1;
    let endpoint = Arc::new(start(config).await);
    server.command(&["CLIENT", "PAUSE", "300", "ALL"]);
    let timed_out = Err(Unavailable::TimedOut(SHORT));
    for argument in 0..4 {
        let answer = endpoint.call(call(&ECHO, "k", argument), SHORT).await;
        assert_eq!(answer, timed_out);
    }
    // On the same connection, while the answers of the four are yet to come.
    let calls: Vec<_> = (100..200)
        .map(|argument| {
            let endpoint = Arc::clone(&endpoint);
            tokio::spawn(async move {
                let answer = endpoint.call(call(&ECHO, "k", argument), BUDGET).await;
                assert_eq!(answer, Ok(vec![argument]));
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(endpoint.health().counts.connects, 1);
}
