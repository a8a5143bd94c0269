//! A node whose requests hold places, and note when they get and when they leave one.
//!
//! A place is noted as held after it was granted, and as left before it is given back: so what is
//! noted is never more than what is true.

use std::sync::Arc;
use std::time::Duration;

use tidegate_redis::concurrency::{ConcurrencyOptions, Scheme, SharedConcurrency};

use crate::journal::Journal;
use crate::{Node, Result};

const KEY: &[u8] = b"all";
/// How soon a request that was refused comes again.
const AGAIN: Duration = Duration::from_millis(5);

/// Who asks for places.
pub(crate) struct Held {
    /// So many at a time keep one for `hold` milliseconds, again and again.
    pub(crate) short: u64,
    pub(crate) hold: u64,
    /// So many take one and keep it.
    pub(crate) long: u64,
}

pub(crate) fn run(node: &Node, kind: &str, limit: u64, lease_ms: u64, held: &Held) -> Result<()> {
    let lease = Duration::from_millis(lease_ms);
    let options = ConcurrencyOptions::new(limit).ttl(lease).window(lease);
    let options = options.scheme(match kind {
        "node_share" => Scheme::NodeShare,
        "slots" => Scheme::Slots,
        _ => Scheme::DoubleWindow,
    });
    let (scripts, runtime) = (node.endpoint.clone(), node.runtime.clone());
    let limit = SharedConcurrency::new("faults", options, scripts, runtime)?;
    let kept = Duration::from_hours(1);
    let long = (0..held.long).map(|_| ("long", kept));
    let short = (0..held.short).map(|_| ("short", Duration::from_millis(held.hold)));
    for (what, hold) in long.chain(short) {
        let request = hold_again_and_again(limit.clone(), Arc::clone(&node.journal), what, hold);
        node.runtime.spawn(request);
    }
    while !node.is_over() {
        node.flush();
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

async fn hold_again_and_again(
    limit: SharedConcurrency,
    journal: Arc<Journal>,
    what: &'static str,
    hold: Duration,
) {
    loop {
        let Ok((_, Some(permit))) = limit.try_acquire(KEY, 1).await else {
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        journal.now(&format!("enter {what}"));
        let is_lost = tokio::select! {
            () = permit.lost() => true,
            () = tokio::time::sleep(hold) => false,
        };
        journal.now(&format!("leave {what}"));
        if is_lost {
            journal.now(&format!("lost {what}"));
        }
        drop(permit);
    }
}
