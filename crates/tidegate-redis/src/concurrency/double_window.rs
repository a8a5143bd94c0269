//! Who is inside is counted in two windows of time, and moved on from the older one.
//!
//! A request is taken away from the window in which it is counted, which Redis named, and which
//! may be over: then there is nothing to take away. A call without an answer may have counted too
//! much, for two windows at most, and never too little: what has come is not freed on suspicion,
//! what has left is not taken away twice, and what may have moved moves again.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate::{Retry, Timestamp};

use super::jitter::Jitter;
use super::node_share::all_natural;
use super::retry::Attempts;
use super::slots::Asking;
use super::tickets::Tickets;
use super::{Asked, ConcurrencyOptions, DOUBLE_WINDOW, Event, Places, Request};
use super::{arg, micros, surely};

/// Who asks in one call.
const ASKS_PER_CALL: usize = 1_000;

/// One node's places of one key.
#[derive(Clone, Debug)]
pub struct DoubleWindow {
    limit: u64,
    window: Duration,
    /// Each with the window in which it is counted.
    tickets: Tickets<u64>,
    /// By our clock, when what is counted in a window is surely still counted.
    counted_until: BTreeMap<u64, Timestamp>,
    /// Permits that have been given back, by the window in which they are counted.
    left: BTreeMap<u64, u64>,
    calling: Option<Sent>,
    next_move: Timestamp,
    inside: u64,
    attempts: Attempts,
    jitter: Jitter,
}

/// The call under way.
#[derive(Clone, Debug)]
struct Sent {
    at: Timestamp,
    moving: Vec<u64>,
    asking: Vec<Asking>,
}

impl DoubleWindow {
    /// A node that has no places yet; `seed` is for the spread of its calls.
    pub fn new(options: &ConcurrencyOptions, seed: u64) -> Self {
        Self {
            limit: options.limit,
            window: options.window,
            tickets: Tickets::new(),
            counted_until: BTreeMap::new(),
            left: BTreeMap::new(),
            calling: None,
            next_move: Timestamp::EPOCH,
            inside: 0,
            attempts: Attempts::default(),
            jitter: Jitter::new(seed),
        }
    }

    fn due(&self) -> Option<Timestamp> {
        let again = self.attempts.not_before();
        if !self.tickets.nobody_waits() || !self.left.is_empty() {
            Some(again)
        } else if self.tickets.held().is_empty() {
            None
        } else {
            Some(self.next_move.max(again))
        }
    }

    fn held_by_window(&self) -> BTreeMap<u64, u64> {
        let mut windows = BTreeMap::new();
        for held in self.tickets.held().values() {
            *windows.entry(held.of_scheme).or_default() += held.permits;
        }
        windows
    }

    fn leave(&mut self, window: u64, permits: u64) {
        if permits > 0 {
            *self.left.entry(window).or_default() += permits;
        }
    }

    /// What was named in the call, and has left since, has moved as well.
    fn moved(&mut self, from: &[u64], to: u64) {
        for held in self.tickets.held_mut().values_mut() {
            if from.contains(&held.of_scheme) {
                held.of_scheme = to;
            }
        }
        for window in from {
            if let Some(permits) = self.left.remove(window) {
                self.leave(to, permits);
            }
        }
    }

    fn failed(&mut self, now: Timestamp, sent: Sent) {
        self.attempts.failed(now, &mut self.jitter);
        for asking in sent.asking {
            if !asking.gone {
                self.tickets.unavailable(asking.waiting);
            }
        }
        self.tickets.all_unavailable();
    }
}

impl Places for DoubleWindow {
    fn ask(&mut self, now: Timestamp, permits: u64) -> Asked {
        self.lapse(now);
        if permits > self.limit {
            return Asked::Denied(Retry::Never);
        }
        self.tickets
            .wait_unless(self.attempts.is_waiting(now), permits)
    }

