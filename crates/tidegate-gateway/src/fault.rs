//! Why a message goes no further.

use http::StatusCode;

/// What is wrong with a request, and the status that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    pub(crate) detail: &'static str,
}

impl Fault {
    pub(crate) const fn new(status: StatusCode, detail: &'static str) -> Self {
        Self { status, detail }
    }

    /// 400, which is most of them.
    pub(crate) const fn bad(detail: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }
}
