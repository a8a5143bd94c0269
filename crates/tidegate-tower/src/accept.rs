//! Which of several media types a client wants (RFC 9110 section 12.5.1).

use http::HeaderMap;
use http::header::ACCEPT;

/// Most media ranges of a request that are looked at.
const MAX_RANGES: usize = 64;

/// The one of `offered` that a request with these fields accepts best, as an index: the first of
/// equals, and the first of all where the client says nothing, or accepts none. `offered` are
/// media types without parameters.
pub(crate) fn best(headers: &HeaderMap, offered: &[&str]) -> usize {
    if offered.len() < 2 {
        return 0;
    }
    let mut best = (0, 0);
    for (index, media_type) in offered.iter().enumerate() {
        let quality = quality(headers, media_type);
        if quality > best.0 {
            best = (quality, index);
        }
    }
    best.1
}

/// How much a client wants this media type, in thousandths: what the range says that names it
/// most exactly.
fn quality(headers: &HeaderMap, media_type: &str) -> u16 {
    let values = headers.get_all(ACCEPT).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let ranges = texts.flat_map(|text| text.split(',')).take(MAX_RANGES);
    let mut found = (0, 0);
    for range in ranges {
        let mut parts = range.split(';').map(str::trim);
        let exactness = match parts.next() {
            Some(range) if range.eq_ignore_ascii_case(media_type) => 3,
            Some("*/*") => 1,
            Some(range) if covers(range, media_type) => 2,
            _ => continue,
        };
        let weight = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim()
                .eq_ignore_ascii_case("q")
                .then_some(value.trim())
        });
        if exactness > found.0 {
            found = (exactness, weight.map_or(1_000, thousandths));
        }
    }
    found.1
}

/// Whether `range` is `text/*` for a media type `text/html`.
fn covers(range: &str, media_type: &str) -> bool {
    let kind = range.strip_suffix("/*");
    let of_type = media_type.split('/').next().unwrap_or_default();
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(of_type))
}

/// `0.25` is 250; what is no weight is none.
fn thousandths(weight: &str) -> u16 {
    let (whole, fraction) = weight.split_once('.').unwrap_or((weight, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > 3 {
        return 0;
    }
    let fraction = format!("{fraction:0<3}").parse().unwrap_or(0);
    let whole: u16 = whole.parse().unwrap_or(0);
    whole
        .saturating_mul(1_000)
        .saturating_add(fraction)
        .min(1_000)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(accept: &'static str, expected: &str) {
        let offered = ["application/json", "text/html", "text/plain"];
        let mut headers = HeaderMap::new();
        if accept != "-" {
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
        }
        assert_eq!(offered[best(&headers, &offered)], expected, "{accept}");
    }

    #[test]
    fn the_client_chooses() {
        check("-", "application/json");
        check("*/*", "application/json");
        check(
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "text/html",
        );
        check("text/plain, text/html", "text/html");
        check("text/*;q=0.5, text/plain", "text/plain");
        check("text/*, text/html;q=0.1", "text/plain");
        check("application/json;q=0, */*;q=0.1", "text/html");
        check("TEXT/HTML; Q=1.000", "text/html");
        check("image/png", "application/json");
    }

    #[test]
    fn garbage_is_no_wish() {
        check("text/html;q=much, text/plain;q=0.001", "text/plain");
        check(",;,/;q=,text/plain;q=9.", "text/plain");
        check("text/html;q=0.0009", "application/json");
    }
}
