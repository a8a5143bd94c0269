//! The framer against its model, whole and split.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::model::{self, Message, Read};
use super::{Bounds, Framer, Step};

const BOUNDS: Bounds = Bounds {
    head_bytes: 300,
    trailer_bytes: 60,
    fields: 6,
};

/// Feeds `bytes` in these pieces, as a connection does; what came out, and what was handed on.
fn feed(bytes: &[u8], ends: &[usize]) -> (Read, Vec<u8>) {
    let mut framer = Framer::new(BOUNDS);
    let (mut held, mut from) = (Vec::new(), 0);
    let (mut read, mut handed_on) = (Read::default(), Vec::new());
    for &end in ends.iter().chain([&bytes.len()]) {
        held.extend_from_slice(&bytes[from..end]);
        from = end;
        loop {
            let step = framer.step(&held);
            match step {
                Step::Wait => break,
                Step::Blank(length) => drop(held.drain(..length)),
                Step::Head(length) => {
                    let head: Vec<u8> = held.drain(..length).collect();
                    handed_on.extend(&head);
                    read.messages.push(Message {
                        head,
                        ..Message::default()
                    });
                }
                Step::Body(length) => {
                    let raw: Vec<u8> = held.drain(..length).collect();
                    handed_on.extend(&raw);
                    read.messages.last_mut().unwrap().body.extend(raw);
                }
                Step::BadHead(fault) | Step::BadBody(fault) => {
                    let in_body = matches!(step, Step::BadBody(_));
                    read.fault = Some((fault.status.as_u16(), in_body));
                    assert_eq!(framer.step(&held), step, "a fault stays");
                    return (read, handed_on);
                }
            }
            if held.is_empty() {
                break;
            }
        }
        let most = BOUNDS.head_bytes.max(BOUNDS.trailer_bytes);
        assert!(held.len() < most, "{} bytes are held back", held.len());
    }
    (read, handed_on)
}

fn one_of(texts: &'static [&'static [u8]]) -> impl Strategy<Value = Vec<u8>> {
    select(texts).prop_map(<[u8]>::to_vec)
}

/// Mostly the first.
fn mostly(texts: &'static [&'static [u8]]) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![6 => Just(texts[0].to_vec()), 1 => one_of(texts)]
}

fn request_line() -> impl Strategy<Value = Vec<u8>> {
    mostly(&[
        b"POST /a HTTP/1.1\r\n",
        b"GET /a?b=`{c} HTTP/1.0\r\n",
        b"PUT http://a:80/b?c HTTP/1.1\r\n",
        b"PUT HTTPS://a HTTP/1.1\r\n",
        b"PUT https://a:80/ HTTP/1.1\r\n",
        b"PUT http://:80/ HTTP/1.1\r\n",
        b"PUT http://u@a/ HTTP/1.1\r\n",
        b"PUT ftp://a/ HTTP/1.1\r\n",
        b"OPTIONS * HTTP/1.1\r\n",
        b"CONNECT a:80 HTTP/1.1\r\n",
        b"GET /a#b HTTP/1.1\r\n",
        b"GET  / HTTP/1.1\r\n",
        b"GET /a\tb HTTP/1.1\r\n",
        b"GET /\xff HTTP/1.1\r\n",
        b"GET /\xc3\xa4 HTTP/1.1\r\n",
        b"GET / HTTP/1.2\r\n",
        b"GET /\r\n",
        b"\r\n",
        b"\n",
    ])
}

fn field() -> impl Strategy<Value = Vec<u8>> {
    one_of(&[
        b"Host: a\r\n",
        b"host:\t[::1]:8080 \r\n",
        b"Host: a,b\r\n",
        b"Host: a:70000\r\n",
        b"Host: A:443\r\n",
        b"Content-Length: 3\r\n",
        b"Content-Length: 3\r\n",
        b"Content-Length: +3\r\n",
        b"Content-Length: 3, 3\r\n",
        b"content_length: 3\r\n",
        b"Content-Length: 9223372036854775807\r\n",
        b"Content-Length: 9223372036854775808\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"transfer-encoding:Chunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"X: y\r\n",
        b"X: \xc3\xa4\t\r\n",
        b"X: \x00\r\n",
        b"X: a\rb\r\n",
        b"X: y\n",
        b" folded: 1\r\n",
        b"X : y\r\n",
        b": y\r\n",
        b"no colon\r\n",
    ])
}

fn chunk() -> impl Strategy<Value = Vec<u8>> {
    let long = (250_usize..260).prop_map(|length| {
        let extension = "x".repeat(length);
        format!("3;{extension}\r\nabc\r\n").into_bytes()
    });
    let chunks = mostly(&[
        b"3\r\nabc\r\n",
        b"3;a=\"b\" ;c\r\nabc\r\n",
        b"3 \t;a\r\nabc\r\n",
        b"3 \r\nabc\r\n",
        b"0000000000000003\r\nabc\r\n",
        b"00000000000000003\r\nabc\r\n",
        b"7fffffffffffffff\r\nabc",
        b"8000000000000000\r\nabc",
        b"10000000000000000\r\nabc",
        b"0x3\r\nabc\r\n",
        b"-3\r\nabc\r\n",
        b"\r\nabc\r\n",
        b"3\nabc\r\n",
        b"3\r\nabcd\r\n",
        b"3\r\nabc\n",
        b"0\r\n",
    ]);
    prop_oneof![8 => chunks, 1 => long]
}

