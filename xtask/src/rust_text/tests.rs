use super::RustText;

/// Compares without regard to how much is blank; that offsets stay is checked apart.
#[track_caller]
fn check(source: &str, code: &str, comments: &str) {
    let text = RustText::new(source);
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&text.code), code, "code of {source}");
    assert_eq!(squeezed(&text.comments), comments, "comments of {source}");
    for view in [&text.code, &text.comments] {
        assert_eq!(view.len(), source.len());
        assert_eq!(view.lines().count(), source.lines().count());
    }
}

#[test]
fn comments_and_literals_are_told_from_code() {
    check("let a = 1; // why", "let a = 1;", "// why");
    check("a /* b /* c */ d */ e", "a e", "/* b /* c */ d */");
    check("f(\"// no \\\" comment\") ; // yes", "f( ) ;", "// yes");
    check("r#\"a \" // b\"# + 1", "+ 1", "");
    check(
        "let q = '\"'; let l: &'a str = x;",
        "let q = ; let l: &'a str = x;",
        "",
    );
    check("'\\'' + '\\u{22}' + b", "+ + b", "");
    check("// straße\nfn x() {}", "fn x() {}", "// straße");
    check("for r in 0..9 {}", "for r in 0..9 {}", "");
}

#[test]
fn what_is_only_there_for_tests_can_be_left_out() {
    let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { \"}\" }\n}\nfn c() {}\n";
    let code = RustText::new(source).code_without_tests();
    assert!(code.contains("fn a()") && code.contains("fn c()") && !code.contains("fn b()"));
    assert_eq!(code.lines().count(), source.lines().count());

    let code = RustText::new("#[cfg(test)]\nmod tests;\nfn kept() {}").code_without_tests();
    assert_eq!(code.trim(), "fn kept() {}");
}
