//! Any bytes as a trace: each line is read, or refused with its place. No panic, no line beyond
//! the input, no more than one answer a line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_server::trace::{TraceError, TraceReader};

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.split(|byte| *byte == b'\n').count();
    let mut before = 0;
    for entry in TraceReader::new(bytes) {
        let line = match entry {
            Ok((line, read)) => {
                let _ = read.at_ns();
                line
            }
            Err(TraceError::Line { line, error }) => {
                assert!(!error.reason.is_empty(), "refused without a reason");
                assert!(
                    error.column <= bytes.len() + 1,
                    "a column outside the input"
                );
                line
            }
            Err(error) => panic!("memory cannot fail to be read: {error}"),
        };
        assert!(
            before < line && line <= lines,
            "line {line} after {before}, of {lines}"
        );
        before = line;
    }
});
