//! The policy changes while requests pass.

use crate::gateway::{Running, policy};
use crate::upstream::{OK, Upstream};

#[tokio::test]
async fn requests_after_a_reload_go_by_the_new_policy() {
    let mut old = Upstream::answering(OK).await;
    let mut new = Upstream::answering(OK).await;
    let gateway = Running::before(&[old.address], "", "");
    let mut client = gateway.connect().await;
    assert_eq!(client.get("/").await.status(), 200);
    old.seen().await;
    assert_eq!(gateway.counters().upstream_idle, 1);
    let limits = "  all:\n    rate: 1/h";
    let policy = policy(&[new.address], limits, "  rate_limit_headers: false");
    gateway.node.reload(policy).unwrap();
    let answer = client.get("/").await;
    assert_eq!((answer.status(), answer.get("ratelimit")), (200, None));
    new.seen().await;
    assert_eq!(client.get("/").await.status(), 429);
    assert!(!old.has_seen());
    // The old server's connections went with it.
    assert_eq!(gateway.counters().upstream_idle, 1);
}
