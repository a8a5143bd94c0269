//! The conformance table: cases as data, run through every door.
//!
//! A case is a policy, a trace and what must come out. A [`Door`] is a way to ask tidegate: the
//! library, `simulate`, the gateway. The same table runs through each, so that no door can have a
//! rounding, a limit or a failure rule of its own.

mod cases;
pub mod doors;
mod script;

pub use self::cases::cases;
pub use self::script::{Expected, Script, Told, ToldOutcome, ToldRetry, at};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its number in the list of cases that must come out.
    pub id: u8,
    /// What it is, in a few words.
    pub title: &'static str,
    /// The doors that can ask it.
    pub doors: &'static [DoorName],
    /// Policy, trace and expectation.
    pub script: fn() -> Script,
}

/// A door, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorName {
    /// The engine's own types.
    Library,
    /// `tidegate simulate`.
    Simulate,
    /// A real gateway, over real sockets, on a clock that the trace moves.
    Gateway,
}

/// Something that can be asked for decisions.
pub trait Door {
    /// Runs a trace (one JSON object a line, as `simulate` reads them) against a policy and says
    /// what each request was told.
    ///
    /// # Errors
    /// What the door could not do; never a decision.
    fn run(&mut self, policy: &str, trace: &[String]) -> Result<Vec<Told>, String>;
}

impl Case {
    /// Runs the case through a door; what differs from what must come out, one line each.
    pub fn differences(&self, door: &mut dyn Door) -> Vec<String> {
        let script = (self.script)();
        match door.run(&script.policy, &script.trace) {
            Ok(told) => script.differences(&told),
            Err(error) => vec![error],
        }
    }
}
