//! Scripts that servers should know, and what they call them: the SHA-1 of the text.

use std::sync::{Arc, PoisonError, RwLock};

use crate::Script;

/// Most scripts that are kept. Any further one is hashed at each call.
const MAX_SCRIPTS: usize = 64;

/// A script and its hash.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) script: &'static Script,
    pub(super) sha: Arc<str>,
}

impl Text {
    fn new(script: &'static Script) -> Self {
        let sha = redis::Script::new(script.text).get_hash().into();
        Self { script, sha }
    }

    fn is(&self, script: &Script) -> bool {
        // Nearly always one and the same text, which is then not read.
        std::ptr::eq(self.script.text, script.text) || self.script.text == script.text
    }
}

/// The scripts that were told, or called.
#[derive(Debug)]
pub(super) struct Texts(RwLock<Vec<Text>>);

impl Texts {
    pub(super) fn new(scripts: &[&'static Script]) -> Self {
        let texts = scripts
            .iter()
            .take(MAX_SCRIPTS)
            .map(|script| Text::new(script));
        Self(RwLock::new(texts.collect()))
    }

    /// All, for a new connection.
    pub(super) fn all(&self) -> Vec<Text> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A script's hash.
    pub(super) fn sha(&self, script: &'static Script) -> Arc<str> {
        let texts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = texts.iter().find(|text| text.is(script)) {
            return Arc::clone(&text.sha);
        }
        drop(texts);
        let text = Text::new(script);
        let sha = Arc::clone(&text.sha);
        let mut texts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if texts.len() < MAX_SCRIPTS && !texts.iter().any(|known| known.is(script)) {
            texts.push(text);
        }
        sha
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_known_by_the_hash_of_its_text() {
        static ONE: Script = Script {
            name: "one",
            text: "return 1",
        };
        let texts = Texts::new(&[]);
        assert_eq!(
            &*texts.sha(&ONE),
            "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
        );
        texts.sha(&ONE);
        assert_eq!(texts.all().len(), 1, "kept once");
    }
}
