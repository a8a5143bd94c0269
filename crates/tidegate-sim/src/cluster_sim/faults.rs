//! What goes wrong between nodes and Redis, and when.

/// A stretch of time in milliseconds: from the first to before the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where it begins.
    pub from: u64,
    /// Where it ends.
    pub to: u64,
}

impl Span {
    /// A stretch of time.
    pub const fn new(from: u64, to: u64) -> Self {
        Self { from, to }
    }

    /// Whether it is then.
    pub const fn covers(&self, millis: u64) -> bool {
        self.from <= millis && millis < self.to
    }
}

/// Which messages of a node are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// What it sends, and what is sent to it.
    Both,
    /// What it sends.
    Requests,
    /// What is sent to it: Redis hears it, and it hears nothing.
    Replies,
}

/// What Redis loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// When.
    pub at: u64,
    /// It then knows what it knew so many milliseconds before; `None`: nothing.
    pub back: Option<u64>,
}

/// All that goes wrong in a run. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Redis does not answer anybody.
    pub outages: Vec<Span>,
    /// A node and Redis do not hear each other.
    pub cuts: Vec<(usize, Span, Cut)>,
    /// A node stands still; it is offered nothing meanwhile.
    pub stalls: Vec<(usize, Span)>,
    /// A node ends without a word, and starts anew.
    pub crashes: Vec<(usize, Span)>,
    /// Redis forgets.
    pub losses: Vec<Loss>,
    /// Redis's clock is set, by so many microseconds.
    pub steps: Vec<(u64, i64)>,
    /// Of a thousand answers so many get lost.
    pub lost_answers: u64,
    /// Of a thousand messages so many come up to 400 ms late.
    pub late: u64,
}

impl Faults {
    pub(super) fn is_out(&self, millis: u64) -> bool {
        self.outages.iter().any(|span| span.covers(millis))
    }

    pub(super) fn is_cut(&self, node: usize, millis: u64, way: Cut) -> bool {
        self.cuts.iter().any(|(who, span, cut)| {
            *who == node && span.covers(millis) && (*cut == way || *cut == Cut::Both)
        })
    }

    /// When a node that stands still goes on.
    pub(super) fn stall_end(&self, node: usize, millis: u64) -> Option<u64> {
        let stalls = self.stalls.iter();
        let ends = stalls.filter(|(who, span)| *who == node && span.covers(millis));
        ends.map(|(_, span)| span.to).max()
    }

    pub(super) fn is_crashed(&self, node: usize, millis: u64) -> bool {
        self.crashes
            .iter()
            .any(|(who, span)| *who == node && span.covers(millis))
    }
}
