//! Each rule, failing on a made-up tree and passing on the mended one.

use super::{Finding, graph, lines, names, purity, reach, release};
use crate::metadata::Package;
use crate::tree::Tree;

fn tree(files: &[(&str, &str)]) -> Tree {
    let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
    Tree::from_texts(files.iter().map(owned))
}

/// `path:line` of each finding.
fn places(findings: &[Finding]) -> Vec<String> {
    findings
        .iter()
        .map(|finding| format!("{}:{}", finding.path, finding.line))
        .collect()
}

#[track_caller]
fn check(rule: fn(&Tree) -> Vec<Finding>, files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(places(&rule(&tree(files))), expected);
}

fn package(name: &str, uses: &[&str]) -> Package {
    Package {
        name: name.to_owned(),
        folder: format!("crates/{name}"),
        version: "0.1.0".to_owned(),
        rust_version: "1.95".to_owned(),
        dependencies: uses.iter().map(|name| (*name).to_owned()).collect(),
        targets: vec![format!("crates/{name}/src/lib.rs")],
        ..Package::default()
    }
}

#[test]
fn a_finding_says_where_what_and_what_to_do() {
    let finding = Finding::new("a.rs", 3, "is odd", "make it even");
    assert_eq!(finding.to_string(), "a.rs:3: is odd\n    make it even");
    assert_eq!(
        Finding::new("a.rs", 0, "b", "c").to_string(),
        "a.rs: b\n    c"
    );
}

#[test]
fn long_lines() {
    let (fits, long) = ("ä".repeat(100), "x".repeat(101));
    let url = format!("// https://{long}");
    let table = format!("//! | {long} |");
    check(
        lines::line_length,
        &[
            ("a.rs", &fits),
            ("b.md", &long),
            ("c.rs", &url),
            ("d.rs", &table),
        ],
        &[],
    );
    check(
        lines::line_length,
        &[("a.rs", &format!("\n{long}\n"))],
        &["a.rs:2"],
    );
}

#[test]
fn long_files() {
    let lines = |count| "fn a() {}\n".repeat(count);
    let with_tests = |count| {
        format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            lines(400),
            lines(count)
        )
    };
    let rule = lines::file_length;
    check(
        rule,
        &[
            ("a.rs", &with_tests(97)),
            ("a/tests.rs", &lines(500)),
            ("a/data.txt", &lines(501)),
        ],
        &[],
    );
    check(rule, &[("a.rs", &lines(401))], &["a.rs:0"]);
    check(rule, &[("a.rs", &with_tests(98))], &["a.rs:0"]);
    check(rule, &[("a/tests.rs", &lines(501))], &["a/tests.rs:0"]);
    // An exception from the one is none from the other.
    let (excepted, _) = super::allow::LONG_FILES[0];
    check(rule, &[(excepted, &lines(500))], &[]);
    let found = format!("{excepted}:0");
    check(rule, &[(excepted, &lines(501))], &[&found]);
}

#[test]
fn a_mod_rs() {
    check(
        lines::no_mod_rs,
        &[("src/a.rs", ""), ("src/a/mod.rs", "")],
        &["src/a/mod.rs:0"],
    );
}

#[test]
fn a_to_do_without_an_issue() {
    let fine = "// TODO(#12): later\nlet s = \"TODO\"; // TODOS\n";
    check(lines::to_do_names_an_issue, &[("a.rs", fine)], &[]);
    let bad = [("a.rs", "\n// TODO: later"), ("b.toml", "# FIXME")];
    check(lines::to_do_names_an_issue, &bad, &["a.rs:2", "b.toml:1"]);
}

#[test]
fn a_path_of_one_machine() {
    let (one, two) = (
        concat!("see /ho", "me/me/x"),
        concat!("a\nsee sha", "red/D.md"),
    );
    check(
        lines::machine_paths,
        &[("a.md", one), ("b.rs", two)],
        &["a.md:1", "b.rs:2"],
    );
    check(
        lines::machine_paths,
        &[("a.md", concat!("target/sha", "red/x and /homes/x"))],
        &[],
    );
}

