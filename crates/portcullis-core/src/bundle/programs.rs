//! The guard programs of a bundle, and the modules that they load: the text only.

use std::collections::BTreeMap;

use crate::id::{Digest, DigestBuilder};

/// The longest name of a program, a module or an engine, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Guard programs and modules by path. They are checked and run by what a [`Compiler`](super::Compiler) made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    files: BTreeMap<String, String>,
    modules: BTreeMap<String, String>,
    digest: Digest,
}

impl Programs {
    /// Programs and modules by path.
    pub fn new(files: BTreeMap<String, String>, modules: BTreeMap<String, String>) -> Self {
        let all = modules.iter().chain(&files);
        let digest = all.fold(DigestBuilder::new("portcullis/programs/v1"), |digest, (path, text)| {
            digest.part(path.as_bytes()).part(text.as_bytes())
        });
        Self { digest: digest.finish(), files, modules }
    }

    /// The modules by path.
    pub fn modules(&self) -> &BTreeMap<String, String> {
        &self.modules
    }

    /// The files by path.
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Names these programs.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}
