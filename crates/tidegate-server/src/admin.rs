//! The admin port: health, metrics, and the limits as they stand.

mod gateway_metrics;
mod limits;
mod redis_metrics;

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tidegate_gateway::Counters;
use tidegate_node::{Node, NodeMetrics};
use tokio::sync::Semaphore;

use self::gateway_metrics::GatewayMetrics;
use self::redis_metrics::RedisMetrics;
use crate::redis::Redis;

/// Most connections at once; the next ones wait.
const MAX_CONNECTIONS: usize = 64;
/// Longest time for a request's header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time that requests in flight are given at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// What the admin port tells.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    node: Arc<Node>,
    metrics: Arc<Registry>,
}

impl Admin {
    pub(crate) fn new(
        node: Arc<Node>,
        gateway: Option<Counters>,
        redis: Option<Arc<Redis>>,
    ) -> Self {
        let mut metrics = Registry::default();
        metrics.register_collector(Box::new(NodeMetrics::new(Arc::clone(&node))));
        if let Some(counters) = gateway {
            metrics.register_collector(Box::new(GatewayMetrics::new(counters)));
        }
        if let Some(redis) = redis {
            metrics.register_collector(Box::new(RedisMetrics(redis)));
        }
        Self {
            node,
            metrics: Arc::new(metrics),
        }
    }

    fn router(self) -> Router {
        Router::new()
            .route("/healthz", get(healthz))
            .route("/metrics", get(metrics))
            .route("/api/v1/limits", get(limits))
            .with_state(self)
    }

    /// Serves until `shutdown` ends.
    pub(crate) async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let graceful = GracefulShutdown::new();
        let router = self.router();
        let mut shutdown = pin!(shutdown);
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                break;
            };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut shutdown => break,
            };
            // Out of descriptors, or a client that has gone already: the next one may fare better.
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .serve_connection(
                    TokioIo::new(stream),
                    TowerToHyperService::new(router.clone()),
                );
            let connection = graceful.watch(connection);
            tokio::spawn(async move {
                // What a client did wrong concerns nobody else.
                let _ = connection.await;
                drop(place);
            });
        }
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, graceful.shutdown()).await;
        Ok(())
    }
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn metrics(State(admin): State<Admin>) -> Response {
    let mut body = String::new();
    if let Err(error) = text::encode(&mut body, &admin.metrics) {
        tracing::error!(%error, "metrics cannot be encoded");
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    (
        [(header::CONTENT_TYPE, HeaderValue::from_static(kind))],
        body,
    )
        .into_response()
}

async fn limits(State(admin): State<Admin>) -> Json<serde_json::Value> {
    Json(limits::report(&admin.node))
}
