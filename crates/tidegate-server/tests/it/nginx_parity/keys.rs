//! What is one key to both: `limit_req_zone`'s variables, and the parts of a key here.

use std::net::SocketAddr;

use super::sides::Sides;
use crate::running::{get, status};

/// One request a minute of each key: whether this one passes.
fn passes(side: SocketAddr, (path, headers): (&str, &str)) -> bool {
    let (head, _) = get(side, path, headers);
    match status(&head) {
        200 => true,
        503 => false,
        other => panic!("status {other}"),
    }
}

/// nginx by `variables`, and the gateway by `key` with what becomes of a missing part.
fn sides(variables: &str, key: &str) -> Sides {
    let zone = format!("limit_req_zone \"{variables}\" zone=one:64k rate=1r/m;");
    let policy = format!(
        "limits:\n  one: {{ algorithm: nginx, rate: 1/min, key: {key}, \
         on_limit: {{ reject: {{ status: 503 }} }} }}\n\
         upstreams: {{ echo: {{ builtin: echo }} }}\n\
         gateway:\n  routes: [{{ id: all, upstream: echo, limits: [one] }}]\n"
    );
    let server = "location / { limit_req zone=one; stub_status; }";
    Sides::start(&zone, server, &policy)
}

/// What becomes of requests, one after the other: at nginx, and here.
#[track_caller]
fn check(sides: &Sides, requests: &[(&str, &str)], [nginx, ours]: [&[bool]; 2]) {
    let passed = sides.addresses().map(|side| {
        let passed = requests.iter().map(|request| passes(side, *request));
        passed.collect::<Vec<_>>()
    });
    assert_eq!(passed, [nginx.to_vec(), ours.to_vec()], "{requests:?}");
}

// shows: A5 (HTTP parts), D3 (limit_req)
#[test]
fn with_pass_if_empty_what_is_missing_is_as_at_nginx() {
    let sides = sides(
        "$http_a$http_b",
        "[\"header:a\", \"header:b\"], on_missing: pass_if_empty",
    );
    let requests = [
        ("/", ""),
        ("/", ""),
        ("/", "a:\r\n"),
        ("/", "a:\r\nb: \r\n"),
        ("/", "a: 1\r\n"),
        ("/", "a: 1\r\nb:\r\n"),
        ("/", "b: 2\r\n"),
        ("/", "a:\r\nb: 2\r\n"),
    ];
    let passed = [true, true, true, true, true, false, true, false];
    check(&sides, &requests, [&passed, &passed]);
}

/// nginx writes the values one behind the other, and forgets where each ends.
// shows: A5 (HTTP parts), D3 (limit_req)
#[test]
fn parts_are_kept_apart_and_a_part_that_nginx_calls_another_may_be_the_same() {
    let sides = sides(
        "$http_a$http_b$arg_id",
        "[\"header:a\", \"header:b\", \"query:id\"], on_missing: pass_if_empty",
    );
    let requests = [
        ("/", "a: ab\r\nb: c\r\n"),
        ("/", "a: a\r\nb: bc\r\n"),
        ("/", "a: abc\r\n"),
        // Of a query nginx takes what was written.
        ("/?id=a", ""),
        ("/?id=%61", ""),
    ];
    let nginx = [true, false, false, true, true];
    let ours = [true, true, true, true, false];
    check(&sides, &requests, [&nginx, &ours]);
}

// shows: A5 (HTTP parts), D3 (limit_req)
#[test]
fn a_client_is_its_address_at_both() {
    let sides = sides("$binary_remote_addr", "[client_ip]");
    // Who is not trusted may say what it likes.
    let requests = [("/", ""), ("/", "x-forwarded-for: 192.0.2.1\r\n")];
    check(&sides, &requests, [&[true, false], &[true, false]]);
}
