//! What judges, under one digest.
//!
//! The digest of a bundle names the bundle's files, and no more: two builds of Portcullis with other built-in patterns
//! or another learned model judge the same bundle differently. The *configuration* digest names everything that takes
//! part in a verdict: the bundle, every artefact of data that is compiled in ([`ARTEFACTS`]), and the version of the
//! engine. Figures and runs carry both, so that a figure can be traced to what was measured.
//!
//! A bundle's own `monitors.toml` adds to the built-in patterns or replaces them; being a file of the bundle, it is in
//! the bundle's digest.

use std::sync::LazyLock;

use portcullis_core::bundle::{BUILT_IN_PROFILES, MonitorSettings};
use portcullis_core::id::{Digest, DigestBuilder};
use portcullis_detect::Detector;
use portcullis_detect::automaton::Markers;
use portcullis_trajectory::lexicon;
use portcullis_trajectory::monitors::learned::Learned;

/// Names what is hashed, and its form.
const LABEL: &str = "portcullis/configuration/v1";
const ARTEFACTS_LABEL: &str = "portcullis/artefacts/v1";
/// The code that reads bundle and artefacts; it counts by its version alone.
const ENGINE: &str = env!("CARGO_PKG_VERSION");

/// Every file that is compiled in and takes part in verdicts, by its path under `crates`, in the order of the names. A
/// test holds the list against the folders.
pub static ARTEFACTS: [(&str, &[u8]); 9] = [
    ("portcullis-core/src/bundle/monitors.toml", MonitorSettings::BUILT_IN.as_bytes()),
    ("portcullis-core/src/bundle/profiles.toml", BUILT_IN_PROFILES.as_bytes()),
    ("portcullis-detect/data/markers.toml", Markers::SHIPPED.as_bytes()),
    ("portcullis-detect/models/order.model", Detector::ORDER_MODEL),
    ("portcullis-detect/models/override.model", Detector::OVERRIDE_MODEL),
    ("portcullis-trajectory/models/intent.model", Learned::BUILT_IN),
    ("portcullis-trajectory/src/data/languages.txt", lexicon::LANGUAGES.as_bytes()),
    ("portcullis-trajectory/src/data/lexicon.txt", lexicon::BUILT_IN.as_bytes()),
    ("portcullis-trajectory/src/data/wordnet.txt", lexicon::WORDNET.as_bytes()),
];

/// The digest of all that judges under a bundle: SHA-256 over the label `portcullis/configuration/v1` and, each with its
/// length before it, the engine's version, the bundle's digest, and the digest of the artefacts, which is made in the
/// same way of `portcullis/artefacts/v1` and the name and bytes of each.
pub fn digest(bundle: Digest) -> Digest {
    static DATA: LazyLock<Digest> = LazyLock::new(|| {
        let parts = ARTEFACTS.iter().fold(DigestBuilder::new(ARTEFACTS_LABEL), |digest, (name, bytes)| {
            digest.part(name.as_bytes()).part(bytes)
        });
        parts.finish()
    });
    DigestBuilder::new(LABEL).part(ENGINE.as_bytes()).part(bundle.as_bytes()).part(DATA.as_bytes()).finish()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Crates whose code judges or is asked by what judges.
    const JUDGING: [&str; 8] =
        ["access", "contracts", "core", "detect", "effects", "guards", "session", "trajectory"];
    /// Files beside the code that no verdict asks: what models were trained on, and a licence.
    const ASIDE: [&str; 3] = [
        "portcullis-detect/data/order-training.toml",
        "portcullis-detect/data/override-training.toml",
        "portcullis-trajectory/src/data/WORDNET-LICENSE",
    ];

    fn data_below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                data_below(&path, found);
            } else if path.extension().is_none_or(|extension| extension != "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_file_of_data_that_judges_is_on_the_list() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut found = Vec::new();
        for name in JUDGING {
            // All that can be compiled in: sources, and folders of data beside them.
            for folder in ["src", "data", "models"] {
                data_below(&crates.join(format!("portcullis-{name}")).join(folder), &mut found);
            }
        }
        let found: BTreeMap<String, Vec<u8>> = found
            .iter()
            .map(|path| {
                (path.strip_prefix(crates).unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
            })
            .collect();
        let listed: BTreeSet<&str> = ARTEFACTS.iter().map(|(name, _)| *name).chain(ASIDE).collect();
        assert_eq!(found.keys().map(String::as_str).collect::<BTreeSet<&str>>(), listed);
        for (name, bytes) in ARTEFACTS {
            assert_eq!(found.get(name).map(Vec::as_slice), Some(bytes), "{name}");
        }
        assert!(ARTEFACTS.is_sorted());
    }

    #[test]
    fn another_bundle_is_another_configuration() {
        let [one, other] = [1, 2].map(|byte| digest(Digest::from_bytes([byte; 32])));
        assert_ne!(one, other);
        assert_eq!(one, digest(Digest::from_bytes([1; 32])));
        assert_ne!(one, Digest::from_bytes([1; 32]));
    }
}
