//! The bundles that ship, compiled in, so that the binary works without a folder to go with it.
//!
//! Their sources are `examples/bundle` and `examples/developer`; tests hold the lists to exactly the files that
//! stand there.

use std::collections::BTreeMap;

/// The name by which the daemon knows the bundle for a developer's machine.
pub const DEVELOPER: &str = "developer";

macro_rules! files {
    ($folder:literal: $($path:literal),* $(,)?) => {
        [$(($path, include_bytes!(concat!("../../../examples/", $folder, "/", $path)).as_slice())),*]
    };
}

const DEFAULT_FILES: &[(&str, &[u8])] = &files![
    "bundle":
    "knowledge.json",
    "plans/compliance.toml",
    "plans/misuse.toml",
    "policies/permissive.toml",
    "policies/strict.toml",
    "portcullis.toml",
    "tests/contained.md",
    "tests/effects.md",
    "tests/permissive.md",
    "tests/replies.md",
    "tests/strict.md",
    "tests/trajectory.md",
    "tools/compliance.toml",
];

const DEVELOPER_FILES: &[(&str, &[u8])] = &files![
    "developer":
    "access/commands.cedar",
    "access/files.cedar",
    "access/network.cedar",
    "access/project.cedar",
    "access/services.cedar",
    "policies/developer.toml",
    "portcullis.toml",
    "tests/contained.md",
    "tests/held.md",
    "tests/observed.md",
    "tests/ordinary.md",
    "tools/claude-code.toml",
];

/// The files of the default bundle by path with `/` between components, as
/// [`Bundle::load`](portcullis_core::bundle::Bundle::load) takes them.
#[must_use]
pub fn default_bundle() -> BTreeMap<String, Vec<u8>> {
    by_path(DEFAULT_FILES)
}

/// The files of the bundle for a developer's machine, which `portcullis hook` judges by unless told otherwise.
#[must_use]
pub fn developer_bundle() -> BTreeMap<String, Vec<u8>> {
    by_path(DEVELOPER_FILES)
}

fn by_path(files: &[(&str, &[u8])]) -> BTreeMap<String, Vec<u8>> {
    files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The files of a folder of the project.
    fn collect(folder: &str) -> BTreeMap<String, Vec<u8>> {
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
    fn nothing_of_the_folders_is_missing_or_extra() {
        for (shipped, folder) in
            [(default_bundle(), "examples/bundle"), (developer_bundle(), "examples/developer")]
        {
            let found = collect(folder);
            assert_eq!(shipped.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
            assert_eq!(shipped, found);
        }
    }
}
