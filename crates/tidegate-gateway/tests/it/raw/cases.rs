//! The table.

/// One thing that a client sends on a connection of its own.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) sent: Vec<u8>,
    /// Of the answers, in order.
    pub(super) statuses: Vec<u16>,
    /// All that reached the upstream.
    seen: String,
    /// Or the beginning of a request, which is how far it had got when the fault was found.
    or_less: bool,
}

impl Case {
    /// Notes or checks what the upstream has seen of this case.
    pub(super) fn check(&self, seen: &str, beginnings: &mut Beginnings, split: usize) {
        if self.or_less {
            beginnings.0.push_str(seen);
            return;
        }
        let seen = with_whole_chunks(seen);
        assert_eq!(seen, self.seen, "{}, split at {split}", self.name);
    }
}

/// A chunk that came in two goes on in two.
fn with_whole_chunks(seen: &str) -> String {
    ["1\r\na\r\n2\r\nbc\r\n", "2\r\nab\r\n1\r\nc\r\n"]
        .iter()
        .fold(seen.to_owned(), |seen, two| seen.replace(two, ABC))
}

/// What an upstream has seen of requests that were broken off. The last of it may have come while
/// the next was asked.
#[derive(Default)]
pub(super) struct Beginnings(String);

impl Beginnings {
    pub(super) fn check(&self) {
        let whole = forwarded("POST /", CHUNKED) + ABC;
        assert!(self.0.contains(&whole), "nothing came so far");
        for seen in with_whole_chunks(&self.0).split("POST /").skip(1) {
            let seen = format!("POST /{seen}");
            let pieces = ["1\r\na\r\n", "2\r\nab\r\n"];
            let is_beginning =
                whole.starts_with(&seen) || pieces.iter().any(|end| seen.ends_with(end));
            assert!(is_beginning, "{seen:?}");
        }
    }
}

const ABC: &str = "3\r\nabc\r\n";
const CHUNKED: &str = "transfer-encoding: chunked\r\n";

pub(super) const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// What the gateway writes for the start of a request to host `a` and further fields.
fn forwarded(start: &str, fields: &str) -> String {
    forwarded_to("a", start, fields)
}

fn forwarded_to(host: &str, start: &str, fields: &str) -> String {
    format!(
        "{start} HTTP/1.1\r\nhost: {host}\r\n{fields}x-forwarded-for: 127.0.0.1\r\n\
         x-forwarded-proto: http\r\nx-forwarded-host: {host}\r\n\r\n"
    )
}

struct Table(Vec<Case>);

impl Table {
    fn add(&mut self, name: &'static str, sent: impl AsRef<[u8]>, statuses: &[u16], seen: &str) {
        self.0.push(Case {
            name,
            sent: sent.as_ref().to_vec(),
            statuses: statuses.to_vec(),
            seen: seen.to_owned(),
            or_less: false,
        });
    }

    fn refused(&mut self, name: &'static str, sent: impl AsRef<[u8]>, status: u16) {
        self.add(name, sent, &[status], "");
    }

    /// A GET with these lines behind `Host: a`.
    fn field(&mut self, name: &'static str, lines: &str, status: u16) {
        let sent = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n");
        self.refused(name, sent, status);
    }

    fn line(&mut self, name: &'static str, line: &str, status: u16) {
        self.refused(name, format!("{line}\r\nHost: a\r\n\r\n"), status);
    }

    /// A chunked body that is wrong. The upstream may have been sent the head and the chunks in
    /// front of the fault; never the end of the body.
    fn chunks(&mut self, name: &'static str, chunks: &str) {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let status = if name.starts_with("long trailer") {
            431
        } else {
            400
        };
        self.add(name, format!("{head}{chunks}"), &[status], "");
        let case = self.0.last_mut().expect("just added");
        case.or_less = true;
    }
}

pub(super) fn cases() -> Vec<Case> {
    let mut table = Table(Vec::new());
    fine(&mut table);
    request_lines(&mut table);
    hosts(&mut table);
    fields(&mut table);
    lengths(&mut table);
    chunks(&mut table);
    bounds(&mut table);
    table.0.sort_by_key(|case| case.or_less);
    table.0
}

