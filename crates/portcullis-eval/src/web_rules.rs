//! The bundle of rules for web agents, compiled in: what `portcullis eval mind2web-sc` judges by unless told
//! otherwise.
//!
//! Its source is `examples/web-rules`; a test holds this list to exactly the files that stand there.

use std::collections::BTreeMap;

macro_rules! shipped {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_bytes!(concat!("../../../examples/web-rules/", $path)).as_slice())),*]
    };
}

const FILES: &[(&str, &[u8])] = &shipped![
    "access/web.cedar",
    "activities/car.toml",
    "activities/flight.toml",
    "activities/hotel.toml",
    "activities/job.toml",
    "activities/media.toml",
    "activities/besides.toml",
    "activities/shop.toml",
    "policies/web.toml",
    "portcullis.toml",
    "tests/rules.md",
    "tests/scope.md",
    "tools/browser.toml",
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

    fn collect(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                collect(&entry.path(), &format!("{name}/"), found);
            } else {
                found.insert(name, std::fs::read(entry.path()).unwrap());
            }
        }
    }

    #[test]
    fn nothing_of_the_folder_is_missing_or_extra() {
        let mut found = BTreeMap::new();
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/web-rules"), "", &mut found);
        assert_eq!(files().keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
        assert_eq!(files(), found);
    }
}
