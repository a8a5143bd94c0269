//! Any bytes as an HTTP request's head: what makes a key is found without a panic, in one form
//! only, and what it says is displayed.
#![no_main]

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use http::request::Parts;
use libfuzzer_sys::fuzz_target;
use tidegate_http::{TrustedProxies, extract};
use tidegate_policy::{KeyPart, Request};

const MOST_HEADERS: usize = 32;
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const IPV6_PREFIX: u8 = 64;
const ROUTE: &str = "shop";

fuzz_target!(|bytes: &[u8]| {
    if let Some(parts) = head(bytes) {
        check_path(&parts);
        check_key(&Received::new(&parts), &parts);
    }
});

/// The head as a server would have read it; nothing for bytes that are no request.
fn head(bytes: &[u8]) -> Option<Parts> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    parsed.parse(bytes).ok()?;
    let mut request = http::Request::builder()
        .method(parsed.method?)
        .uri(parsed.path?);
    for header in parsed.headers.iter() {
        request = request.header(header.name, header.value);
    }
    Some(request.body(()).ok()?.into_parts().0)
}

/// A path has one form: what comes out goes in and comes out again.
fn check_path(parts: &Parts) {
    let path = extract::path(&parts.uri);
    if let Ok(again) = path.parse::<http::Uri>() {
        assert_eq!(extract::path(&again), path);
    }
}

fn check_key(request: &Received<'_>, parts: &Parts) {
    let named = parts
        .headers
        .keys()
        .map(|name| KeyPart::Header(name.as_str().to_owned()));
    let fixed = [
        KeyPart::ClientIp,
        KeyPart::Method,
        KeyPart::Host,
        KeyPart::Path,
        KeyPart::Route,
        KeyPart::Header("user-id".to_owned()),
        KeyPart::Cookie("a".to_owned()),
        KeyPart::Query("a".to_owned()),
    ];
    for part in named.chain(fixed) {
        let mut value = Vec::new();
        let found = part.write_value(request, ROUTE, IPV6_PREFIX, &mut value);
        assert!(
            found || value.is_empty(),
            "a part that is missing left bytes in the key"
        );
        let _ = part.display_value(&value);
    }
}

struct Received<'a> {
    client: IpAddr,
    path: Cow<'a, str>,
    parts: &'a Parts,
}

impl<'a> Received<'a> {
    fn new(parts: &'a Parts) -> Self {
        let network = "10.0.0.0/8".parse().expect("a network");
        let client = TrustedProxies::new([network]).client(PEER, &parts.headers);
        Self {
            client,
            path: extract::path(&parts.uri),
            parts,
        }
    }
}

impl Request for Received<'_> {
    fn client_ip(&self) -> Option<IpAddr> {
        Some(self.client)
    }

    fn method(&self) -> &str {
        self.parts.method.as_str()
    }

    fn host(&self) -> Option<&str> {
        extract::host(&self.parts.uri, &self.parts.headers)
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        extract::header(&self.parts.headers, name)
    }

    fn cookie(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        extract::cookie(&self.parts.headers, name)
    }

    fn query(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        extract::query(&self.parts.uri, name)
    }
}
