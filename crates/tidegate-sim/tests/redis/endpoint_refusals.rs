//! An endpoint and a server that answers, but not with what was asked for.

use std::sync::Arc;
use std::time::Duration;

use tidegate_redis::exact::EXACT;
use tidegate_redis::{Endpoint, EndpointConfig, Script, Scripts, Unavailable};

use crate::endpoint::{BUDGET, COUNT, call, count, is_up, start, until, until_async, why};
use crate::events;
use crate::server::{RedisServer, free_address};

async fn endpoint_of(server: &RedisServer) -> Endpoint {
    start(EndpointConfig::single(&server.url()).unwrap()).await
}

/// Calls until the server is asked no more, and says with what it refused.
async fn refused(endpoint: &Endpoint) -> String {
    let mut last = String::new();
    for _ in 0..6 {
        match count(endpoint, "k").await {
            Err(Unavailable::Server(why)) => last = why,
            Err(Unavailable::Open) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(count(endpoint, "k").await, Err(Unavailable::Open));
    last
}

/// Calls until they are answered again.
async fn answered(endpoint: &Endpoint) {
    until_async(async || count(endpoint, "k").await.is_ok()).await;
    until(endpoint, is_up).await;
}

#[tokio::test]
async fn a_server_without_memory_is_down_once() {
    let server = RedisServer::start();
    let endpoint = endpoint_of(&server).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(refused(&endpoint).await.contains("OOM"));
    assert!(why(&endpoint).contains("maxmemory"), "{}", why(&endpoint));
    // It answers a PING, and trials show that this is not enough: still down, and still once.
    let refused = endpoint.health().counts.refused;
    until_async(async || {
        let _ = count(&endpoint, "k").await;
        assert!(!is_up(&endpoint));
        endpoint.health().counts.refused >= refused + 3
    })
    .await;
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    answered(&endpoint).await;
    let events = events::caught();
    let told = |what: &str| events.iter().filter(|event| event.contains(what)).count();
    assert_eq!(told("not asked any more"), 1, "{events:#?}");
    assert_eq!(
        told("Redis answers"),
        2,
        "at the start, and now: {events:#?}"
    );
    assert_eq!(events.len(), 3, "{events:#?}");
}

#[tokio::test]
async fn a_server_that_has_never_been_up_is_down_once() {
    let server = RedisServer::start();
    server.command(&["CONFIG", "SET", "requirepass", "right"]);
    let wrong = EndpointConfig::single(&format!("redis://:wr0ng@{}", server.address)).unwrap();
    // The first is longer than what Redis takes of somebody unknown before it hangs up.
    let endpoint = Endpoint::start(wrong, &[&EXACT, &COUNT]).unwrap();
    until(&endpoint, |endpoint| {
        endpoint.health().counts.failed_connects >= 3
    })
    .await;
    let events = events::caught();
    assert_eq!(events.len(), 1, "{events:#?}");
    assert!(events[0].contains("Redis is not asked"), "{events:#?}");
    assert!(events[0].contains("WRONGPASS"), "{events:#?}");
}

/// A server that becomes a replica of nobody is asked once, and again when it is none any more.
async fn is_asked_once(server: &RedisServer, refusal: &str) {
    let endpoint = endpoint_of(server).await;
    let nobody = free_address().port().to_string();
    server.command(&["REPLICAOF", "127.0.0.1", &nobody]);
    assert!(refused(&endpoint).await.contains(refusal));
    assert_eq!(endpoint.health().counts.refused, 1, "one is enough");
    server.command(&["REPLICAOF", "NO", "ONE"]);
    answered(&endpoint).await;
}

#[tokio::test]
async fn a_replica_is_not_asked_again() {
    is_asked_once(&RedisServer::start(), "READONLY").await;
}

#[tokio::test]
async fn a_replica_without_its_primary_is_not_asked_again() {
    let server = RedisServer::start_with(&["--replica-serve-stale-data", "no"]);
    is_asked_once(&server, "MASTERDOWN").await;
}

#[tokio::test]
async fn a_server_that_loads_is_asked_when_it_has_loaded() {
    // Of 2,000 keys at half a millisecond each: a second, in which it answers LOADING.
    let slow = [
        "--key-load-delay",
        "500",
        "--loading-process-events-interval-bytes",
        "1024",
    ];
    let mut server = RedisServer::start_with(&slow);
    let endpoint = endpoint_of(&server).await;
    let fill = "for i = 1, 2000 do redis.call('SET', 'filled' .. i, i) end";
    server.command(&["EVAL", fill, "0"]);
    assert_eq!(count(&endpoint, "k").await, Ok(1));
    server.command(&["SAVE"]);
    let loaded = std::thread::spawn(move || {
        server.start_again();
        server
    });
    until(&endpoint, |endpoint| why(endpoint).contains("LOADING")).await;
    assert_eq!(
        count(&endpoint, "k").await,
        Err(Unavailable::Open),
        "nobody waits for it"
    );
    until(&endpoint, is_up).await;
    assert_eq!(
        count(&endpoint, "k").await,
        Ok(2),
        "what was saved is there"
    );
    drop(loaded.join().unwrap());
}

#[tokio::test]
async fn a_password_is_asked_for_and_checked_and_never_shown() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "limits", "on", ">right", "~*", "+@all"]);
    let at = server.address;
    let wrong = EndpointConfig::single(&format!("redis://limits:wr0ng@{at}")).unwrap();
    let endpoint = Endpoint::start(wrong, &[&COUNT]).unwrap();
    until(&endpoint, |endpoint| why(endpoint).contains("WRONGPASS")).await;
    assert!(why(&endpoint).contains("check user and password"));
    let shown = format!(
        "{endpoint:?} {:?} {:?}",
        endpoint.health(),
        events::caught()
    );
    assert!(!shown.contains("wr0ng"), "{shown}");
    server.command(&["ACL", "SETUSER", "limits", ">wr0ng"]);
    until(&endpoint, is_up).await;
    assert_eq!(count(&endpoint, "k").await, Ok(1));

    let unneeded = EndpointConfig::single(&format!("redis://:right@{at}")).unwrap();
    let endpoint = Endpoint::start(unneeded, &[]).unwrap();
    until(&endpoint, |endpoint| {
        why(endpoint).contains("configure none")
    })
    .await;
    server.command(&["CONFIG", "SET", "requirepass", "right"]);
    until(&endpoint, is_up).await;
    let none = EndpointConfig::single(&server.url()).unwrap();
    let endpoint = Endpoint::start(none, &[]).unwrap();
    until(&endpoint, |endpoint| {
        why(endpoint).contains("configure one")
    })
    .await;
}

