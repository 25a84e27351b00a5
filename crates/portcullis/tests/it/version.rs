//! What the programs say their version is: the commit, wherever they were built from.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::command::{portcullis, project, run};
use crate::engine;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// The version that a build in a folder would have.
fn built_in(script: &Path, folder: &Path) -> String {
    let package = folder.join("crates/portcullis");
    fs::create_dir_all(&package).unwrap();
    let output = Command::new(script)
        .env("CARGO_MANIFEST_DIR", &package)
        .env("CARGO_PKG_VERSION", "1.2.3")
        .output()
        .unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines()
        .find_map(|line| line.strip_prefix("cargo::rustc-env=PORTCULLIS_VERSION="))
        .unwrap()
        .to_owned()
}

fn git(folder: &Path, words: &[&str]) -> String {
    let names = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    let output = Command::new("git").args(names).args(words).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_build_tells_the_commit_from_a_clone_and_from_an_archive_and_says_where_there_is_none() {
    let place = tempfile::tempdir().unwrap();
    let script = place.path().join("build");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
    let compiled = Command::new("rustc").args(["--edition", "2024", "-o"]).arg(&script).arg(source).status();
    assert!(compiled.unwrap().success());

    let clone = place.path().join("clone");
    fs::create_dir_all(clone.join("packaging")).unwrap();
    for file in [".gitattributes", "packaging/commit"] {
        fs::copy(project().join(file), clone.join(file)).unwrap();
    }
    assert_eq!(built_in(&script, &clone), "1.2.3 (from sources that name no commit)");
    git(&clone, &["init", "--quiet"]);
    git(&clone, &["add", "--all"]);
    git(&clone, &["commit", "--quiet", "-m", "one"]);
    let commit = git(&clone, &["rev-parse", "HEAD"]);
    let short = commit.get(..12).unwrap();
    assert_eq!(built_in(&script, &clone), format!("1.2.3 ({short})"));
    git(&clone, &["pack-refs", "--all"]);
    assert_eq!(built_in(&script, &clone), format!("1.2.3 ({short})"), "packed");
    let beside = place.path().join("beside");
    git(&clone, &["worktree", "add", "--quiet", beside.to_str().unwrap()]);
    assert_eq!(built_in(&script, &beside), format!("1.2.3 ({short})"), "a worktree");

    let archive = place.path().join("sources.tar");
    git(&clone, &["archive", "-o", archive.to_str().unwrap(), "HEAD"]);
    // Within another repository, as when somebody unpacks it there: that one's commit is none of ours.
    let unpacked = clone.join("vendor/portcullis");
    fs::create_dir_all(&unpacked).unwrap();
    assert!(
        Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&unpacked).status().unwrap().success()
    );
    assert_eq!(built_in(&script, &unpacked), format!("1.2.3 ({short}, from an archive of the sources)"));
    fs::write(unpacked.join("packaging/commit"), "not a commit\n").unwrap();
    assert_eq!(built_in(&script, &unpacked), "1.2.3 (from sources that name no commit)");
    fs::write(unpacked.join("packaging/commit"), COMMIT).unwrap();
    assert!(built_in(&script, &unpacked).contains(COMMIT.get(..12).unwrap()));
}

#[test]
fn the_programs_are_of_one_version_and_doctor_says_which_is_not() {
    let told = run(&["--version"]).stdout;
    let version = told.trim().strip_prefix("portcullis ").unwrap();
    assert!(version.starts_with(concat!(env!("CARGO_PKG_VERSION"), " (")), "{told}");
    let place = tempfile::tempdir_in("/tmp").unwrap();
    let beside = |name: &str, from: &Path| fs::copy(from, place.path().join(name)).unwrap();
    beside("portcullis", Path::new(env!("CARGO_BIN_EXE_portcullis")));
    beside("portcullis-hook", Path::new(env!("CARGO_BIN_EXE_portcullis-hook")));
    beside("portcullis-contain", Path::new(env!("CARGO_BIN_EXE_portcullis-contain")));
    beside("portcullis-starlark", &engine::built());
    for name in ["portcullis-hook", "portcullis-contain", "portcullis-starlark"] {
        let said = Command::new(place.path().join(name)).arg("--version").output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap(), format!("{name} {version}\n"));
    }
    let doctor = || {
        let words = portcullis(&["doctor"]);
        let mut command = Command::new(place.path().join("portcullis"));
        command.args(words.get_args()).env("PORTCULLIS_HOME", place.path().join("home"));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let said = doctor();
    assert!(
        said.contains(&format!("ok    programs        {version}; those beside it are of the same version")),
        "{said}"
    );

    let stale = place.path().join("portcullis-contain");
    fs::remove_file(&stale).unwrap();
    fs::write(&stale, "#!/bin/sh\necho portcullis-contain 0.0.9\n").unwrap();
    fs::set_permissions(&stale, fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(place.path().join("portcullis-starlark")).unwrap();
    let said = doctor();
    assert!(said.contains("warn  programs") && said.contains("but `portcullis-contain` is 0.0.9"), "{said}");
    assert!(said.contains("install all programs in"), "{said}");
}
