//! The bundle of roles over health records, compiled in: what `portcullis eval eicu-ac` judges by unless told
//! otherwise.
//!
//! Its source is `examples/eicu`; a test holds this list to exactly the files that stand there.

use std::collections::BTreeMap;

macro_rules! shipped {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_bytes!(concat!("../../../examples/eicu/", $path)).as_slice())),*]
    };
}

const FILES: &[(&str, &[u8])] = &shipped![
    "access/general-administration.cedar",
    "access/nursing.cedar",
    "access/physician.cedar",
    "access/tools.cedar",
    "functions/ehragent.toml",
    "policies/records.toml",
    "portcullis.toml",
    "tables/eicu.toml",
    "tests/roles.md",
    "tools/records.toml",
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
    use std::path::Path;

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
        let mut found = BTreeMap::new();
        walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/eicu"), "", &mut found);
        assert_eq!(files(), found);
    }
}
