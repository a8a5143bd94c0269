//! An endpoint whose primary Sentinels name.

use std::time::Duration;

use tidegate_redis::{Endpoint, EndpointConfig};

use crate::endpoint::{count, is_up, start, until, why};
use crate::sentinels::Sentinels;
use crate::server::free_address;

fn config(sentinels: &Sentinels) -> EndpointConfig {
    // The first address is nobody's: the others do.
    let nobody = format!("redis://{}", free_address());
    let urls: Vec<_> = std::iter::once(nobody).chain(sentinels.urls()).collect();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    EndpointConfig::sentinel("limits", &urls).unwrap()
}

#[tokio::test]
async fn the_primary_is_followed() {
    let mut sentinels = Sentinels::start();
    let endpoint = start(config(&sentinels)).await;
    assert_eq!(count(&endpoint, "k").await, Ok(1));

    // Killed: another takes its place.
    sentinels.servers[0].kill();
    until(&endpoint, |endpoint| !is_up(endpoint)).await;
    until(&endpoint, is_up).await;
    assert_ne!(sentinels.primary(), sentinels.servers[0].address);
    assert!(count(&endpoint, "k").await.is_ok());

    // The old one comes back, as a replica; and the place is handed over on purpose, while calls
    // go on. None of them is answered by one that is no primary.
    sentinels.servers[0].start_again();
    let before = sentinels.primary();
    crate::sentinels::until("a replica is fit to take over", || {
        sentinels.sentinels[0].try_command(&["SENTINEL", "FAILOVER", "limits"]) == "OK"
    });
    let (mut failed, mut last) = (0, count(&endpoint, "n").await.unwrap_or_default());
    until(&endpoint, |_| sentinels.primary() != before).await;
    let mut after = 0;
    while after < 50 {
        if let Ok(counted) = count(&endpoint, "n").await {
            assert!(counted > last || failed > 0, "{counted} after {last}");
            last = counted;
            after += 1;
        } else {
            failed += 1;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(failed < 20_000, "{:?}", endpoint.health());
    }
}

#[tokio::test]
async fn a_name_that_no_sentinel_knows_is_told() {
    let sentinels = Sentinels::start();
    let urls = sentinels.urls();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    let config = EndpointConfig::sentinel("other", &urls).unwrap();
    let endpoint = Endpoint::start(config, &[]).unwrap();
    until(&endpoint, |endpoint| {
        endpoint.health().counts.failed_connects > 0
    })
    .await;
    assert!(
        why(&endpoint).contains("knows no primary of that name"),
        "{}",
        why(&endpoint)
    );
}

#[tokio::test]
async fn a_replica_is_not_taken_for_the_primary() {
    let sentinels = Sentinels::start();
    // A Sentinel that is told that a replica is the primary finds out itself, but not at once.
    let replica = sentinels.servers[1].address.port().to_string();
    let lie = ["SENTINEL", "MONITOR", "lie", "127.0.0.1", &replica, "2"];
    sentinels.sentinels[0].command(&lie);
    let url = sentinels.sentinels[0].url();
    let config = EndpointConfig::sentinel("lie", &[&url]).unwrap();
    let endpoint = Endpoint::start(config, &[]).unwrap();
    until(&endpoint, |endpoint| {
        endpoint.health().counts.failed_connects > 0
    })
    .await;
    assert!(why(&endpoint).contains("no primary"), "{}", why(&endpoint));
}
