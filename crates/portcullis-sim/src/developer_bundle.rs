//! The bundle for a developer's machine, compiled in: what `portcullis hook` judges by unless told otherwise.
//!
//! Its source is `examples/developer`; a test holds this list to exactly the files that stand there.

use std::collections::BTreeMap;

/// The name by which the daemon knows it.
pub const NAME: &str = "developer";

macro_rules! shipped {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_bytes!(concat!("../../../examples/developer/", $path)).as_slice())),*]
    };
}

const FILES: &[(&str, &[u8])] = &shipped![
    "access/commands.cedar",
    "access/files.cedar",
    "access/network.cedar",
    "access/services.cedar",
    "policies/developer.toml",
    "portcullis.toml",
    "tests/held.md",
    "tests/ordinary.md",
    "tools/claude-code.toml",
];

/// The files by path with `/` between components, as
/// [`Bundle::load`](portcullis_core::bundle::Bundle::load) takes them.
#[must_use]
pub fn files() -> BTreeMap<String, Vec<u8>> {
    FILES.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::default_bundle::tests::collect;

    #[test]
    fn nothing_of_the_folder_is_missing_or_extra() {
        let found = collect("examples/developer");
        assert_eq!(files().keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
        assert_eq!(files(), found);
    }
}
