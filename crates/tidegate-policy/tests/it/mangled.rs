//! Whatever a file says, reading it ends, without a panic, and says why it is refused.

use std::fmt::Write;

use proptest::prelude::*;
use tidegate_policy::parse;

/// Reads `text` and draws whatever is wrong with it.
fn survive(text: &str) {
    match parse("mangled.yaml", text) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                assert!(!warning.render(true).is_empty());
            }
        }
        Err(problems) => {
            assert!(problems.first_error().is_some());
            for problem in &problems {
                assert!(problem.line() > 0 && problem.column() > 0);
                assert!(!problem.message().is_empty());
            }
            assert!(!problems.render(true).is_empty());
            serde_json::to_string(&problems).unwrap();
        }
    }
}

/// Pieces that policies are made of, and pieces that they are broken with.
const PIECES: &[&str] = &[
    "limits",
    "upstreams",
    "gateway",
    "admin",
    "routes",
    "a",
    "b",
    "rate",
    "burst",
    "key",
    "match",
    "overrides",
    "algorithm",
    "sliding_log",
    "10/s",
    "[10/s, 5/min]",
    "0/s",
    "5",
    "-1",
    "1e99",
    ".nan",
    "~",
    "true",
    "client_ip",
    "header:x",
    "path",
    "/**",
    "/{a}",
    ": ",
    ": ",
    ": ",
    "\n",
    "\n  ",
    "\n    ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "\"",
    "'",
    "#",
    "&x ",
    "*x",
    "<<",
    "!t ",
    "? ",
    "|",
    ">",
    "%",
    "\t",
    "---",
    "\u{0}",
    "\u{e9}",
    "\u{feff}",
    "\u{1f600}",
    "\r\n",
    "@",
    "`",
    "\\",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn pieces_in_any_order(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40)) {
        survive(&pieces.concat());
    }

    #[test]
    fn good_policies_with_a_piece_put_in_or_cut_out(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        cut in 0_usize..12,
        piece in prop::sample::select(PIECES),
    ) {
        let policies = super::policies();
        let mut text = which.get(&policies).1.clone();
        let start = text.floor_char_boundary(at.index(text.len()));
        let end = text.ceil_char_boundary((start + cut).min(text.len()));
        text.replace_range(start..end, piece);
        survive(&text);
    }

    #[test]
    fn any_text(text in "\\PC{0,60}") {
        survive(&text);
        survive(&format!("limits:\n  a: {{ rate: {text} }}\n"));
    }
}

#[test]
fn names_of_any_length_are_cut_in_messages() {
    let long = "x".repeat(100_000);
    let problems = parse("a", &format!("limits: {{ \"{long}\": {{ rate: 1/s }} }}\n")).unwrap_err();
    assert!(problems.first_error().unwrap().to_string().len() < 10_000);
    survive(&format!("{long}: 1\n"));
    survive(&format!("limits: {{ a: {{ rate: {long} }} }}\n"));
}

#[test]
fn depth_and_aliases_are_bounded() {
    survive(&format!(
        "limits: {}{}\n",
        "[".repeat(5_000),
        "]".repeat(5_000)
    ));
    survive(&"- ".repeat(50_000));
    survive(&"{a: ".repeat(50_000));
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, of) in ('b'..='k').zip('a'..='j') {
        let aliases = vec![format!("*{of}"); 8].join(", ");
        writeln!(bomb, "{name}: &{name} [{aliases}]").unwrap();
    }
    let problems = parse("bomb", &bomb).unwrap_err();
    assert!(
        problems
            .first_error()
            .unwrap()
            .message()
            .starts_with("this file is too deep, or too")
    );
}