fn trailer() -> impl Strategy<Value = Vec<u8>> {
    one_of(&[
        b"X: y\r\n",
        b"X: y\r\n",
        b"Content-Length: 3\r\n",
        b" X: y\r\n",
        b"X: \n",
    ])
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let chunked = (vec(chunk(), 0..4), vec(trailer(), 0..4));
    let chunked = chunked.prop_map(|(chunks, trailers)| {
        [&chunks.concat()[..], b"0\r\n", &trailers.concat(), b"\r\n"].concat()
    });
    prop_oneof![Just(b"abc".to_vec()), Just(Vec::new()), chunked]
}

fn request() -> impl Strategy<Value = Vec<u8>> {
    let host = mostly(&[b"Host: a\r\n", b""]);
    let encoding = one_of(&[
        b"",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
    ]);
    let long = prop_oneof![8 => Just(0_usize), 1 => 0_usize..300];
    let fields = vec(field(), 0..3);
    (request_line(), host, fields, encoding, long, body()).prop_map(
        |(line, host, fields, encoding, long, body)| {
            let long = match long {
                0 => String::new(),
                long => format!("X: {}\r\n", "x".repeat(long)),
            };
            let fields = fields.concat();
            [
                &line[..],
                &host,
                &fields,
                &encoding,
                long.as_bytes(),
                b"\r\n",
                &body,
            ]
            .concat()
        },
    )
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    // A byte is changed now and then, or left out.
    let change = (
        any::<Index>(),
        prop_oneof![any::<u8>(), select(&b"\r\n :;\t\0,"[..])],
    );
    let change = (change, any::<bool>());
    (vec(request(), 1..4), vec(change, 0..2)).prop_map(|(requests, changes)| {
        let mut bytes = requests.concat();
        for ((at, byte), leave_out) in changes {
            let at = at.index(bytes.len());
            if leave_out {
                bytes.remove(at);
            } else {
                bytes[at] = byte;
            }
        }
        bytes
    })
}

/// What the chunks of a raw body carry, as far as it has come.
fn decoded(message: &Message, whole: &Message) -> bool {
    let is_chunked = message
        .head
        .to_ascii_lowercase()
        .windows(17)
        .any(|window| window == b"transfer-encoding");
    if !is_chunked {
        return message.body == whole.body;
    }
    // The framer's says where chunks are; the model has taken them apart.
    let alone = [&message.head[..], &message.body].concat();
    let mut bounds = BOUNDS;
    bounds.head_bytes = usize::MAX;
    let again = model::read(&alone, &bounds);
    again.fault.is_none() && again.messages.len() == 1 && again.messages[0].body == whole.body
}

proptest! {
    #[test]
    fn the_framer_reads_what_its_model_reads(bytes in bytes()) {
        let (read, _) = feed(&bytes, &[]);
        let model = model::read(&bytes, &BOUNDS);
        prop_assert_eq!(read.fault, model.fault, "{:?}", bytes.escape_ascii().to_string());
        prop_assert_eq!(read.messages.len(), model.messages.len());
        for (message, wanted) in read.messages.iter().zip(&model.messages) {
            prop_assert_eq!(&message.head, &wanted.head);
            prop_assert!(decoded(message, wanted), "{message:?} {wanted:?}");
        }
    }

    #[test]
    fn where_the_bytes_are_split_does_not_matter(
        bytes in bytes(),
        splits in vec(any::<Index>(), 0..5),
    ) {
        let whole = feed(&bytes, &[]);
        let mut ends: Vec<_> = splits.iter().map(|split| split.index(bytes.len())).collect();
        ends.sort_unstable();
        prop_assert_eq!(&feed(&bytes, &ends), &whole);
        let single: Vec<_> = (0..bytes.len()).collect();
        prop_assert_eq!(&feed(&bytes, &single), &whole);
    }
}

#[test]
fn every_split_of_a_conversation_gives_the_same() {
    let bytes: &[u8] = b"\r\nPOST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n\
        5;x=y\r\nhello\r\n00\r\nX: y\r\n\r\nPUT /b HTTP/1.1\r\nContent-Length: 3\r\nhost:a\r\n\r\n\
        abcGET http://b/ HTTP/1.1\r\nHost: b:80\r\n\r\nGET / HTTP/1.1\r\nHost : a\r\n\r\n";
    let whole = feed(bytes, &[]);
    assert_eq!(whole.0.messages.len(), 3);
    assert_eq!(whole.0.fault, Some((400, false)));
    for first in 0..bytes.len() {
        for second in first..bytes.len() {
            assert_eq!(feed(bytes, &[first, second]), whole, "{first} {second}");
        }
    }
}

/// `cargo test --release -p tidegate-gateway --lib alone_ -- --ignored --nocapture`
#[test]
#[ignore = "long: prints what it costs"]
fn alone_a_typical_head_is_read_in_a_moment() {
    const ROUNDS: u32 = 1_000_000;
    let head = b"GET /api/v1/items/4711?page=2 HTTP/1.1\r\nHost: shop.example.com\r\n\
        User-Agent: wrk/4.2 (x86_64)\r\nAccept: application/json\r\n\
        Authorization: Bearer 0123456789abcdef0123456789abcdef\r\nX-Request-Id: 42\r\n\r\n";
    let mut framer = Framer::new(Bounds {
        head_bytes: 32 * 1024,
        trailer_bytes: 8 * 1024,
        fields: 100,
    });
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = std::time::Instant::now();
        for _ in 0..ROUNDS {
            let step = framer.step(std::hint::black_box(head));
            assert_eq!(std::hint::black_box(step), Step::Head(head.len()));
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
    }
    println!("{} bytes: {best:.1} ns", head.len());
    assert!(best < 2_000.0, "{best} ns");
}
