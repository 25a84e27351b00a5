//! The settings for an agent that acts on its own, compiled in: what the suites of recorded runs judge by unless
//! told otherwise. They hold no tools; a suite registers those its data describes.
//!
//! Their source is `examples/agent`; a test holds this list to exactly the files that stand there.

use std::collections::BTreeMap;

macro_rules! shipped {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_bytes!(concat!("../../../examples/agent/", $path)).as_slice())),*]
    };
}

const FILES: &[(&str, &[u8])] =
    &shipped!["policies/agent.toml", "portcullis.toml", "tests/attacks.md", "tests/ordinary.md"];

/// What the scenarios are judged by besides: they say which level a run must reach, and most of their levels are those of
/// scores.
const STOPPING: &str = "\n[monitors]\nscores = \"stop\"\n";
/// Where it stands.
const MAIN_FILE: &str = "portcullis.toml";

/// The files by path with `/` between components, as
/// [`Bundle::load`](portcullis_core::bundle::Bundle::load) takes them.
#[must_use]
pub fn files() -> BTreeMap<String, Vec<u8>> {
    FILES.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect()
}

/// The same with scores that stop runs, as the scenarios expect.
#[must_use]
pub fn stopping() -> BTreeMap<String, Vec<u8>> {
    let mut files = files();
    files.entry(MAIN_FILE.to_owned()).or_default().extend_from_slice(STOPPING.as_bytes());
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use portcullis_core::bundle::Scores;
    use std::path::Path;

    #[test]
    fn nothing_of_the_folder_is_missing_or_extra() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agent");
        let found = portcullis_session::bundle_dir::read_files(&folder).unwrap();
        assert_eq!(files(), found);
    }

    #[test]
    fn they_load_without_a_tool() {
        let bundle = portcullis_session::policy::load(&files()).unwrap();
        assert_eq!((bundle.registry.iter().count(), bundle.scores), (0, Scores::Advise));
        assert_eq!(portcullis_session::policy::load(&stopping()).unwrap().scores, Scores::Stop);
    }
}