#[test]
fn a_lint_switched_off_without_a_word() {
    let bad = "#[allow(dead_code)]\nfn a() {}\n#[expect(\n    dead_code\n)]\nfn b() {}\n";
    check(
        lines::lint_exceptions_say_why,
        &[("a.rs", bad)],
        &["a.rs:1", "a.rs:3"],
    );
    let fine = "#[expect(dead_code, reason = \"why\")]\nfn a() {} // #[allow(b)]\n";
    check(lines::lint_exceptions_say_why, &[("a.rs", fine)], &[]);
}

#[test]
fn banned_words_in_names() {
    let rule = names::banned_words;
    check(
        rule,
        &[("src/utils.rs", ""), ("a-helper/b.rs", "")],
        &["a-helper/b.rs:0", "src/utils.rs:0"],
    );
    for code in [
        "fn do_it() {}",
        "struct KeyManager;",
        "let mut info = 1;",
        "f(x: u8, data: u8)",
    ] {
        check(rule, &[("a.rs", code)], &["a.rs:1"]);
    }
    for code in [
        "std::process::exit(1); tracing::info!(\"a\"); PhantomData",
        "type Data = Bytes;",
        "fn undo() {} fn redo_all() {} struct Database; fn document() {}",
        "// a helper\nlet s = \"data: x\";",
    ] {
        check(rule, &[("a.rs", code)], &[]);
    }
}

#[test]
fn impure_code_in_a_pure_module() {
    let library = (
        "crates/tidegate/src/lib.rs",
        "#![deny(clippy::disallowed_methods)]\n",
    );
    let rule = purity::pure_modules;
    check(
        rule,
        &[
            library,
            ("crates/tidegate/src/a/tests.rs", "async fn a() {}"),
        ],
        &[],
    );
    check(
        rule,
        &[("crates/tidegate/src/lib.rs", "")],
        &["crates/tidegate/src/lib.rs:0"],
    );
    for code in [
        "async fn a() {}",
        "x.await",
        "#[expect(clippy::disallowed_methods, reason = \"quick\")] fn a() {}",
    ] {
        let file = ("crates/tidegate/src/quota.rs", code);
        check(rule, &[library, file], &["crates/tidegate/src/quota.rs:1"]);
    }
}

#[test]
fn seconds_rounded_in_a_second_place() {
    let home = (
        "crates/tidegate-http/src/headers.rs",
        "fn whole_seconds_up() { d.as_secs() }",
    );
    let rule = purity::one_rounding;
    check(
        rule,
        &[home, ("crates/tidegate/src/quota.rs", "d.as_secs()")],
        &[],
    );
    let second = (
        "crates/tidegate-gateway/src/a.rs",
        "\nlet s = d.as_secs_f64();",
    );
    check(
        rule,
        &[home, second],
        &["crates/tidegate-gateway/src/a.rs:2"],
    );
    check(rule, &[], &["crates/tidegate-http:0"]);
    let twin = (
        "crates/tidegate-server/src/a.rs",
        "fn whole_seconds_up() {}",
    );
    check(rule, &[home, twin], &["crates/tidegate-server/src/a.rs:0"]);
}

#[test]
fn a_door_with_a_limit_of_its_own() {
    let rule = purity::doors_hold_no_limit;
    let bad = (
        "crates/tidegate-gateway/src/a.rs",
        "let q = Quota::per_second(9);",
    );
    check(rule, &[bad], &["crates/tidegate-gateway/src/a.rs:1"]);
    let fine = (
        "crates/tidegate-gateway/src/a.rs",
        "fn q(quota: &Quota) { MyQuota::new() }",
    );
    check(
        rule,
        &[
            fine,
            ("crates/tidegate-node/src/a.rs", "Quota::per_second(9)"),
        ],
        &[],
    );
}

#[test]
fn a_dependency_against_the_graph() {
    let none = tree(&[]);
    let fine = [
        package("tidegate", &["siphasher"]),
        package("tidegate-http", &["tidegate"]),
    ];
    assert_eq!(graph::crate_graph(&none, &fine), []);

    let upward = [
        package("tidegate", &["tidegate-http"]),
        package("tidegate-http", &[]),
    ];
    assert_eq!(
        places(&graph::crate_graph(&none, &upward)),
        ["crates/tidegate/Cargo.toml:0"]
    );
    let in_product = [
        package("tidegate-sim", &[]),
        package("tidegate-node", &["tidegate-sim"]),
    ];
    assert_eq!(graph::crate_graph(&none, &in_product).len(), 1);
    assert_eq!(
        graph::crate_graph(&none, &[package("tidegate-new", &[])]).len(),
        1
    );
}

