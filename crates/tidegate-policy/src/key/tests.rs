use std::borrow::Cow;

use super::*;

#[derive(Default)]
struct Sent {
    ip: Option<&'static str>,
    host: Option<&'static str>,
    header: Option<&'static [u8]>,
}

impl Request for Sent {
    fn client_ip(&self) -> Option<IpAddr> {
        self.ip.map(|ip| ip.parse().unwrap())
    }
    fn method(&self) -> &'static str {
        "GET"
    }
    fn host(&self) -> Option<&str> {
        self.host
    }
    fn path(&self) -> &'static str {
        "/a"
    }
    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        assert_eq!(name, "user-id", "headers are asked for in lower case");
        self.header.map(Cow::Borrowed)
    }
    fn cookie(&self, _: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
    fn query(&self, _: &str) -> Option<Cow<'_, [u8]>> {
        Some(Cow::Borrowed(b""))
    }
}

fn written(part: &str, request: &Sent) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let part: KeyPart = part.parse().unwrap();
    part.write_value(request, "shop", 64, &mut out)
        .then_some(out)
}

#[test]
fn parts_read_as_they_are_written() {
    for text in [
        "client_ip",
        "method",
        "host",
        "path",
        "route",
        "header:user-id",
        "cookie:Sid",
    ] {
        assert_eq!(text.parse::<KeyPart>().unwrap().to_string(), text);
    }
    assert_eq!(
        "header:User-Id".parse(),
        Ok(KeyPart::Header("user-id".into()))
    );
    assert_eq!("query:a:b c".parse(), Ok(KeyPart::Query("a:b c".into())));
    assert_eq!("ip".parse::<KeyPart>(), Err(KeyPartError::Unknown));
    assert_eq!("header".parse::<KeyPart>(), Err(KeyPartError::Unknown));
    assert_eq!("header:".parse::<KeyPart>(), Err(KeyPartError::BadName));
    assert_eq!(
        "header:user id".parse::<KeyPart>(),
        Err(KeyPartError::BadName)
    );
    assert_eq!("query:".parse::<KeyPart>(), Err(KeyPartError::BadName));
}

#[test]
fn an_address_is_its_octets_and_ipv6_only_its_prefix() {
    let of = |ip| {
        written(
            "client_ip",
            &Sent {
                ip: Some(ip),
                ..Sent::default()
            },
        )
    };
    assert_eq!(of("192.0.2.1"), Some(vec![192, 0, 2, 1]));
    assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:ffff"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("2001:db8::1").unwrap().len(), 16);
    assert_eq!(written("client_ip", &Sent::default()), None);
}

#[test]
fn every_prefix_masks() {
    let ones = IpAddr::V6(Ipv6Addr::from_bits(u128::MAX));
    for prefix in 0..=128 {
        let IpAddr::V6(left) = masked(ones, prefix) else {
            unreachable!("IPv6 stays IPv6")
        };
        assert_eq!(left.to_bits().leading_ones(), u32::from(prefix));
        assert_eq!(left.to_bits().count_ones(), u32::from(prefix));
    }
    assert_eq!(masked(ones, 255), ones);
}

#[test]
fn a_policy_and_a_request_write_the_same_bytes() {
    let request = Sent {
        ip: Some("2001:db8::7"),
        host: Some("Shop.Example.com."),
        header: Some(b"vip-7"),
    };
    let pairs = [
        ("client_ip", "2001:db8::99"),
        ("host", "SHOP.example.com"),
        ("header:User-Id", "vip-7"),
        ("method", "GET"),
        ("path", "/a"),
        ("route", "shop"),
    ];
    for (part, value) in pairs {
        let key_part: KeyPart = part.parse().unwrap();
        let parsed = key_part.parse_value(value, 64).unwrap();
        assert_eq!(written(part, &request), Some(parsed.into_vec()), "{part}");
    }
    assert_eq!(
        KeyPart::ClientIp.parse_value("10.0.0.0/8", 64),
        Err(KeyValueError::NotAnAddress)
    );
    assert_eq!(
        KeyPart::Path.parse_value("api", 64),
        Err(KeyValueError::NotAPath)
    );
}

#[test]
fn a_path_is_named_as_requests_have_it() {
    assert_eq!(
        KeyPart::Path.parse_value("/%61pi", 64),
        Err(KeyValueError::PathNotNormal)
    );
    assert!(KeyPart::Path.parse_value("/api/", 64).is_ok());
    assert!(KeyPart::Path.parse_value("*", 64).is_ok());
}

#[test]
fn what_is_missing_is_not_what_is_empty() {
    let nothing = Sent::default();
    assert_eq!(written("header:user-id", &nothing), None);
    assert_eq!(
        written(
            "header:user-id",
            &Sent {
                header: Some(b""),
                ..nothing
            }
        ),
        Some(vec![])
    );
    assert_eq!(written("cookie:sid", &Sent::default()), None);
    assert_eq!(written("query:q", &Sent::default()), Some(vec![]));
    assert_eq!(written("host", &Sent::default()), None);
    let mut out = vec![1];
    assert!(!KeyPart::Route.write_value(&Sent::default(), "", 64, &mut out));
    assert_eq!(out, [1], "nothing is appended");
}

#[test]
fn bytes_that_are_no_text_are_counted_and_shown() {
    let request = Sent {
        header: Some(b"a\xff\nb"),
        ..Sent::default()
    };
    let value = written("header:user-id", &request).unwrap();
    assert_eq!(value, b"a\xff\nb");
    assert_eq!(
        KeyPart::Header("user-id".into()).display_value(&value),
        "a\\xff\\nb"
    );
    assert_eq!(
        KeyPart::ClientIp.display_value(&[192, 0, 2, 1]),
        "192.0.2.1"
    );
    assert_eq!(
        KeyPart::Path.display_value("/caf\u{e9}".as_bytes()),
        "/caf\u{e9}"
    );
}
