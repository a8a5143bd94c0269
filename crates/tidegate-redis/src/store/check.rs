//! Several limits of all kinds, asked as one.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{
    Ask, Decision, SharedAnswers, SharedAsk, SharedLimit, SharedTaken, Unavailable as NotReached,
    Verdict,
};

use super::Inner;
use super::kept::Kept;
use super::taken::Taken;
use crate::concurrency::SharedConcurrency;
use crate::exact::{CheckFailed, ExactLimiter, ExactReceipt};
use crate::key::Subject;
use crate::leased::{AutoLimiter, LeaseMode, LeaseState, LeasedLimiter, Lot};

/// What one limit said.
type Said = Result<Decision, NotReached>;

/// The answers so far, in the order of the asks.
struct Answers {
    said: Vec<Option<Said>>,
    is_refused: bool,
}

impl Answers {
    fn say(&mut self, at: usize, said: Said) {
        self.is_refused |= matches!(&said, Ok(decision) if decision.is_denied());
        self.said[at] = Some(said);
    }
}

impl Inner {
    pub(super) async fn check_all(&self, asks: &[SharedAsk]) -> SharedAnswers {
        let mut answers = Answers {
            said: vec![None; asks.len()],
            is_refused: false,
        };
        // Dropped before it is kept, it goes back.
        let mut taken = Taken::new(self.exact.clone(), self.runtime.clone());
        let (mut leased, mut places, mut exact) = (Vec::new(), Vec::new(), Vec::new());
        let mut auto = Vec::new();
        for (at, ask) in asks.iter().enumerate() {
            match self.limiters.of(&ask.limit) {
                Ok(Kept::Leased(limiter)) => leased.push((at, limiter)),
                Ok(Kept::Auto(limiter)) => auto.push((at, limiter)),
                Ok(Kept::Places(limiter)) => places.push((at, limiter)),
                Ok(Kept::Exact(limiter)) => exact.push((at, limiter)),
                Err(why) => answers.say(at, Err(NotReached::new(why))),
            }
        }
        for (at, limiter) in leased {
            if answers.is_refused {
                break;
            }
            let (said, lease) = check_leased(limiter, &asks[at]).await;
            taken.leases.extend(lease);
            answers.say(at, said);
        }
        for (at, limiter) in places {
            if answers.is_refused {
                break;
            }
            let ask = &asks[at];
            match limiter
                .try_acquire(subject(ask).as_str().as_bytes(), ask.ask.permits())
                .await
            {
                Ok((decision, permit)) => {
                    taken.places.extend(permit);
                    answers.say(at, Ok(decision));
                }
                Err(why) => answers.say(at, Err(NotReached::new(why.to_string()))),
            }
        }
        for (at, limiter) in auto {
            if answers.is_refused {
                break;
            }
            let said = check_auto(limiter, &asks[at], &mut taken).await;
            answers.say(at, said);
        }
        self.check_exact(asks, exact, &mut answers, &mut taken)
            .await;
        let has_taken = !answers.is_refused && !taken.is_empty();
        let said = answers.said.into_iter().zip(asks);
        SharedAnswers {
            decisions: said
                .map(|(said, ask)| said.unwrap_or_else(|| Ok(not_asked(&ask.limit))))
                .collect(),
            taken: has_taken.then(|| Box::new(taken.keep()) as Box<dyn SharedTaken>),
        }
    }

    /// Those that ask the same are decided as one, the others one after the other.
    async fn check_exact(
        &self,
        asks: &[SharedAsk],
        mut rest: Vec<(usize, ExactLimiter)>,
        answers: &mut Answers,
        taken: &mut Taken,
    ) {
        while let Some((first, _)) = rest.first().filter(|_| !answers.is_refused) {
            let ask = asks[*first].ask;
            let same: Vec<_>;
            (same, rest) = rest.into_iter().partition(|(at, _)| asks[*at].ask == ask);
            match self.check_same(asks, &same, ask).await {
                Ok((said, receipts)) => {
                    taken.receipts.extend(receipts);
                    for (at, decision) in said {
                        answers.say(at, Ok(decision));
                    }
                }
                Err(why) => {
                    for (at, _) in same {
                        answers.say(at, Err(why.clone()));
                    }
                }
            }
        }
    }

    async fn check_same(
        &self,
        asks: &[SharedAsk],
        same: &[(usize, ExactLimiter)],
        ask: Ask,
    ) -> Result<(Vec<(usize, Decision)>, Vec<ExactReceipt>), NotReached> {
        let limits: Vec<_> = same
            .iter()
            .map(|(at, limiter)| (limiter, subject(&asks[*at])))
            .collect();
        let checked = self.exact.check_all(&limits, ask).await;
        let checked = checked.map_err(|error| NotReached::new(why_of(&error)))?;
        let said = checked
            .decisions()
            .filter_map(|(place, decision)| Some((same.get(place)?.0, *decision)))
            .collect();
        Ok((said, checked.into_receipts()))
    }

