//! The documentation does what it shows.
//!
//! Every fenced block of `docs` has one of these tags, and is run in the order of its page:
//!
//! | tag | what it is |
//! |---|---|
//! | `yaml policy [NAME]` | a policy without errors and warnings, in force from here on |
//! | `yaml odd [NAME]` | the same, with warnings |
//! | `yaml wrong [NAME]` | a policy with errors |
//! | `jsonl trace [NAME]` | a trace |
//! | `jsonl decisions` | what the trace before gives under the policy before; the keys of its first line |
//! | `console` | commands behind `$ `, and what they print; where they run are the files before, and `examples` |
//! | `http N` | the answer to the Nth `GET /` in a row under the policy before, clock standing still |
//! | `rust` | a doc test: the page is a module of this package's library |
//! | `text`, `sh`, `nginx` | not run |
//!
//! A picture of a page (`![...](pictures/NAME.svg)`) is the file `NAME.svg` that a command of the
//! page draws. One that is named in an `sh` block shows a real run, which is never the same again.
//!
//! A file is called `policy.yaml` or `trace.jsonl` unless its tag says otherwise. To write what
//! comes out into the pages, run this with `TIDEGATE_BLESS=1` and read the difference.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tidegate_policy::Policy;
use tidegate_server::simulation::{DecisionLine, Simulation};
use tidegate_server::trace::{TraceLine, TraceReader};

use crate::answer::nth_answer;
use crate::page::{Block, Page, Piece, pages, root};

