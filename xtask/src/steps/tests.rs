use super::{Done, Steps};
use crate::shell::Failure;

#[test]
fn one_failed_step_fails_the_run_and_is_named() {
    let mut steps = Steps::default();
    assert!(steps.step("first", || Ok(Done::Passed)));
    assert!(!steps.step("second", || Err(Failure::Failed("broken".to_owned()))));
    assert!(steps.step("third", || Ok(Done::Skipped("nothing there".to_owned()))));
    let failure = steps.finish().unwrap_err();
    assert_eq!(failure.to_string(), "failed: second");
}

#[test]
fn passed_and_skipped_steps_pass() {
    let mut steps = Steps::default();
    steps.step("first", || Ok(Done::Passed));
    steps.step("second", || Ok(Done::Skipped("nothing there".to_owned())));
    assert!(steps.finish().is_ok());
}
