//! Who may come in.

use http::Request;
use http::header::CONTENT_TYPE;
use tidegate_tower::AccessLayer;
use tower::ServiceBuilder;

use crate::{ask, get, hello};

// shows: A4
#[tokio::test]
async fn who_may_not_come_in_is_told_so() {
    let layer = AccessLayer::new(|request: &Request<()>| request.uri().path() != "/admin");
    let service = ServiceBuilder::new().layer(layer).service(hello());
    assert_eq!(ask(&service, get("/")).await.body(), "hello");
    let refused = ask(&service, get("/admin")).await;
    assert_eq!(refused.status(), 403);
    assert_eq!(refused.headers()[CONTENT_TYPE], "application/problem+json");
}
