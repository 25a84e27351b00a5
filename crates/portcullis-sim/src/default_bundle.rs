//! The bundle that ships, compiled in, so that the binary works without a folder to go with it.
//!
//! Its source is `examples/bundle`; a test holds this list to exactly the files that stand there.

use std::collections::BTreeMap;

macro_rules! shipped {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_bytes!(concat!("../../../examples/bundle/", $path)).as_slice())),*]
    };
}

const FILES: &[(&str, &[u8])] = &shipped![
    "knowledge.json",
    "plans/compliance.toml",
    "plans/misuse.toml",
    "policies/permissive.toml",
    "policies/strict.toml",
    "portcullis.toml",
    "tests/effects.md",
    "tests/permissive.md",
    "tests/replies.md",
    "tests/strict.md",
    "tests/trajectory.md",
    "tools/compliance.toml",
];

/// The files of the shipped bundle by path with `/` between components, as
/// [`Bundle::load`](portcullis_core::bundle::Bundle::load) takes them.
#[must_use]
pub fn files() -> BTreeMap<String, Vec<u8>> {
    FILES.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::path::Path;

    /// The files of a folder of the project.
    pub(crate) fn collect(folder: &str) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder), "", &mut found);
        found
    }

    fn walk(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                walk(&entry.path(), &format!("{name}/"), found);
            } else {
                found.insert(name, std::fs::read(entry.path()).unwrap());
            }
        }
    }

    #[test]
    fn nothing_of_the_folder_is_missing_or_extra() {
        let found = collect("examples/bundle");
        assert_eq!(files().keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
        assert_eq!(files(), found);
    }
}
