//! An endpoint of a cluster.

use tidegate_redis::{Endpoint, EndpointConfig, Scripts, Unavailable};

use crate::cluster::Cluster;
use crate::endpoint::{BUDGET, COUNT, ECHO, call, count, is_up, start, until, until_async, why};
use crate::server::{RedisServer, free_address};

/// Slot 12182, of the third server.
const FOO: (&str, u16) = ("{foo}k", 12_182);

fn config(cluster: &Cluster) -> EndpointConfig {
    // The first address is nobody's; the second is a replica's. Either does as a seed.
    let nobody = format!("redis://{}", free_address());
    let urls = [nobody.as_str(), &cluster.servers[4].url()];
    EndpointConfig::cluster(&urls).unwrap()
}

#[tokio::test]
async fn keys_find_their_servers() {
    let cluster = Cluster::start();
    let endpoint = start(config(&cluster)).await;
    for number in 0..100 {
        assert_eq!(count(&endpoint, &format!("k{number}")).await, Ok(1));
    }
    let health = endpoint.health();
    assert_eq!(health.servers.len(), 3);
    assert_eq!(health.counts.redirects, 0);
    let mut both = call(&COUNT, "a", 1);
    both.keys.push(b"b".to_vec());
    let answer = endpoint.call(both, BUDGET).await;
    assert!(matches!(&answer, Err(Unavailable::BadAnswer(why)) if why.contains("hash tag")));
}

/// Calls until they are not sent on any more.
async fn found(endpoint: &Endpoint, key: &str) {
    until_async(async || {
        let before = endpoint.health().counts.redirects;
        count(endpoint, key).await.unwrap();
        endpoint.health().counts.redirects == before
    })
    .await;
}

#[tokio::test]
async fn a_slot_that_moves_takes_its_calls_along() {
    let cluster = Cluster::start();
    let endpoint = start(config(&cluster)).await;
    let (key, slot) = FOO;
    assert_eq!(count(&endpoint, key).await, Ok(1));

    // Under way: keys that are still there stay; those that are not are asked for (ASK).
    cluster.begin_to_move(slot, 2, 0);
    assert_eq!(count(&endpoint, key).await, Ok(2));
    assert_eq!(endpoint.health().counts.redirects, 0);
    assert_eq!(count(&endpoint, "{foo}new").await, Ok(1));
    assert_eq!(endpoint.health().counts.redirects, 1);
    let mut both = call(&COUNT, key, 1);
    both.keys.push(b"{foo}new".to_vec());
    let split = endpoint.call(both, BUDGET).await;
    assert!(matches!(&split, Err(Unavailable::Server(why)) if why.contains("TRYAGAIN")));
    cluster.move_key(key, 2, 0);
    assert_eq!(count(&endpoint, key).await, Ok(3));
    assert_eq!(count(&endpoint, "{foo}new").await, Ok(2));

    // Done (MOVED): one more call is sent on, and then the map is known.
    cluster.end_move(slot, 0);
    let before = endpoint.health().counts.redirects;
    assert_eq!(count(&endpoint, key).await, Ok(4));
    assert_eq!(endpoint.health().counts.redirects, before + 1);
    found(&endpoint, key).await;

    // And back, when nothing else makes the endpoint ask for the map.
    cluster.begin_to_move(slot, 0, 2);
    cluster.move_key(key, 0, 2);
    cluster.move_key("{foo}new", 0, 2);
    cluster.end_move(slot, 2);
    found(&endpoint, key).await;
    assert!(is_up(&endpoint));
}

#[tokio::test]
async fn a_server_that_dies_takes_only_its_keys_along() {
    let mut cluster = Cluster::start();
    let endpoint = start(config(&cluster)).await;
    let (key, _) = FOO;
    assert_eq!(count(&endpoint, key).await, Ok(1));
    cluster.servers[2].kill();
    until(&endpoint, |endpoint| !is_up(endpoint)).await;
    assert_eq!(count(&endpoint, key).await, Err(Unavailable::Open));
    // "bar" is in slot 5061, of the first server.
    assert_eq!(count(&endpoint, "bar").await, Ok(1));
    // Its replica is elected.
    until(&endpoint, is_up).await;
    assert_eq!(count(&endpoint, key).await, Ok(2));
    cluster.servers[2].start_again();
    assert_eq!(count(&endpoint, key).await, Ok(3));
}

#[tokio::test]
async fn a_cluster_that_lacks_slots_says_so() {
    let cluster = Cluster::start();
    let endpoint = start(config(&cluster)).await;
    let (key, slot) = FOO;
    cluster.servers[2].command(&["CLUSTER", "DELSLOTS", &slot.to_string()]);
    // Either its server says so, call by call, or the map, if it is of that server.
    until_async(async || {
        let _ = count(&endpoint, key).await;
        !is_up(&endpoint)
    })
    .await;
    let why = why(&endpoint);
    assert!(
        why.contains("CLUSTERDOWN") || why.contains("slot 12182"),
        "{why}"
    );
    assert!(count(&endpoint, key).await.is_err());
    cluster.servers[2].command(&["CLUSTER", "ADDSLOTS", &slot.to_string()]);
    until_async(async || count(&endpoint, key).await.is_ok()).await;
    until(&endpoint, is_up).await;
}

#[tokio::test]
async fn one_that_is_no_cluster_is_told() {
    let server = RedisServer::start();
    let config = EndpointConfig::cluster(&[&server.url()]).unwrap();
    let endpoint = Endpoint::start(config, &[]).unwrap();
    until(&endpoint, |endpoint| {
        why(endpoint).contains("cluster support disabled")
    })
    .await;
    let answer = endpoint.call(call(&ECHO, "k", 1), BUDGET).await;
    assert_eq!(answer, Err(Unavailable::Open));
}
