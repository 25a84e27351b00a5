//! The published log, read by the Go project's implementation of transparent logs (`golang.org/x/mod/sumdb/tlog`).
//!
//! Runs where `go` and that package's sources are installed: on Debian `golang-go` and `golang-golang-x-mod-dev`.

use std::path::Path;
use std::process::Command;

use portcullis_ledger::log::Log;

use crate::log::{Place, closed};
use crate::sample::open;

/// Where Debian puts the sources of Go packages.
const SOURCES: &str = "/usr/share/gocode";

#[test]
fn go_reads_every_leaf_and_every_earlier_tree() {
    let package = Path::new(SOURCES).join("src/golang.org/x/mod/sumdb/tlog");
    if !package.is_dir() || !Command::new("go").arg("version").output().is_ok_and(|out| out.status.success())
    {
        println!("SKIPPED go_reads_every_leaf: install golang-go and golang-golang-x-mod-dev");
        return;
    }
    let place = Place::new();
    let ledger = open(&place.ledger());
    let mut log = Log::open(&place.places()).unwrap();
    // Past two full tiles, in rounds of different lengths.
    for runs in [1, 40, 87, 1, 130, 30] {
        for _ in 0..runs {
            closed(&ledger);
        }
        log.round().unwrap();
    }
    let cache = tempfile::tempdir().unwrap();
    let check = || {
        Command::new("go")
            .args(["run", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/go/main.go")])
            .arg(place.places().public)
            .envs([("GO111MODULE", "off"), ("GOPATH", SOURCES), ("GOFLAGS", "")])
            .env("GOCACHE", cache.path())
            .output()
            .unwrap()
    };
    let output = check();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said, "579 leaves, 1158 proofs\n");
    // And it finds what is wrong.
    let tile = place.places().public.join("tile/0/001");
    let mut bytes = std::fs::read(&tile).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&tile, bytes).unwrap();
    assert!(!check().status.success());
}
