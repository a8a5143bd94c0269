//! What is not told of queries.

use std::borrow::Cow;

use crate::extract::form_decoded;

/// What is hidden of queries before they are logged.
///
/// ```
/// use tidegate_http::access_log::Hide;
///
/// let hide = Hide::values(["token"]);
/// assert_eq!(hide.in_target("/a?token=secret&page=2"), "/a?token=***&page=2");
/// assert_eq!(hide.in_target("/a?%74oken=secret"), "/a?%74oken=***");
/// assert_eq!(Hide::whole().in_target("/a?page=2"), "/a");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Hide {
    values: Vec<Box<[u8]>>,
    whole: bool,
}

impl Hide {
    /// Hides the values of parameters of these names, however they are encoded; case matters.
    pub fn values<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            values: names
                .into_iter()
                .map(|name| Box::from(name.as_bytes()))
                .collect(),
            whole: false,
        }
    }

    /// Hides all of it, with the question mark.
    pub const fn whole() -> Self {
        Self {
            values: Vec::new(),
            whole: true,
        }
    }

    /// A target, or a URL, without what is hidden.
    pub fn in_target<'a>(&self, target: &'a str) -> Cow<'a, str> {
        match self.in_bytes(target.as_bytes()) {
            Cow::Borrowed(shown) => Cow::Borrowed(&target[..shown.len()]),
            Cow::Owned(shown) => Cow::Owned(String::from_utf8_lossy(&shown).into_owned()),
        }
    }

    /// The same for a URL that need not be text. What is borrowed is the beginning of `url`.
    pub fn in_bytes<'a>(&self, url: &'a [u8]) -> Cow<'a, [u8]> {
        if self.values.is_empty() && !self.whole {
            return Cow::Borrowed(url);
        }
        let Some(at) = url.iter().position(|&byte| byte == b'?') else {
            return Cow::Borrowed(url);
        };
        if self.whole {
            return Cow::Borrowed(&url[..at]);
        }
        let (before, query) = url.split_at(at + 1);
        let mut shown = before.to_vec();
        for (index, pair) in query.split(|&byte| byte == b'&').enumerate() {
            if index > 0 {
                shown.push(b'&');
            }
            let end = pair.iter().position(|&byte| byte == b'=');
            match end {
                Some(end) if self.is_hidden(&pair[..end]) => {
                    shown.extend_from_slice(&pair[..=end]);
                    shown.extend_from_slice(b"***");
                }
                _ => shown.extend_from_slice(pair),
            }
        }
        Cow::Owned(shown)
    }

    fn is_hidden(&self, name: &[u8]) -> bool {
        let decoded = form_decoded(name);
        self.values.iter().any(|hidden| **hidden == *decoded)
    }
}
