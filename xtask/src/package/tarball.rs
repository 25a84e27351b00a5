//! The archive that runs wherever it is unpacked: `bin`, `share`, licences.

use super::Made;
use super::papers::Papers;
use super::programs::Programs;
use super::tree::{PROGRAM, TEXT, Tree};
use crate::process::Result;

/// `portcullis-VERSION-MACHINE-linux.tar.gz`.
pub(super) fn make(programs: &Programs, papers: &Papers) -> Result<Made> {
    let name = format!("portcullis-{}-{}-linux", programs.version, programs.target.machine);
    let mut tree = Tree::default();
    for (file, (bytes, runs)) in programs.files() {
        tree.file(&format!("bin/{file}"), bytes, if runs { PROGRAM } else { TEXT });
    }
    for (path, bytes) in &programs.share {
        tree.file(&format!("share/{path}"), bytes.as_slice(), TEXT);
    }
    for (file, text) in papers.files() {
        tree.file(&format!("share/doc/portcullis/{file}"), text, TEXT);
    }
    let bytes = tree.tar_gz(&format!("{name}/"), programs.time, programs.compression)?;
    Ok(Made { name: format!("{name}.tar.gz"), bytes })
}
