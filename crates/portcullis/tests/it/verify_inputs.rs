//! What `portcullis verify` is given, and who reads what it says: pipes, folders with what is no file, trust files
//! with comments, and readers that go away.

use std::process::{Command, Stdio};

use crate::command::{portcullis, project, run, run_with};

/// A vector, with the policy of those that are made by hand.
fn archive(name: &str) -> [String; 4] {
    let path = |file: &str| project().join("specs/vectors/archives").join(file).to_str().unwrap().to_owned();
    ["verify".into(), path(name), "--trust".into(), path("witnesses.policy")]
}

/// The files of a vector in a folder.
fn unpacked(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let [_, path, ..] = archive(name);
    zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap().extract(folder.path()).unwrap();
    folder
}

#[test]
fn the_answer_stands_when_nobody_reads_it() {
    for (name, code) in [
        ("zip-stored.zip", 0),
        ("names-in-order.zip", 1),
        ("many-valid.zip", 0),
        ("many-stray.zip", 1),
        ("many-withheld.zip", 2),
    ] {
        for json in [&[][..], &["--json"]] {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let args = archive(name);
            let args: Vec<&str> = args.iter().map(String::as_str).chain(json.iter().copied()).collect();
            let status = portcullis(&args).stdout(writer).stderr(Stdio::null()).status().unwrap();
            assert_eq!(status.code(), Some(code), "{name} {json:?}");
        }
    }
}

#[test]
fn an_archive_is_not_read_from_a_pipe() {
    let [verify, path, trust, policy] = archive("zip-stored.zip");
    let bytes = std::fs::read(path).unwrap();
    let empty = [&b"PK\x05\x06"[..], &[0; 18]].concat();
    for bytes in [&bytes, &empty] {
        let ran = run_with(&[&verify, "-", &trust, &policy], bytes);
        assert_eq!(ran.code, 3, "{}", ran.stdout);
        assert!(ran.stderr.contains("cannot be read from a pipe"), "{}", ran.stderr);
        assert!(ran.stderr.contains("help: store it as a file"), "{}", ran.stderr);
        let replayed = run_with(&[&verify, "-", "--replay"], bytes);
        assert_eq!(replayed.code, 3, "{}", replayed.stdout);
    }
}

#[test]
fn a_folder_holds_files_and_folders_alone() {
    let folder = unpacked("zip-stored.zip");
    let [_, _, _, policy] = archive("zip-stored.zip");
    let verify = || run(&["verify", folder.path().to_str().unwrap(), "--trust", &policy]);
    assert_eq!(verify().code, 0);

    let pipe = folder.path().join("log/x.leaf");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let ran = verify();
    assert_eq!(ran.code, 3, "{}", ran.stdout);
    assert!(ran.stderr.contains("`log/x.leaf` in it is not a regular file or a folder"), "{}", ran.stderr);
    std::fs::remove_file(&pipe).unwrap();

    // What a link leads to is not in the export, be it a file or a folder.
    for to in ["run.export", "log", "/dev/zero", "nowhere"] {
        let link = folder.path().join("log/x.consistency");
        std::os::unix::fs::symlink(to, &link).unwrap();
        assert_eq!(verify().code, 3, "{to}");
        std::fs::remove_file(&link).unwrap();
    }
    assert_eq!(verify().code, 0);
}

#[test]
fn stray_files_are_found_without_a_policy() {
    let [_, good, ..] = archive("zip-stored.zip");
    assert_eq!(run(&["verify", &good]).code, 2);
    for name in ["names-in-order.zip", "many-stray.zip", "many-run-beside.zip"] {
        let [_, path, ..] = archive(name);
        let ran = run(&["verify", &path]);
        assert_eq!(ran.code, 1, "{name}: {}", ran.stdout);
        assert!(ran.stdout.starts_with("INVALID files-mismatched\n  at `"), "{}", ran.stdout);
    }
}

#[test]
fn a_trust_file_may_begin_with_a_comment() {
    let folder = project().join("specs/vectors/run-chain");
    let vectors = std::fs::read(folder.join("vectors.json")).unwrap();
    let vectors: serde_json::Value = serde_json::from_slice(&vectors).unwrap();
    let all = vectors["exports"].as_array().unwrap();
    let vector = all.iter().find(|vector| vector["file"] == "valid-trust-by-hand.jsonl").unwrap();
    let trust = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(trust.path(), vector["trust"].as_str().unwrap()).unwrap();
    let export = folder.join("valid-trust-by-hand.jsonl");
    let ran = run(&["verify", export.to_str().unwrap(), "--trust", trust.path().to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}
