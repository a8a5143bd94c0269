//! Ports: found, shared between cores, and never with somebody else.

use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tidegate::SystemClock;
use tidegate_gateway::{Gateway, TokioTimer};
use tidegate_node::Node;

use crate::gateway::{Running, policy};
use crate::upstream::{OK, Upstream};

#[tokio::test]
async fn a_taken_port_fails_clearly() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut second = policy(&[upstream.address], "", "");
    second.gateway.as_mut().unwrap().listen = vec![gateway.address];
    let config = second.gateway.clone().unwrap();
    let clock = Arc::new(SystemClock::new());
    let node = Node::new(second, clock.clone()).unwrap();
    let error = Gateway::bind(&config, node, Arc::new(TokioTimer::new(clock))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    let expected = format!("cannot listen on {}: ", gateway.address);
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert_eq!(gateway.connect().await.get("/").await.status(), 200);
}

#[tokio::test]
async fn cores_share_limits_and_connections() {
    let upstream = Upstream::answering(OK).await;
    let limits = "  all:\n    rate: 1/h\n    burst: 20";
    let clock = Arc::new(SystemClock::new());
    let policy = policy(&[upstream.address], limits, "");
    let cores = NonZeroUsize::new(3).unwrap();
    let timer = Arc::new(TokioTimer::new(clock.clone()));
    let mut gateway = Running::on(cores, policy, clock, timer);
    let mut passed = 0;
    for _ in 0..40 {
        let mut client = gateway.connect().await;
        passed += u32::from(client.get("/").await.status() == 200);
    }
    assert_eq!(passed, 20);
    // Each core that got a connection has its own to the upstream.
    assert!(upstream.connections() > 1, "one core got all");
    gateway.stop();
    gateway.ended().await;
}
