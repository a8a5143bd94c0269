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
