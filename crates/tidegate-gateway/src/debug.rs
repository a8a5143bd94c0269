//! The debug header: what each limit said, for those who may ask.

use std::hint::black_box;
use std::net::IpAddr;

use http::{HeaderMap, HeaderValue};
use tidegate_http::debug_field::{DEBUG, Said, debug_field};
use tidegate_node::Admission;
use tidegate_policy::DebugHeader;

/// Whether who asks may know: a client of the right address that says `1`, or anybody who says the
/// token.
pub(crate) fn may_ask(who: &DebugHeader, headers: &HeaderMap, client: IpAddr) -> bool {
    let Some(asked) = headers.get(DEBUG) else {
        return false;
    };
    let is_from_there = || who.from.iter().any(|network| network.contains(&client));
    let has_token = |token: &String| is_same(token.as_bytes(), asked.as_bytes());
    (asked == "1" && is_from_there()) || who.token.as_ref().is_some_and(has_token)
}

/// What each limit said of a request that takes this route.
pub(crate) fn answer(route: &str, admission: &Admission<'_>) -> HeaderValue {
    let told = admission.told().map(std::ptr::from_ref);
    let enforced = admission.applied().iter().map(|applied| Said {
        name: applied.limit.name(),
        decision: applied.decision,
        shadow: false,
        told: told == Some(std::ptr::from_ref(applied)),
    });
    let shadow = admission.shadow().iter().map(|applied| Said {
        name: applied.limit.name(),
        decision: applied.decision,
        shadow: true,
        told: false,
    });
    debug_field(route, enforced.chain(shadow))
}

/// Compares two texts in a time that says nothing of how much of them is the same.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differ = one
        .iter()
        .zip(other)
        .fold(0, |differ, (a, b)| black_box(differ | (a ^ b)));
    one.len() == other.len() && differ == 0
}
