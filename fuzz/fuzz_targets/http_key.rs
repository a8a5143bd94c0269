//! Any bytes as an HTTP request's head: what makes a key is found without a panic, in one form
//! only, and what it says is displayed.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use http::request::Parts;
use libfuzzer_sys::fuzz_target;
use tidegate_gateway::RequestView;
use tidegate_http::{TrustedProxies, extract};
use tidegate_policy::KeyPart;

const MOST_HEADERS: usize = 32;
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const IPV6_PREFIX: u8 = 64;
const ROUTE: &str = "shop";

fuzz_target!(|bytes: &[u8]| {
    if let Some(parts) = head(bytes) {
        check_path(&parts);
        check_key(&parts);
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

fn check_key(parts: &Parts) {
    let network = "10.0.0.0/8".parse().expect("a network");
    let client = TrustedProxies::new([network]).client(PEER, &parts.headers);
    let request = RequestView::new(parts, Some(client));
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
        let found = part.write_value(&request, ROUTE, IPV6_PREFIX, &mut value);
        assert!(
            found || value.is_empty(),
            "a part that is missing left bytes in the key"
        );
        let _ = part.display_value(&value);
    }
}
