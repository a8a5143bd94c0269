//! What library users hold, over a real Redis.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Algorithm, Ask, Quota, Retry};
use tidegate_redis::ExactLimiter;

use super::store::Store;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().build().unwrap().block_on(future)
}

#[test]
fn a_bucket_and_a_window_admit_what_they_say() {
    block_on(async {
        let store = Arc::new(Store::at_told_time());
        store.set_time(1_800_000_000_000_000);
        let quota = Quota::per_minute(10).burst(3);
        let bucket = ExactLimiter::new(store.clone(), "bucket", quota).unwrap();
        for remaining in [2, 1, 0] {
            let decision = bucket.check("alice", 1).await.unwrap();
            assert!(decision.is_allowed());
            assert_eq!(decision.remaining, remaining);
        }
        let denied = bucket.check("alice", 1).await.unwrap();
        assert_eq!(denied.retry_after(), Some(Duration::from_secs(6)));
        let paced = Ask::new(1).within(Duration::from_secs(10));
        let delayed = bucket.check("alice", paced).await.unwrap();
        assert_eq!(delayed.delay(), Duration::from_secs(6));
        assert!(bucket.check("bob", 3).await.unwrap().is_allowed());

        let window = Algorithm::FixedWindow {
            permits: 5,
            window: Duration::from_mins(1),
        };
        let window = ExactLimiter::new(store.clone(), "window", window).unwrap();
        assert!(window.check("alice", 5).await.unwrap().is_allowed());
        let denied = window.check("alice", 1).await.unwrap();
        assert_eq!(denied.retry_after(), Some(Duration::from_mins(1)));
        let never = window.check("alice", 6).await.unwrap();
        assert_eq!(never.retry(), Some(Retry::Never));
        store.set_time(1_800_000_060_000_000);
        assert!(window.check("alice", 5).await.unwrap().is_allowed());
    });
}

#[test]
fn what_was_used_stays_used_when_the_numbers_change() {
    block_on(async {
        let store = Arc::new(Store::at_told_time());
        let start = 1_800_000_000_000_000;
        store.set_time(start);
        let limiter = |quota: Quota| ExactLimiter::new(store.clone(), "l", quota).unwrap();
        let old = limiter(Quota::per_minute(10));
        assert!(old.check("alice", 10).await.unwrap().is_allowed());
        // A permit comes back in 6 s by the old numbers, which counted until now.
        store.set_time(start + 9_000_000);
        let faster = limiter(Quota::per_minute(20));
        let peeked = faster.peek("alice", 0).await.unwrap();
        // 8.5 are in use of 20.
        assert_eq!((peeked.limit, peeked.remaining), (20, 11));
        assert_eq!(peeked.reset_after, Duration::from_millis(25_500));
        let slower = limiter(Quota::per_hour(4));
        let denied = slower.check("alice", 1).await.unwrap();
        // 8.5 in use of 4: until 5.5 are back, at 15 min each.
        assert_eq!(
            denied.retry_after(),
            Some(Duration::from_secs(5 * 900 + 450))
        );
        assert!(faster.check("alice", 1).await.unwrap().is_allowed());
        let window = Algorithm::FixedWindow {
            permits: 10,
            window: Duration::from_mins(1),
        };
        let window = ExactLimiter::new(store.clone(), "l", window).unwrap();
        assert_eq!(window.peek("alice", 0).await.unwrap().remaining, 0);
        let log = Algorithm::SlidingLog {
            permits: 10,
            window: Duration::from_mins(1),
        };
        // A log is a list: it begins anew, and what was stays what it was.
        let log = ExactLimiter::new(store.clone(), "l", log).unwrap();
        assert_eq!(log.check("alice", 1).await.unwrap().remaining, 9);
        assert_eq!(faster.peek("alice", 0).await.unwrap().remaining, 10);
    });
}

#[test]
fn permits_come_back_as_far_as_time_has_not_given_them_back() {
    block_on(async {
        let store = Arc::new(Store::at_told_time());
        let start = 1_800_000_000_000_000;
        let minute = Duration::from_mins(1);
        let (permits, window) = (10, minute);
        let algorithms = [
            Algorithm::TokenBucket(Quota::per_minute(10)),
            Algorithm::FixedWindow { permits, window },
            Algorithm::WindowFromFirst { permits, window },
            Algorithm::SlidingLog { permits, window },
        ];
        for (name, algorithm) in ["a", "b", "c", "d"].into_iter().zip(algorithms) {
            store.set_time(start);
            let limiter = ExactLimiter::new(store.clone(), name, algorithm).unwrap();
            let (_, early) = limiter.check_with_receipt("alice", 6).await.unwrap();
            let (_, late) = limiter.check_with_receipt("alice", 4).await.unwrap();
            limiter.give_back(early.unwrap()).await.unwrap();
            let left = limiter.peek("alice", 0).await.unwrap();
            assert_eq!(left.remaining, 6, "{algorithm:?}");
            // Two minutes on time has given all back, and others have taken: nothing is left of it.
            store.set_time(start + 120_000_000);
            assert!(limiter.check("alice", 3).await.unwrap().is_allowed());
            limiter.give_back(late.unwrap()).await.unwrap();
            let left = limiter.peek("alice", 0).await.unwrap().remaining;
            // A bucket is one number: it does not know whose permits are in use.
            let expected = if name == "a" { 10 } else { 7 };
            assert_eq!(left, expected, "{algorithm:?}");
        }
    });
}
