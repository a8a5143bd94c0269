//! One request, from its header to the answer's.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::rc::Rc;

use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use tidegate::Timestamp;
use tidegate_http::Problem;
use tidegate_http::debug_field::DEBUG;
use tidegate_node::{Call, Hold, Pending, Turn};
use tidegate_policy::Denial;

use crate::access_log::Record;
use crate::answer::{self, LimitFields};
use crate::body::{RequestBody, ResponseBody};
use crate::body_pace::Pacers;
use crate::client::Client;
use crate::debug;
use crate::echo;
use crate::fault::Fault;
use crate::forward::{self, Origin};
use crate::refusal::{Outcome, Refusal, Refusals};
use crate::settings::Settings;
use crate::upstream::{Failure, Lease, Servers, Upstream};
use crate::vet::{vet, vet_response};
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
    /// What holds its bodies back, if something does.
    pacers: Option<Box<Pacers>>,
}

/// Answers one request.
pub(crate) async fn answer(
    client: Rc<Client>,
    mut request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Infallible> {
    let client = &client;
    let admitted = match client.begin(&request) {
        Ok(()) => admit(client, &request).await,
        Err(fault) => {
            client.log.unreadable(&client.core.settings(), fault.status);
            Err(answer::fault(&fault))
        }
    };
    let mut response = match admitted {
        Err(refusal) => answer::instead_of(Some(request.into_body()), client, refusal),
        Ok(mut passage) => {
            if let Some(at) = passage.wait_until {
                client.core.timer.sleep_until(at).await;
                passage.hold.go_ahead();
            }
            let origin = Origin {
                peer: &client.peer_text,
                trusted: passage.trusted,
                upstream: passage.upstream.host(),
            };
            forward::rewrite_request(&mut request, &origin);
            client.id.add_to(request.headers_mut());
            if passage.settings.debug_header.is_some() {
                // There may be a token in it.
                request.headers_mut().remove(DEBUG);
            }
            let mut response = match &*passage.upstream {
                Upstream::Echo => {
                    let echo = echo::answer(&request);
                    answer::instead_of(Some(request.into_body()), client, echo)
                }
                Upstream::Servers(servers) => {
                    let pacers = passage.pacers.as_mut();
                    let pacer = pacers.and_then(|pacers| pacers.request.take());
                    let with_body = |body| RequestBody::new(body, Rc::clone(client), pacer);
                    let mut request = Some(request.map(with_body));
                    exchange(client, &passage.settings, servers, &mut request).await
                }
            };
            passage.fields.add_to(response.headers_mut());
            response.body_mut().keep(passage.hold);
            if let Some(pacers) = passage.pacers {
                pacers.pace(&mut response);
            }
            response
        }
    };
    if client.is_last_answer() {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    client.core.counters.response(response.status());
    client.id.add_to(response.headers_mut());
    client.log.note(|record| record.answers(response.status()));
    response.body_mut().ends_request();
    Ok(response)
}

/// Whether, where to and under which limits a request goes. It waits in line for places.
async fn admit(client: &Client, request: &Request<Incoming>) -> Result<Passage, answer::Local> {
    let came = client.core.node.clock().now();
    let mut turn = Turn::First;
    loop {
        match decide(client, request, came, turn) {
            Decided::Goes(passage) => return Ok(passage),
            Decided::Answered(answer) => return Err(answer),
            Decided::Refused(refused) => return refuse(client, *refused).await,
            Decided::Waits(pending) => turn = pending.wait(&*client.core.timer).await,
        }
    }
}

/// Keeps a refused request waiting, where its limit wants that, and says what becomes of it then.
async fn refuse(client: &Client, refused: RefusedRequest) -> Result<Passage, answer::Local> {
    let RefusedRequest { refusal, settings } = refused;
    if let Some(wait) = refusal.wait {
        client.core.timer.sleep_until(wait.until).await;
    }
    match refusal.outcome {
        Outcome::Answered(answer) => Err(answer),
        Outcome::Degraded(upstream, fields) => Ok(Passage {
            upstream: Rc::clone(&settings.upstreams[upstream]),
            trusted: settings.trusted.contains(client.peer),
            settings,
            fields,
            hold: Hold::default(),
            wait_until: None,
            pacers: None,
        }),
    }
}

/// A request that its limits refuse.
struct RefusedRequest {
    refusal: Refusal,
    settings: Rc<Settings>,
}

/// What became of a request this time.
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is the usual one, and would be an allocation"
)]
enum Decided {
    Goes(Passage),
    /// At once, by the gateway itself.
    Answered(answer::Local),
    /// It is kept waiting first, or another upstream answers it.
    Refused(Box<RefusedRequest>),
    Waits(Pending),
}

