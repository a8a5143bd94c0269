//! Definitions that callers of the library make.

use tidegate::{Algorithm, Quota};
use tidegate_redis::{DefineError, Definitions, Exact, FollowedLimiter};

use super::{endpoint, hourly, until};
use crate::server::RedisServer;

fn quota(algorithm: Algorithm) -> Quota {
    match algorithm {
        Algorithm::TokenBucket(quota) => quota,
        other => panic!("{other:?}"),
    }
}

async fn definitions(server: &RedisServer) -> Definitions {
    Definitions::new(endpoint(server).await)
}

// shows: B11 (set once)
#[tokio::test]
async fn the_first_definition_stays_whoever_comes_later() {
    let server = RedisServer::start();
    let [first, second] = [definitions(&server).await, definitions(&server).await];
    let held = first.set_once("l", hourly(100)).await.unwrap();
    assert_eq!((held.version, quota(held.algorithm)), (0, hourly(100)));
    for definitions in [&second, &first] {
        // Neither what is stricter, nor what its own maker says later.
        for other in [hourly(50), hourly(200)] {
            let told = definitions.set_once("l", other).await.unwrap();
            assert_eq!(told, held);
        }
    }
    // Of all who come at once one is first.
    let mut told = tokio::task::JoinSet::new();
    for permits in 1..=20 {
        let one = definitions(&server).await;
        told.spawn(async move { one.set_once("race", hourly(permits)).await.unwrap() });
    }
    let told = told.join_all().await;
    assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
    let ttl: i64 = server
        .command(&["TTL", "tgd:{nodes}:l"])
        .trim()
        .parse()
        .unwrap();
    assert!(ttl > 29 * 86_400, "{ttl}");
}

// shows: B11 (update in place)
#[tokio::test]
async fn a_newer_version_takes_the_place_of_an_older_one_and_never_the_other_way_round() {
    let server = RedisServer::start();
    let [one, other] = [definitions(&server).await, definitions(&server).await];
    let update = async |by: &Definitions, version, permits| {
        let held = by.update("l", version, hourly(permits)).await.unwrap();
        (held.version, quota(held.algorithm).permits())
    };
    assert_eq!(update(&one, 2, 200).await, (2, 200));
    assert_eq!(update(&other, 1, 50).await, (2, 200), "an older one");
    assert_eq!(
        update(&other, 10, 300).await,
        (10, 300),
        "10 is more than 2"
    );
    assert_eq!(update(&one, 9, 1).await, (10, 300));
    // The same version with other numbers: the stricter, in either order.
    assert_eq!(update(&one, 10, 250).await, (10, 250));
    assert_eq!(update(&other, 10, 300).await, (10, 250));
    assert_eq!(
        update(&one, 10, 280).await,
        (10, 280),
        "who replaces its own"
    );
    assert_eq!(update(&other, 10, 290).await, (10, 280));
    let largest = (1 << 53) - 1;
    assert_eq!(update(&other, largest, 7).await, (largest, 7));
}

#[tokio::test]
async fn what_cannot_be_shared_is_not_defined() {
    let server = RedisServer::start();
    let definitions = definitions(&server).await;
    let told = definitions
        .set_once("l", Algorithm::Concurrency { max: 3 })
        .await;
    assert!(matches!(told, Err(DefineError::NotShared(_))), "{told:?}");
    let later = "0000000000000009:0000000000000001:00000000000000ff";
    server.command(&["SET", "tgd:{nodes}:l", later, "EX", "100"]);
    let told = definitions.update("l", 8, hourly(5)).await;
    assert_eq!(told, Err(DefineError::Unknown(9)));
    assert_eq!(server.command(&["GET", "tgd:{nodes}:l"]).trim(), later);
}

async fn follower(server: &RedisServer) -> (Definitions, FollowedLimiter) {
    let endpoint = endpoint(server).await;
    let definitions = Definitions::new(endpoint.clone());
    let held = definitions.set_once("l", hourly(100)).await.unwrap();
    let runtime = tokio::runtime::Handle::current();
    let limiter = definitions.follow("l", held, &Exact::new(endpoint), &runtime);
    (definitions, limiter.unwrap())
}

// shows: B11 (update in place), B5 (change at run time)
#[tokio::test]
async fn all_handles_follow_a_change_and_what_was_used_stays_used() {
    let server = RedisServer::start();
    let (definitions, one) = follower(&server).await;
    let (_, other) = follower(&server).await;
    assert!(one.current().check("k", 60).await.unwrap().is_allowed());
    definitions.update("l", 1, hourly(200)).await.unwrap();
    for limiter in [&one, &other] {
        until("grown", || limiter.definition().version == 1).await;
        let peeked = limiter.current().peek("k", 0).await.unwrap();
        assert_eq!((peeked.limit, peeked.remaining), (200, 140));
    }
    definitions.update("l", 2, hourly(40)).await.unwrap();
    for limiter in [&one, &other] {
        until("shrunk", || limiter.definition().version == 2).await;
        let peeked = limiter.current().peek("k", 0).await.unwrap();
        assert_eq!((peeked.limit, peeked.remaining), (40, 0));
        assert!(limiter.current().check("k", 1).await.unwrap().is_denied());
    }
    // A Redis that has lost it is told again.
    server.command(&["FLUSHALL"]);
    until("put back", || {
        server
            .command(&["GET", "tgd:{nodes}:l"])
            .contains("0000000000000002:")
    })
    .await;
}
