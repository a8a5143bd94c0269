//! One request, from its header to the answer's.

use std::io;
use std::rc::Rc;

use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::{Body, Incoming};
use tidegate::Timestamp;
use tidegate_http::Problem;
use tidegate_node::{Call, Hold};

use crate::answer::{self, LimitFields};
use crate::body::{BodyTimeouts, RequestBody, ResponseBody};
use crate::client::Client;
use crate::echo;
use crate::forward::{self, Origin};
use crate::settings::Settings;
use crate::upstream::{Failure, Lease, Servers, Upstream};
use crate::vet::vet;
use crate::view::RequestView;
use crate::watch::Late;

/// A request that may go ahead.
struct Passage {
    settings: Rc<Settings>,
    upstream: Rc<Upstream>,
    trusted: bool,
    fields: LimitFields,
    hold: Hold,
    wait_until: Option<Timestamp>,
}

/// Answers one request.
pub(crate) async fn answer(
    client: &Rc<Client>,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    client.watch.hold();
    let (parts, body) = request.into_parts();
    client.awaits_100.set(parts.headers.contains_key(EXPECT));
    let response = match decide(client, &parts) {
        Ok(passage) => pass(client, passage, parts, body).await,
        Err(refusal) => {
            let mut refusal = answer::finish(client, refusal);
            answer::discard(client, body, &mut refusal);
            refusal
        }
    };
    client.core.counters.response(response.status());
    response
}

/// Whether, where to and under which limits a request goes; nothing here waits.
#[expect(
    clippy::result_large_err,
    reason = "a refusal is no rare case to be boxed"
)]
fn decide(client: &Client, parts: &Parts) -> Result<Passage, answer::Local> {
    let core = &client.core;
    let snapshot = core.node.snapshot();
    let settings = core.settings_of(&snapshot);
    vet(parts, settings.max_headers)
        .map_err(|fault| answer::problem(&Problem::of(fault.status).detail(fault.detail)))?;
    let client_ip = settings.trusted.client(client.peer, &parts.headers);
    let view = RequestView::new(parts, Some(client_ip));
    let Some(route) = snapshot.policy().route(&view) else {
        let problem = Problem::of(StatusCode::NOT_FOUND);
        return Err(answer::problem(
            &problem.detail("no route matches this request"),
        ));
    };
    let now = core.node.clock().now();
    let admission = snapshot.decide(&Call {
        request: &view,
        route: &route.id,
        limits: &route.limits,
        permits: 1,
        max_wait: None,
        peek: false,
        now,
    });
    let fields = LimitFields::of(&admission, &settings);
    if !admission.is_allowed() {
        core.counters.refused.add(1);
        return Err(answer::refusal(&admission, fields));
    }
    let delay = admission.delay();
    Ok(Passage {
        upstream: Rc::clone(&settings.upstreams[route.upstream]),
        trusted: settings.trusted.contains(client.peer),
        settings,
        fields,
        hold: admission.into_hold(),
        wait_until: (!delay.is_zero()).then(|| now.after(delay)),
    })
}

/// Sends a request on, after the delay that its limits impose, and brings the answer back.
async fn pass(
    client: &Rc<Client>,
    mut passage: Passage,
    mut parts: Parts,
    body: Incoming,
) -> Response<ResponseBody> {
    if let Some(at) = passage.wait_until {
        client.core.timer.sleep_until(at).await;
        passage.hold.go_ahead();
    }
    let origin = Origin {
        peer: &client.peer_text,
        trusted: passage.trusted,
    };
    forward::rewrite_request(&mut parts.uri, &mut parts.headers, &origin);
    let mut response = match &*passage.upstream {
        Upstream::Echo => {
            let mut echo = answer::finish(client, echo::answer(&parts));
            answer::discard(client, body, &mut echo);
            echo
        }
        Upstream::Servers(servers) => {
            let body =
                RequestBody::new(body, Rc::clone(client), passage.settings.timeouts.response);
            let request = outgoing(parts, body);
            match exchange(client, &passage.settings, servers, request).await {
                Ok(response) => response,
                Err((local, body)) => {
                    let mut local = answer::finish(client, local);
                    match body {
                        Some(body) => answer::discard(client, body.into_incoming(), &mut local),
                        None => client.linger.set(true),
                    }
                    local
                }
            }
        }
    };
    passage.fields.add_to(response.headers_mut());
    response.body_mut().keep(passage.hold);
    response
}

