use super::*;

fn excerpt(text: &str, at: Range<usize>) -> (usize, usize, String, String) {
    let source = Source::new("a", text);
    let excerpt = source.excerpt(Span::new(at));
    let marked = excerpt.text[excerpt.marked.clone()].to_owned();
    (excerpt.line, excerpt.column, excerpt.text, marked)
}

#[test]
fn an_excerpt_is_the_first_line_of_its_span() {
    let text = "ab\r\nc\u{e9}def\ngh";
    assert_eq!(excerpt(text, 0..2), (1, 1, "ab".into(), "ab".into()));
    assert_eq!(
        excerpt(text, 7..9),
        (2, 3, "c\u{e9}def".into(), "de".into())
    );
    assert_eq!(
        excerpt(text, 7..13),
        (2, 3, "c\u{e9}def".into(), "def".into())
    );
    assert_eq!(excerpt(text, 13..13), (3, 3, "gh".into(), String::new()));
    assert_eq!(excerpt(text, 99..120), (3, 3, "gh".into(), String::new()));
    assert_eq!(excerpt(text, 6..7).3, "\u{e9}", "never within a character");
    assert_eq!(excerpt("", 0..0), (1, 1, String::new(), String::new()));
}

#[test]
fn a_long_line_is_cut_around_its_marker() {
    let text = format!("{}HERE{}", "a".repeat(5_000), "b".repeat(5_000));
    let (line, column, shown, marked) = excerpt(&text, 5_000..5_004);
    assert_eq!((line, column, marked.as_str()), (1, 5_001, "HERE"));
    assert!(shown.starts_with('\u{2026}') && shown.ends_with('\u{2026}'));
    assert!(shown.chars().count() < 2_200);
}

#[test]
fn a_place_is_found_by_line_and_column() {
    let source = Source::new("a", "ab\nc\u{e9}d\n");
    assert_eq!(source.slice(source.span_at(2, 2)), "\u{e9}");
    assert_eq!(source.slice(source.span_at(2, 3)), "d");
    assert_eq!(source.span_at(2, 4), Span::new(7..7), "behind the line");
    assert_eq!(source.span_at(0, 0), Span::new(0..1));
    assert_eq!(source.span_at(u64::MAX, u64::MAX), Span::new(8..8));
}

#[test]
fn an_excerpt_has_no_password_of_a_url_in_it() {
    let long = format!("url: redis://:{}@a", "p".repeat(200));
    let (_, _, shown, marked) = excerpt(&long, 5..long.len());
    assert!(!shown.contains("pp"), "{shown}");
    assert!(!marked.contains("pp"), "{marked}");
    // What is marked stays where it is.
    let (_, column, _, marked) = excerpt("url: redis://:pass@a, tls: true", 22..25);
    assert_eq!((column, marked.as_str()), (23, "tls"));
}
