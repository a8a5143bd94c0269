//! What becomes of a request that its limits refuse: an answer, or another upstream.

use std::collections::HashMap;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, Request, StatusCode};
use tidegate::{Clock, Permit, Timestamp};
use tidegate_http::headers;
use tidegate_node::{Admission, Applied};
use tidegate_policy::{Action, Policy};
use tidegate_tower::{Answer, Refused};

use crate::answer::{self, LimitFields, Local};
use crate::phrases::Phrases;
use crate::settings::Settings;

/// What each limit of a policy does with the requests that it refuses, where it does anything
/// special.
#[derive(Debug, Default)]
pub(crate) struct Refusals(HashMap<Box<str>, What>);

#[derive(Debug)]
enum What {
    Answer(Answer),
    Upstream(usize),
}

/// What becomes of a request that is refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// How it is kept waiting first.
    pub(crate) wait: Option<Wait>,
    pub(crate) outcome: Outcome,
}

/// What happens after that.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is answered.
    Answered(Local),
    /// This upstream of the policy answers it.
    Degraded(usize, LimitFields),
}

/// A place in the tarpit of a limit.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) until: Timestamp,
    _place: Permit<'static>,
}

impl Refusals {
    pub(crate) fn new(policy: &Policy) -> Self {
        let limits = policy.limits.iter();
        let special = limits.filter_map(|rule| {
            let what = match &rule.on_limit.as_ref()?.action {
                Action::Answer(answer) => What::Answer(answer_of(answer)),
                Action::Redirect { status, to } => {
                    What::Answer(Answer::redirect(status_of(*status), to.clone()))
                }
                Action::Upstream(index) => What::Upstream(*index),
            };
            Some((Box::from(rule.limit.name()), what))
        });
        Self(special.collect())
    }

    /// What becomes of `request`, which `admission` refuses.
    pub(crate) fn of<B>(
        request: &Request<B>,
        admission: &Admission<'_>,
        fields: LimitFields,
        settings: &Settings,
        clock: &impl Clock,
    ) -> Refusal {
        let Some(told) = admission.told() else {
            let outcome = Outcome::Answered(answer::refusal(admission, fields, settings));
            return Refusal {
                wait: None,
                outcome,
            };
        };
        let what = told.limit.rule().on_limit.as_ref();
        let what = what.and_then(|_| settings.refusals.0.get(told.limit.name()));
        let outcome = match what {
            None => Outcome::Answered(answer::refusal(admission, fields, settings)),
            Some(What::Upstream(index)) => Outcome::Degraded(*index, fields),
            Some(What::Answer(answer)) => {
                Outcome::Answered(answered(answer, request, told, fields))
            }
        };
        let wait = wait(told, clock);
        Refusal { wait, outcome }
    }
}

/// An answer of the policy's own, with what the limit says.
fn answered<B>(
    answer: &Answer,
    request: &Request<B>,
    told: &Applied<'_>,
    fields: LimitFields,
) -> Local {
    let refused = Refused {
        limit: told.limit.name(),
        decision: &told.decision,
    };
    let mut response = answer.response(request.headers(), request.uri(), refused);
    fields.add_to(response.headers_mut());
    if let Some(seconds) = headers::retry_after(&told.decision) {
        response.headers_mut().entry(RETRY_AFTER).or_insert(seconds);
    }
    response
}

/// A place in the tarpit, where the limit has one and it is not full.
fn wait(told: &Applied<'_>, clock: &impl Clock) -> Option<Wait> {
    let tarpit = told.limit.tarpit()?;
    let delay = told.limit.rule().on_limit.as_ref()?.tarpit?.delay;
    let (_, place) = tarpit.try_acquire(1);
    Some(Wait {
        until: clock.now().after(delay),
        _place: place?.into_owned(),
    })
}

fn answer_of(answer: &tidegate_policy::Answer) -> Answer {
    let mut made = Answer::new(status_of(answer.status));
    for (name, value) in &answer.headers {
        // Policies are held to what can be sent.
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            made = made.header(name, value);
        }
    }
    for page in &answer.pages {
        if let Ok(content_type) = page.content_type.parse::<HeaderValue>() {
            made = made.page(content_type, Bytes::copy_from_slice(&page.body));
        }
    }
    made
}

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(Phrases::REFUSED)
}
