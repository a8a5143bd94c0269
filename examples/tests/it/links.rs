//! Links from page to page lead somewhere.

use crate::page::{Page, pages, root};

#[test]
fn each_link_leads_to_a_file_and_a_heading() {
    let beside = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ];
    let beside = beside
        .map(|name| root().join(name))
        .into_iter()
        .filter(|path| path.exists());
    let mut broken = Vec::new();
    for page in pages().into_iter().chain(beside.map(Page::read)) {
        for link in links(&page) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() {
                page.path.clone()
            } else {
                page.path.parent().unwrap().join(file)
            };
            let leads = target.exists()
                && (heading.is_empty() || headings(&Page::read(target)).contains(&heading.into()));
            if !leads {
                broken.push(format!("{}: {link}", page.path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The targets of `[text](target)` within the repository.
fn links(page: &Page) -> Vec<String> {
    let text = page.prose();
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(')')?.0));
    targets
        .filter(|target| !target.contains("://"))
        .map(ToOwned::to_owned)
        .collect()
}

/// Headings as GitHub links to them.
fn headings(page: &Page) -> Vec<String> {
    let text = page.prose();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let slug = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(slug).collect()
}
