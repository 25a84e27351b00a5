//! The Debian package: an `ar` archive of two others, written as `dpkg-deb` writes it.
//!
//! The programs lie in one folder of their own, since `portcullis` looks for its helpers beside itself; `/usr/bin` has
//! links to those that people and agents start. The maintainer scripts tell systemd about the unit and do nothing else:
//! the user of the service is made by systemd while it runs.

use super::papers::Papers;
use super::programs::Programs;
use super::tree::{PROGRAM, TEXT, Tree, gzip};
use super::{Made, packaging};
use crate::process::{Failure, Result};

/// Where the programs lie.
pub(super) const FOLDER: &str = "usr/lib/portcullis";
/// The programs that others start.
pub(super) const STARTED: [&str; 2] = ["portcullis", "portcullis-hook"];
/// Files of the administrator, which an upgrade leaves alone.
const CONFFILES: &str = "/etc/default/portcullis\n";
/// Bytes of a member's header, by the format.
const HEADER_BYTES: usize = 60;

/// `portcullis_VERSION_ARCHITECTURE.deb`.
pub(super) fn make(programs: &Programs, papers: &Papers) -> Result<Made> {
    let data = data(programs, papers)?;
    let mut control = Tree::default();
    let installed = data.size().div_ceil(1024);
    let text = packaging("debian/control")?
        .replace("@VERSION@", &programs.version)
        .replace("@ARCHITECTURE@", programs.target.debian)
        .replace("@INSTALLED_KIB@", &installed.to_string());
    control.file("control", text, TEXT);
    control.file("conffiles", CONFFILES, TEXT);
    for script in ["postinst", "prerm", "postrm"] {
        control.file(script, packaging(&format!("debian/{script}"))?, PROGRAM);
    }
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", control.tar_gz("./", programs.time, programs.compression)?),
        ("data.tar.gz", data.tar_gz("./", programs.time, programs.compression)?),
    ] {
        member(&mut archive, name, &bytes, programs.time)?;
    }
    let name = format!("portcullis_{}_{}.deb", programs.version, programs.target.debian);
    Ok(Made { name, bytes: archive })
}

fn data(programs: &Programs, papers: &Papers) -> Result<Tree> {
    let mut tree = Tree::default();
    install(&mut tree, programs);
    for (path, bytes) in &programs.share {
        // Debian's policy wants manual pages compressed, and keeps zsh's functions of packages elsewhere.
        let path = path.replace("zsh/site-functions", "zsh/vendor-completions");
        if path.starts_with("man/") {
            tree.file(&format!("usr/share/{path}.gz"), gzip(bytes, programs.compression)?, TEXT);
        } else {
            tree.file(&format!("usr/share/{path}"), bytes.as_slice(), TEXT);
        }
    }
    for (file, text) in papers.files() {
        tree.file(&format!("usr/share/doc/portcullis/{file}"), text, TEXT);
    }
    tree.file("usr/share/doc/portcullis/copyright", packaging("debian/copyright")?, TEXT);
    tree.file("usr/lib/systemd/system/portcullis.service", packaging("portcullis.service")?, TEXT);
    tree.file("etc/default/portcullis", packaging("debian/default")?, TEXT);
    Ok(tree)
}

/// Puts the programs where Debian and the image have them.
pub(super) fn install(tree: &mut Tree, programs: &Programs) {
    for (file, (bytes, runs)) in programs.files() {
        tree.file(&format!("{FOLDER}/{file}"), bytes, if runs { PROGRAM } else { TEXT });
    }
    for name in STARTED {
        tree.link(&format!("usr/bin/{name}"), &format!("../lib/portcullis/{name}"));
    }
}

/// Adds a member to an archive: a header of fixed fields, the bytes, and one more where their number is odd.
fn member(archive: &mut Vec<u8>, name: &str, bytes: &[u8], time: u64) -> Result<()> {
    let header = format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", bytes.len());
    if header.len() != HEADER_BYTES {
        return Err(Failure::new(format!("`{name}` has a size or a time that a Debian package cannot hold")));
    }
    archive.extend_from_slice(header.as_bytes());
    archive.extend_from_slice(bytes);
    if bytes.len() % 2 == 1 {
        archive.push(b'\n');
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_those_of_the_format() {
        let mut archive = Vec::new();
        member(&mut archive, "debian-binary", b"2.0", 7).unwrap();
        let text = String::from_utf8(archive).unwrap();
        assert_eq!(text, "debian-binary   7           0     0     100644  3         `\n2.0\n");
        assert!(member(&mut Vec::new(), "a-name-of-more-than-sixteen", b"", 7).is_err());
    }
}
