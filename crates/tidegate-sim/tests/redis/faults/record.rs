//! What a node has printed so far, and what several have passed together.

/// What one node has done. Times are Unix microseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// When a request that passed was made, and when it was allowed.
    pub(crate) passed: Vec<(u64, u64)>,
    /// How often Redis had been asked for anything by then.
    pub(crate) calls: Vec<(u64, u64)>,
    /// When a place was taken (+1) or left (-1).
    pub(crate) places: Vec<(u64, i64)>,
    /// When a long holder took its place, and when any holder lost its own.
    pub(crate) long: Vec<u64>,
    pub(crate) lost: Vec<u64>,
}

impl Record {
    pub(crate) fn note(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse::<u64>().unwrap();
        match words[..] {
            ["passed", asked, answered] => self.passed.push((number(asked), number(answered))),
            ["calls", at, calls] => self.calls.push((number(at), number(calls))),
            ["enter", what, at] => {
                self.places.push((number(at), 1));
                self.long.extend((what == "long").then(|| number(at)));
            }
            ["leave", _, at] => self.places.push((number(at), -1)),
            ["lost", _, at] => self.lost.push(number(at)),
            _ => panic!("a node said: {line}"),
        }
    }

    /// How often Redis had been asked by then, as far as was told.
    pub(crate) fn calls_by(&self, at: u64) -> u64 {
        let told = self.calls.partition_point(|(told, _)| *told <= at);
        self.calls[..told].last().map_or(0, |(_, calls)| *calls)
    }
}

/// The most that passed beyond rate * t in any stretch of milliseconds: requests that were made and
/// allowed within it. So what a busy machine delays between a decision and its note is no excess.
pub(crate) fn most_beyond_rate(passed: &[(u64, u64)], rate: u64) -> i64 {
    let (Some(first), Some(last)) = (
        passed.iter().map(|(asked, _)| asked / 1000).min(),
        passed.iter().map(|(_, answered)| answered / 1000).max(),
    ) else {
        return 0;
    };
    let millis = (last - first + 1) as usize;
    let mut by_start = vec![Vec::new(); millis];
    for (asked, answered) in passed {
        by_start[(asked / 1000 - first) as usize].push((answered / 1000 - first) as usize);
    }
    let mut ended = vec![0_i64; millis];
    let mut most = i64::MIN;
    for start in (0..millis).rev() {
        for end in &by_start[start] {
            ended[*end] += 1000;
        }
        if by_start[start].is_empty() {
            continue;
        }
        let mut beyond = 0;
        for ends in &ended[start..] {
            beyond += ends - rate.cast_signed();
            most = most.max(beyond);
        }
    }
    most.div_euclid(1000)
}

#[test]
fn a_stretch_has_what_was_asked_and_answered_within_it() {
    let ms = |asked: u64, answered: u64| (asked * 1000, answered * 1000);
    // 5 within one millisecond, at one a millisecond.
    assert_eq!(most_beyond_rate(&[ms(7, 7); 5], 1000), 4);
    // The same, noted late: somewhere within six milliseconds.
    assert_eq!(most_beyond_rate(&[ms(7, 12); 5], 1000), -1);
    let two_bursts = [[ms(0, 0); 5], [ms(3, 3); 5]].concat();
    assert_eq!(most_beyond_rate(&two_bursts, 1000), 6);
    assert_eq!(most_beyond_rate(&[], 1000), 0);
}
