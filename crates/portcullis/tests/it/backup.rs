//! Copies of a state folder that is in use.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::daemon::{State, ailing, open, proposal, runtime};
use portcullis_session::surface::Surface as _;

/// Everything below a folder must be its owner's alone.
fn assert_private(path: &Path) {
    let meta = fs::symlink_metadata(path).unwrap();
    let wanted = if meta.is_dir() { 0o700 } else { 0o600 };
    assert_eq!(meta.permissions().mode() & 0o777, wanted, "{}", path.display());
    if meta.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| assert_private(&entry.unwrap().path()));
    }
}

#[test]
fn a_copy_of_a_store_in_use_is_whole_and_private() {
    let state = State::new();
    let runtime = runtime();
    let nothing = state.run(&["backup", "/tmp/nowhere/at-all"]);
    assert_eq!(nothing.code, 3, "{}", nothing.stderr);
    let run = runtime.block_on(open(&state));
    runtime.block_on(run.propose(proposal("rotate_keys"))).unwrap();

    let target = state.home().parent().unwrap().join("copy");
    let to = target.to_str().unwrap();
    // Another run writes while the copy is made.
    std::thread::scope(|scope| {
        let writes = scope.spawn(|| {
            for _ in 0..20 {
                runtime.block_on(run.propose(proposal("rotate_keys"))).unwrap();
            }
        });
        let copied = state.run(&["backup", to]);
        assert_eq!(copied.code, 0, "{}", copied.stderr);
        assert!(copied.stdout.contains("keep a copy of keys/ apart"), "{}", copied.stdout);
        writes.join().unwrap();
    });
    assert_private(&target);
    let names: Vec<_> = fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| name != "keys" && name != "credentials"), "{names:?}");

    assert_eq!(ailing(&state, &["--home", to]), []);
    let events =
        |home: &str| state.run(&["export", &run.id().to_string(), "--home", home]).stdout.lines().count();
    let (copied, original) = (events(to), events(state.home().to_str().unwrap()));
    assert!(copied > 5 && copied <= original, "{copied} of {original} lines");

    let again = state.run(&["backup", to]);
    assert_eq!(again.code, 64, "{}", again.stderr);
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
    let inside = state.run(&["backup", state.home().join("copy").to_str().unwrap()]);
    assert_eq!(inside.code, 64, "{}", inside.stderr);
}
