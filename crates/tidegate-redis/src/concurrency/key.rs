//! One key on one node: its machine, who waits for an answer of it, and who holds places.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate::{Decision, Retry, Timestamp, Verdict};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use super::permit::SharedPermit;
use super::{Asked, Event, OnLeaseLost, Places, Request};
use crate::Unavailable;

/// What an asker hears: the decision, and the places where it is a yes.
pub(super) type Outcome = Result<(Decision, Option<SharedPermit>), Unavailable>;

#[derive(Debug)]
pub(super) struct Key {
    /// As callers name it.
    pub(super) name: Box<[u8]>,
    /// `KEYS[1]`.
    pub(super) in_redis: Vec<u8>,
    pub(super) on_lease_lost: OnLeaseLost,
    limit: u64,
    start: Instant,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    places: Box<dyn Places>,
    askers: HashMap<u64, Asker>,
    /// Of each ticket that holds places: tells its permit when they are lost.
    holders: HashMap<u64, watch::Sender<bool>>,
    why_unavailable: Unavailable,
    /// When the task looks again unless it is woken.
    wakes_at: Timestamp,
    /// Nobody drives this key any more.
    gone: bool,
}

#[derive(Debug)]
struct Asker {
    permits: u64,
    answer: oneshot::Sender<Outcome>,
}

/// What there is to do for a key.
#[derive(Debug)]
pub(super) enum Step {
    Call(Request),
    Wait(Timestamp),
    Leave,
}

/// What a key answers to one who asks.
#[derive(Debug)]
pub(super) enum Reply {
    Now(Outcome),
    Soon(Waiter),
    /// It has left the table meanwhile: another has to be asked.
    Gone,
}

impl Key {
    pub(super) fn new(
        name: &[u8],
        in_redis: Vec<u8>,
        (limit, on_lease_lost): (u64, OnLeaseLost),
        places: Box<dyn Places>,
    ) -> Self {
        Self {
            name: name.into(),
            in_redis,
            on_lease_lost,
            limit,
            start: Instant::now(),
            state: Mutex::new(State {
                places,
                askers: HashMap::new(),
                holders: HashMap::new(),
                why_unavailable: Unavailable::Open,
                wakes_at: Timestamp::EPOCH,
                gone: false,
            }),
            changed: Notify::new(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::EPOCH.after(self.start.elapsed())
    }

    pub(super) fn ask(self: &Arc<Self>, permits: u64) -> Reply {
        self.with(|state, now| {
            if state.gone {
                return Reply::Gone;
            }
            match state.places.ask(now, permits) {
                Asked::Granted(ticket) => {
                    let permit = self.permit(state, ticket, permits);
                    Reply::Now(Ok((self.allowed(state), Some(permit))))
                }
                Asked::Denied(retry) => Reply::Now(Ok((self.denied(state, retry), None))),
                Asked::Unavailable => Reply::Now(Err(state.why_unavailable.clone())),
                Asked::Waits(ticket) => {
                    let (answer, outcome) = oneshot::channel();
                    state.askers.insert(ticket, Asker { permits, answer });
                    let key = Arc::clone(self);
                    Reply::Soon(Waiter {
                        key,
                        ticket,
                        outcome,
                    })
                }
            }
        })
    }

    pub(super) fn give_back(self: &Arc<Self>, ticket: u64) {
        self.with(|state, now| {
            state.holders.remove(&ticket);
            state.places.give_back(now, ticket);
        });
    }

    pub(super) fn leave(self: &Arc<Self>) {
        self.with(|state, now| state.places.leave(now));
    }

    /// Whether nobody has places here, or waits for some.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.holders.is_empty() && state.askers.is_empty()
    }

    pub(super) fn lapse(self: &Arc<Self>) {
        self.with(|state, now| state.places.lapse(now));
    }

    pub(super) fn step(self: &Arc<Self>) -> Step {
        self.with(|state, now| {
            let step = match state.places.poll(now) {
                Some(request) => Step::Call(request),
                None => state.places.next().map_or(Step::Leave, Step::Wait),
            };
            state.wakes_at = state.places.next().unwrap_or(Timestamp::MAX);
            step
        })
    }

    pub(super) fn answered(self: &Arc<Self>, answer: Result<Vec<i64>, Unavailable>) {
        self.with(|state, now| match answer {
            Ok(numbers) => {
                state.why_unavailable = Unavailable::BadAnswer(format!("{numbers:?}"));
                state.places.answered(now, Some(&numbers));
            }
            Err(why) => {
                state.why_unavailable = why;
                state.places.answered(now, None);
            }
        });
    }

    /// Waits until it is time to look, or there is a reason to look earlier.
    pub(super) async fn until(&self, at: Timestamp) {
        // tokio's timers reach about two years; nobody waits for so long.
        let wait = at.since(self.now()).min(Duration::from_hours(24));
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.changed.notified() => {}
        }
    }

