use std::sync::Arc;
use std::time::Duration;

use tidegate::{Algorithm, Quota, SharedLimit, Sharing};

use super::Limiters;
use crate::call::{Answer, ScriptCall, Scripts, Unavailable};
use crate::exact::Exact;

/// A carrier that nothing is behind.
#[derive(Debug)]
struct Nowhere;

impl Scripts for Nowhere {
    fn call(&self, _: ScriptCall, budget: Duration) -> Answer<'_> {
        Box::pin(async move { Err(Unavailable::TimedOut(budget)) })
    }
}

/// Where nothing was new to be made, each reload left what it had of each limit behind.
#[test]
fn reloads_of_one_policy_keep_no_more_than_one_limiter_each() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let scripts: Arc<dyn Scripts> = Arc::new(Nowhere);
    let exact = Exact::new(Arc::clone(&scripts));
    let limiters = Limiters::new(exact, scripts, runtime.handle().clone());
    let limit = |version| {
        Arc::new(SharedLimit {
            name: "api".to_owned(),
            algorithm: Algorithm::TokenBucket(Quota::per_second(100)),
            sharing: Sharing::Exact,
            max_keys: 100,
            keys: Box::default(),
            version,
            on_its_own: true,
        })
    };
    let mut current = limit(0);
    limiters.set(std::slice::from_ref(&current));
    limiters.of(&current).unwrap();
    for version in 1..100 {
        let next = limit(version);
        limiters.set(std::slice::from_ref(&next));
        current = next;
        limiters.of(&current).unwrap();
    }
    assert!(limiters.lock().kept.len() <= 2);
}
