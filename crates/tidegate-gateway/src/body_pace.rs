//! Bodies held back to what their limits of bandwidth let pass.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use hyper::body::{Frame, SizeHint};
use tidegate::Timestamp;
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

/// Holds one body back, during which nobody is late.
#[derive(Debug)]
pub(crate) struct BodyPacing {
    pacing: Pacing<NodePace>,
    body: BodyOf,
    client: Rc<Client>,
}

impl BodyPacing {
    pub(crate) fn of(body: BodyOf, pacer: Pacer, client: &Rc<Client>) -> Self {
        let pace = NodePace {
            pacer,
            client: Rc::clone(client),
        };
        Self {
            pacing: Pacing::new(pace),
            body,
            client: Rc::clone(client),
        }
    }

    /// Bytes that have come and wait.
    pub(crate) const fn held(&self) -> usize {
        self.pacing.held()
    }

    pub(crate) fn poll_frame<E>(
        &mut self,
        context: &mut Context<'_>,
        next: impl FnOnce(&mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, E>>>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        let timer = &*self.client.core.timer;
        let frame = self.pacing.poll_frame(timer, context, next);
        self.note(frame.is_pending() && self.held() > 0);
        frame
    }

    /// What is still to come, of a body of which so much is still to come from elsewhere.
    pub(crate) fn size_hint(&self, hint: SizeHint) -> SizeHint {
        self.pacing.size_hint(hint)
    }

    fn note(&self, held: bool) {
        let timeouts = self.client.core.timeouts();
        self.client.watch.hold_back(self.body, held, &timeouts);
    }
}

impl Drop for BodyPacing {
    fn drop(&mut self) {
        self.note(false);
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
