//! The gateway against nginx.

/// Runs it.
pub(crate) fn run() -> Result<(), String> {
    Ok(())
}
