use super::*;

fn all() -> Vec<Algorithm> {
    let quota = Quota::per_minute(100).burst(20).initial(7);
    let (permits, window) = (5, Duration::from_millis(1_500));
    let parts = NonZeroU32::new(10).expect("not 0");
    vec![
        Algorithm::TokenBucket(quota),
        Algorithm::smooth_bursty(Quota::per_second(3)),
        Algorithm::IntervalBucket {
            quota,
            aligned: true,
        },
        Algorithm::FixedWindow { permits, window },
        Algorithm::WindowFromFirst { permits, window },
        Algorithm::CalendarWindow {
            permits,
            unit: CalendarUnit::Week,
        },
        Algorithm::SlidingCounter { permits, window },
        Algorithm::SlidingLog { permits, window },
        Algorithm::SlidingWindow {
            permits,
            window,
            parts,
        },
        Algorithm::Concurrency { max: 3 },
    ]
}

#[test]
fn what_is_written_is_read_again_whatever_it_is() {
    for algorithm in all() {
        for sharing in SHARINGS {
            let words = of(&algorithm, sharing).expect("can be shared");
            assert_eq!(read(&words), Some((algorithm, sharing)), "{algorithm:?}");
        }
    }
}

#[test]
fn what_this_version_does_not_know_is_not_guessed_at() {
    for algorithm in all() {
        let words = of(&algorithm, Sharing::Exact).expect("can be shared");
        let mut longer = words.clone();
        longer.push(1);
        assert_eq!(read(&longer), None, "{algorithm:?}");
        for (at, other) in [(0, words[0] + 1), (2, 99), (3, 99)] {
            let mut changed = words.clone();
            changed[at] = other;
            assert_eq!(read(&changed), None, "{algorithm:?}");
        }
        assert_eq!(read(&words[..3]), None);
    }
    let nginx = Algorithm::Nginx {
        requests: 1,
        per_minute: false,
        burst: 0,
        delay: None,
    };
    assert_eq!(of(&nginx, Sharing::Exact), None);
}

#[test]
fn the_stricter_comes_first() {
    let rank = |quota: Quota| of(&Algorithm::TokenBucket(quota), Sharing::Exact);
    assert!(rank(Quota::per_second(1)) < rank(Quota::per_minute(61)));
    assert!(rank(Quota::per_second(1)) > rank(Quota::per_minute(59)));
    assert!(rank(Quota::per_second(9).burst(1)) < rank(Quota::per_second(9).burst(2)));
    let places = |max| of(&Algorithm::Concurrency { max }, Sharing::Slots);
    assert!(places(9) < places(10));
}