#[tokio::test]
async fn a_user_needs_little_and_is_told_what() {
    let server = RedisServer::start();
    let user = [
        "ACL", "SETUSER", "limits", "on", ">pw", "~*", "-@all", "+evalsha", "+eval",
    ];
    server.command(&user);
    let config = EndpointConfig::single(&format!("redis://limits:pw@{}", server.address));
    let endpoint = start(config.unwrap()).await;
    let refused = refused(&endpoint).await;
    assert!(
        refused.contains("can't run") && refused.contains("+evalsha"),
        "{refused}"
    );
    server.command(&["ACL", "SETUSER", "limits", "+incrby"]);
    answered(&endpoint).await;
    // SCRIPT LOAD is still forbidden: the text was sent along instead.
    assert!(endpoint.health().counts.scripts_sent > 0);
}

#[tokio::test]
async fn a_database_is_selected() {
    let server = RedisServer::start();
    let with = |database| EndpointConfig::single(&format!("{}{database}", server.url())).unwrap();
    let endpoint = start(with(3)).await;
    assert_eq!(count(&endpoint, "k").await, Ok(1));
    assert_eq!(server.command(&["-n", "3", "GET", "k"]), "1");
    let endpoint = Endpoint::start(with(99), &[]).unwrap();
    until(&endpoint, |endpoint| {
        why(endpoint).contains("a database that it has")
    })
    .await;
}

#[tokio::test]
async fn lost_connections_are_replaced() {
    let server = RedisServer::start();
    let endpoint = endpoint_of(&server).await;
    for round in 1..4 {
        let before = endpoint.health().counts.connects;
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        until(&endpoint, |endpoint| {
            endpoint.health().counts.connects >= before + 2
        })
        .await;
        until(&endpoint, is_up).await;
        assert_eq!(count(&endpoint, "k").await, Ok(round));
    }
    drop(endpoint);
    until_async(async || server.command(&["CLIENT", "LIST"]).lines().count() == 1).await;
}

