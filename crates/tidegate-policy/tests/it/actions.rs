//! What becomes of requests that are refused, and who may come in at all.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use tidegate_policy::{Action, Answer, Denial, KeyPart, Page, Policy, Request, Tarpit, load};

fn policy() -> Policy {
    let path = super::folder_path("policies").join("actions.yaml");
    load(&path)
        .unwrap_or_else(|problems| panic!("{problems}"))
        .policy
}

struct From(&'static str, &'static [(&'static str, &'static str)]);

impl Request for From {
    fn client_ip(&self) -> Option<IpAddr> {
        self.0.parse().ok()
    }

    fn method(&self) -> &'static str {
        "GET"
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn path(&self) -> &'static str {
        "/"
    }

    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let found = self.1.iter().find(|(of, _)| *of == name);
        found.map(|(_, value)| Cow::Borrowed(value.as_bytes()))
    }

    fn cookie(&self, _: &str) -> Option<Cow<'_, [u8]>> {
        None
    }

    fn query(&self, _: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
}

// shows: A8
#[test]
fn each_action_is_what_the_file_says() {
    let policy = policy();
    let on_limit = |name: &str| {
        let rule = &policy.limits[policy.limit_named(name).unwrap().start];
        rule.on_limit.as_deref().unwrap().clone()
    };
    let page = |content_type: &str, body: &str| Page {
        content_type: content_type.to_owned(),
        body: body.as_bytes().to_vec(),
    };
    let visitors = on_limit("visitors");
    let busy = Answer {
        status: 503,
        headers: vec![("x-reason".to_owned(), "busy".to_owned())],
        pages: vec![
            page("application/json", "{ \"busy\": \"{limit}\" }"),
            page(
                "text/html; charset=utf-8",
                "<h1>Busy</h1><p>Come back in {retry_after} s.</p>",
            ),
        ],
    };
    assert_eq!(
        (visitors.tarpit, visitors.action),
        (None, Action::Answer(busy))
    );
    let orders = on_limit("orders");
    let (delay, length) = (Duration::from_secs(5), 10);
    assert_eq!(orders.tarpit, Some(Tarpit { delay, length }));
    let (status, to) = (307, "https://busy.example.com/?from={uri}".to_owned());
    assert_eq!(orders.action, Action::Redirect { status, to });
    assert_eq!(on_limit("search").action, Action::Upstream(1));
    let less = Answer {
        status: 200,
        headers: Vec::new(),
        pages: vec![
            page("text/plain; charset=utf-8", "none today"),
            page("application/json", "{ \"news\": [] }\n"),
        ],
    };
    assert_eq!(on_limit("news").action, Action::Answer(less));
}

// shows: A8
#[test]
fn who_is_listed_earlier_goes_before_who_is_listed_later_and_all_others() {
    let policy = policy();
    let queue = policy.limits[0].queue.as_ref().unwrap();
    let first = queue.first.as_ref().unwrap();
    let priority = |plan| first.of(&From("192.0.2.1", plan), "", 64);
    let gold = priority(&[("plan", "gold")]);
    let silver = priority(&[("plan", "silver")]);
    assert!(gold > silver && silver > 0, "{gold} {silver}");
    assert_eq!(priority(&[("plan", "bronze")]), 0);
    assert_eq!(priority(&[]), 0);
}

// shows: A4
#[test]
fn who_is_denied_or_not_allowed_may_not_come_in() {
    let policy = policy();
    let gateway = policy.gateway.as_ref().unwrap();
    let denial = |from: &From| gateway.access.denial(from, "");
    assert_eq!(denial(&From("203.0.113.1", &[])), None);
    assert_eq!(
        denial(&From("192.0.2.255", &[])),
        Some(Denial::Denied(&KeyPart::ClientIp))
    );
    let mapped = From("::ffff:198.51.100.7", &[]);
    assert_eq!(denial(&mapped), Some(Denial::Denied(&KeyPart::ClientIp)));
    assert_eq!(denial(&From("198.51.100.8", &[])), None);
    let part = KeyPart::Header("user-id".to_owned());
    let eve = From("203.0.113.1", &[("user-id", "eve")]);
    assert_eq!(denial(&eve), Some(Denial::Denied(&part)));
    assert_eq!(denial(&From("203.0.113.1", &[("user-id", "Eve")])), None);

    let admin = gateway.routes.iter().next().unwrap();
    assert_eq!(admin.access.denial(&From("10.9.9.9", &[]), "admin"), None);
    let stranger = admin.access.denial(&From("11.0.0.1", &[]), "admin");
    assert_eq!(stranger, Some(Denial::NotAllowed));
    let nobody = admin.access.denial(&From("unknown", &[]), "admin");
    assert_eq!(nobody, Some(Denial::NotAllowed));
}

// shows: A4
#[test]
fn who_is_exempt_is_on_one_of_the_lists() {
    let policy = policy();
    let is_exempt = |from: &From| policy.limits[0].exempt.find(from, "").is_some();
    assert!(is_exempt(&From("127.0.0.1", &[])));
    assert!(is_exempt(&From("2001:db8:ffff::1", &[])));
    assert!(is_exempt(&From(
        "203.0.113.1",
        &[("x-health", "yes please")]
    )));
    assert!(!is_exempt(&From("2001:db9::1", &[])));
    assert!(!is_exempt(&From("203.0.113.1", &[("x-health", "no")])));
}

#[test]
fn a_pipe_in_place_of_an_answer_is_refused_and_not_waited_for() {
    let folder = std::env::temp_dir().join(format!("tidegate-pipe-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(folder.join("busy.html"))
        .status()
        .unwrap();
    assert!(made.success());
    let name = folder.join("policy.yaml").display().to_string();
    let text = "limits:\n  a: { rate: 1/s, on_limit: { reject: { file: busy.html } } }\n";
    let problems = tidegate_policy::parse(&name, text).unwrap_err().to_string();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(problems.contains("it is no regular file"), "{problems}");
}
