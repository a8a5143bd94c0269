//! What policies will be able to say, and this version cannot yet: refused as such, so that
//! nobody looks for a misspelling, and nobody believes that it holds.

/// Keys, by the container that they will be in.
const LATER_KEYS: &[(&str, &[&str])] = &[("a policy", &["service"]), ("on_limit", &["challenge"])];

/// Values, by the name of what they are a value of.
const LATER_VALUES: &[(&str, &[&str])] = &[("balance", &["least_requests"])];

/// Whether `container` will have the key `name` some day.
pub(crate) fn is_later_key(container: &str, name: &str) -> bool {
    LATER_KEYS
        .iter()
        .any(|(of, keys)| *of == container && keys.contains(&name))
}

/// Whether `value` will be one for `name` some day.
pub(crate) fn is_later_value(name: &str, value: &str) -> bool {
    LATER_VALUES
        .iter()
        .any(|(of, values)| *of == name && values.contains(&value))
}
