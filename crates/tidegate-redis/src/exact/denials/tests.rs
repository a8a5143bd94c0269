use super::*;

use tidegate::{Algorithm, Quota};

fn limit(key: &str) -> Asked {
    let bucket = Algorithm::TokenBucket(Quota::per_second(1));
    Asked {
        key: key.into(),
        numbers: Numbers::of(&bucket).unwrap(),
    }
}

fn denied(wait: Duration) -> Decision {
    Decision {
        verdict: Verdict::Denied {
            retry: Retry::After(wait),
        },
        limit: 1,
        remaining: 0,
        reset_after: wait,
    }
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_denial_is_told_again_with_what_is_left_of_its_wait() {
    let mut denials = Denials::default();
    let (a, b) = (limit("a"), limit("b"));
    denials.remember(&a, Ask::ONE, denied(100 * MS), 10 * MS);
    let at = |denials: &Denials, limit: &Asked, ask, ms| denials.of(limit, &ask, ms * MS);
    assert_eq!(at(&denials, &a, Ask::ONE, 40), Some(denied(70 * MS)));
    assert_eq!(at(&denials, &a, Ask::ONE, 109), Some(denied(MS)));
    assert_eq!(at(&denials, &a, Ask::ONE, 110), None);
    // Of other keys, other asks and other numbers nothing is known.
    assert_eq!(at(&denials, &b, Ask::ONE, 40), None);
    assert_eq!(at(&denials, &a, Ask::new(2), 40), None);
    let mut faster = a.clone();
    faster.numbers.a += 1;
    assert_eq!(at(&denials, &faster, Ask::ONE, 40), None);
    denials.forget(&faster);
    assert_eq!(at(&denials, &a, Ask::ONE, 40), None);
}

#[test]
fn it_is_believed_for_a_second_at_most() {
    let mut denials = Denials::default();
    let key = limit("a");
    let never = Decision {
        verdict: Verdict::Denied {
            retry: Retry::Never,
        },
        ..denied(MS)
    };
    denials.remember(&key, Ask::ONE, denied(Duration::from_mins(1)), MS);
    denials.remember(&key, Ask::new(2), never, MS);
    for ask in [Ask::ONE, Ask::new(2)] {
        assert!(denials.of(&key, &ask, 1_000 * MS).is_some());
        assert!(denials.of(&key, &ask, 1_001 * MS).is_none());
    }
    let allowed = Decision {
        verdict: Verdict::Allowed {
            delay: Duration::ZERO,
        },
        ..never
    };
    denials.remember(&key, Ask::new(3), allowed, MS);
    assert!(denials.of(&key, &Ask::new(3), MS).is_none());
}

#[test]
fn it_is_bounded_and_makes_room_of_what_is_over() {
    let mut denials = Denials::default();
    for key in 0..MAX_KEYS + 10 {
        denials.remember(&limit(&key.to_string()), Ask::ONE, denied(50 * MS), MS);
    }
    assert_eq!(denials.keys.len(), MAX_KEYS);
    let late = limit("late");
    denials.remember(&late, Ask::ONE, denied(50 * MS), 200 * MS);
    assert_eq!(denials.keys.len(), 1);
    for permits in 0..100 {
        denials.remember(&late, Ask::new(permits), denied(50 * MS), 200 * MS);
    }
    assert_eq!(denials.keys[&late.key].len(), MAX_ASKS);
}