#[test]
fn a_folder_named_otherwise() {
    let mut odd = package("tidegate", &[]);
    assert_eq!(graph::folder_is_name(&tree(&[]), &[odd.clone()]), []);
    odd.folder = "crates/engine".to_owned();
    assert_eq!(graph::folder_is_name(&tree(&[]), &[odd]).len(), 1);
}

#[test]
fn a_file_format_outside_the_policy() {
    let none = tree(&[]);
    assert_eq!(
        graph::file_formats(&none, &[package("tidegate-policy", &["serde-saphyr"])]),
        []
    );
    assert_eq!(
        graph::file_formats(&none, &[package("tidegate-node", &["toml"])]).len(),
        1
    );
}

#[test]
fn a_package_with_lints_of_its_own() {
    let packages = [package("tidegate", &[])];
    let rule = graph::lints_are_inherited;
    let inherits = tree(&[("crates/tidegate/Cargo.toml", "[lints]\nworkspace = true\n")]);
    assert_eq!(rule(&inherits, &packages), []);
    assert_eq!(
        rule(&tree(&[("crates/tidegate/Cargo.toml", "")]), &packages).len(),
        1
    );
}

#[test]
fn an_engine_over_budget() {
    let fine = "0tidegate v0.1.0 (x)\n1siphasher v1.0.4\n1hashbrown v0.17.0\n2foldhash v0.2.0\n";
    assert_eq!(graph::engine_budget(fine), []);

    let direct = ["1a v1\n", "1b v1\n", "1c v1\n", "1d v1\n"].concat();
    assert_eq!(graph::engine_budget(&direct).len(), 1);
    let all: Vec<String> = (0..13).map(|n| format!("2crate{n} v1.0.0\n")).collect();
    assert_eq!(graph::engine_budget(&all.concat()).len(), 1);
    assert_eq!(
        graph::engine_budget("1serde_derive v1.0.0 (proc-macro)\n2cc v1.0.0\n").len(),
        2
    );
}

#[test]
fn a_file_that_nothing_compiles() {
    let packages = [package("tidegate", &[])];
    let library = (
        "crates/tidegate/src/lib.rs",
        "pub mod a;\n#[path = \"../odd.rs\"]\nmod b;\n",
    );
    let reached = [
        library,
        ("crates/tidegate/src/a.rs", "#[cfg(test)]\nmod tests;"),
        ("crates/tidegate/src/a/tests.rs", ""),
        ("crates/tidegate/odd.rs", ""),
        ("fuzz/a.rs", ""),
    ];
    assert_eq!(reach::dead_files(&tree(&reached), &packages), []);

    let dead = [
        library,
        ("crates/tidegate/src/a/c.rs", ""),
        ("crates/tidegate/src/d.rs", ""),
    ];
    let found = places(&reach::dead_files(&tree(&dead), &packages));
    assert_eq!(
        found,
        ["crates/tidegate/src/a/c.rs:0", "crates/tidegate/src/d.rs:0"]
    );
}

#[test]
fn a_lock_file_left_out() {
    check(release::lock_is_committed, &[], &["Cargo.lock:0"]);
    check(release::lock_is_committed, &[("Cargo.lock", "")], &[]);
}

#[test]
fn a_readme_that_is_missing_or_too_long() {
    check(release::readme_length, &[], &["README.md:0"]);
    check(
        release::readme_length,
        &[("README.md", &"a\n".repeat(200))],
        &[],
    );
    check(
        release::readme_length,
        &[("README.md", &"a\n".repeat(201))],
        &["README.md:0"],
    );
}

#[test]
fn a_readme_with_an_old_version() {
    let packages = [package("tidegate", &[])];
    let fine = "Needs Rust 1.95. A Rust library.\ntidegate = \"0.1\"\n";
    assert_eq!(
        release::readme_versions(&tree(&[("README.md", fine)]), &packages),
        []
    );
    let old = "Rust 1.9\n\ntidegate = \"0.2\"";
    let findings = release::readme_versions(&tree(&[("README.md", old)]), &packages);
    assert_eq!(places(&findings), ["README.md:1", "README.md:3"]);
}
