//! Commands that answer and end.

use std::process::Stdio;

use crate::running::{Folder, Serve, run, text, tidegate};

#[test]
fn the_default_policy_is_fine_and_its_schema_is_json() {
    let default = run(&["policy", "default"]);
    assert!(default.status.success());
    let folder = Folder::new();
    let path = folder.write("policy.yaml", &text(&default.stdout));
    let check = run(&["policy", "check", path.to_str().unwrap()]);
    assert_eq!(check.status.code(), Some(0));
    assert!(text(&check.stdout).ends_with("fine: 1 limit, 1 route, 1 upstream, 0 warnings\n"));
    let schema = run(&["policy", "schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&schema.stdout).unwrap();
    assert!(schema["properties"]["limits"].is_object());
}

// shows: F1 (file)
#[test]
fn a_wrong_policy_is_shown_with_its_place() {
    let folder = Folder::new();
    let path = folder.write("policy.yaml", "limits:\n  a:\n    rte: 5/s\n");
    let path = path.to_str().unwrap();
    let check = run(&["policy", "check", path]);
    assert_eq!(check.status.code(), Some(1), "the answer is no");
    let shown = text(&check.stderr);
    assert!(shown.contains("policy.yaml:3:5"), "{shown}");
    assert!(shown.contains("did you mean `rate`"), "{shown}");
    assert!(!shown.contains('\x1b'), "no colour where nobody looks");

    let check = run(&["policy", "check", "--format", "json", path]);
    assert_eq!(check.status.code(), Some(1));
    let answer: serde_json::Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!(answer["ok"], false);
    let place = &answer["problems"][0];
    assert_eq!(
        (&place["line"], &place["column"]),
        (&3.into(), &5.into()),
        "{answer:#}"
    );

    assert_eq!(
        run(&["serve", "-c", path]).status.code(),
        Some(2),
        "bad input"
    );
    assert_eq!(
        run(&["policy", "check", "/nowhere/at/all"]).status.code(),
        Some(2)
    );
    assert_eq!(run(&["polizy"]).status.code(), Some(2));
    assert_eq!(run(&["--version"]).status.code(), Some(0));
}

// shows: G3 (simulate)
#[test]
fn simulate_writes_one_decision_a_line() {
    let folder = Folder::new();
    let policy = "limits:\n  l: { rate: 60/h, burst: 2 }\n";
    let policy = folder.write("p.yaml", policy);
    folder.write("other.yaml", "limits:\n  l: { rate: 60/h, burst: 4 }\n");
    let trace = "{\"at_ns\":0}\n{\"at_ns\":0}\n{\"at_ns\":0}\n\
                 {\"at_ns\":1,\"policy\":\"other.yaml\"}\n{\"at_ns\":1,\"peek\":true}\n";
    let trace = folder.write("t.jsonl", trace);
    let args = [
        "simulate",
        "-c",
        policy.to_str().unwrap(),
        trace.to_str().unwrap(),
    ];
    let lines = tidegate()
        .args(args)
        .args(["--decisions", "-"])
        .output()
        .unwrap();
    assert!(lines.status.success(), "{}", text(&lines.stderr));
    let minute: u64 = 60_000_000_000;
    let expected = [
        format!(
            "{{\"at_ns\":0,\"outcome\":\"allowed\",\"limit\":\"l\",\"delay_ns\":0,\"burst\":2,\
             \"remaining\":1,\"retry\":null,\"reset_after_ns\":{minute}}}"
        ),
        format!(
            "{{\"at_ns\":0,\"outcome\":\"allowed\",\"limit\":\"l\",\"delay_ns\":0,\"burst\":2,\
             \"remaining\":0,\"retry\":null,\"reset_after_ns\":{}}}",
            2 * minute
        ),
        format!(
            "{{\"at_ns\":0,\"outcome\":\"denied\",\"limit\":\"l\",\"delay_ns\":0,\"burst\":2,\
             \"remaining\":0,\"retry\":{{\"after_ns\":{minute}}},\"reset_after_ns\":{}}}",
            2 * minute
        ),
        // Two of four are still used.
        format!(
            "{{\"at_ns\":1,\"outcome\":\"allowed\",\"limit\":\"l\",\"delay_ns\":0,\"burst\":4,\
             \"remaining\":2,\"retry\":null,\"reset_after_ns\":{}}}",
            2 * minute - 1
        ),
    ];
    assert_eq!(text(&lines.stdout).lines().collect::<Vec<_>>(), expected);

    let table = text(&tidegate().args(args).output().unwrap().stdout);
    assert!(
        table.contains("3 requests: 2 went ahead, 1 were refused"),
        "{table}"
    );
}

// shows: G3 (simulate)
#[test]
fn who_names_a_limit_in_a_trace_gets_all_of_its_rates() {
    let folder = Folder::new();
    let policy = "limits:\n  other: { rate: 1/h }\n  two: { rate: [9/s, 2/h] }\n";
    let policy = folder.write("policy.yaml", policy);
    let simulate = |limit: &str| {
        let line = format!("{{\"at_ns\":0,\"limits\":[\"{limit}\"]}}\n");
        let trace = folder.write("trace.jsonl", &line.repeat(3));
        let output = tidegate()
            .args(["simulate", "--decisions", "-", "-c"])
            .args([&policy, &trace])
            .output()
            .unwrap();
        (text(&output.stdout), text(&output.stderr))
    };
    let (decisions, _) = simulate("two");
    let decisions: Vec<serde_json::Value> = decisions
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let outcomes: Vec<_> = decisions.iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["allowed", "allowed", "denied"]);
    assert_eq!(decisions[2]["limit"], "two:2");
    let (decisions, told) = simulate("two:2");
    assert_eq!(decisions, "");
    assert!(told.contains("the policy has no limit `two:2`"), "{told}");

    let check = run(&["policy", "check", policy.to_str().unwrap()]);
    let told = text(&check.stdout);
    assert!(
        told.contains("fine: 2 limits, 0 routes"),
        "what is written: {told}"
    );
}

#[test]
fn simulate_says_which_line_is_wrong() {
    for (trace, expected) in [
        (
            "{\"at_ns\":0}\n{\"at_ns\":}\n",
            "line 2, column 10: expected value",
        ),
        (
            "{\"at_ns\":0,\"limits\":[\"x\"]}\n",
            "line 1: the policy has no limit `x`",
        ),
        (
            "{\"at_ns\":0}\n{\"at_ns\":1,\"release\":7}\n",
            "line 2: the request of line 7",
        ),
        (
            "{\"at_ns\":0,\"policy\":\"nowhere.yaml\"}\n",
            "nowhere.yaml",
        ),
    ] {
        let folder = Folder::new();
        let trace = folder.write("t.jsonl", trace);
        let output = run(&["simulate", trace.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2));
        let shown = text(&output.stderr);
        assert!(shown.contains(expected), "{shown}");
    }
}

#[test]
fn simulate_does_not_write_decisions_over_its_trace() {
    let folder = Folder::new();
    let line = "{\"at_ns\":0}\n";
    let trace = folder.write("trace.jsonl", line);
    let trace = trace.to_str().unwrap();
    let output = run(&["simulate", "--decisions", trace, trace]);
    assert_eq!(output.status.code(), Some(2));
    let shown = text(&output.stderr);
    assert!(shown.contains("write over what is read"), "{shown}");
    assert_eq!(std::fs::read_to_string(trace).unwrap(), line);
}

// shows: G3 (pictures)
#[test]
fn simulate_draws_a_picture() {
    let folder = Folder::new();
    let policy = folder.write("p.yaml", "limits: { l: { rate: 1/s, burst: 2 } }\n");
    let trace = folder.write("t.jsonl", "{\"at_ns\":0}\n{\"at_ns\":0}\n{\"at_ns\":0}\n");
    let out = folder.write(
        "out.svg",
        &"what was there before, and longer ".repeat(1_000),
    );
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (policy, trace, out) = (path(&policy), path(&trace), path(&out));
    let plot = |out: &str| run(&["simulate", "-c", &policy, "--plot", out, &trace]);

    let table = plot(&out);
    assert_eq!(table.status.code(), Some(0));
    assert!(text(&table.stdout).contains("3 requests: 2 went ahead"));
    let svg = std::fs::read_to_string(&out).unwrap();
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    assert!(svg.contains("3 came, 2 at once, 1 refused"), "{svg}");

    let nowhere = plot(&path(&folder.path("no/such/folder.svg")));
    assert_eq!(nowhere.status.code(), Some(2));
    let shown = text(&nowhere.stderr);
    assert!(
        shown.contains("cannot write") && shown.contains("folder.svg"),
        "{shown}"
    );
    for input in [&policy, &trace] {
        let over = plot(input);
        assert_eq!(over.status.code(), Some(2));
        assert!(
            text(&over.stderr).contains("--plot"),
            "{}",
            text(&over.stderr)
        );
    }
    let both = run(&["simulate", "--decisions", &out, "--plot", &out, &trace]);
    assert!(
        text(&both.stderr).contains("same file"),
        "{}",
        text(&both.stderr)
    );
    assert_eq!(std::fs::read_to_string(&out).unwrap(), svg);
    assert!(text(&plot("-").stderr).contains("name it"));

    // A trace that is wrong leaves the picture that was there.
    folder.write("t.jsonl", "{\"at_ns\":0}\n{\"at\":1}\n");
    std::fs::write(&out, &svg).unwrap();
    assert_eq!(plot(&out).status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), svg);
}

