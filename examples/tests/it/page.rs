//! Pages of Markdown: prose, and fenced blocks.

use std::fs;
use std::path::{Path, PathBuf};

/// A page.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) path: PathBuf,
    pub(crate) pieces: Vec<Piece>,
}

#[derive(Debug)]
pub(crate) enum Piece {
    Prose(String),
    Block(Block),
}

/// A fenced block: what stands behind the fence, where, and what is in it.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) tag: String,
    /// Of the opening fence, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
}

const FENCE: &str = "```";

/// The folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The pages of `docs`, in the order of their names.
pub(crate) fn pages() -> Vec<Page> {
    let mut paths = Vec::new();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    assert!(!paths.is_empty());
    paths.into_iter().map(Page::read).collect()
}

impl Page {
    pub(crate) fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).unwrap();
        let mut pieces = Vec::new();
        let mut prose = String::new();
        let mut lines = text.lines().enumerate();
        while let Some((at, line)) = lines.next() {
            let Some(tag) = line.strip_prefix(FENCE) else {
                let path = path.display();
                assert!(
                    !line.contains(FENCE),
                    "{path}:{}: a fence begins its line",
                    at + 1
                );
                prose.push_str(line);
                prose.push('\n');
                continue;
            };
            let inner = lines.by_ref().map(|(_, line)| line);
            let inner = inner.take_while(|line| *line != FENCE);
            pieces.push(Piece::Prose(std::mem::take(&mut prose)));
            pieces.push(Piece::Block(Block {
                tag: tag.to_owned(),
                line: at + 1,
                text: inner.flat_map(|line| [line, "\n"]).collect(),
            }));
        }
        pieces.push(Piece::Prose(prose));
        Self { path, pieces }
    }

    /// The page as text.
    pub(crate) fn text(&self) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Prose(text) => text.clone(),
            Piece::Block(Block { tag, text, .. }) => format!("{FENCE}{tag}\n{text}{FENCE}\n"),
        };
        self.pieces.iter().map(piece).collect()
    }

    /// The prose without the blocks.
    pub(crate) fn prose(&self) -> String {
        let prose = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Prose(text) => Some(text.as_str()),
            Piece::Block(_) => None,
        });
        prose.collect()
    }

    /// What is in the blocks with this tag.
    pub(crate) fn blocks<'a>(&'a self, tag: &'a str) -> impl Iterator<Item = &'a str> {
        self.pieces.iter().filter_map(move |piece| match piece {
            Piece::Block(block) if block.tag == tag => Some(block.text.as_str()),
            _ => None,
        })
    }

    /// The targets of `![text](target)`.
    pub(crate) fn pictures(&self) -> Vec<String> {
        let prose = self.prose();
        let target = |rest: &str| Some(rest.split_once("](")?.1.split_once(')')?.0.to_owned());
        prose.split("![").skip(1).filter_map(target).collect()
    }

    /// What it is called, without folder and extension.
    pub(crate) fn name(&self) -> String {
        self.path
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    }
}
