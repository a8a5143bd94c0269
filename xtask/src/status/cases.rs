//! The cases of the conformance table, read from its source.

use std::collections::HashMap;

use crate::tree::Tree;

/// Where the table stands: its doors and its list of subjects, and a file for each subject.
const TABLE: &str = "crates/tidegate-sim/src/conformance/cases";

/// One case that the conformance suite runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) number: u32,
    /// The doors (library, simulate, gateway, ...) it runs through.
    pub(crate) doors: Vec<String>,
}

/// The rows of the table, file by file.
pub(crate) fn conformance_cases(tree: &Tree) -> Vec<Case> {
    let of_table = |path: &str| {
        let rest = path.strip_prefix(TABLE);
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    let files = tree.files.iter().filter(|(path, _)| of_table(path));
    let texts: Vec<&str> = files.map(|(_, source)| source.text.as_str()).collect();
    read(&texts.concat())
}

/// Reads rows of the form `Case { id: 1, ..., doors: ALL, ... }`, whose doors are a constant
/// `const ALL: &[DoorName] = &[Library, ...];` of the same text.
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

    #[test]
    fn the_table_is_all_its_files() {
        let file = |path: &str, text: &str| (format!("{TABLE}{path}"), text.to_owned());
        let tree = Tree::from_texts([
            file(".rs", "const ALL: &[DoorName] = &[Library];\n"),
            file("/a.rs", "Case { id: 1, doors: ALL }\n"),
            file("/b.rs", "Case { id: 2, doors: ALL }\n"),
            file("_of_others.rs", "Case { id: 3, doors: ALL }\n"),
        ]);
        let numbers = conformance_cases(&tree).into_iter().map(|case| case.number);
        assert!(numbers.eq([1, 2]));
    }
}
