use http::HeaderValue;

use super::*;

#[track_caller]
fn check(trusted: &[&str], peer: &str, lines: &[&str], client: &str) {
    let trusted = TrustedProxies::new(trusted.iter().map(|network| network.parse().unwrap()));
    let mut headers = HeaderMap::new();
    for line in lines {
        let value = HeaderValue::from_bytes(line.as_bytes()).unwrap();
        headers.append(X_FORWARDED_FOR, value);
    }
    let found = trusted.client(peer.parse().unwrap(), &headers);
    assert_eq!(found, client.parse::<IpAddr>().unwrap());
}

#[test]
fn without_trusted_proxies_the_peer_is_the_client() {
    check(&[], "192.0.2.1", &[], "192.0.2.1");
    check(&[], "192.0.2.1", &["6.6.6.6"], "192.0.2.1");
    check(&["10.0.0.0/8"], "192.0.2.1", &["6.6.6.6"], "192.0.2.1");
}

#[test]
fn the_rightmost_hop_that_is_not_trusted_is_the_client() {
    let trusted = ["10.0.0.0/8"];
    check(&trusted, "10.0.0.1", &["192.0.2.1"], "192.0.2.1");
    check(&trusted, "10.0.0.1", &["6.6.6.6, 192.0.2.1"], "192.0.2.1");
    check(
        &trusted,
        "10.0.0.1",
        &["6.6.6.6,192.0.2.1 ,\t10.9.9.9"],
        "192.0.2.1",
    );
    check(
        &trusted,
        "10.0.0.1",
        &["6.6.6.6", "192.0.2.1", "10.0.0.3, 10.0.0.2"],
        "192.0.2.1",
    );
}

#[test]
fn if_all_are_trusted_it_is_the_leftmost() {
    check(
        &["10.0.0.0/8"],
        "10.0.0.1",
        &["10.1.1.1, 10.2.2.2"],
        "10.1.1.1",
    );
    check(&["10.0.0.0/8"], "10.0.0.1", &[], "10.0.0.1");
    check(&["0.0.0.0/0"], "10.0.0.1", &["6.6.6.6, 7.7.7.7"], "6.6.6.6");
}

#[test]
fn a_malformed_entry_stops_the_walk_at_the_last_trusted_hop() {
    let trusted = ["10.0.0.0/8"];
    for garbage in [
        "unknown",
        "_hidden",
        "1.2.3",
        "192.0.2.1.5",
        "fe80::1%eth0",
        "\"6.6.6.6\"",
    ] {
        check(
            &trusted,
            "10.0.0.1",
            &[&format!("6.6.6.6, {garbage}")],
            "10.0.0.1",
        );
        check(
            &trusted,
            "10.0.0.1",
            &[&format!("6.6.6.6, {garbage}, 10.0.0.7")],
            "10.0.0.7",
        );
    }
    check(&trusted, "10.0.0.1", &["6.6.6.6, \u{fc}"], "10.0.0.1");
}

#[test]
fn empty_elements_are_no_hops() {
    check(&["10.0.0.0/8"], "10.0.0.1", &["192.0.2.1,, ,"], "192.0.2.1");
    check(
        &["10.0.0.0/8"],
        "10.0.0.1",
        &["", "192.0.2.1", ""],
        "192.0.2.1",
    );
}

#[test]
fn a_port_is_ignored_and_ipv6_is_read_in_all_its_forms() {
    let trusted = ["10.0.0.0/8", "fd00::/8"];
    check(&trusted, "10.0.0.1", &["192.0.2.1:4711"], "192.0.2.1");
    check(&trusted, "10.0.0.1", &["2001:db8::1"], "2001:db8::1");
    check(&trusted, "10.0.0.1", &["[2001:db8::1]"], "2001:db8::1");
    check(&trusted, "10.0.0.1", &["[2001:db8::1]:80"], "2001:db8::1");
    check(
        &trusted,
        "fd00::1",
        &["2001:db8::1, fd00::2"],
        "2001:db8::1",
    );
    check(&trusted, "10.0.0.1", &["192.0.2.1, [10.0.0.4]"], "10.0.0.1");
}

#[test]
fn ipv4_in_ipv6_form_is_ipv4() {
    check(
        &["10.0.0.0/8"],
        "::ffff:10.0.0.1",
        &["::ffff:192.0.2.1"],
        "192.0.2.1",
    );
    check(
        &["::ffff:10.0.0.0/104"],
        "10.0.0.1",
        &["192.0.2.1"],
        "192.0.2.1",
    );
    check(&[], "::ffff:192.0.2.1", &[], "192.0.2.1");
}

#[test]
fn a_chain_is_walked_only_so_far() {
    let chain = vec!["10.0.0.2"; TrustedProxies::MAX_HOPS].join(",");
    check(
        &["10.0.0.0/8"],
        "10.0.0.1",
        &[&format!("192.0.2.1,{chain}")],
        "10.0.0.2",
    );
    let shorter = vec!["10.0.0.2"; TrustedProxies::MAX_HOPS - 1].join(",");
    check(
        &["10.0.0.0/8"],
        "10.0.0.1",
        &[&format!("192.0.2.1,{shorter}")],
        "192.0.2.1",
    );
}
