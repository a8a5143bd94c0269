//! Files, not texts.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use tidegate_policy::{DEFAULT, MAX_FILE_BYTES, Severity};

/// A file that is gone when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path =
            std::env::temp_dir().join(format!("tidegate-policy-{}-{name}", std::process::id()));
        std::fs::File::create(&path)
            .unwrap()
            .write_all(bytes)
            .unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_file_is_its_text() {
    let file = Scratch::new("default.yaml", DEFAULT.as_bytes());
    let loaded = tidegate_policy::load(&file.0).unwrap();
    assert_eq!(loaded, tidegate_policy::parse("anything", DEFAULT).unwrap());
    assert_eq!(tidegate_policy::read(&file.0).unwrap(), DEFAULT);
}

#[test]
fn a_file_that_is_not_there() {
    let problems = tidegate_policy::load(Path::new("no/such/policy.yaml")).unwrap_err();
    let problem = problems.first_error().unwrap();
    assert_eq!((problem.line(), problem.column()), (0, 0));
    assert!(
        problem.message().starts_with("the policy cannot be read: "),
        "{problem}"
    );
    assert!(
        problem.to_string().contains("no/such/policy.yaml"),
        "{problem}"
    );
    let error = tidegate_policy::read(Path::new("no/such/policy.yaml")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn a_file_that_is_no_text() {
    let file = Scratch::new("latin1.yaml", b"limits:\n  caf\xe9: {}\n");
    let problems = tidegate_policy::load(&file.0).unwrap_err();
    let problem = problems.first_error().unwrap();
    assert_eq!((problem.line(), problem.column()), (2, 6));
    assert_eq!(problem.help(), Some("save the file as UTF-8"));
    assert_eq!(
        tidegate_policy::read(&file.0).unwrap_err().kind(),
        ErrorKind::InvalidData
    );
}

#[test]
fn a_file_that_is_too_large_is_not_even_kept() {
    let file = Scratch::new("large.yaml", b"");
    std::fs::File::options()
        .write(true)
        .open(&file.0)
        .and_then(|file| file.set_len(MAX_FILE_BYTES as u64 + 1))
        .unwrap();
    let problems = tidegate_policy::load(&file.0).unwrap_err();
    let message = problems.first_error().unwrap().message();
    assert!(
        message.ends_with("a policy file has at most 32 MiB"),
        "{message}"
    );
    assert_eq!(
        tidegate_policy::read(&file.0).unwrap_err().kind(),
        ErrorKind::FileTooLarge
    );
    let text = " ".repeat(MAX_FILE_BYTES + 1);
    assert!(tidegate_policy::parse("a", &text).is_err());
}

#[test]
fn a_byte_order_mark_shifts_nothing() {
    let problems = tidegate_policy::parse("a", "\u{feff}limits: 1\n").unwrap_err();
    let problem = problems.first_error().unwrap();
    assert_eq!(
        (problem.severity(), problem.line(), problem.column()),
        (Severity::Error, 1, 9)
    );
}