#[tokio::test]
async fn no_more_calls_are_under_way_than_may_be() {
    let server = RedisServer::start();
    let mut config = EndpointConfig::single(&server.url()).unwrap();
    config.max_in_flight = 3;
    let endpoint = Arc::new(start(config).await);
    server.signal("-STOP");
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let endpoint = Arc::clone(&endpoint);
            tokio::spawn(async move { count(&endpoint, "k").await })
        })
        .collect();
    until(&endpoint, |endpoint| endpoint.health().counts.calls == 3).await;
    let full = Err(Unavailable::Server(
        "3 calls are under way already".to_owned(),
    ));
    assert_eq!(count(&endpoint, "k").await, full);
    // A caller that gives up makes room.
    calls[0].abort();
    let short = Duration::from_millis(5);
    until_async(async || {
        let answer = endpoint.call(call(&COUNT, "k", 1), short).await;
        answer == Err(Unavailable::TimedOut(short))
    })
    .await;
    server.signal("-CONT");
    for call in calls.into_iter().skip(1) {
        assert!(call.await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn answers_of_another_kind_are_told() {
    static TEXT: Script = Script {
        name: "text",
        text: "return 'secret'",
    };
    static FAILS: Script = Script {
        name: "fails",
        text: "return nil + 1",
    };
    static HUGE: Script = Script {
        name: "huge",
        text: "local t = {} for i = 1, 300000 do t[i] = i end return t",
    };
    let server = RedisServer::start();
    let endpoint = endpoint_of(&server).await;
    let bad = Unavailable::BadAnswer("a string, and not integers".to_owned());
    for _ in 0..30 {
        let answer = endpoint.call(call(&TEXT, "k", 1), BUDGET).await;
        assert_eq!(answer, Err(bad.clone()));
        let answer = endpoint.call(call(&FAILS, "k", 1), BUDGET).await;
        let failed = matches!(&answer, Err(Unavailable::BadAnswer(why)) if why.contains("nil"));
        assert!(failed, "{answer:?}");
    }
    assert!(is_up(&endpoint), "the server is well");
    let answer = endpoint.call(call(&HUGE, "k", 1), BUDGET).await;
    assert!(matches!(answer, Err(Unavailable::Server(_))), "{answer:?}");
    answered(&endpoint).await;
}

#[tokio::test]
async fn without_a_budget_nothing_is_sent() {
    let server = RedisServer::start();
    let endpoint = endpoint_of(&server).await;
    for _ in 0..10 {
        let answer = endpoint.call(call(&COUNT, "k", 1), Duration::ZERO).await;
        assert_eq!(answer, Err(Unavailable::TimedOut(Duration::ZERO)));
    }
    assert_eq!(count(&endpoint, "k").await, Ok(1));
}

#[tokio::test]
async fn a_call_beyond_all_measure_is_not_sent() {
    let server = RedisServer::start();
    let endpoint = endpoint_of(&server).await;
    let mut large = call(&COUNT, "k", 1);
    large.args.push(vec![b'x'; 1 << 20]);
    let answer = endpoint.call(large, Duration::MAX).await;
    assert!(
        matches!(answer, Err(Unavailable::BadAnswer(_))),
        "{answer:?}"
    );
    let answer = endpoint.call(call(&COUNT, "k", 1), Duration::MAX).await;
    assert_eq!(answer, Ok(vec![1]));
}

#[tokio::test]
async fn trials_whose_callers_give_up_are_no_trials() {
    let server = RedisServer::start();
    let endpoint = endpoint_of(&server).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    refused(&endpoint).await;
    // It answers a PING, but no script: whoever is let through gives up.
    server.command(&["CLIENT", "PAUSE", "60000", "WRITE"]);
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let given_up = std::cell::Cell::new(0);
    until_async(async || {
        let patience = Duration::from_millis(2);
        let answer = tokio::time::timeout(patience, count(&endpoint, "k")).await;
        given_up.set(given_up.get() + u32::from(answer.is_err()));
        given_up.get() >= 10
    })
    .await;
    assert!(!is_up(&endpoint));
    server.command(&["CLIENT", "UNPAUSE"]);
    answered(&endpoint).await;
}