fn fine(table: &mut Table) {
    let get = forwarded("GET /", "");
    table.add("plain", GET, &[200], &get);
    table.add(
        "blank lines in front",
        format!("\r\n\r\n{GET}"),
        &[200],
        &get,
    );
    table.add(
        "blank lines between",
        format!("{GET}\r\n{GET}\r\n\r\n{GET}"),
        &[200, 200, 200],
        &get.repeat(3),
    );
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    let seen = forwarded("POST /", "content-length: 3\r\n") + "abc";
    table.add(
        "a body, and one more",
        format!("{post}\r\n{GET}"),
        &[200, 200],
        &(seen + &get),
    );
    let tabs = "GET / HTTP/1.1\r\nHost:\ta \r\nX:\t\u{e4}b c\t\r\n\r\n";
    let seen = forwarded("GET /", "x: \u{e4}b c\r\n");
    table.add("tabs and text around values", tabs, &[200], &seen);
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding:Chunked\r\n\r\n";
    let seen = forwarded("POST /", "").replace(
        "x-forwarded-for",
        "transfer-encoding: chunked\r\nx-forwarded-for",
    );
    for (name, body) in [
        ("chunks", "3\r\nabc\r\n0\r\n\r\n"),
        ("chunks with extensions", "3;a=\"b\r\nabc\r\n0;c\r\n\r\n"),
        ("chunks with zeros in front", "0003\r\nabc\r\n000\r\n\r\n"),
        (
            "chunks with trailers",
            "3\r\nabc\r\n0\r\nX: y\r\nZ: \r\n\r\n",
        ),
    ] {
        let seen = format!("{seen}3\r\nabc\r\n0\r\n\r\n");
        table.add(name, format!("{chunked}{body}"), &[200], &seen);
    }
    table.add(
        "absolute",
        "GET http://a/b?c HTTP/1.1\r\nHost: a\r\n\r\n",
        &[200],
        &forwarded("GET /b?c", ""),
    );
    table.add(
        "absolute, default port",
        "GET https://a HTTP/1.1\r\nHost: A:443\r\n\r\n",
        &[200],
        &forwarded("GET /", ""),
    );
    table.add(
        "an address as host",
        "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
        &[200],
        &forwarded_to("[::1]:80", "GET /", ""),
    );
}

fn request_lines(table: &mut Table) {
    for (name, line) in [
        ("two spaces", "GET  / HTTP/1.1"),
        ("two spaces behind", "GET /  HTTP/1.1"),
        ("a space at the end", "GET / HTTP/1.1 "),
        ("a space in front", " GET / HTTP/1.1"),
        ("a space in the target", "GET /a b HTTP/1.1"),
        ("tabs", "GET\t/\tHTTP/1.1"),
        ("a tab in the target", "GET /a\tb HTTP/1.1"),
        ("no version", "GET /"),
        ("no target", "GET HTTP/1.1"),
        ("a method alone", "GET"),
        ("a bad method", "G@T / HTTP/1.1"),
        ("no method", "/ HTTP/1.1"),
        ("another protocol", "GET / HTCPCP/1.0"),
        ("a version in lower case", "GET / http/1.1"),
        ("a fragment", "GET /a#b HTTP/1.1"),
        ("a target that is no path", "GET a HTTP/1.1"),
        ("a host as target", "GET a:80 HTTP/1.1"),
        ("a target with a control byte", "GET /\u{1} HTTP/1.1"),
        ("a target with a NUL", "GET /\0 HTTP/1.1"),
        ("a target with brackets", "GET /<> HTTP/1.1"),
        ("* of a GET", "GET * HTTP/1.1"),
        ("another scheme", "GET ftp://a/ HTTP/1.1"),
        ("a scheme without a host", "GET http:/// HTTP/1.1"),
        ("a port without a host", "GET http://:80/ HTTP/1.1"),
        ("a user in the target", "GET http://u@a/ HTTP/1.1"),
        ("a carriage return in the line", "GET /\rX HTTP/1.1"),
    ] {
        table.line(name, line, 400);
    }
    table.line("HTTP/0.9", "GET / HTTP/0.9", 505);
    table.line("HTTP/1.2", "GET / HTTP/1.2", 505);
    table.line("HTTP/2.0", "GET / HTTP/2.0", 505);
    table.line("a version of four", "GET / HTTP/1.1.1", 505);
    table.line("CONNECT", "CONNECT a:80 HTTP/1.1", 501);
    table.refused(
        "HTTP/2 without asking",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        505,
    );
    table.refused(
        "TLS",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n",
        400,
    );
    table.refused("a blank line without its return", format!("\n{GET}"), 400);
    table.refused(
        "a request line without its return",
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        400,
    );
}

