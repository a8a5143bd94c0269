//! Ids of requests: believed from trusted proxies, else drawn here.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The longest id that is taken over.
const MAX_LENGTH: usize = 128;

/// Draws ids: 128 bits that nobody can foresee, without asking the kernel for each.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// Keyed by the kernel, once.
    keys: [RandomState; 2],
    drawn: Cell<u64>,
}

impl Ids {
    fn draw(&self) -> HeaderValue {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let number = self.drawn.get();
        self.drawn.set(number.wrapping_add(1));
        let mut digits = [0; 32];
        for (half, key) in digits.chunks_exact_mut(16).zip(&self.keys) {
            let bits = key.hash_one(number);
            for (place, digit) in half.iter_mut().enumerate() {
                *digit = HEX[(bits >> (4 * place)) as usize & 15];
            }
        }
        let digits = Bytes::copy_from_slice(&digits);
        HeaderValue::from_maybe_shared(digits).expect("digits are visible")
    }
}

/// The id of the request that a client connection is busy with; none where requests have none.
#[derive(Debug, Default)]
pub(crate) struct RequestId(RefCell<Option<(HeaderName, HeaderValue)>>);

impl RequestId {
    /// A request has come whose id is in the header `name`, if there are ids. One that it brings
    /// along is its own only where it is `trusted`.
    pub(crate) fn begin(
        &self,
        name: Option<&HeaderName>,
        headers: &HeaderMap,
        trusted: impl FnOnce() -> bool,
        ids: &Ids,
    ) {
        let Some(name) = name else {
            return drop(self.0.take());
        };
        let mut brought = headers.get_all(name).iter();
        let id = match (brought.next(), brought.next()) {
            (Some(id), None) if is_fine(id) && trusted() => id.clone(),
            _ => ids.draw(),
        };
        self.0.replace(Some((name.clone(), id)));
    }

    /// Puts the id into a header, in place of any other.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        if let Some((name, id)) = &*self.0.borrow() {
            headers.insert(name, id.clone());
        }
    }

    pub(crate) fn value(&self) -> Option<HeaderValue> {
        self.0.borrow().as_ref().map(|(_, id)| id.clone())
    }

    /// A problem as JSON, with the id in it.
    pub(crate) fn in_problem(&self, problem: Bytes) -> Bytes {
        match (&*self.0.borrow(), problem.strip_suffix(b"}")) {
            (Some((_, id)), Some(open)) => {
                let id = String::from_utf8_lossy(id.as_bytes());
                let mut out = Vec::with_capacity(problem.len() + id.len() + 32);
                out.extend_from_slice(open);
                out.extend_from_slice(b",\"request-id\":");
                serde_json::to_writer(&mut out, &*id).expect("a str is JSON");
                out.push(b'}');
                Bytes::from(out)
            }
            _ => problem,
        }
    }
}

/// Whether an id can be told on as it is.
fn is_fine(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    (1..=MAX_LENGTH).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_ids_are_the_same_and_cores_draw_others() {
        let (one, other) = (Ids::default(), Ids::default());
        let drawn: HashSet<_> = (0..1_000)
            .flat_map(|_| [one.draw(), other.draw()])
            .collect();
        assert_eq!(drawn.len(), 2_000);
        let is_hex = |id: &HeaderValue| {
            let id = id.as_bytes();
            id.len() == 32 && id.iter().all(u8::is_ascii_hexdigit)
        };
        assert!(drawn.iter().all(is_hex));
    }
}
