//! Pacing in virtual time, against rational arithmetic.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body;
use proptest::prelude::*;
use std::sync::Arc;
use tidegate::{Clock, Limiter, ManualClock, Quota, Timestamp};

use super::*;
use crate::{LimiterPace, PacedBody};

const START: Timestamp = Timestamp::from_secs(1_800_000_000);

/// Remembers until when somebody sleeps; the clock is moved by the test.
#[derive(Debug)]
struct VirtualTimer {
    clock: ManualClock,
    asked: Arc<Mutex<Vec<Timestamp>>>,
}

impl Timer for VirtualTimer {
    fn sleep_until(&self, at: Timestamp) -> Wait {
        lock(&self.asked).push(at);
        let clock = self.clock.clone();
        Box::pin(poll_fn(move |_| {
            if clock.now() >= at {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frames of these lengths, then trailers if it has some.
struct Frames {
    lengths: VecDeque<usize>,
    trailers: bool,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        let frame = match this.lengths.pop_front() {
            Some(length) => Frame::data(Bytes::from(vec![b'x'; length])),
            None if std::mem::take(&mut this.trailers) => Frame::trailers(HeaderMap::new()),
            None => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(frame)))
    }
}

type Paced = PacedBody<Frames, LimiterPace<Arc<Limiter<ManualClock>>>>;

/// Bodies under one limit, on a clock that goes on when all of them wait.
struct World {
    clock: ManualClock,
    timer: Arc<VirtualTimer>,
    limiter: Arc<Limiter<ManualClock>>,
}

/// When (in ns from the start), of which body, how many bytes.
type Passed = (u64, usize, usize);

impl World {
    fn new(quota: Quota) -> Self {
        let clock = ManualClock::new(START);
        let limiter = Limiter::with_clock(quota, clock.clone()).unwrap();
        let timer = VirtualTimer {
            clock: clock.clone(),
            asked: Arc::default(),
        };
        Self {
            clock,
            timer: Arc::new(timer),
            limiter: Arc::new(limiter),
        }
    }

    fn body(&self, lengths: &[usize], after: u64) -> Paced {
        let frames = Frames {
            lengths: lengths.iter().copied().collect(),
            trailers: false,
        };
        let pace = LimiterPace::shared(Arc::clone(&self.limiter)).after(after);
        PacedBody::new(frames, pace, self.timer.clone())
    }

    fn now(&self) -> u64 {
        self.clock.now().since(START).as_nanos() as u64
    }

    /// Polls the bodies in turn, as far as they go at this time.
    fn poll(&self, bodies: &mut [Paced], passed: &mut Vec<Passed>) -> usize {
        let mut ended = 0;
        for (at, body) in bodies.iter_mut().enumerate() {
            loop {
                let mut context = Context::from_waker(Waker::noop());
                match Pin::new(&mut *body).poll_frame(&mut context) {
                    Poll::Ready(Some(Ok(frame))) => {
                        let length = frame.into_data().map_or(0, |data| data.len());
                        passed.push((self.now(), at, length));
                    }
                    Poll::Ready(Some(Err(never))) => match never {},
                    Poll::Ready(None) => {
                        ended += 1;
                        break;
                    }
                    Poll::Pending => break,
                }
            }
        }
        ended
    }

    /// Lets the bodies pass to their ends.
    fn run(&self, bodies: &mut [Paced]) -> Vec<Passed> {
        let mut passed = Vec::new();
        while self.poll(bodies, &mut passed) < bodies.len() {
            let next = self.next_time().expect("who waits, waits for a time");
            self.clock.set(next);
        }
        passed
    }

    /// Lets the bodies pass until so much time has gone by.
    fn run_for(&self, time: Duration, bodies: &mut [Paced], passed: &mut Vec<Passed>) {
        let end = self.clock.now().after(time);
        self.poll(bodies, passed);
        while let Some(next) = self.next_time().filter(|next| *next <= end) {
            self.clock.set(next);
            self.poll(bodies, passed);
        }
        self.clock.set(end);
    }

    /// When the next one wakes.
    fn next_time(&self) -> Option<Timestamp> {
        let now = self.clock.now();
        let mut asked = lock(&self.timer.asked);
        asked.retain(|at| *at > now);
        asked.iter().copied().min()
    }
}

/// The first ns at which `bytes` have come, of `burst` at once and `permits` each `period`.
fn due(quota: Quota, bytes: u64) -> u64 {
    let over = u128::from(bytes.saturating_sub(quota.burst_permits()));
    let nanos = (over * quota.period().as_nanos()).div_ceil(u128::from(quota.permits()));
    u64::try_from(nanos).unwrap()
}

/// In every interval at most the burst and what comes in it: what passed from one piece to
/// another is looked at for all pairs.
fn holds_the_bound(quota: Quota, passed: &[Passed]) {
    for (first, (from, ..)) in passed.iter().enumerate() {
        let mut bytes = 0;
        for (until, _, length) in &passed[first..] {
            bytes += *length as u128;
            let nanos = quota.period().as_nanos();
            let over = bytes.saturating_sub(u128::from(quota.burst_permits())) * nanos;
            // A time is rounded up to the next nanosecond, each for itself.
            let came = u128::from(until - from + 1) * u128::from(quota.permits());
            assert!(over <= came, "{bytes} bytes from {from} to {until} ns");
        }
    }
}

fn quotas() -> impl Strategy<Value = Quota> {
    // From 100 B/s to 10 GB/s, with bursts of a byte (slow ones) to a second.
    (100_u64..=10_000_000_000, 1_u64..=200)
        .prop_map(|(rate, part)| Quota::per_second(rate).burst((rate / part).max(1)))
}

fn frames(quota: Quota, shape: &[u64]) -> Vec<usize> {
    let burst = quota.burst_permits();
    let length = |part: &u64| usize::try_from((burst * part / 100).clamp(1, 1 << 20)).unwrap();
    shape.iter().map(length).collect()
}

proptest! {
    // proves: A3 (no waste)
    #[test]
    fn with_bytes_always_there_each_passes_when_it_is_due(
        quota in quotas(),
        bodies in prop::collection::vec(prop::collection::vec(1_u64..400, 1..12), 1..4),
    ) {
        let world = World::new(quota);
        let mut bodies: Vec<_> = (bodies.iter())
            .map(|shape| world.body(&frames(quota, shape), 0))
            .collect();
        let passed = world.run(&mut bodies);
        let mut bytes = 0;
        for (at, _, length) in &passed {
            bytes += *length as u64;
            prop_assert_eq!(*at, due(quota, bytes), "{} bytes", bytes);
        }
        holds_the_bound(quota, &passed);
    }

    // proves: A3 (bound)
    #[test]
    fn bodies_that_come_and_go_never_pass_more_than_burst_and_rate(
        quota in quotas(),
        steps in prop::collection::vec((0_u8..4, 0_u64..3_000, 1_u64..400), 1..40),
    ) {
        let world = World::new(quota);
        let mut bodies: Vec<Paced> = Vec::new();
        let mut passed = Vec::new();
        for (kind, millis, part) in steps {
            match kind {
                0 => bodies.push(world.body(&frames(quota, &[part, part, part]), 0)),
                // It goes away, wherever it is.
                1 if !bodies.is_empty() => drop(bodies.remove(part as usize % bodies.len())),
                _ => world.run_for(Duration::from_millis(millis), &mut bodies, &mut passed),
            }
        }
        holds_the_bound(quota, &passed);
    }

    // proves: A3 (shares)
    #[test]
    fn bodies_of_one_limit_have_equal_parts_within_a_burst(
        quota in quotas(),
        bodies in 2_usize..6,
        part in 50_u64..400,
    ) {
        let world = World::new(quota);
        let frames = frames(quota, &[part; 20]);
        let mut paced: Vec<_> = (0..bodies).map(|_| world.body(&frames, 0)).collect();
        let passed = world.run(&mut paced);
        let mut bytes = vec![0_u64; bodies];
        // Who comes first has the first burst; from there on they take turns.
        for (_, of, length) in passed.into_iter().filter(|(at, ..)| *at > 0) {
            bytes[of] += length as u64;
            let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
            prop_assert!(most - least <= quota.burst_permits(), "{:?}", bytes);
        }
    }
}

// proves: A3 (after)
#[test]
fn the_first_part_of_each_body_is_free() {
    let quota = Quota::per_second(1_000).burst(100);
    let world = World::new(quota);
    let mut bodies = [world.body(&[2_000], 1_500), world.body(&[300, 300], 500)];
    let passed = world.run(&mut bodies);
    // 1,500, the burst, and the free part of the other at once; then 100 each 100 ms, in turn.
    assert_eq!(
        passed[..4],
        [(0, 0, 1_500), (0, 0, 100), (0, 1, 300), (0, 1, 200)]
    );
    assert_eq!(passed[4..6], [(100_000_000, 0, 100), (200_000_000, 1, 100)]);
    let (last, ..) = *passed.last().unwrap();
    assert_eq!(last, due(quota, 500 + 100));
    holds_the_bound(quota, &passed[4..]);
}

#[test]
fn what_is_reserved_and_has_not_passed_is_given_back() {
    let quota = Quota::per_second(1_000).burst(100);
    let world = World::new(quota);
    let mut passed = Vec::new();
    let mut first = [world.body(&[150], 0)];
    world.poll(&mut first, &mut passed);
    assert_eq!(passed, [(0, 0, 100)]);
    drop(first);
    // 50 were reserved of what comes in the next 50 ms.
    let mut second = [world.body(&[50], 0)];
    assert_eq!(world.run(&mut second), [(50_000_000, 0, 50)]);
}

#[test]
fn nothing_is_asked_of_a_body_that_is_held_back() {
    let world = World::new(Quota::per_second(1_000).burst(100));
    let mut bodies = [world.body(&[150, 10], 0)];
    let mut passed = Vec::new();
    world.poll(&mut bodies, &mut passed);
    world.poll(&mut bodies, &mut passed);
    assert_eq!(passed, [(0, 0, 100)]);
    // 50 are held, and the next frame has not been asked for.
    assert_eq!(bodies[0].size_hint().lower(), 50);
    assert!(!bodies[0].is_end_stream());
}

#[test]
fn empty_frames_and_trailers_pass_as_they_come() {
    let world = World::new(Quota::per_second(1).burst(1));
    let frames = Frames {
        lengths: VecDeque::from([0, 1, 0]),
        trailers: true,
    };
    let pace = LimiterPace::shared(Arc::clone(&world.limiter));
    let mut bodies = [PacedBody::new(frames, pace, world.timer.clone())];
    let mut passed = Vec::new();
    assert_eq!(world.poll(&mut bodies, &mut passed), 1);
    assert_eq!(passed, [(0, 0, 0), (0, 0, 1), (0, 0, 0), (0, 0, 0)]);
}