fn hosts(table: &mut Table) {
    table.refused("no host", "GET / HTTP/1.1\r\n\r\n", 400);
    table.refused(
        "two hosts of HTTP/1.0",
        "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n",
        400,
    );
    table.field("two hosts", "Host: b", 400);
    table.field("two equal hosts", "Host: a", 400);
    for (name, host) in [
        ("hosts in a row", "a, a"),
        ("a host with a path", "a/b"),
        ("a host with a user", "u@a"),
        ("a host with a space", "a b"),
        ("a host with two ports", "a:1:2"),
        ("a host with no number as port", "a:b"),
        ("a host with a port too large", "a:65536"),
        ("a host with an open bracket", "[::1"),
        ("a host behind an address", "[::1]a"),
        ("a host with a bad byte", "a\u{e4}"),
    ] {
        table.refused(name, format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), 400);
    }
    for (name, target) in [
        ("another host in the target", "http://b/"),
        ("another port in the target", "http://a:81/"),
        ("the port of another scheme", "https://a:80/"),
    ] {
        table.line(name, &format!("GET {target} HTTP/1.1"), 400);
    }
}

fn fields(table: &mut Table) {
    for (name, lines) in [
        ("a line without its return", "X: y\nZ: z"),
        ("a return alone", "X: a\rb"),
        ("a line with two returns", "X: a\r"),
        ("a folded line", "X: a\r\n b"),
        ("a line folded with a tab", "X: a\r\n\tb: c"),
        ("a space before the colon", "X : y"),
        ("a tab before the colon", "X\t: y"),
        ("no name", ": y"),
        ("no colon", "X"),
        ("a name with a space", "X Y: z"),
        ("a name with a bracket", "X(: y"),
        ("a name with a byte above ASCII", "X\u{e4}: y"),
        ("a NUL in a value", "X: a\0b"),
        ("a control byte in a value", "X: a\u{1b}b"),
        ("a DEL in a value", "X: a\u{7f}b"),
    ] {
        table.field(name, lines, 400);
    }
    table.refused(
        "a folded host",
        "GET / HTTP/1.1\r\nHost: a\r\n .b\r\n\r\n",
        400,
    );
    table.refused(
        "a fold in front",
        "GET / HTTP/1.1\r\n X: y\r\nHost: a\r\n\r\n",
        400,
    );
    table.refused(
        "an end without its return",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        400,
    );
}

fn lengths(table: &mut Table) {
    for (name, lines) in [
        (
            "a length and chunks",
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
        ),
        (
            "chunks and a length",
            "Transfer-Encoding: chunked\r\nContent-Length: 3",
        ),
        (
            "two equal lengths",
            "Content-Length: 3\r\nContent-Length: 3",
        ),
        ("two lengths", "Content-Length: 3\r\nContent-Length: 4"),
        ("lengths in a row", "Content-Length: 3, 3"),
        ("an empty length", "Content-Length: "),
        ("a length with a sign", "Content-Length: +3"),
        ("a length below 0", "Content-Length: -3"),
        ("a length in hex", "Content-Length: 0x3"),
        ("a length with a point", "Content-Length: 3.0"),
        ("a length with a space", "Content-Length: 3 3"),
        ("a length of 2^63", "Content-Length: 9223372036854775808"),
        (
            "a length of 2^64 and 3",
            "Content-Length: 18446744073709551619",
        ),
        ("a length with an underscore", "Content_Length: 3"),
        (
            "two codings",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        ),
        ("a coding with an underscore", "Transfer_Encoding: chunked"),
    ] {
        table.field(name, lines, 400);
    }
    for (name, coding) in [
        ("gzip", "gzip, chunked"),
        ("chunked twice", "chunked, chunked"),
        ("identity", "identity"),
        ("an empty coding", ""),
        ("a quoted coding", "\"chunked\""),
        ("a coding with a parameter", "chunked;x=y"),
    ] {
        table.field(name, &format!("Transfer-Encoding: {coding}"), 501);
    }
    let old = "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    table.refused("chunks of HTTP/1.0", old, 400);
}

