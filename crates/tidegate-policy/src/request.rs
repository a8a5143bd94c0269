//! What a policy wants to know of a request.

use std::borrow::Cow;
use std::net::IpAddr;

/// A request, as keys and routes see it.
///
/// Implemented by every door for what it receives. Values are bytes: a header need not be
/// UTF-8 to be counted. Whoever implements it decides what the client's address is (through
/// trusted proxies only) and gives the path in its normal form (RFC 3986 section 6.2.2, and `//`
/// as `/`): two spellings of one path that differ here are two paths to routes and keys, and so
/// a way around a limit.
pub trait Request {
    /// The client's address; `None` where there is none (a local socket).
    fn client_ip(&self) -> Option<IpAddr>;

    /// The method, as it was sent (`GET`).
    fn method(&self) -> &str;

    /// The host that was asked for, without a port; case does not matter.
    fn host(&self) -> Option<&str>;

    /// The path, without the query.
    fn path(&self) -> &str;

    /// The value of a header, by its lower-case name. A header that was sent more than once is
    /// its values joined with `", "`, in the order they came.
    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>>;

    /// The value of a cookie; the first, if it was sent more than once.
    fn cookie(&self, name: &str) -> Option<Cow<'_, [u8]>>;

    /// The value of a query parameter; the first, if it was sent more than once.
    fn query(&self, name: &str) -> Option<Cow<'_, [u8]>>;
}