    pub(super) async fn peek(&self, ask: &SharedAsk) -> Said {
        match self.limiters.of(&ask.limit).map_err(NotReached::new)? {
            Kept::Exact(limiter) => {
                let peeked = limiter.peek(subject(ask), ask.ask).await;
                peeked.map_err(|why| NotReached::new(why.to_string()))
            }
            Kept::Leased(limiter) => Ok(limiter.check(subject(ask).as_str(), 0)),
            Kept::Auto(limiter) => match limiter.mode(subject(ask).as_str(), 0) {
                LeaseMode::Leased => Ok(limiter.leased().check(subject(ask).as_str(), 0)),
                LeaseMode::Exact => {
                    let peeked = limiter.spend(subject(ask).as_str(), 0).await;
                    peeked.map_err(|why| NotReached::new(why.to_string()))
                }
            },
            Kept::Places(limiter) => peek_places(&limiter, ask).await,
        }
    }
}

/// What was taken in Redis of a limit that may be leased: whose, of which key, how many permits.
pub(super) type Spent = (AutoLimiter, Subject, u64);

/// What was taken of a lease.
#[derive(Debug)]
pub(super) struct Leased {
    pub(super) limiter: LeasedLimiter,
    pub(super) subject: Subject,
    pub(super) permits: u64,
    pub(super) lot: Lot,
}

impl Leased {
    pub(super) fn give_back(self) {
        let subject = self.subject.as_str();
        self.limiter.give_back(subject, self.permits, self.lot);
    }
}

async fn check_leased(limiter: LeasedLimiter, ask: &SharedAsk) -> (Said, Option<Leased>) {
    let (subject, permits) = (subject(ask), ask.ask.permits());
    let checked = limiter.checked_async(subject.as_str(), permits).await;
    let (decision, lot) = (checked.decision, checked.lot);
    let state = || limiter.key_stats(subject.as_str()).map(|stats| stats.state);
    if decision.is_allowed() {
        // Most limits may go on by themselves: then nothing more has to be known.
        let is_answer = ask.limit.on_its_own || state() != Some(LeaseState::Minting);
        let lease = Leased {
            limiter,
            subject,
            permits,
            lot,
        };
        if is_answer {
            return (Ok(decision), Some(lease));
        }
        lease.give_back();
        return (Err(no_answer()), None);
    }
    // Without a lease, what it says is no answer.
    let said = match state() {
        Some(LeaseState::Closed) => Err(no_answer()),
        Some(LeaseState::Minting) if !ask.limit.on_its_own => Err(no_answer()),
        _ => Ok(decision),
    };
    (said, None)
}

/// A key of this limit is leased, or asked for in Redis.
async fn check_auto(limiter: AutoLimiter, ask: &SharedAsk, taken: &mut Taken) -> Said {
    let (subject, permits) = (subject(ask), ask.ask.permits());
    match limiter.mode(subject.as_str(), permits) {
        LeaseMode::Leased => {
            let (said, lease) = check_leased(limiter.leased().clone(), ask).await;
            taken.leases.extend(lease);
            said
        }
        LeaseMode::Exact => {
            let said = limiter.spend(subject.as_str(), permits).await;
            let decision = said.map_err(|why| NotReached::new(why.to_string()))?;
            if decision.is_allowed() {
                taken.spent.push((limiter, subject, permits));
            }
            Ok(decision)
        }
    }
}

fn no_answer() -> NotReached {
    NotReached {
        had_lease: true,
        ..NotReached::new("Redis does not answer, and no lease is left")
    }
}

/// Places can be looked at by taking them only.
async fn peek_places(limiter: &SharedConcurrency, ask: &SharedAsk) -> Said {
    let taken = limiter
        .try_acquire(subject(ask).as_str().as_bytes(), ask.ask.permits())
        .await;
    let (decision, permit) = taken.map_err(|why| NotReached::new(why.to_string()))?;
    drop(permit);
    Ok(decision)
}

/// The key parts are told apart already.
fn subject(ask: &SharedAsk) -> Subject {
    Subject::new([&ask.key])
}

fn why_of(error: &CheckFailed) -> String {
    match error {
        CheckFailed::Unavailable(error) => error.to_string(),
        CheckFailed::List(error) => error.to_string(),
    }
}

/// Of a limit that another's refusal made it unnecessary to ask.
fn not_asked(limit: &Arc<SharedLimit>) -> Decision {
    let most = limit.algorithm.permits_at_once();
    Decision {
        verdict: Verdict::Allowed {
            delay: Duration::ZERO,
        },
        limit: most,
        remaining: most,
        reset_after: Duration::ZERO,
    }
}
