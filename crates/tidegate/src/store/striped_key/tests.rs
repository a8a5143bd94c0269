use core::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{ManualClock, Quota};

const STRIPES: usize = 4;

/// What may happen to a striped key.
#[derive(Clone, Copy, Debug)]
enum Step {
    Advance(u64),
    Ask {
        stripe: usize,
        ask: Ask,
    },
    /// Checks of several limits, and of other clocks, come this way.
    Hold {
        permits: u64,
        agreed: bool,
    },
    Undo(usize),
    Peek,
    Reset,
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        6 => Just(Ask::ONE),
        3 => (0..12_u64).prop_map(Ask::new),
        1 => (0..12_u64, 0..40_000_000_u64)
            .prop_map(|(permits, wait)| Ask::new(permits).within(Duration::from_nanos(wait))),
        1 => (0..12_u64).prop_map(|permits| Ask::new(permits).forced()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..20_000_000_u64).prop_map(Step::Advance),
        1 => (0..20_000_000_000_u64).prop_map(Step::Advance),
        12 => (0..STRIPES, ask()).prop_map(|(stripe, ask)| Step::Ask { stripe, ask }),
        1 => (0..12_u64, any::<bool>())
            .prop_map(|(permits, agreed)| Step::Hold { permits, agreed }),
        1 => any::<usize>().prop_map(Step::Undo),
        1 => Just(Step::Peek),
        1 => Just(Step::Reset),
    ]
}

fn quota() -> impl Strategy<Value = Quota> {
    (1..2_000_u64, 1..60_u64).prop_map(|(rate, burst)| Quota::per_second(rate).burst(burst))
}

/// A striped key beside one bucket that is asked the same.
#[derive(Debug)]
struct Both<W: Striped>
where
    Tat<W>: State,
{
    striped: StripedKey<W, ManualClock>,
    exact: Tat<W>,
    clock: ManualClock,
    taken: Vec<Taken>,
}

