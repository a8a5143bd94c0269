//! What `policy check` and `serve` both refuse.

use tidegate_policy::{Complaint, Loaded, Place, Policy, Problems, Severity};

use crate::redis;

/// Reads a policy that a node of this version is to run: here (then the files that it names have
/// to be there), or elsewhere.
///
/// # Errors
/// All that is wrong with it, with its place.
pub(crate) fn parse(name: &str, text: &str, is_here: bool) -> Result<Loaded, Problems> {
    let missing_file = if is_here {
        Severity::Error
    } else {
        Severity::Warning
    };
    tidegate_policy::parse_with(name, text, &|policy| {
        let mut complaints = redis::complaints(policy, missing_file);
        complaints.extend(of_admin(policy));
        complaints
    })
}

fn of_admin(policy: &Policy) -> Option<Complaint> {
    let address = policy.admin.as_ref()?.listen;
    let message = format!(
        "admin: {address} is not a loopback address: the admin port has no authentication yet"
    );
    let help = format!("write `listen: \"127.0.0.1:{}\"`", address.port());
    (!address.ip().is_loopback()).then(|| Complaint::error(Place::Admin, message).help(help))
}