#[test]
fn load_goes_to_this_machine_only() {
    let output = run(&["load", "http://192.0.2.1:80/"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("this machine only"));
    let output = run(&["load", "-s", "601", "http://127.0.0.1:1/"]);
    assert_eq!(output.status.code(), Some(2));
}

// shows: H1 (bounded memory)
#[test]
fn the_admin_port_stays_on_loopback_while_it_has_no_authentication() {
    let folder = Folder::new();
    let path = folder.write("policy.yaml", "admin: { listen: \"0.0.0.0:0\" }\n");
    let output = run(&["serve", "-c", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("not a loopback address"));
}

#[test]
fn a_second_serve_on_a_taken_port_fails_clearly() {
    let folder = Folder::new();
    let text_of = |listen: &str| {
        format!(
            "upstreams: {{ echo: {{ builtin: echo }} }}\n\
             gateway:\n  listen: [\"{listen}\"]\n  routes: [{{ id: all, upstream: echo }}]\n\
             admin: {{ listen: \"127.0.0.1:0\" }}\n"
        )
    };
    let first = Serve::start(&folder.write("first.yaml", &text_of("127.0.0.1:0")));
    let second = folder.write("second.yaml", &text_of(&first.gateway.to_string()));
    let output = tidegate()
        .args(["serve", "-c"])
        .arg(second)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let shown = text(&output.stderr);
    assert!(
        shown.contains("cannot listen on") && shown.contains("in use"),
        "{shown}"
    );
    assert!(first.stop(), "a clean end");
}
