//! The table, through each door.

use tidegate_sim::conformance::doors::{GatewayDoor, LibraryDoor, SimulateDoor};
use tidegate_sim::conformance::{Door, DoorName, cases};

fn run(name: DoorName, door: &mut dyn Door) {
    let mut failures = Vec::new();
    let mut ran = 0;
    for case in cases().filter(|case| case.doors.contains(&name)) {
        ran += 1;
        let differences = case.differences(door);
        if let Some(first) = differences.first() {
            let (id, title, count) = (case.id, case.title, differences.len());
            failures.push(format!(
                "case {id} ({title}): {first} ({count} differences)"
            ));
        }
    }
    assert!(ran > 15, "the table is there");
    assert!(
        failures.is_empty(),
        "through {name:?}:\n{}",
        failures.join("\n")
    );
}

// shows: A1, A2 (refusing), A6, B1 (local), B3 (local), B6 (local)
#[test]
fn the_table_through_the_library() {
    run(DoorName::Library, &mut LibraryDoor);
}

// shows: A5 (HTTP parts), G3 (simulate)
#[test]
fn the_table_through_simulate() {
    run(DoorName::Simulate, &mut SimulateDoor);
}

// shows: A1, A2 (refusing), A5 (HTTP parts), A6, D4
#[test]
fn the_table_through_the_gateway() {
    run(DoorName::Gateway, &mut GatewayDoor);
}

/// The table can fail: a door that lets all pass is found out by every case that refuses.
#[test]
fn a_door_that_lets_all_pass_is_found_out() {
    struct Open;
    impl Door for Open {
        fn run(
            &mut self,
            _policy: &str,
            trace: &[String],
        ) -> Result<Vec<tidegate_sim::conformance::Told>, String> {
            let requests = trace
                .iter()
                .filter(|line| !line.contains("\"release\"") && !line.contains("\"policy\""));
            Ok(requests
                .map(|_| tidegate_sim::conformance::Told::ALLOWED)
                .collect())
        }
    }
    for case in cases() {
        assert!(
            !case.differences(&mut Open).is_empty(),
            "case {} ({})",
            case.id,
            case.title
        );
    }
}
