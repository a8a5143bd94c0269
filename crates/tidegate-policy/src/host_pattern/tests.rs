use super::*;

fn pattern(text: &str) -> HostPattern {
    text.parse().unwrap()
}

#[test]
fn a_host_is_itself_in_any_case() {
    let host = pattern("Shop.example.com");
    assert!(host.matches("shop.EXAMPLE.com"));
    assert!(host.matches("shop.example.com."));
    assert!(!host.matches("a.shop.example.com"));
    assert!(!host.matches("shop.example.com:80"));
    assert!(pattern("[::1]").matches("[::1]"));
}

#[test]
fn a_wildcard_is_all_names_below() {
    let below = pattern("*.example.com");
    assert!(below.matches("a.example.com"));
    assert!(below.matches("b.A.Example.com"));
    assert!(!below.matches("example.com"));
    assert!(!below.matches(".example.com"));
    assert!(!below.matches("aexample.com"));
    assert!(!below.matches("\u{e9}.com"));
    assert_eq!(below.to_string(), "*.example.com");
}

#[test]
fn covering() {
    let covers = |wide: &str, narrow: &str| pattern(wide).covers(&pattern(narrow));
    assert!(covers("*.example.com", "a.example.com"));
    assert!(covers("*.example.com", "*.a.example.com"));
    assert!(covers("a.com", "A.com"));
    assert!(!covers("*.example.com", "example.com"));
    assert!(!covers("a.example.com", "*.example.com"));
    assert!(!covers("*.a.example.com", "*.example.com"));
}

#[test]
fn what_is_no_host() {
    let error = |text: &str| text.parse::<HostPattern>().unwrap_err();
    assert_eq!(error("*"), HostPatternError::Anything);
    assert_eq!(error("http://a/"), HostPatternError::Url);
    assert_eq!(error("a:80"), HostPatternError::Port);
    assert_eq!(error("a.*.com"), HostPatternError::Star);
    assert_eq!(error("a*.com"), HostPatternError::Star);
    assert_eq!(error("a..com"), HostPatternError::NotAHost);
    assert_eq!(error(""), HostPatternError::NotAHost);
    assert_eq!(error("[::1"), HostPatternError::NotAHost);
    assert_eq!(error(&"a.".repeat(130)), HostPatternError::NotAHost);
}
