//! Time that a thread had a core for: what else the machine does is not in it.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Calls up to so many nanoseconds are measured by the system's clock alone: asking for a thread's
/// own time is a call into the kernel, and beyond this the smaller error.
const ASK_THE_KERNEL: u64 = 10_000;

/// Nanoseconds for which this thread has had a core.
pub(crate) fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    seconds * 1_000_000_000 + nanos
}

/// Nanoseconds that a call took; without those in which the thread had no core, where it took
/// long.
#[inline]
pub(crate) fn time(call: impl FnOnce()) -> u64 {
    let own = thread_nanos();
    // Not the bare counter of the processor: that is read before what comes first is done.
    let start = Instant::now();
    call();
    let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    if nanos < ASK_THE_KERNEL {
        return nanos;
    }
    nanos.min(thread_nanos() - own)
}
