//! Any text as a policy file: it loads, or is refused with a place in that text. No panic, and no
//! file that takes long to refuse.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match tidegate_policy::parse("fuzz.yaml", text) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                let _ = warning.render(true);
            }
        }
        Err(problems) => {
            assert!(problems.first_error().is_some(), "refused without an error");
            let lines = text.lines().count().max(1);
            for problem in problems.iter() {
                assert!(
                    (1..=lines + 1).contains(&problem.line()),
                    "a place outside the file"
                );
                assert!(
                    !problem.render(false).contains('\u{1b}'),
                    "colour where none was asked for"
                );
            }
        }
    }
});