fn outgoing(mut parts: Parts, body: RequestBody) -> Request<RequestBody> {
    parts.version = Version::HTTP_11;
    parts.extensions.clear();
    if !body.is_end_stream() && !parts.headers.contains_key(CONTENT_LENGTH) {
        // Said outright, because hyper takes it that a GET has no body.
        parts
            .headers
            .insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    Request::from_parts(parts, body)
}

/// What to answer where no server did, and the request's body if it is untouched.
type Unanswered = (answer::Local, Option<RequestBody>);

/// Sends `request` to one of `servers`, and brings its answer.
///
/// A request goes over another connection only where hyper says that nothing of it was sent:
/// a pooled connection turned out to be closed. Anything else might happen twice.
async fn exchange(
    client: &Rc<Client>,
    settings: &Settings,
    servers: &Servers,
    mut request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, Unanswered> {
    /// New connections that are closed before a request can be put on them, one after another.
    const MAX_STILLBORN: u32 = 2;
    let counters = &client.core.counters;
    let mut stillborn = 0;
    loop {
        client.watch.hold();
        let mut lease = match servers.connect(settings.timeouts.connect).await {
            Ok(lease) => lease,
            Err(error) => return Err((no_server(servers, &error), Some(request.into_body()))),
        };
        client.watch.expect_response(settings.timeouts.response);
        match lease.connection().send(request, &client.watch).await {
            Ok(response) => {
                counters.upstream_requests.add(1);
                return relay(client, settings, servers, response, lease);
            }
            Err(Failure::Unsent(back)) => {
                counters.upstream_retries.add(1);
                request = *back;
                stillborn += u32::from(!lease.pooled);
                if stillborn == MAX_STILLBORN {
                    let detail = "closes its connections at once";
                    return Err((bad_gateway(servers, detail), Some(request.into_body())));
                }
            }
            Err(Failure::Broken(error)) => {
                counters.upstream_requests.add(1);
                tracing::debug!(upstream = servers.name(), %error, "no answer");
                if error.is_user() {
                    // The body that we sent on ended too soon: the client has gone.
                    let problem = Problem::of(StatusCode::BAD_REQUEST);
                    let problem = problem.detail("the request's body did not end");
                    return Err((answer::problem(&problem), None));
                }
                counters.upstream_broken.add(1);
                let detail = "broke off before it answered, or answered with what is no HTTP";
                return Err((bad_gateway(servers, detail), None));
            }
            Err(Failure::Late(late)) => {
                counters.upstream_requests.add(1);
                if late == Late::Upstream {
                    counters.upstream_timeouts.add(1);
                }
                return Err((too_late(servers, late), None));
            }
        }
    }
}

/// Makes a server's answer ours.
#[expect(
    clippy::result_large_err,
    reason = "passed on as it is by the only caller"
)]
fn relay(
    client: &Rc<Client>,
    settings: &Settings,
    servers: &Servers,
    response: Response<Incoming>,
    lease: Lease,
) -> Result<Response<ResponseBody>, Unanswered> {
    let (mut parts, incoming) = response.into_parts();
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        client.core.counters.upstream_broken.add(1);
        return Err((bad_gateway(servers, "switched protocols unasked"), None));
    }
    parts.version = Version::HTTP_11;
    parts.extensions.clear();
    forward::strip_hop_by_hop(&mut parts.headers);
    let timeouts = BodyTimeouts {
        piece: settings.timeouts.response,
        idle: settings.timeouts.idle,
    };
    let body = ResponseBody::upstream(incoming, lease, Rc::clone(client), timeouts);
    Ok(Response::from_parts(parts, body))
}

fn no_server(servers: &Servers, error: &io::Error) -> answer::Local {
    let timed_out = error.kind() == io::ErrorKind::TimedOut;
    let status = if timed_out {
        StatusCode::GATEWAY_TIMEOUT
    } else {
        StatusCode::BAD_GATEWAY
    };
    let detail = format!(
        "no server of upstream `{}` can be connected to",
        servers.name()
    );
    answer::problem(&Problem::of(status).detail(detail))
}

fn bad_gateway(servers: &Servers, what: &str) -> answer::Local {
    let detail = format!("a server of upstream `{}` {what}", servers.name());
    answer::problem(&Problem::of(StatusCode::BAD_GATEWAY).detail(detail))
}

fn too_late(servers: &Servers, late: Late) -> answer::Local {
    let problem = match late {
        Late::Client => Problem::of(StatusCode::REQUEST_TIMEOUT)
            .detail("the request's body did not come in time"),
        Late::Upstream => Problem::of(StatusCode::GATEWAY_TIMEOUT).detail(format!(
            "a server of upstream `{}` did not answer in time",
            servers.name()
        )),
    };
    answer::problem(&problem)
}
