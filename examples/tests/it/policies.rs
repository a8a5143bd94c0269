//! The policies of `policies`, and what `docs/policy.md` says of the file format.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::page::{Page, Piece, root};

/// Each is right, and nothing about it is odd.
#[test]
fn each_policy_is_fine() {
    let mut count = 0;
    for entry in fs::read_dir(root().join("examples/policies")).unwrap() {
        let path = entry.unwrap().path();
        match tidegate_policy::load(&path) {
            Ok(loaded) => assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings),
            Err(problems) => panic!("{problems}"),
        }
        count += 1;
    }
    assert!(count > 0);
}

/// Every key that the schema has is in the reference, and every word that one may have.
#[test]
fn the_reference_has_each_key() {
    let reference = reference().text();
    let mut words = BTreeSet::new();
    collect_words(&tidegate_policy::schema(), &mut words);
    assert!(
        words.contains("max_keys") && words.contains("sliding_log"),
        "{words:?}"
    );
    let missing: Vec<_> = words
        .iter()
        .filter(|word| !reference.contains(&format!("`{word}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/policy.md does not have {missing:?}"
    );
}

/// What the reference shows as all defaults is what a policy gets that does not say them.
#[test]
fn the_defaults_are_as_the_reference_has_them() {
    let page = reference();
    let policy = |tag: &str| {
        let text = page.pieces.iter().find_map(|piece| match piece {
            Piece::Block(block) if block.tag == tag => Some(block.text.as_str()),
            _ => None,
        });
        tidegate_policy::parse(tag, text.unwrap()).unwrap().policy
    };
    let mut defaults = policy("yaml policy defaults.yaml");
    let gateway = defaults.gateway.as_mut().unwrap();
    let reparsed = policy("yaml policy short.yaml");
    assert_eq!(*gateway, *reparsed.gateway.as_ref().unwrap());
    assert_eq!(defaults, reparsed);
}

fn reference() -> Page {
    Page::read(root().join("docs/policy.md"))
}

/// Names of properties, and constants.
fn collect_words(schema: &Value, words: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("properties", Value::Object(properties)) => {
                        words.extend(properties.keys().cloned());
                    }
                    ("const", Value::String(word)) => {
                        words.insert(word.clone());
                    }
                    _ => {}
                }
                collect_words(value, words);
            }
        }
        Value::Array(list) => list.iter().for_each(|one| collect_words(one, words)),
        _ => {}
    }
}
