//! Folders that are no bundle, named by whoever may open a run: none of them holds up the reader or fills its memory.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use portcullis_session::bundle_dir;

/// How long a folder may take to be refused.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is said about the folder; a reader that hangs fails the test instead of the suite.
fn said_of(folder: &Path) -> String {
    let (answer, answered) = mpsc::channel();
    let folder = folder.to_owned();
    thread::spawn(move || answer.send(bundle_dir::read_files(&folder).map(|files| files.len())));
    match answered.recv_timeout(PATIENCE) {
        Ok(Ok(files)) => format!("{files} files"),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer".to_owned(),
    }
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let case = |name: &str| {
        let folder = dir.path().join(name);
        fs::create_dir(&folder).unwrap();
        (folder.join("portcullis.toml"), folder)
    };
    let (file, pipe) = case("pipe");
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    let (file, linked_pipe) = case("linked-pipe");
    symlink(pipe.join("portcullis.toml"), file).unwrap();
    let (file, device) = case("device");
    symlink("/dev/zero", file).unwrap();
    let (file, socket) = case("socket");
    let _listener = UnixListener::bind(file).unwrap();
    for folder in [pipe, linked_pipe, device, socket] {
        let said = said_of(&folder);
        assert!(said.contains("not a regular file") && said.contains("portcullis.toml"), "{said}");
    }
    // Bundles are mounted as links to files, and those are read.
    let (file, linked) = case("linked");
    fs::write(dir.path().join("there.toml"), "version = 1").unwrap();
    symlink(dir.path().join("there.toml"), file).unwrap();
    assert_eq!(said_of(&linked), "1 files");
}

#[test]
fn a_folder_of_any_size_is_refused_before_it_is_read_whole() {
    let dir = tempfile::tempdir().unwrap();
    let large = dir.path().join("large");
    fs::create_dir(&large).unwrap();
    fs::File::create(large.join("portcullis.toml")).unwrap().set_len(1 << 40).unwrap();
    assert!(said_of(&large).contains("the limit is"), "{}", said_of(&large));

    // Folders without files count, too: nothing else would end a walk through a large tree.
    let wide = dir.path().join("wide");
    for number in 0..5_000 {
        fs::create_dir_all(wide.join(format!("d{number}"))).unwrap();
    }
    assert!(said_of(&wide).contains("entries"), "{}", said_of(&wide));

    let heavy = dir.path().join("heavy");
    fs::create_dir(&heavy).unwrap();
    for number in 0..20 {
        fs::write(heavy.join(format!("{number}.toml")), vec![b' '; 4 << 20]).unwrap();
    }
    assert!(said_of(&heavy).contains("bytes"), "{}", said_of(&heavy));

    let round = dir.path().join("round");
    fs::create_dir(&round).unwrap();
    symlink(&round, round.join("again")).unwrap();
    assert!(said_of(&round).contains("deeper than"), "{}", said_of(&round));
}
