use proptest::prelude::*;

use super::*;

fn pattern(text: &str) -> PathPattern {
    text.parse().unwrap()
}

/// Checks which of `paths` are of a pattern.
fn check(text: &str, matching: &[&str], others: &[&str]) {
    let pattern = pattern(text);
    for path in matching {
        assert!(pattern.matches(path), "{text} matches {path}");
    }
    for path in others {
        assert!(!pattern.matches(path), "{text} does not match {path}");
    }
}

#[test]
fn plain_text_is_itself() {
    check(
        "/api",
        &["/api"],
        &["/api/", "/Api", "/", "/apis", "api", ""],
    );
    check("/", &["/"], &["", "*", "//", "/a"]);
    check("/a/", &["/a/"], &["/a", "/a/b", "/a//"]);
}

#[test]
fn a_star_stays_within_its_segment() {
    check(
        "/a/*",
        &["/a/b", "/a/b.c"],
        &["/a", "/a/", "/a/b/c", "/a/b/"],
    );
    check("/a/{id}/c", &["/a/b/c"], &["/a//c", "/a/b/b/c"]);
    check(
        "/*.png",
        &["/.png", "/a.png", "/a.png.png"],
        &["/a/b.png", "/a.pn"],
    );
    check("/a*b*c", &["/abc", "/axbxc", "/abcbc"], &["/ab", "/abcd"]);
}

#[test]
fn two_stars_go_across() {
    check("/**", &["/", "/a", "/a/b/", "//"], &["", "*"]);
    check(
        "/api/**",
        &["/api", "/api/", "/api/a/b"],
        &["/apis", "/", "/b/api"],
    );
    check(
        "/**/end",
        &["/end", "/a/end", "/a/end/end"],
        &["/a/end/b", "/aend"],
    );
    check(
        "/a/**/b/**/c",
        &["/a/b/c", "/a/x/b/y/c", "/a/b/b/c/c"],
        &["/a/c", "/a/b/c/d"],
    );
    check("/**/*", &["/a", "/a/b"], &["/", "/a/"]);
}

#[test]
fn what_is_no_pattern() {
    let error = |text: &str| text.parse::<PathPattern>().unwrap_err();
    assert_eq!(error("api"), PathPatternError::NoSlash);
    assert_eq!(error(""), PathPatternError::NoSlash);
    assert_eq!(error("/a?b=1"), PathPatternError::Query);
    assert_eq!(error("/a b"), PathPatternError::Space);
    for text in [
        "//",
        "/a//b",
        "/./a",
        "/a/..",
        "/%61",
        "/%c3%a9",
        "/caf\u{e9}",
        "/%7E*",
    ] {
        assert_eq!(error(text), PathPatternError::NotNormal, "{text}");
    }
    for text in [
        "/a/", "/%C3%A9", "/a%20b", "/...", "/100%", "/%zz", "/a.b", "/**/",
    ] {
        pattern(text);
    }
    assert_eq!(error("/a**"), PathPatternError::DoubleStarInSegment);
    assert_eq!(error("/v{n}"), PathPatternError::Capture);
    assert_eq!(error("/{}"), PathPatternError::Capture);
    assert_eq!(error("/{a"), PathPatternError::Capture);
    assert_eq!(
        error(&format!("/{}", "a".repeat(1_024))),
        PathPatternError::TooLong
    );
}

#[test]
fn a_wider_pattern_covers_a_narrower_one() {
    let covers = |wide: &str, narrow: &str| pattern(wide).covers(&pattern(narrow));
    for (wide, narrow) in [
        ("/**", "/api/{id}"),
        ("/**", "/**"),
        ("/api/**", "/api"),
        ("/api/**", "/api/**/x"),
        ("/api/*", "/api/{id}"),
        ("/api/*", "/api/x*"),
        ("/api/x*", "/api/xy"),
        ("/**/x", "/a/b/x"),
        ("/**/x/**", "/a/x/b"),
    ] {
        assert!(covers(wide, narrow), "{wide} covers {narrow}");
    }
    for (wide, narrow) in [
        ("/api/*", "/api/**"),
        ("/api/x", "/api/*"),
        ("/api/{id}", "/api/"),
        ("/**/x", "/**"),
        ("/a/**", "/**"),
        ("/api", "/api/**"),
    ] {
        assert!(!covers(wide, narrow), "{wide} does not cover {narrow}");
    }
}

/// The meaning of a pattern, spelled out: tries everything.
fn matches_slowly(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => (0..=path.len()).any(|n| matches_slowly(rest, &path[n..])),
        (Some((segment, patterns)), Some((text, paths))) => {
            let one = match *segment {
                "*" | "{id}" => !text.is_empty(),
                segment => glob_slowly(segment.as_bytes(), text.as_bytes()),
            };
            one && matches_slowly(patterns, paths)
        }
        _ => false,
    }
}

fn glob_slowly(glob: &[u8], text: &[u8]) -> bool {
    match glob.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|n| glob_slowly(rest, &text[n..])),
        Some((byte, rest)) => text.first() == Some(byte) && glob_slowly(rest, &text[1..]),
    }
}

fn segment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a", "b", "ab", "*", "{id}", "**", "a*", "*b", "a*b", "*a*b",
    ])
}

/// Of a pattern; the last may be empty.
fn segments() -> impl Strategy<Value = Vec<&'static str>> {
    let last = prop::option::of(Just(""));
    (prop::collection::vec(segment(), 1..5), last).prop_map(|(mut segments, last)| {
        segments.extend(last);
        segments
    })
}

fn text() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "a", "b", "ab", "aab", "abab", "ba"])
}

fn joined(parts: &[&str]) -> String {
    let mut joined = String::new();
    for part in parts {
        joined.push('/');
        joined.push_str(part);
    }
    joined
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn matching_is_what_it_says(
        parts in segments(),
        path in prop::collection::vec(text(), 1..6),
    ) {
        let pattern = pattern(&joined(&parts));
        prop_assert_eq!(pattern.matches(&joined(&path)), matches_slowly(&parts, &path));
    }

    #[test]
    fn covering_is_sound(
        wide in segments(),
        narrow in segments(),
        paths in prop::collection::vec(prop::collection::vec(text(), 1..6), 20),
    ) {
        let (wide, narrow) = (pattern(&joined(&wide)), pattern(&joined(&narrow)));
        if wide.covers(&narrow) {
            for path in paths.iter().map(|path| joined(path)) {
                prop_assert!(!narrow.matches(&path) || wide.matches(&path), "{}", path);
            }
        }
    }
}