    /// Until when a lease lasts, while a call is under way.
    pub(super) fn next(&self) -> Timestamp {
        self.lock().places.next().unwrap_or(Timestamp::MAX)
    }

    /// Marks it as gone if nothing is held, owed or known; the table is locked meanwhile.
    pub(super) fn leave_if_idle(&self) -> bool {
        let mut state = self.lock();
        state.gone = state.places.next().is_none();
        state.gone
    }

    /// Nobody drives it any more: whoever waits hears so, and whoever holds places has lost them.
    pub(super) fn abandon(&self) {
        let (askers, holders) = {
            let mut state = self.lock();
            state.gone = true;
            (
                std::mem::take(&mut state.askers),
                std::mem::take(&mut state.holders),
            )
        };
        drop((askers, holders));
    }

    /// Does something, and tells everybody whom it concerns when the lock is free again.
    fn with<R>(self: &Arc<Self>, what: impl FnOnce(&mut State, Timestamp) -> R) -> R {
        let mut state = self.lock();
        let now = self.now();
        let result = what(&mut state, now);
        let told = self.tell(&mut state, now);
        let next = state.places.next();
        let is_earlier = next.is_some_and(|next| next < state.wakes_at);
        drop(state);
        for (asker, outcome) in told {
            // One who has gone drops its permit here, which gives it back.
            drop(asker.send(outcome));
        }
        if is_earlier {
            self.changed.notify_one();
        }
        result
    }

    fn tell(
        self: &Arc<Self>,
        state: &mut State,
        now: Timestamp,
    ) -> Vec<(oneshot::Sender<Outcome>, Outcome)> {
        let mut told = Vec::new();
        for event in state.places.take_events() {
            let ticket = match event {
                Event::Lost(ticket) => {
                    if let Some(holder) = state.holders.get(&ticket) {
                        holder.send_replace(true);
                    }
                    continue;
                }
                Event::Granted(ticket) | Event::Denied(ticket) | Event::Unavailable(ticket) => {
                    ticket
                }
            };
            let Some(Asker { permits, answer }) = state.askers.remove(&ticket) else {
                state.places.give_back(now, ticket);
                continue;
            };
            let outcome = match event {
                Event::Granted(_) => {
                    let permit = self.permit(state, ticket, permits);
                    Ok((self.allowed(state), Some(permit)))
                }
                Event::Unavailable(_) => Err(state.why_unavailable.clone()),
                _ => Ok((self.denied(state, Retry::OnRelease), None)),
            };
            told.push((answer, outcome));
        }
        told
    }

    fn permit(self: &Arc<Self>, state: &mut State, ticket: u64, permits: u64) -> SharedPermit {
        let (holder, lost) = watch::channel(false);
        state.holders.insert(ticket, holder);
        SharedPermit::new(Arc::clone(self), ticket, permits, lost)
    }

    fn allowed(&self, state: &State) -> Decision {
        let delay = Duration::ZERO;
        self.decision(state, Verdict::Allowed { delay })
    }

    fn denied(&self, state: &State, retry: Retry) -> Decision {
        self.decision(state, Verdict::Denied { retry })
    }

    fn decision(&self, state: &State, verdict: Verdict) -> Decision {
        Decision {
            verdict,
            limit: self.limit,
            remaining: state.places.remaining().min(self.limit),
            reset_after: Duration::ZERO,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who waits for an answer. Dropped before, it takes nothing, or gives back.
#[derive(Debug)]
pub(super) struct Waiter {
    key: Arc<Key>,
    ticket: u64,
    outcome: oneshot::Receiver<Outcome>,
}

impl Waiter {
    pub(super) async fn wait(mut self) -> Outcome {
        (&mut self.outcome)
            .await
            .unwrap_or_else(|_| Err(no_runtime()))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let ticket = self.ticket;
        self.key.with(|state, now| {
            // Else it has been answered, and what it got gives itself back.
            if state.askers.remove(&ticket).is_some() {
                state.places.give_back(now, ticket);
            }
        });
    }
}

pub(super) fn no_runtime() -> Unavailable {
    Unavailable::Server("the runtime that makes the calls has ended".to_owned())
}
