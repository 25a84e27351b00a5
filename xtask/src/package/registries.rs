//! A wheel and an npm package that carry the programs and nothing else: for people who have Python or node already and
//! want `pip install` or `npm install -g` to put them on their path.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::Made;
use super::papers::Papers;
use super::programs::Programs;
use super::tree::{PROGRAM, TEXT, Tree};
use crate::process::{Result, doing};

/// The name in both registries.
const NAME: &str = "portcullis-gate";
/// The same, as names of wheels spell it.
const WHEEL_NAME: &str = "portcullis_gate";
const SUMMARY: &str = "The gate between an AI agent and its tools";
const HOMEPAGE: &str = "https://github.com/portcullis-gate/portcullis";

/// `portcullis_gate-VERSION-py3-none-….whl`. A program without libraries runs on every Linux, so the name has the oldest
/// tags of both C libraries.
pub(super) fn wheel(programs: &Programs, papers: &Papers) -> Result<Made> {
    let (version, machine) = (&programs.version, programs.target.machine);
    let tags = format!("manylinux2014_{machine}.musllinux_1_1_{machine}");
    let info = format!("{WHEEL_NAME}-{version}.dist-info");
    let mut tree = Tree::default();
    for (file, (bytes, _)) in programs.files() {
        // What is in this folder is put beside Python's own programs. pip marks all of it as programs.
        tree.file(&format!("{WHEEL_NAME}-{version}.data/scripts/{file}"), bytes, PROGRAM);
    }
    let metadata = format!(
        "Metadata-Version: 2.4\nName: {NAME}\nVersion: {version}\nSummary: {SUMMARY}\nHome-page: {HOMEPAGE}\n\
         License-Expression: Apache-2.0\nRequires-Python: >=3.8\n"
    );
    tree.file(&format!("{info}/METADATA"), metadata, TEXT);
    let mut text = "Wheel-Version: 1.0\nGenerator: cargo xtask package\nRoot-Is-Purelib: false\n".to_owned();
    for tag in tags.split('.') {
        let _never_fails = writeln!(text, "Tag: py3-none-{tag}");
    }
    tree.file(&format!("{info}/WHEEL"), text, TEXT);
    for (file, text) in papers.files() {
        tree.file(&format!("{info}/licenses/{file}"), text, TEXT);
    }
    let record = format!("{info}/RECORD");
    let mut text = String::new();
    for (path, bytes, _) in tree.files() {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        let _never_fails = writeln!(text, "{path},sha256={hash},{}", bytes.len());
    }
    let _never_fails = writeln!(text, "{record},,");
    tree.file(&record, text, TEXT);
    Ok(Made {
        name: format!("{WHEEL_NAME}-{version}-py3-none-{tags}.whl"),
        bytes: zipped(&tree, programs.compression)?,
    })
}

/// As a zip archive. Its times have no zone and begin in 1980, so all are the first that it can hold.
fn zipped(tree: &Tree, level: Compression) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, bytes, mode) in tree.files() {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(level.level().into()))
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        doing(&format!("pack `{path}`"), archive.start_file(path, options))?;
        doing(&format!("pack `{path}`"), archive.write_all(bytes))?;
    }
    Ok(doing("pack a wheel", archive.finish())?.into_inner())
}

/// `portcullis-gate-VERSION.tgz`, as `npm pack` makes it.
pub(super) fn npm(programs: &Programs, papers: &Papers) -> Result<Made> {
    let package = json!({
        "name": NAME,
        "version": programs.version,
        "description": SUMMARY,
        "homepage": HOMEPAGE,
        "license": "Apache-2.0",
        "os": ["linux"],
        "cpu": [programs.target.node],
        "bin": { "portcullis": "bin/portcullis", "portcullis-hook": "bin/portcullis-hook" },
    });
    let mut tree = Tree::default();
    let text = doing("write `package.json`", serde_json::to_string_pretty(&package))?;
    tree.file("package.json", format!("{text}\n"), TEXT);
    for (file, (bytes, runs)) in programs.files() {
        tree.file(&format!("bin/{file}"), bytes, if runs { PROGRAM } else { TEXT });
    }
    for (file, text) in papers.files() {
        tree.file(&file, text, TEXT);
    }
    let name = format!("{NAME}-{}-{}.tgz", programs.version, programs.target.machine);
    Ok(Made { name, bytes: tree.tar_gz("package/", programs.time, programs.compression)? })
}
