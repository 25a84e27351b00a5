//! The guard programs of a bundle: the text only.

use std::collections::BTreeMap;

use crate::id::{Digest, DigestBuilder};

/// Guard programs by path. They are checked and run by what a [`Compiler`](super::Compiler) made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    files: BTreeMap<String, String>,
    digest: Digest,
}

impl Programs {
    /// Programs by path.
    pub fn new(files: BTreeMap<String, String>) -> Self {
        let digest =
            files.iter().fold(DigestBuilder::new("portcullis/programs/v1"), |digest, (path, text)| {
                digest.part(path.as_bytes()).part(text.as_bytes())
            });
        Self { digest: digest.finish(), files }
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
