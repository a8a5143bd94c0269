//! What a call of the script says, and how the script reckons.

use tidegate_redis::ScriptCall;

/// Shares are in millionths.
pub(super) const WHOLE: i128 = 1_000_000;

/// `ARGV` by name.
#[derive(Debug)]
pub(super) struct Args {
    pub(super) node: String,
    pub(super) seq: i128,
    pub(super) ack: i128,
    pub(super) demand: i128,
    pub(super) held: i128,
    pub(super) returned: i128,
    pub(super) want: i128,
    pub(super) minted: i128,
    pub(super) share: i128,
    pub(super) leaves: bool,
    pub(super) unit: i128,
    pub(super) num: i128,
    pub(super) den: i128,
    pub(super) full: i128,
    pub(super) tick: i128,
    pub(super) refresh: i128,
    pub(super) lease: i128,
    pub(super) silence: i128,
    pub(super) membership: i128,
    pub(super) grace: i128,
    pub(super) is_strict: bool,
}

impl Args {
    pub(super) fn read(call: &ScriptCall) -> Self {
        let text: Vec<String> = call.args.iter().map(|arg| text(arg)).collect();
        let at = |index: usize| text[index - 1].parse::<i128>().expect("a whole number");
        assert_eq!(text.len(), 21, "arguments of the script");
        Self {
            node: text[0].clone(),
            seq: at(2),
            ack: at(3),
            demand: at(4),
            held: at(5),
            returned: at(6),
            want: at(7),
            minted: at(8),
            share: at(9),
            leaves: at(10) == 1,
            unit: at(11),
            num: at(12),
            den: at(13),
            full: at(14),
            tick: at(15),
            refresh: at(16),
            lease: at(17),
            silence: at(18),
            membership: at(19),
            grace: at(20),
            is_strict: text[20] == "strict",
        }
    }

    /// What is refilled in so many ticks.
    pub(super) const fn refill(&self, ticks: i128) -> i128 {
        self.num * ticks
    }

    /// How long others than who calls are not looked at.
    pub(super) const fn sweep(&self) -> i128 {
        self.refresh / 2
    }

    /// What a node of this share may have minted and not used, at most.
    pub(super) fn saved_up(&self, share: i128) -> i128 {
        part(self.refill(self.refresh), share)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A part of something, rounded up.
pub(super) fn part(whole: i128, millionths: i128) -> i128 {
    ceil(whole * millionths, WHOLE)
}

pub(super) fn ceil(a: i128, b: i128) -> i128 {
    -(-a).div_euclid(b)
}
