//! What is said about wrong policies, to the letter.
//!
//! Each `problems/NAME.yaml` is read, and what comes out is `problems/NAME.txt`. To write these
//! anew, run the tests with `TIDEGATE_BLESS=1` and read the difference.

use std::fmt::Write;
use std::fs;

use tidegate_policy::{Severity, parse};

#[test]
fn each_wrong_policy_says_what_is_written_beside_it() {
    let bless = std::env::var_os("TIDEGATE_BLESS").is_some();
    let mut different = Vec::new();
    for (name, text) in super::texts("problems", "yaml") {
        let said = match parse(&format!("{name}.yaml"), &text) {
            Ok(loaded) => {
                let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
                format!("{}\n", warnings.join("\n\n"))
            }
            Err(problems) => format!("{problems}\n"),
        };
        let path = super::folder_path("problems").join(format!("{name}.txt"));
        if bless {
            fs::write(&path, &said).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        if said != written {
            different.push(format!(
                "--- {name}: written\n{written}\n--- {name}: said\n{said}"
            ));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn a_problem_can_be_read_by_machines() {
    let problems = parse("p.yaml", "limits:\n  a: { rate: 100, brust: 1 }\n").unwrap_err();
    let json = serde_json::to_value(&problems).unwrap();
    assert_eq!(
        json,
        serde_json::json!([
            {
                "severity": "error",
                "file": "p.yaml",
                "line": 2,
                "column": 14,
                "message": "a rate needs a time: `100` of what?",
                "help": "write `100/s`, `100/min` or `100 per 5s`",
                "text": "  a: { rate: 100, brust: 1 }",
            },
            {
                "severity": "error",
                "file": "p.yaml",
                "line": 2,
                "column": 19,
                "message": "unknown key `brust`",
                "help": "did you mean `burst`?",
                "text": "  a: { rate: 100, brust: 1 }",
            },
        ])
    );
}

#[test]
fn colour_is_only_there_when_asked_for() {
    let problems = parse("p.yaml", "limits: 1\n").unwrap_err();
    assert!(problems.render(true).contains('\u{1b}'));
    assert!(!problems.render(false).contains('\u{1b}'));
}

#[test]
fn a_hundred_problems_are_told_and_the_rest_counted() {
    let mut text = "limits:\n".to_owned();
    for n in 0..150 {
        writeln!(text, "  l{n}: {{ rate: fast }}").unwrap();
    }
    let problems = parse("p.yaml", &text).unwrap_err();
    assert_eq!((problems.iter().count(), problems.omitted()), (100, 50));
    assert!(problems.to_string().ends_with("... and 50 more"));
}

#[test]
fn an_error_is_told_however_many_warnings_there_are() {
    let mut text = "limits:\n".to_owned();
    for n in 0..150 {
        writeln!(text, "  l{n}: {{ rate: 0/s }}").unwrap();
    }
    text.push_str("  last: { rate: fast }\n");
    let problems = parse("p.yaml", &text).unwrap_err();
    assert_eq!(problems.iter().count(), 100);
    assert_eq!(problems.first_error().unwrap().line(), 152);
    assert_eq!(problems.iter().last().unwrap().severity(), Severity::Error);
}
