//! The limits of a policy as a decider for tower layers.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::Request;
use tidegate::{Timer, Timestamp};
use tidegate_http::TrustedProxies;
use tidegate_node::{Admission, Call, Hold, Node, Pending, Snapshot, Turn};
use tidegate_tower::{Decide, Decided, Deciding, Told};

use crate::view::RequestView;

/// All limits of a node's policy, for a [`LimitLayer`](tidegate_tower::LimitLayer) around a service
/// of your own: the route of a request says which apply to it. Where it takes none, or the policy
/// has no gateway, none does. `upstream`, `access` and `on_limit` of the policy are the gateway's:
/// the layer says how it refuses. So are limits of `bandwidth`: it holds no bodies back, a
/// [`BandwidthLayer`](tidegate_tower::BandwidthLayer) does.
///
/// `peer` says from whom a request comes, by the connection; proxies that the policy trusts are
/// believed whom they speak for. Requests wait where the policy lets them, in lines and for delays;
/// a client that goes away gives back.
pub struct PolicyLimits<P>(Arc<Inner<P>>);

struct Inner<P> {
    node: Arc<Node>,
    timer: Arc<dyn Timer>,
    peer: P,
    /// Those of the policy of this revision.
    trusted: Mutex<(u64, Arc<TrustedProxies>)>,
}

impl<P> PolicyLimits<P> {
    /// The limits of `node`. Delays are waited out on `timer`, which goes with the node's clock.
    pub fn new(node: Arc<Node>, timer: Arc<dyn Timer>, peer: P) -> Self {
        Self(Arc::new(Inner {
            node,
            timer,
            peer,
            trusted: Mutex::default(),
        }))
    }
}

impl<P> Inner<P> {
    fn trusted(&self, snapshot: &Snapshot) -> Arc<TrustedProxies> {
        let mut trusted = self.trusted.lock().unwrap_or_else(PoisonError::into_inner);
        if trusted.0 != snapshot.revision() {
            let gateway = snapshot.policy().gateway.as_ref();
            let networks = gateway.map(|gateway| gateway.trusted_proxies.iter().copied());
            let proxies = TrustedProxies::new(networks.into_iter().flatten());
            *trusted = (snapshot.revision(), Arc::new(proxies));
        }
        Arc::clone(&trusted.1)
    }

    /// Decides, at once.
    fn ask<B>(
        &self,
        request: &Request<B>,
        peer: Option<IpAddr>,
        came: Timestamp,
        turn: Turn,
    ) -> Result<Deciding<Hold>, Pending> {
        let snapshot = self.node.snapshot();
        let client = peer.map(|peer| self.trusted(&snapshot).client(peer, request.headers()));
        let view = RequestView::of(request, client);
        let Some(route) = snapshot.policy().route(&view) else {
            let (hold, told) = (Hold::default(), None);
            return Ok(Deciding::now(Decided::Allowed { hold, told }));
        };
        let now = match turn {
            Turn::First => came,
            Turn::With(_) | Turn::Last | Turn::Shared(_) => self.node.clock().now(),
        };
        let call = Call {
            request: &view,
            route: &route.id,
            limits: &route.limits,
            permits: 1,
            max_wait: None,
            peek: false,
            now,
        };
        let admission = snapshot.decide_or_wait(&call, came, turn)?;
        Ok(self.follow(admission, now))
    }

    fn follow(&self, admission: Admission<'_>, now: Timestamp) -> Deciding<Hold> {
        let told = admission.told().map(|told| Told {
            limit: Cow::Owned(told.limit.name().to_owned()),
            decision: told.decision,
        });
        let told = match told {
            Some(told) if !admission.is_allowed() => return Deciding::now(Decided::Refused(told)),
            told => told,
        };
        let delay = admission.delay();
        let mut hold = admission.into_hold();
        if delay.is_zero() {
            return Deciding::now(Decided::Allowed { hold, told });
        }
        let sleep = self.timer.sleep_until(now.after(delay));
        Deciding::later(async move {
            sleep.await;
            hold.go_ahead();
            Decided::Allowed { hold, told }
        })
    }
}

impl<P: Send + Sync + 'static> Inner<P> {
    /// Waits for what a request waits for, and asks again.
    async fn wait(
        self: Arc<Self>,
        request: Request<()>,
        peer: Option<IpAddr>,
        came: Timestamp,
        mut pending: Pending,
    ) -> Decided<Hold> {
        loop {
            let turn = pending.wait(&*self.timer).await;
            match self.ask(&request, peer, came, turn) {
                Ok(deciding) => return deciding.await,
                Err(again) => pending = again,
            }
        }
    }
}

impl<B, P> Decide<B> for PolicyLimits<P>
where
    P: Fn(&Request<B>) -> Option<IpAddr> + Send + Sync + 'static,
{
    type Hold = Hold;
    type Deciding = Deciding<Hold>;

    fn decide(&self, request: &Request<B>) -> Deciding<Hold> {
        let inner = &self.0;
        let peer = (inner.peer)(request);
        let came = inner.node.clock().now();
        match inner.ask(request, peer, came, Turn::First) {
            Ok(deciding) => deciding,
            Err(pending) => {
                let request = without_body(request);
                Deciding::later(Arc::clone(inner).wait(request, peer, came, pending))
            }
        }
    }
}

/// What of a request limits look at, for as long as it waits.
fn without_body<B>(request: &Request<B>) -> Request<()> {
    let mut head = Request::new(());
    head.method_mut().clone_from(request.method());
    head.uri_mut().clone_from(request.uri());
    head.headers_mut().clone_from(request.headers());
    head
}

impl<P> Clone for PolicyLimits<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P> fmt::Debug for PolicyLimits<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyLimits").finish_non_exhaustive()
    }
}
