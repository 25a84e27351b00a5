//! Builds the engine of guard programs for tests, and puts it where the program under test looks for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The engine, built.
pub(crate) fn built() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let target = root.join("target/engines");
        let built = Command::new(env!("CARGO"))
            .args(["build", "--release", "--quiet", "--locked", "--manifest-path"])
            .arg(root.join("engines/starlark/Cargo.toml"))
            .arg("--target-dir")
            .arg(&target)
            .status()
            .unwrap();
        assert!(built.success(), "the engine cannot be built");
        target.join("release/portcullis-starlark")
    };
    BUILT.get_or_init(build).clone()
}

/// Puts it into a folder. Tests that run at the same time do not see half of it.
pub(crate) fn put_into(folder: &Path) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let (built, path) = (built(), folder.join("portcullis-starlark"));
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let time = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    if time(&path).is_some_and(|there| time(&built).is_some_and(|built| there >= built)) {
        return;
    }
    let new = folder.join(format!("portcullis-starlark.{}", std::process::id()));
    std::fs::copy(&built, &new).unwrap();
    std::fs::rename(&new, &path).unwrap();
}
