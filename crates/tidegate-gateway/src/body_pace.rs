//! Bodies held back to what their limits of bandwidth let pass.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use hyper::body::{Frame, SizeHint};
use tidegate::{Timer, Timestamp};
use tidegate_node::{Admission, Pacer};
use tidegate_policy::BodyOf;
use tidegate_tower::{Pace, Pacing};

use crate::body::ResponseBody;
use crate::client::Client;

/// What holds the bodies of one request back.
#[derive(Debug)]
pub(crate) struct Pacers {
    pub(crate) request: Option<Pacer>,
    response: Option<Pacer>,
}

impl Pacers {
    /// Of a request that goes ahead; `None` for nearly all.
    pub(crate) fn of(admission: &Admission<'_>) -> Option<Box<Self>> {
        if !admission.is_paced() {
            return None;
        }
        Some(Box::new(Self {
            request: admission.pacer(BodyOf::Request),
            response: admission.pacer(BodyOf::Response),
        }))
    }

    /// Holds the body of an upstream's response back.
    pub(crate) fn pace(self, response: &mut Response<ResponseBody>) {
        let Some(mut pacer) = self.response else {
            return;
        };
        if pacer.is_stepwise() {
            pacer.count_head(head_bytes(response));
        }
        response.body_mut().pace(pacer);
    }
}

/// The node's limits, as one body asks them.
struct NodePace {
    pacer: Pacer,
    client: Rc<Client>,
}

impl Pace for NodePace {
    fn now(&self) -> Timestamp {
        self.client.core.node.clock().now()
    }

    fn most(&mut self, now: Timestamp) -> u64 {
        self.pacer.most(&self.client.core.node, now)
    }

    fn take(&mut self, bytes: u64, now: Timestamp) -> Result<Duration, Duration> {
        self.pacer.take(bytes, now)
    }

    fn passed(&mut self) {
        self.pacer.passed();
    }

    fn give_back(&mut self, now: Timestamp) {
        self.pacer.give_back(now);
    }

    fn idle(&mut self) {
        if self.pacer.is_stepwise() {
            self.pacer.idle(self.now());
        }
    }
}

/// Holds one body back.
#[derive(Debug)]
pub(crate) struct BodyPacing(Pacing<NodePace>);

impl BodyPacing {
    pub(crate) fn of(pacer: Pacer, client: &Rc<Client>) -> Self {
        let client = Rc::clone(client);
        Self(Pacing::new(NodePace { pacer, client }))
    }

    /// Bytes that have come and wait.
    pub(crate) const fn held(&self) -> usize {
        self.0.held()
    }

    pub(crate) fn poll_frame<E>(
        &mut self,
        timer: &dyn Timer,
        context: &mut Context<'_>,
        next: impl FnOnce(&mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, E>>>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        self.0.poll_frame(timer, context, next)
    }

    /// What is still to come, of a body of which so much is still to come from elsewhere.
    pub(crate) fn size_hint(&self, hint: SizeHint) -> SizeHint {
        self.0.size_hint(hint)
    }
}

/// About how long the header is on the wire: what hyper adds to it, `Date`, is there already
/// where the response comes from an upstream.
fn head_bytes<B>(response: &Response<B>) -> u64 {
    const STATUS_LINE: usize = "HTTP/1.1 200 \r\n\r\n".len();
    const COLON_AND_END: usize = ": \r\n".len();
    let reason = response.status().canonical_reason().map_or(0, str::len);
    let fields = response.headers().iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + COLON_AND_END);
    (STATUS_LINE + reason + fields.sum::<usize>()) as u64
}
