use super::{check_fresh, check_markers, page};
use crate::tree::Tree;

fn tree(text: &str) -> Tree {
    Tree::from_texts([(
        "crates/tidegate/src/quota/tests.rs".to_owned(),
        text.to_owned(),
    )])
}

#[test]
fn a_row_is_absent_works_or_proven_by_the_tests_that_name_it() {
    let tree = tree(
        "// shows: A1, B1\n#[test]\nfn seen() {}\n\
         // proves: B1\n#[test]\nfn held(n in 0..9_u32) {}\n",
    );
    let page = page(&tree);
    assert!(
        page.contains("millions per second | works | tidegate `seen` |"),
        "{page}"
    );
    assert!(page.contains("| fixed window | proven | tidegate `held`, tidegate `seen` |"));
    assert!(page.contains("| sliding window log | absent |  |"));
    assert!(check_markers(&tree).is_empty());
}

#[test]
fn a_part_of_a_row_is_not_the_row() {
    let part = "// proves: A8 (reject), A6\n#[test]\nfn refused() {}\n";
    let row = |text: &str| {
        let page = page(&tree(text));
        page.lines()
            .find(|line| line.starts_with("| A8 "))
            .unwrap()
            .to_owned()
    };
    assert!(row(part).ends_with("| in part | tidegate `refused` (reject) |"));
    let whole = format!("{part}// shows: A8\n#[test]\nfn all() {{}}\n");
    assert!(row(&whole).contains("| works | tidegate `all`, tidegate `refused` (reject) |"));
}

#[test]
fn an_unknown_id_or_a_marker_above_no_test_is_found() {
    let unknown = check_markers(&tree("\n// shows: Z9\n#[test]\nfn seen() {}\n"));
    assert!(
        unknown[0].to_string().contains("tests.rs:2: names `Z9`"),
        "{unknown:?}"
    );
    assert_eq!(
        check_markers(&tree("// shows: A1\nfn no_test() {}\n#[test]\nfn t() {}")).len(),
        1
    );
    assert_eq!(check_markers(&tree("// proves: A1\n")).len(), 1);
    assert!(check_markers(&tree("let s = \"// shows: Z9\";")).is_empty());
}

#[test]
fn a_stale_page_is_found() {
    let mut files = tree("// shows: A1\n#[test]\nfn seen() {}\n");
    assert_eq!(check_fresh(&files).len(), 1);
    let fresh = page(&files);
    files
        .files
        .extend(Tree::from_texts([("docs/status.md".to_owned(), fresh)]).files);
    assert!(check_fresh(&files).is_empty());
}