    fn give_back(&mut self, _now: Timestamp, ticket: u64) {
        if let Some(held) = self.tickets.give_back(ticket) {
            self.leave(held.of_scheme, held.permits);
        } else if let Some(sent) = &mut self.calling {
            let mut asking = sent.asking.iter_mut();
            if let Some(asking) = asking.find(|asking| asking.waiting.ticket == ticket) {
                asking.gone = true;
            }
        }
    }

    fn lapse(&mut self, now: Timestamp) {
        let over = self.counted_until.iter();
        let over: Vec<u64> = over
            .filter(|(_, until)| **until <= now)
            .map(|(window, _)| *window)
            .collect();
        for window in over {
            self.counted_until.remove(&window);
            let held = self.tickets.held().iter();
            let lost: Vec<u64> = held
                .filter(|(_, held)| held.of_scheme == window)
                .map(|(ticket, _)| *ticket)
                .collect();
            for ticket in lost {
                self.tickets.lose(ticket);
            }
        }
    }

    fn poll(&mut self, now: Timestamp) -> Option<Request> {
        self.lapse(now);
        if self.calling.is_some() || self.due().is_none_or(|due| now < due) {
            return None;
        }
        let left = std::mem::take(&mut self.left);
        let moving = if now >= self.next_move {
            self.held_by_window()
        } else {
            BTreeMap::new()
        };
        let mut asking = Vec::new();
        while asking.len() < ASKS_PER_CALL
            && let Some(waiting) = self.tickets.next_waiting()
        {
            asking.push(Asking {
                waiting,
                gone: false,
            });
        }
        let mut args = vec![arg(self.limit), arg(micros(self.window))];
        for counts in [&left, &moving] {
            args.push(arg(counts.len() as u64));
            for (&window, &permits) in counts {
                args.extend([arg(window), arg(permits)]);
            }
        }
        args.extend(asking.iter().map(|asking| arg(asking.waiting.permits)));
        self.calling = Some(Sent {
            at: now,
            moving: moving.into_keys().collect(),
            asking,
        });
        Some(Request {
            script: &DOUBLE_WINDOW,
            args,
        })
    }

    fn answered(&mut self, now: Timestamp, answer: Option<&[i64]>) -> bool {
        let Some(sent) = self.calling.take() else {
            return true;
        };
        let understood = match answer {
            Some([window, time, current, previous, flags @ ..])
                if flags.len() == sent.asking.len() =>
            {
                all_natural(&[*window, *time, *current, *previous]).map(|four| (four, flags))
            }
            _ => None,
        };
        let Some(([window, time, current, previous], flags)) = understood else {
            self.failed(now, sent);
            return answer.is_none();
        };
        self.attempts.succeeded();
        self.inside = current.saturating_add(previous);
        // It is looked at until two windows have begun since it began.
        let width = micros(self.window);
        let ends = window.saturating_add(2).saturating_mul(width);
        let rest = Duration::from_micros(ends.saturating_sub(time));
        let until = sent.at.after(surely(rest));
        let known = self.counted_until.entry(window).or_insert(until);
        *known = until.max(*known);
        if !sent.moving.is_empty() || self.tickets.held().is_empty() {
            let part = self.jitter.up_to(self.window / 2, 80);
            self.next_move = sent.at.after(part);
        }
        self.moved(&sent.moving, window);
        for (asking, got) in sent.asking.into_iter().zip(flags) {
            match (*got == 1, asking.gone) {
                (true, true) => self.leave(window, asking.waiting.permits),
                (true, false) => self.tickets.grant(asking.waiting, window),
                (false, true) => {}
                (false, false) => self.tickets.deny(asking.waiting),
            }
        }
        let held = self.held_by_window();
        self.counted_until
            .retain(|window, _| held.contains_key(window));
        self.lapse(now);
        true
    }

    fn next(&self) -> Option<Timestamp> {
        let due = match (&self.calling, self.due()) {
            (Some(_), _) => Timestamp::MAX,
            (None, due) => due?,
        };
        let ends = self.counted_until.values().min();
        Some(ends.map_or(due, |&until| until.min(due)))
    }

    fn take_events(&mut self) -> Vec<Event> {
        self.tickets.take_events()
    }

    fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.inside)
    }
}
