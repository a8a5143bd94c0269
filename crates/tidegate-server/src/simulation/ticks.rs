//! Steps of time and of counts that people read with ease.

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// 1, 2 and 5 of each power of ten up to half a second, then those of the clock and of days.
pub(super) const STEPS: [u64; 57] = {
    let mut steps = [0; 57];
    let (mut at, mut decade) = (0, 1);
    while decade < SECOND {
        steps[at] = decade;
        steps[at + 1] = 2 * decade;
        steps[at + 2] = 5 * decade;
        at += 3;
        decade *= 10;
    }
    let by_clock = [
        SECOND,
        2 * SECOND,
        5 * SECOND,
        10 * SECOND,
        20 * SECOND,
        30 * SECOND,
        MINUTE,
        2 * MINUTE,
        5 * MINUTE,
        10 * MINUTE,
        20 * MINUTE,
        30 * MINUTE,
        HOUR,
        2 * HOUR,
        6 * HOUR,
        12 * HOUR,
    ];
    let mut next = 0;
    while next < by_clock.len() {
        steps[at] = by_clock[next];
        at += 1;
        next += 1;
    }
    decade = DAY;
    let days = [1, 2, 5];
    next = 0;
    while at < steps.len() {
        steps[at] = decade * days[next % 3];
        at += 1;
        next += 1;
        if next % 3 == 0 {
            decade *= 10;
        }
    }
    steps
};

/// The smallest step that goes at most `most` times into `range`.
pub(super) fn time_step(range: u64, most: u64) -> u64 {
    let fits = |step: &u64| range / step <= most;
    STEPS.into_iter().find(fits).unwrap_or(range.max(1))
}

/// 1, 2 or 5 of a power of ten: the smallest that goes at most `most` times into `range`.
pub(super) fn count_step(range: u64, most: u64) -> u64 {
    let mut decade = 1_u64;
    loop {
        for step in [decade, 2 * decade, 5 * decade] {
            if range / step <= most {
                return step;
            }
        }
        decade = match decade.checked_mul(10) {
            Some(next) if next < u64::MAX / 10 => next,
            _ => return range.max(1),
        };
    }
}

/// So many nanoseconds, in the largest unit of which a step is whole tenths and that the range
/// has in it.
pub(super) fn label(nanos: u64, step: u64, range: u64) -> String {
    const UNITS: [(u64, &str); 7] = [
        (DAY, "d"),
        (HOUR, "h"),
        (MINUTE, "min"),
        (SECOND, "s"),
        (MILLI, "ms"),
        (1_000, "µs"),
        (1, "ns"),
    ];
    if nanos == 0 {
        return "0".to_owned();
    }
    for (unit, name) in UNITS {
        if range >= unit && (step * 10).is_multiple_of(unit) {
            let (whole, tenths) = (nanos / unit, nanos % unit * 10 / unit);
            return match tenths {
                0 => format!("{whole} {name}"),
                tenths => format!("{whole}.{tenths} {name}"),
            };
        }
    }
    format!("{nanos} ns")
}

#[cfg(test)]
mod tests;