impl Decided {
    /// By its limits. What nearly all get needs no allocation for the others' sake.
    fn refused(refusal: Refusal, settings: Rc<Settings>) -> Self {
        match refusal {
            Refusal {
                wait: None,
                outcome: Outcome::Answered(answer),
            } => Self::Answered(answer),
            refusal => Self::Refused(Box::new(RefusedRequest { refusal, settings })),
        }
    }
}

/// Decides, at once.
fn decide(client: &Client, request: &Request<Incoming>, came: Timestamp, turn: Turn) -> Decided {
    let core = &client.core;
    let snapshot = core.node.snapshot();
    let settings = core.settings_of(&snapshot);
    if let Turn::First = turn {
        client.note(request, &settings);
    }
    if let Err(fault) = vet(request.headers()) {
        return Decided::Answered(answer::fault(&fault));
    }
    let client_ip = settings.trusted.client(client.peer, request.headers());
    let view = RequestView::of(request, Some(client_ip));
    let policy = snapshot.policy();
    let access = policy.gateway.as_ref().map(|gateway| &gateway.access);
    let denial = access.and_then(|access| access.denial(&view, ""));
    let route = policy.route(&view);
    let id = route.map(|route| route.id.as_str());
    client.log.note(|record| record.takes(client_ip, id));
    if let Some(denial) = denial {
        return deny(client, denial);
    }
    let Some(route) = route else {
        let problem = Problem::of(StatusCode::NOT_FOUND);
        let problem = problem.detail("no route matches this request");
        return Decided::Answered(answer::problem(&problem));
    };
    if let Some(denial) = route.access.denial(&view, &route.id) {
        return deny(client, denial);
    }
    let now = match turn {
        Turn::First => came,
        Turn::With(_) | Turn::Last | Turn::Shared(_) => core.node.clock().now(),
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
    let admission = match snapshot.decide_or_wait(&call, came, turn) {
        Ok(admission) => admission,
        Err(pending) => {
            client.log.note(Record::waits);
            return Decided::Waits(pending);
        }
    };
    client.log.note(|record| record.decided(&admission));
    let mut fields = LimitFields::of(&admission, &settings, now);
    if let Some(who) = &settings.debug_header
        && debug::may_ask(who, request.headers(), client_ip)
    {
        fields.debug(debug::answer(&route.id, &admission));
    }
    if !admission.is_allowed() {
        core.counters.refused.add(1);
        let refusal = Refusals::of(request, &admission, fields, &settings, core.node.clock());
        return Decided::refused(refusal, settings);
    }
    let delay = admission.delay();
    Decided::Goes(Passage {
        upstream: Rc::clone(&settings.upstreams[route.upstream]),
        trusted: settings.trusted.contains(client.peer),
        settings,
        fields,
        pacers: Pacers::of(&admission),
        hold: admission.into_hold(),
        wait_until: (!delay.is_zero()).then(|| now.after(delay)),
    })
}

/// Answers a request that may not come in.
fn deny(client: &Client, denial: Denial<'_>) -> Decided {
    client.core.counters.denied.add(1);
    let detail = match denial {
        Denial::Denied(part) => format!("its `{part}` may not come in"),
        Denial::NotAllowed => "only some may come in, and this is none of them".to_owned(),
    };
    let problem = Problem::of(StatusCode::FORBIDDEN).detail(detail);
    Decided::Answered(answer::problem(&problem))
}

/// Sends `request`, which is there, to one of `servers`, and brings its answer, or says why
/// there is none.
///
/// A request goes over another connection only where hyper says that nothing of it was sent:
/// a pooled connection turned out to be closed. Anything else might happen twice; what may, is sent
/// again by the connection itself.
async fn exchange(
    client: &Rc<Client>,
    settings: &Settings,
    servers: &Servers,
    request: &mut Option<Request<RequestBody>>,
) -> Response<ResponseBody> {
    /// New connections that are closed before a request can be put on them, one after another.
    const MAX_STILLBORN: u32 = 2;
    let counters = &client.core.counters;
    let mut stillborn = 0;
    let failure = loop {
        client.watch.hold();
        client.log.note(|record| record.asks(servers.name()));
        let connected = servers.connect(settings.timeouts.connect).await;
        let untouched = request
            .take()
            .expect("given by the caller, or put back below");
        let mut lease = match connected {
            Ok(lease) => lease,
            Err(error) => {
                let body = untouched.into_body().take_back();
                return answer::instead_of(body, client, no_server(servers, &error));
            }
        };
        client.log.note(|record| record.asks_server(lease.server()));
        client.watch.expect_response(&settings.timeouts);
        let started = pin!(lease.start(untouched, settings.timeouts.connect));
        match lease.connection().response(started, &client.watch).await {
            Ok(response) => {
                counters.upstream_requests.add(1);
                client.log.note(Record::server_answers);
                match vet_response(&response) {
                    Ok(()) => return relay(client, response, lease),
                    Err(fault) => {
                        counters.upstream_broken.add(1);
                        break bad_gateway(servers, fault);
                    }
                }
            }
            Err(Failure::Unsent(back)) => {
                counters.upstream_retries.add(1);
                stillborn += u32::from(!lease.pooled);
                if stillborn == MAX_STILLBORN {
                    let body = back.into_body().take_back();
                    let problem = bad_gateway(servers, "closes its connections at once");
                    return answer::instead_of(body, client, problem);
                }
                *request = Some(*back);
            }
            Err(failure) => {
                counters.upstream_requests.add(1);
                break failed(client, servers, &failure);
            }
        }
    };
    answer::instead_of(None, client, failure)
}

/// Makes a server's answer ours.
fn relay(
    client: &Rc<Client>,
    mut response: Response<Incoming>,
    lease: Lease,
) -> Response<ResponseBody> {
    forward::rewrite_response(&mut response);
    response.map(|incoming| ResponseBody::upstream(incoming, lease, Rc::clone(client)))
}

/// What to say, and count, of an exchange that failed after it had begun.
fn failed(client: &Client, servers: &Servers, failure: &Failure) -> answer::Local {
    let counters = &client.core.counters;
    tracing::debug!(upstream = servers.name(), ?failure, "no answer");
    match failure {
        Failure::Late(Late::Client) => answer::problem(
            &Problem::of(StatusCode::REQUEST_TIMEOUT)
                .detail("the request's body did not come in time"),
        ),
        Failure::Late(Late::Upstream) => {
            counters.upstream_timeouts.add(1);
            let detail = format!(
                "a server of upstream `{}` did not answer in time",
                servers.name()
            );
            answer::problem(&Problem::of(StatusCode::GATEWAY_TIMEOUT).detail(detail))
        }
        // The body that was sent on ended too soon.
        Failure::Broken(error) if error.is_user() => {
            const NO_END: Fault = Fault::bad("the request's body did not end");
            answer::fault(&client.body_fault().unwrap_or(NO_END))
        }
        Failure::Broken(_) | Failure::Unsent(_) => {
            counters.upstream_broken.add(1);
            bad_gateway(
                servers,
                "broke off before it answered, or answered with what is no HTTP",
            )
        }
    }
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
