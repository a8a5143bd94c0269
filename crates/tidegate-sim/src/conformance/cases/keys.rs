//! What the key of a request is: parts that are missing, sent twice or no text.

use super::{ALL, NODE, each, user};
use crate::conformance::Case;
use crate::conformance::script::{Script, Told, ToldRetry, at};

pub(super) const CASES: &[Case] = &[
    Case {
        id: 36,
        title: "a part is missing: deny",
        doors: NODE,
        script: missing_denied,
    },
    Case {
        id: 36,
        title: "a part is missing: pass",
        doors: NODE,
        script: missing_passed,
    },
    Case {
        id: 36,
        title: "a part is missing: shared",
        doors: NODE,
        script: missing_shared,
    },
    Case {
        id: 36,
        title: "a header sent twice",
        doors: ALL,
        script: header_twice,
    },
    Case {
        id: 36,
        title: "a value that is no UTF-8",
        doors: ALL,
        script: not_utf8,
    },
];

fn by_user(on_missing: &str) -> String {
    format!("limits:\n  l: {{ rate: 2/h, key: \"header:user\", on_missing: {on_missing} }}\n")
}

fn missing() -> Vec<String> {
    let mut trace = each([0; 4], "");
    trace.extend(each([0; 3], &user("a")));
    trace
}

fn missing_denied() -> Script {
    Script::new(&by_user("deny"), missing())
        .then_each(4, Told::denied(ToldRetry::Never))
        .then_each(2, Told::ALLOWED)
        .then([Told::DENIED])
}

fn missing_passed() -> Script {
    Script::new(&by_user("pass"), missing())
        .then_each(4, Told::ALLOWED)
        .then_each(2, Told::ALLOWED)
        .then([Told::DENIED])
}

fn missing_shared() -> Script {
    Script::new(&by_user("shared"), missing())
        .then_each(2, Told::ALLOWED)
        .then_each(2, Told::DENIED)
        .then_each(2, Told::ALLOWED)
        .then([Told::DENIED])
}

fn header_twice() -> Script {
    let list = |values: &[&str]| {
        let pairs: Vec<String> = values
            .iter()
            .map(|v| format!("[\"user\",\"{v}\"]"))
            .collect();
        at(0, &format!("\"headers\":[{}]", pairs.join(",")))
    };
    // Twice is once with the values joined, in their order.
    let trace = vec![
        list(&["a", "b"]),
        list(&["a, b"]),
        list(&["a", "b"]),
        list(&["b", "a"]),
        list(&["a"]),
    ];
    Script::new(&by_user("deny"), trace)
        .then_each(2, Told::ALLOWED)
        .then([Told::DENIED])
        .then_each(2, Told::ALLOWED)
}

fn not_utf8() -> Script {
    let blob = |base64: &str| {
        at(
            0,
            &format!("\"headers\":{{\"user\":{{\"base64\":\"{base64}\"}}}}"),
        )
    };
    // 0xFF and 0xFE are no text, and two keys.
    let trace = vec![blob("/w=="), blob("/w=="), blob("/w=="), blob("/g==")];
    Script::new(&by_user("deny"), trace)
        .then_each(2, Told::ALLOWED)
        .then([Told::DENIED, Told::ALLOWED])
}