fn chunks(table: &mut Table) {
    let long = format!("3;{}\r\nabc\r\n", "x".repeat(300));
    for (name, chunks) in [
        ("a chunk of nothing", "\r\nabc\r\n0\r\n\r\n"),
        ("a chunk size that is no number", "x\r\nabc\r\n0\r\n\r\n"),
        ("a chunk size with 0x", "0x3\r\nabc\r\n0\r\n\r\n"),
        ("a chunk size with a sign", "-3\r\nabc\r\n0\r\n\r\n"),
        ("a chunk size with a space behind", "3 \r\nabc\r\n0\r\n\r\n"),
        (
            "a chunk size with a space in front",
            " 3\r\nabc\r\n0\r\n\r\n",
        ),
        ("a chunk size of 2^63", "8000000000000000\r\nabc"),
        (
            "a chunk size of 2^64 and 3",
            "10000000000000003\r\nabc\r\n0\r\n\r\n",
        ),
        (
            "a chunk size of 17 digits",
            "00000000000000003\r\nabc\r\n0\r\n\r\n",
        ),
        ("a chunk size without its return", "3\nabc\r\n0\r\n\r\n"),
        ("a chunk size with a return alone", "3\rabc\r\n0\r\n\r\n"),
        ("an extension without its return", "3;a\nabc\r\n0\r\n\r\n"),
        ("an extension with a NUL", "3;\0\r\nabc\r\n0\r\n\r\n"),
        ("a long extension", &long),
    ] {
        table.chunks(name, chunks);
    }
    for (name, chunks) in [
        ("a chunk that is longer", "3\r\nabcd\r\n0\r\n\r\n"),
        ("a chunk without its return", "3\r\nabc\n0\r\n\r\n"),
        ("a bad trailer", "0\r\nX : y\r\n\r\n"),
        ("a trailer without its return", "0\r\nX: y\n\r\n"),
        ("a folded trailer", "0\r\nX: y\r\n z\r\n\r\n"),
        ("a trailer with a NUL", "0\r\nX: \0\r\n\r\n"),
        ("a length as trailer", "0\r\nContent-Length: 3\r\n\r\n"),
        (
            "a coding as trailer",
            "0\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        ("a host as trailer", "0\r\nHost: b\r\n\r\n"),
        ("an authority as trailer", "0\r\nAuthorization: x\r\n\r\n"),
        ("an end without its return", "0\r\n\n"),
    ] {
        table.chunks(name, chunks);
    }
    let long = format!("0\r\nX: {}\r\n\r\n", "x".repeat(64));
    table.chunks("long trailers", &long);
    let many = format!("0\r\n{}\r\n", "X:\r\n".repeat(11));
    table.chunks("long trailers: too many", &many);
}

fn bounds(table: &mut Table) {
    let long = |length: usize| "x".repeat(length);
    let target = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", long(9_000));
    table.refused("a long target", target, 414);
    let value = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", long(9_000));
    table.refused("a long field", value, 431);
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(10));
    table.refused("many fields", many, 431);
    let rest = "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n".len();
    let fits = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        long(8_192 - rest)
    );
    let seen = forwarded("GET /", &format!("x: {}\r\n", long(8_192 - rest)));
    table.add("a header that just fits", fits, &[200], &seen);
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(9));
    table.add(
        "as many fields as may be",
        many,
        &[200],
        &forwarded("GET /", &"x: y\r\n".repeat(9)),
    );
}
