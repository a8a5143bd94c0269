//! `cargo xtask readme`: the README's commands do what they say.
//!
//! Fenced blocks tagged `sh check` are run in order, each as one bash script that must end with
//! status 0; one tagged `sh serve` is started, counts as ready when its output names a loopback
//! address, and is ended after the last block. In a block with lines that begin with `$ `, only
//! those are commands: the rest is what they print.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::shell::{self, Failure, command, root};
use crate::steps::Done;

/// Longest time for one block; the first may compile everything.
const DEADLINE: Duration = Duration::from_mins(15);
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// Must end, with status 0.
    Check,
    /// Stays until the last block has ended.
    Serve,
}

#[derive(Debug, PartialEq, Eq)]
struct Block {
    kind: Kind,
    line: usize,
    script: String,
}

/// As a task: prints what it runs.
pub(crate) fn run() -> Result<(), Failure> {
    step().map(|_| ())
}

/// As a step of `cargo xtask test`.
pub(crate) fn step() -> Result<Done, Failure> {
    let Ok(text) = fs::read_to_string(root().join("README.md")) else {
        return Ok(Done::Skipped("there is no README.md".to_owned()));
    };
    let blocks = blocks(&text);
    if blocks.is_empty() {
        return Ok(Done::Skipped(
            "README.md has no block tagged `sh check`".to_owned(),
        ));
    }
    let mut serving = Vec::new();
    let result = blocks
        .iter()
        .try_for_each(|block| run_block(block, &mut serving));
    for script in &mut serving {
        script.end();
    }
    result.map(|()| Done::Passed)
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(tag) = line.strip_prefix("```") else {
            continue;
        };
        let body: Vec<&str> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| !line.starts_with("```"))
            .collect();
        let kind = match tag.trim() {
            "sh check" => Kind::Check,
            "sh serve" => Kind::Serve,
            _ => continue,
        };
        blocks.push(Block {
            kind,
            line: at + 1,
            script: commands(&body),
        });
    }
    blocks
}

fn commands(body: &[&str]) -> String {
    let prompted: Vec<&str> = body
        .iter()
        .filter_map(|line| line.strip_prefix("$ "))
        .collect();
    if prompted.is_empty() {
        body.join("\n")
    } else {
        prompted.join("\n")
    }
}

fn run_block(block: &Block, serving: &mut Vec<Script>) -> Result<(), Failure> {
    let mut script = Script::start(block)?;
    let log = script.log.display();
    println!(
        "README.md:{} (output in {log}):\n{}",
        block.line, block.script
    );
    let wanted = match block.kind {
        Kind::Check => script.wait_until(|script| script.ended() == Some(true)),
        Kind::Serve => script.wait_until(Script::names_an_address),
    };
    if wanted && block.kind == Kind::Serve {
        serving.push(script);
        return Ok(());
    }
    script.end();
    if wanted {
        return Ok(());
    }
    let (line, printed) = (block.line, script.printed());
    Err(Failure::Failed(format!(
        "README.md:{line}: this block failed; it printed:\n{printed}"
    )))
}

/// A running bash, with its children in a process group of its own and its output in a file.
struct Script {
    child: Child,
    log: PathBuf,
    status: Option<bool>,
}

impl Script {
    fn start(block: &Block) -> Result<Self, Failure> {
        let log = root().join(format!("target/readme-{}.log", block.line));
        let failed = |error| Failure::Failed(format!("cannot run a README block: {error}"));
        fs::create_dir_all(root().join("target")).map_err(failed)?;
        let output = File::create(&log).map_err(failed)?;
        let script = format!("set -euo pipefail\n{}", block.script);
        let mut bash = command("bash", &["-c", &script]);
        bash.process_group(0)
            .stdout(output.try_clone().map_err(failed)?)
            .stderr(output);
        Ok(Self {
            child: bash.spawn().map_err(failed)?,
            log,
            status: None,
        })
    }

    /// Waits for what is wanted. False: the script ended first, or the deadline passed.
    fn wait_until(&mut self, wanted: impl Fn(&mut Self) -> bool) -> bool {
        let start = Instant::now();
        while start.elapsed() < DEADLINE {
            if wanted(self) {
                return true;
            }
            if self.ended().is_some() {
                return false;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        false
    }

    /// Whether it succeeded, once it has ended.
    fn ended(&mut self) -> Option<bool> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok()?.map(|status| status.success());
        }
        self.status
    }

    fn names_an_address(&mut self) -> bool {
        self.printed().contains("127.0.0.1:")
    }

    fn printed(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it and all that it started.
    fn end(&mut self) {
        let group = format!("-{}", self.child.id());
        shell::works(&mut command(
            "bash",
            &["-c", &format!("kill -TERM -- {group}")],
        ));
        if self.status.is_none() {
            self.status = self.child.wait().ok().map(|status| status.success());
        }
    }
}

#[cfg(test)]
mod tests;
