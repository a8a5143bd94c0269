//! Running other programs, for every task: the one place that knows the root and the environment.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Why a task ended without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The answer is "no": exit status 1.
    Failed(String),
    /// Wrong use, or something is missing that a person must bring: exit status 2.
    Usage(String),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Failed(_) => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Failed(text) | Self::Usage(text)) = self;
        f.write_str(text)
    }
}

/// The repository's root. Asked at run time: a target directory may outlive the checkout's place.
pub(crate) fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask
        .parent()
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// `program args...` in the root, without the variables that `cargo run` set for xtask itself: some
/// build scripts read them, and would run again each time.
pub(crate) fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_"]
            .iter()
            .any(|own| text.starts_with(own))
        {
            command.env_remove(&name);
        }
    }
    command
}

/// cargo, with these words as its arguments.
pub(crate) fn cargo(words: &str) -> Command {
    command("cargo", &words.split_whitespace().collect::<Vec<_>>())
}

/// Runs with the terminal as its output; an exit status other than 0 is a failure.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    println!("$ {}", shown(command));
    let status = command
        .status()
        .map_err(|error| cannot_start(command, &error))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::Failed(format!("`{}`: {status}", shown(command))))
}

/// Runs silently and answers with what it wrote to standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command
        .output()
        .map_err(|error| cannot_start(command, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Failure::Failed(format!(
        "`{}`: {}\n{stderr}",
        shown(command),
        output.status
    )))
}

/// Whether it can be run at all and ends well (`cargo nextest --version`).
pub(crate) fn works(command: &mut Command) -> bool {
    let silent = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// `command -v`, with the places where Debian puts servers and which are not in a user's `PATH`.
pub(crate) fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let servers = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(servers)
        .any(|folder| folder.join(program).is_file())
}

fn cannot_start(command: &Command, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("cannot start `{}`: {error}", shown(command)))
}

/// The command as one would type it.
fn shown(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}='{}'", name.to_str()?, value?.to_str()?)))
        .collect();
    words.push(command.get_program().to_string_lossy().into_owned());
    words.extend(
        command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned()),
    );
    words.join(" ")
}
