//! The doors that the table runs through.

mod gateway;
mod library;
mod simulate;

pub use self::gateway::GatewayDoor;
pub use self::library::LibraryDoor;
pub use self::simulate::SimulateDoor;

use std::io::Cursor;

use tidegate_server::trace::{TraceLine, TraceReader};

/// The lines of a trace with their numbers.
fn read(trace: &[String]) -> Result<Vec<(usize, TraceLine)>, String> {
    let text = trace.join("\n");
    TraceReader::new(Cursor::new(text))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}