impl<W: Striped> Both<W>
where
    Tat<W>: State,
{
    fn new(meter: TokenBucket<W>, lease: u64) -> Self {
        let clock = ManualClock::new(Timestamp::from_secs(1_800_000_000));
        Self {
            exact: meter.fresh(clock.now()),
            striped: StripedKey::with_leases(meter, STRIPES, lease, clock.clone()),
            clock,
            taken: Vec::new(),
        }
    }

    /// The exact bucket grants what the striped one has granted.
    fn follow(&mut self, ask: &Ask, decision: &Decision) -> Result<(), TestCaseError> {
        let Verdict::Allowed { delay } = decision.verdict else {
            return Ok(());
        };
        let ask = if ask.is_forced() {
            *ask
        } else {
            ask.within(delay)
        };
        let plan = self.striped.meter.plan(&self.exact, self.clock.now(), &ask);
        prop_assert!(plan.decision.is_allowed(), "too much: {:?}", plan.decision);
        if let Some(change) = plan.change {
            self.taken
                .push(self.striped.meter.commit(&mut self.exact, change));
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let now = self.clock.now();
        match step {
            Step::Advance(nanos) => self.clock.advance(Duration::from_nanos(nanos)),
            Step::Ask { stripe, ask } => {
                let (decision, taken) = self.striped.check_on(stripe, now, &ask);
                prop_assert_eq!(taken.is_some(), decision.is_allowed() && ask.permits() > 0);
                self.follow(&ask, &decision)?;
            }
            Step::Hold { permits, agreed } => {
                let ask = Ask::new(permits);
                let mut shown = Decision::NOT_ASKED;
                let taken = self.striped.hold(now, &ask, &mut |decision| {
                    shown = decision;
                    agreed
                });
                if taken.is_some() {
                    self.follow(&ask, &shown)?;
                }
            }
            Step::Undo(which) => {
                if !self.taken.is_empty() {
                    let taken = self.taken.swap_remove(which % self.taken.len());
                    self.striped.undo(&taken, now);
                    self.striped.meter.undo(&mut self.exact, &taken, now);
                }
            }
            Step::Peek => {
                let exact = self.striped.meter.available(self.exact, now);
                let striped = self.striped.peek(now, &Ask::ONE).remaining;
                prop_assert!(striped <= exact, "{striped} left, of {exact}");
            }
            Step::Reset => {
                prop_assert!(self.striped.reset(now));
                self.exact = self.striped.meter.fresh(now);
                self.taken.clear();
            }
        }
        Ok(())
    }

    /// Asks until refused: then all leases are called back, so that none wastes away.
    fn drain(&mut self, stripe: usize) -> Result<(), TestCaseError> {
        loop {
            let now = self.clock.now();
            let exact = self
                .striped
                .meter
                .plan(&self.exact, now, &Ask::ONE)
                .decision;
            let (decision, _) = self.striped.check_on(stripe, now, &Ask::ONE);
            prop_assert_eq!(decision.verdict, exact.verdict);
            self.follow(&Ask::ONE, &decision)?;
            if !decision.is_allowed() {
                return Ok(());
            }
        }
    }
}

fn never_more_than_one_bucket<W: Striped>(
    meter: TokenBucket<W>,
    lease: u64,
    steps: &[Step],
) -> Result<(), TestCaseError>
where
    Tat<W>: State,
{
    let mut both = Both::new(meter, lease);
    steps.iter().try_for_each(|step| both.step(*step))
}

proptest! {
    // proves: A1, B5 (greedy refill)
    #[test]
    fn stripes_grant_never_more_than_one_bucket(
        (quota, lease) in (quota(), 1..20_u64),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        if let Ok(narrow) = TokenBucket::<u64>::new(quota) {
            never_more_than_one_bucket(narrow, lease, &steps)?;
        }
        never_more_than_one_bucket(TokenBucket::<u128>::new(quota).unwrap(), lease, &steps)?;
    }

    /// As long as somebody is refused each time before time passes, nothing is ever lost.
    #[test]
    fn stripes_that_are_asked_for_all_grant_as_much_as_one_bucket(
        (quota, lease) in (quota(), 1..20_u64),
        rounds in prop::collection::vec(
            (0..20_000_000_u64, prop::collection::vec((0..STRIPES, 0..12_u64), 0..8), 0..STRIPES),
            1..40,
        ),
    ) {
        let mut both = Both::new(TokenBucket::<u128>::new(quota).unwrap(), lease);
        for (nanos, asks, last) in rounds {
            for (stripe, permits) in asks {
                let (now, ask) = (both.clock.now(), Ask::new(permits));
                let exact = both.striped.meter.plan(&both.exact, now, &ask).decision;
                let (decision, _) = both.striped.check_on(stripe, now, &ask);
                prop_assert_eq!(decision.verdict, exact.verdict);
                both.follow(&ask, &decision)?;
            }
            both.drain(last)?;
            both.clock.advance(Duration::from_nanos(nanos));
        }
    }

    /// A thread that has looked at the clock and then sleeps takes its permits late: what the
    /// times that were looked at say stays within the bound.
    #[test]
    fn stripes_hold_the_bound_for_those_who_come_late(
        (rate, burst, lease) in (4..9_u32, 1..40_u64, 1..10_u64),
        steps in prop::collection::vec(
            (0..30_000_000_u64, 0..200_u64, 0..STRIPES, 1..6_u64),
            1..120,
        ),
    ) {
        let clock = ManualClock::new(Timestamp::from_secs(1_800_000_000));
        // All of these divide a second.
        let rate = 1 << rate;
        let interval = 1_000_000_000 / rate;
        let meter = TokenBucket::<u64>::new(Quota::per_second(rate).burst(burst)).unwrap();
        let striped = StripedKey::with_leases(meter, STRIPES, lease, clock.clone());
        let mut seen = vec![clock.now()];
        let mut passed: Vec<(u64, u64)> = Vec::new();
        for (nanos, late, stripe, permits) in steps {
            clock.advance(Duration::from_nanos(nanos));
            seen.push(clock.now());
            let at = seen[seen.len() - 1 - (late as usize).saturating_sub(150).min(seen.len() - 1)];
            if let (_, Some(taken)) = striped.check_on(stripe, at, &Ask::new(permits)) {
                passed.push((taken.at.as_nanos(), permits));
            }
        }
        passed.sort_unstable();
        for (i, (from, _)) in passed.iter().enumerate() {
            let mut sum = 0;
            for (to, permits) in &passed[i..] {
                sum += permits;
                let bound = burst * interval + (to - from);
                prop_assert!(sum * interval <= bound, "{sum} in {} ns", to - from);
            }
        }
    }
}

#[test]
fn a_lease_spares_the_way_to_the_bucket() {
    let clock = ManualClock::new(Timestamp::from_secs(1));
    let meter = TokenBucket::<u64>::new(Quota::per_second(1_000).burst(1_000)).unwrap();
    let striped = StripedKey::new(meter, 2, clock.clone()).unwrap();
    let first = striped.check_on(0, clock.now(), &Ask::ONE).0;
    assert_eq!(first.remaining, 999);
    // 1,000 / 4 / 2.
    let held = striped.check_on(0, clock.now(), &Ask::ONE).0.remaining;
    assert_eq!(held, 124);
    // Another clock's time, or several limits: the whole bucket is asked.
    assert_eq!(striped.peek(clock.now(), &Ask::ONE).remaining, 998);
}

#[test]
fn a_burst_too_small_to_be_lent_out_is_not() {
    let meter = TokenBucket::<u64>::new(Quota::per_second(1).burst(4 * 2 * 8 - 1)).unwrap();
    let clock = ManualClock::new(Timestamp::from_secs(1));
    assert!(StripedKey::new(meter, 2, clock).is_none());
}

#[test]
fn a_refusal_is_forgotten_when_permits_come_back() {
    let clock = ManualClock::new(Timestamp::from_secs(1));
    let meter = TokenBucket::<u64>::new(Quota::per_second(1).burst(2)).unwrap();
    let striped = StripedKey::with_leases(meter, 2, 1, clock.clone());
    let now = clock.now();
    let (_, taken) = striped.check_on(0, now, &Ask::new(2));
    for stripe in [0, 1] {
        let refused = striped.check_on(stripe, now, &Ask::ONE).0;
        assert_eq!(refused.retry_after(), Some(Duration::from_secs(1)));
    }
    striped.undo(&taken.unwrap(), now);
    for stripe in [0, 1] {
        assert!(striped.check_on(stripe, now, &Ask::ONE).0.is_allowed());
    }
}
