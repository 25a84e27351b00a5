//! Bundles for these tests.

use std::fs;
use std::path::{Path, PathBuf};

/// The shipped bundle, whose held calls are answered at once.
pub(super) fn quick_bundle(folder: &Path) -> PathBuf {
    let bundle = folder.join("bundle");
    for (path, bytes) in portcullis_session::shipped::developer_bundle() {
        let path = bundle.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let main = bundle.join("portcullis.toml");
    let text = fs::read_to_string(&main).unwrap();
    assert!(text.contains("approval_wait_s = 20"));
    fs::write(main, text.replace("approval_wait_s = 20", "approval_wait_s = 0")).unwrap();
    bundle
}
