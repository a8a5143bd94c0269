//! Answers of the gateway's own: refusals and problems. And the limits' say in any answer.

use std::rc::Rc;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Incoming};
use tidegate::Timestamp;
use tidegate_http::debug_field::DEBUG;
use tidegate_http::{PROBLEM_JSON, Problem, headers};
use tidegate_node::Admission;
use tidegate_policy::{LimitHeaders, Reset};

use crate::body::ResponseBody;
use crate::client::Client;
use crate::fault::Fault;
use crate::phrases::Phrases;
use crate::settings::Settings;

/// An answer that has not been tied to a client connection yet.
pub(crate) type Local = Response<Bytes>;

/// The longest body of an answered request that is read to keep the connection.
const MAX_DISCARD: u64 = 64 * 1024;

/// A problem as an answer.
pub(crate) fn problem(problem: &Problem<'_>) -> Local {
    problem_of(problem.status(), Bytes::from(problem.to_json()))
}

fn problem_of(status: StatusCode, body: Bytes) -> Local {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    // Room for what a refusal says, at once.
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    *response.headers_mut() = headers;
    response
}

/// What is wrong with a request, as an answer.
pub(crate) fn fault(fault: &Fault) -> Local {
    problem(&Problem::of(fault.status).detail(fault.detail))
}

/// The refusal of a request by its limits.
pub(crate) fn refusal(
    admission: &Admission<'_>,
    fields: LimitFields,
    settings: &Settings,
) -> Local {
    let Some(told) = admission.told() else {
        return problem(&Problem::of(Phrases::REFUSED));
    };
    if let Some(part) = admission.missing_part() {
        let name = told.limit.name();
        let detail = format!("`{name}` counts by `{part}`, and this request has none");
        let problem = Problem::quota_exceeded(Phrases::REFUSED, [name], name, &told.decision);
        let mut response = self::problem(&problem.detail(detail));
        fields.add_debug_to(response.headers_mut());
        return response;
    }
    let refusal = settings.phrases.refusal(admission.applied(), told);
    let mut response = problem_of(Phrases::REFUSED, refusal.body);
    fields.add_to(response.headers_mut());
    if let Some(seconds) = refusal.retry_after.filter(|_| settings.headers.retry_after) {
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}

/// What the limits that a request met say in the header of its answer.
#[derive(Debug, Default)]
pub(crate) struct LimitFields {
    rate_limit: Option<(HeaderValue, Option<HeaderValue>)>,
    /// By default there are none.
    others: Option<Box<Others>>,
}

/// Fields that not every policy, or not every client, asks for.
#[derive(Debug, Default)]
struct Others {
    older: Vec<(HeaderName, HeaderValue)>,
    debug: Option<HeaderValue>,
}

impl LimitFields {
    /// At the time `now`.
    pub(crate) fn of(admission: &Admission<'_>, settings: &Settings, now: Timestamp) -> Self {
        let Some(told) = admission.told() else {
            return Self::default();
        };
        let rate_limit = settings.headers.rate_limit.then(|| {
            let rate_limit = headers::rate_limit(told.limit.name(), &told.decision);
            (rate_limit, settings.phrases.policy(admission.applied()))
        });
        let LimitHeaders {
            rate_limit_draft_6,
            x_rate_limit,
            x_rate_limit_reset,
            ..
        } = settings.headers;
        let mut fields = Self {
            rate_limit,
            others: None,
        };
        if rate_limit_draft_6 {
            let older = &mut fields.others().older;
            older.extend(headers::rate_limit_draft_6(&told.decision));
        }
        if x_rate_limit {
            fields.others().older.extend(match x_rate_limit_reset {
                Reset::Seconds => headers::x_rate_limit(&told.decision),
                Reset::Epoch => headers::x_rate_limit_epoch(&told.decision, now),
            });
        }
        fields
    }

    fn others(&mut self) -> &mut Others {
        self.others.get_or_insert_default()
    }

    /// Tells somebody who has asked, and may, what each limit said.
    pub(crate) fn debug(&mut self, said: HeaderValue) {
        self.others().debug = Some(said);
    }

    fn add_debug_to(&self, answer: &mut HeaderMap) {
        if let Some(said) = self.others.as_ref().and_then(|others| others.debug.clone()) {
            answer.insert(DEBUG, said);
        }
    }

    /// Adds the fields to an answer. `RateLimit` and `RateLimit-Policy` are lists: an upstream
    /// that limits too keeps its say.
    pub(crate) fn add_to(self, answer: &mut HeaderMap) {
        self.add_debug_to(answer);
        if let Some((rate_limit, policy)) = self.rate_limit {
            answer.append(headers::RATE_LIMIT, rate_limit);
            if let Some(policy) = policy {
                answer.append(headers::RATE_LIMIT_POLICY, policy);
            }
        }
        for (name, value) in self.others.into_iter().flat_map(|others| others.older) {
            answer.insert(name, value);
        }
    }
}

/// The answer to a request without what an upstream would say; `body` is the request's, if
/// nobody has begun to read it.
///
/// A small body is read and dropped, so that the connection can be used again; that has the
/// time until the connection counts as idle. A longer one, one that the client has not begun
/// to send (`Expect: 100-continue`), and one that was lost halfway end the connection after the
/// answer, which says so.
pub(crate) fn instead_of(
    body: Option<Incoming>,
    client: &Rc<Client>,
    mut answer: Local,
) -> Response<ResponseBody> {
    if let Some(body) = body.filter(|body| !body.is_end_stream()) {
        if client.awaits_100.get() || body.size_hint().lower() > MAX_DISCARD {
            client.linger.set(true);
        } else {
            tokio::task::spawn_local(discard(body, Rc::clone(client)));
        }
    }
    if client.linger.get() {
        answer
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let kind = answer.headers().get(CONTENT_TYPE);
    let is_problem = kind.is_some_and(|kind| kind == PROBLEM_JSON);
    answer.map(|mut bytes| {
        if is_problem {
            bytes = client.id.in_problem(bytes);
        }
        ResponseBody::full(bytes, Rc::clone(client))
    })
}

async fn discard(body: Incoming, client: Rc<Client>) {
    let mut body = Limited::new(body, MAX_DISCARD as usize);
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            client.linger.set(true);
            break;
        }
    }
}
