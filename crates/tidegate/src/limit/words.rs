//! Algorithms as words: beside states that outlive their process stands what they are states of.

use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::time::Duration;

use super::Algorithm;
use crate::time::nanos;
use crate::{CalendarUnit, Quota};

impl Algorithm {
    /// The algorithm and its numbers as words, the first of which says which it is. They mean the
    /// same to every later version; nothing else is said about them.
    pub fn to_words(&self) -> Vec<u64> {
        let (kind, numbers): (u64, &[u64]) = match *self {
            Self::TokenBucket(quota) => (1, &of(quota)),
            Self::FixedWindow { permits, window } => (2, &[permits, nanos(window)]),
            Self::WindowFromFirst { permits, window } => (3, &[permits, nanos(window)]),
            Self::CalendarWindow { permits, unit } => (4, &[permits, unit as u64]),
            Self::SlidingLog { permits, window } => (5, &[permits, nanos(window)]),
            Self::IntervalBucket { quota, aligned } => (6 + u64::from(aligned), &of(quota)),
            Self::SlidingWindow {
                permits,
                window,
                parts,
            } => (8, &[permits, nanos(window), parts.get().into()]),
            Self::SlidingCounter { permits, window } => (9, &[permits, nanos(window)]),
            Self::Nginx {
                requests,
                per_minute,
                burst,
                delay,
            } => {
                let per_minute = u64::from(per_minute);
                match delay {
                    None => (10, &[requests, per_minute, burst]),
                    Some(delay) => (10, &[requests, per_minute, burst, delay]),
                }
            }
            Self::SentinelWarmUp {
                count,
                warm_up_seconds,
                cold_factor,
            } => (11, &[count, warm_up_seconds.into(), cold_factor.into()]),
            Self::SentinelWarmUpQueue {
                count,
                warm_up_seconds,
                cold_factor,
            } => (12, &[count, warm_up_seconds.into(), cold_factor.into()]),
            Self::RedisCell {
                max_burst,
                count,
                period_seconds,
            } => (13, &[max_burst, count, period_seconds]),
            Self::SmoothBursty { quota, max_debt } => (14, &paid_later(quota, [nanos(max_debt)])),
            Self::SmoothWarmUp {
                quota,
                warm_up,
                cold_factor,
                max_debt,
            } => {
                let more = [nanos(warm_up), cold_factor.into(), nanos(max_debt)];
                (15, &paid_later(quota, more))
            }
            Self::Concurrency { max } => (16, &[max]),
        };
        let mut words = Vec::with_capacity(1 + numbers.len());
        words.push(kind);
        words.extend_from_slice(numbers);
        words
    }

    /// The algorithm of these words; `None` where they are none, or its numbers make no limit.
    pub fn from_words(words: &[u64]) -> Option<Self> {
        let read = read(words)?;
        read.validate().is_ok().then_some(read)
    }
}

fn read(words: &[u64]) -> Option<Algorithm> {
    match words {
        [..=9, ..] => read_window(words),
        _ => read_dialect(words),
    }
}

/// Buckets, windows and logs.
fn read_window(words: &[u64]) -> Option<Algorithm> {
    Some(match *words {
        [1, permits, period, burst, initial] => {
            Algorithm::TokenBucket(quota([permits, period, burst, initial]))
        }
        [2, permits, window] => Algorithm::FixedWindow {
            permits,
            window: Duration::from_nanos(window),
        },
        [3, permits, window] => Algorithm::WindowFromFirst {
            permits,
            window: Duration::from_nanos(window),
        },
        [4, permits, unit] => Algorithm::CalendarWindow {
            permits,
            unit: unit_of(unit)?,
        },
        [5, permits, window] => Algorithm::SlidingLog {
            permits,
            window: Duration::from_nanos(window),
        },
        [kind @ (6 | 7), permits, period, burst, initial] => Algorithm::IntervalBucket {
            quota: quota([permits, period, burst, initial]),
            aligned: kind == 7,
        },
        [8, permits, window, parts] => Algorithm::SlidingWindow {
            permits,
            window: Duration::from_nanos(window),
            parts: NonZeroU32::new(narrow(parts)?)?,
        },
        [9, permits, window] => Algorithm::SlidingCounter {
            permits,
            window: Duration::from_nanos(window),
        },
        _ => return None,
    })
}

/// What comes from elsewhere, and gates.
fn read_dialect(words: &[u64]) -> Option<Algorithm> {
    Some(match *words {
        [10, requests, per_minute @ (0 | 1), burst, ref delay @ ..] if delay.len() <= 1 => {
            Algorithm::Nginx {
                requests,
                per_minute: per_minute == 1,
                burst,
                delay: delay.first().copied(),
            }
        }
        [11, count, warm_up_seconds, cold_factor] => Algorithm::SentinelWarmUp {
            count,
            warm_up_seconds: narrow(warm_up_seconds)?,
            cold_factor: narrow(cold_factor)?,
        },
        [12, count, warm_up_seconds, cold_factor] => Algorithm::SentinelWarmUpQueue {
            count,
            warm_up_seconds: narrow(warm_up_seconds)?,
            cold_factor: narrow(cold_factor)?,
        },
        [13, max_burst, count, period_seconds] => Algorithm::RedisCell {
            max_burst,
            count,
            period_seconds,
        },
        [14, permits, period, burst, initial, max_debt] => Algorithm::SmoothBursty {
            quota: quota([permits, period, burst, initial]),
            max_debt: Duration::from_nanos(max_debt),
        },
        [
            15,
            permits,
            period,
            burst,
            initial,
            warm_up,
            cold_factor,
            max_debt,
        ] => Algorithm::SmoothWarmUp {
            quota: quota([permits, period, burst, initial]),
            warm_up: Duration::from_nanos(warm_up),
            cold_factor: narrow(cold_factor)?,
            max_debt: Duration::from_nanos(max_debt),
        },
        [16, max] => Algorithm::Concurrency { max },
        _ => return None,
    })
}

fn narrow(word: u64) -> Option<u32> {
    u32::try_from(word).ok()
}

fn of(quota: Quota) -> [u64; 4] {
    [
        quota.permits(),
        nanos(quota.period()),
        quota.burst_permits(),
        quota.initial_permits(),
    ]
}

fn paid_later<const N: usize>(quota: Quota, more: [u64; N]) -> Vec<u64> {
    of(quota).into_iter().chain(more).collect()
}

fn quota([permits, period, burst, initial]: [u64; 4]) -> Quota {
    let quota = Quota::new(permits, Duration::from_nanos(period)).burst(burst);
    if initial == burst {
        quota
    } else {
        quota.initial(initial)
    }
}

fn unit_of(word: u64) -> Option<CalendarUnit> {
    use CalendarUnit::{Day, Month, Week, Year};
    [Day, Week, Month, Year]
        .into_iter()
        .find(|unit| *unit as u64 == word)
}