#[test]
fn each_block_does_what_it_says() {
    let bless = std::env::var_os("TIDEGATE_BLESS").is_some();
    let mut faults = String::new();
    for mut page in pages() {
        let path = page.path.display().to_string();
        let mut stage = Stage::of(&page);
        for piece in &mut page.pieces {
            let Piece::Block(block) = piece else { continue };
            match stage.play(block) {
                Ok(text) if text == block.text => {}
                Ok(text) if bless => block.text = text,
                Ok(text) => {
                    let (line, shown) = (block.line, &block.text);
                    write!(faults, "{path}:{line}: shown\n{shown}\ncame out\n{text}\n").unwrap();
                }
                Err(reason) => writeln!(faults, "{path}:{}: {reason}", block.line).unwrap(),
            }
        }
        let is_of_a_real_run =
            |picture: &String| page.blocks("sh").any(|text| text.contains(picture));
        for picture in page
            .pictures()
            .into_iter()
            .filter(|it| !is_of_a_real_run(it))
        {
            let shown = page.path.parent().unwrap().join(&picture);
            let drawn = stage.folder.join(shown.file_name().unwrap());
            match (fs::read(&drawn), fs::read(&shown)) {
                (Err(_), _) => writeln!(faults, "{path}: no command draws {picture}").unwrap(),
                (Ok(drawn), Ok(shown)) if drawn == shown => {}
                (Ok(drawn), _) if bless => fs::write(&shown, drawn).unwrap(),
                (Ok(_), _) => writeln!(faults, "{path}: {picture} is not what is drawn").unwrap(),
            }
        }
        if bless {
            fs::write(&page.path, page.text()).unwrap();
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

/// Where the blocks of one page are run.
struct Stage {
    folder: PathBuf,
    is_module: bool,
    /// The text of the policy in force.
    policy: Option<String>,
    trace: Option<String>,
}

impl Stage {
    fn of(page: &Page) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("docs")
            .join(page.name());
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        fs::create_dir_all(folder.join("bin")).unwrap();
        symlink(
            env!("CARGO_BIN_EXE_tidegate_of_docs"),
            folder.join("bin/tidegate"),
        )
        .unwrap();
        symlink(root().join("examples"), folder.join("examples")).unwrap();
        let modules = fs::read_to_string(root().join("examples/src/lib.rs")).unwrap();
        let is_module = modules.contains(&format!("docs/guide/{}.md\"", page.name()));
        Self {
            folder,
            is_module,
            policy: None,
            trace: None,
        }
    }

    /// What the block should have in it.
    fn play(&mut self, block: &Block) -> Result<String, String> {
        let text = block.text.clone();
        let words: Vec<&str> = block.tag.split(' ').collect();
        match words[..] {
            ["yaml", kind @ ("policy" | "odd" | "wrong"), ref name @ ..] => {
                let name = self.write(name.first().unwrap_or(&"policy.yaml"), &text);
                match (kind, tidegate_policy::parse(&name, &text)) {
                    ("policy", Ok(loaded)) if loaded.warnings.is_empty() => {}
                    ("odd", Ok(loaded)) if !loaded.warnings.is_empty() => {}
                    ("wrong", Err(_)) => return Ok(text),
                    (_, Err(problems)) => return Err(problems.to_string()),
                    (_, Ok(loaded)) => return Err(format!("not {kind}: {:?}", loaded.warnings)),
                }
                self.policy = Some(text.clone());
            }
            ["jsonl", "trace", ref name @ ..] => {
                self.write(name.first().unwrap_or(&"trace.jsonl"), &text);
                self.trace = Some(text.clone());
            }
            ["jsonl", "decisions"] => return self.decisions(&text),
            ["console"] => return self.console(&text),
            ["http", number] => {
                let number = number
                    .parse()
                    .map_err(|_| "`http N` has a number".to_owned())?;
                return nth_answer(self.policy()?, number);
            }
            ["rust"] if self.is_module => {}
            ["rust"] => return Err("this page is no module in src/lib.rs: nobody runs it".into()),
            ["text" | "sh" | "nginx"] => {}
            _ => return Err(format!("`{}` is no tag: see the top of docs.rs", block.tag)),
        }
        Ok(text)
    }

    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.folder.join(name), text).unwrap();
        name.to_owned()
    }

    fn policy(&self) -> Result<Policy, String> {
        let text = self
            .policy
            .as_ref()
            .ok_or("there is no policy above this")?;
        tidegate_policy::parse("policy.yaml", text)
            .map(|loaded| loaded.policy)
            .map_err(|problems| problems.to_string())
    }

    /// Runs the trace, and writes of each decision the keys that the first one shown has.
    fn decisions(&self, shown: &str) -> Result<String, String> {
        let trace = self.trace.as_ref().ok_or("there is no trace above this")?;
        let mut simulation = Simulation::new(self.policy()?).map_err(|e| e.to_string())?;
        let mut out = String::new();
        for line in TraceReader::new(trace.as_bytes()) {
            let (number, event) = line.map_err(|error| error.to_string())?;
            if let TraceLine::Reload { at_ns, policy } = &event {
                let loaded = tidegate_policy::load(&self.folder.join(policy));
                let policy = loaded.map_err(|problems| problems.to_string())?.policy;
                simulation
                    .reload(*at_ns, policy)
                    .map_err(|error| error.to_string())?;
            }
            let step = simulation.step(number, event);
            step.map_err(|error| format!("line {number}: {error}"))?;
        }
        simulation.finish().map_err(|error| error.to_string())?;
        while let Some(decision) = simulation.next_decision() {
            out.push_str(&with_keys_of(shown.lines().next(), &decision));
            out.push('\n');
        }
        Ok(out)
    }

    /// Runs the commands, and writes what they print below each.
    fn console(&self, shown: &str) -> Result<String, String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.folder.join("bin").display());
        let mut out = String::new();
        for command in shown.lines().filter_map(|line| line.strip_prefix("$ ")) {
            let output = Command::new("sh")
                .args(["-c", &format!("exec 2>&1\n{command}")])
                .current_dir(&self.folder)
                .env("PATH", &path)
                .output()
                .map_err(|error| error.to_string())?;
            writeln!(out, "$ {command}").unwrap();
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                writeln!(out, "{}", line.trim_end()).unwrap();
            }
        }
        if out.is_empty() {
            return Err("a `console` has commands behind `$ `".to_owned());
        }
        Ok(out)
    }
}

/// A decision as a line of JSON, with the keys of `shown`; with all if there is none.
fn with_keys_of(shown: Option<&str>, decision: &DecisionLine) -> String {
    let line = serde_json::to_string(decision).unwrap();
    let Some(Ok(serde_json::Value::Object(wanted))) = shown.map(serde_json::from_str) else {
        return line;
    };
    let all: serde_json::Value = serde_json::from_str(&line).unwrap();
    // In the order in which a decision has them.
    let mut keys: Vec<_> = wanted.keys().collect();
    keys.sort_by_key(|key| line.find(&format!("\"{key}\":")));
    let pairs = keys
        .iter()
        .map(|key| format!("\"{key}\":{}", all[key.as_str()]));
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}
