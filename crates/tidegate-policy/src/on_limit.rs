//! What becomes of a request that a limit refuses.

use std::time::Duration;

/// What becomes of a request that a limit refuses. Where several refuse, the one that is told says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnLimit {
    /// How it is kept waiting first, if it is.
    pub tarpit: Option<Tarpit>,
    /// What happens then.
    pub action: Action,
}

/// Keeping those waiting who ask too much: a client that tries again at once is slowed down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tarpit {
    /// For how long.
    pub delay: Duration,
    /// Most requests that are kept waiting at once, of this limit; who would be one more is
    /// answered at once.
    pub length: usize,
}

/// What happens to a request that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is answered.
    Answer(Answer),
    /// It is sent elsewhere.
    Redirect {
        /// 302, 303 or 307.
        status: u16,
        /// Where to: a URL or a path, with `{limit}`, `{retry_after}` and `{uri}` in it to be
        /// filled in.
        to: String,
    },
    /// Another upstream answers it: an index into [`Policy::upstreams`](crate::Policy::upstreams).
    Upstream(usize),
}

/// An answer of a policy's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Fields of its header, beside those that say what the limit says.
    pub headers: Vec<(String, String)>,
    /// Bodies to choose from, by what the client accepts; the first where it does not say. Empty:
    /// a problem in JSON.
    pub pages: Vec<Page>,
}

/// The body of an answer. `{limit}` and `{retry_after}` in it are filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its media type.
    pub content_type: String,
    /// What it says.
    pub body: Vec<u8>,
}

impl Answer {
    /// The status of a refusal, where the policy says nothing.
    pub const REFUSED: u16 = 429;
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            status: Self::REFUSED,
            headers: Vec::new(),
            pages: Vec::new(),
        }
    }
}
