//! The cases of the conformance table, read from its source.

use std::collections::HashMap;

use crate::tree::Tree;

/// Where the table stands.
const TABLE: &str = "crates/tidegate-sim/src/conformance/cases.rs";

/// One case that the conformance suite runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) number: u32,
    /// The doors (library, simulate, gateway, ...) it runs through.
    pub(crate) doors: Vec<String>,
}

/// The rows of the table, in its order.
pub(crate) fn conformance_cases(tree: &Tree) -> Vec<Case> {
    tree.text(TABLE).map(read).unwrap_or_default()
}

/// Reads rows of the form `Case { id: 1, ..., doors: ALL, ... }`, whose doors are a constant
/// `const ALL: &[DoorName] = &[Library, ...];` of the same file.
fn read(text: &str) -> Vec<Case> {
    let doors = door_lists(text);
    let rows = text.split("Case {").skip(1);
    let case = |row: &str| {
        let row = row.split('}').next()?;
        let field = |name: &str| {
            let (_, rest) = row.split_once(name)?;
            Some(rest.split(',').next()?.trim().to_owned())
        };
        let doors = doors.get(field("doors:")?.as_str())?.clone();
        Some(Case {
            number: field("id:")?.parse().ok()?,
            doors,
        })
    };
    rows.filter_map(case).collect()
}

fn door_lists(text: &str) -> HashMap<&str, Vec<String>> {
    let list = |line| {
        let (name, rest) = str::strip_prefix(line, "const ")?.split_once(": &[DoorName] = &[")?;
        let names = rest.split(']').next()?.split(',');
        let names = names.map(|name| name.trim().to_lowercase());
        Some((name, names.filter(|name| !name.is_empty()).collect()))
    };
    text.lines().filter_map(list).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_on_one_line_or_several() {
        let text = "const ALL: &[DoorName] = &[Library, Gateway];\n\
                    pub const CASES: &[Case] = &[\n\
                    Case { id: 1, title: \"a, b\", doors: ALL, script: a },\n\
                    Case {\n id: 22,\n title: \"c\",\n doors: ALL,\n script: b,\n },\n];\n";
        let doors = vec!["library".to_owned(), "gateway".to_owned()];
        let case = |number| Case {
            number,
            doors: doors.clone(),
        };
        assert_eq!(read(text), [case(1), case(22)]);
        assert_eq!(read("Case { id: 1, doors: NOWHERE }"), []);
    }
}
