//! The container image: an OCI layout in one archive, written directly. No daemon is asked, and nothing is in it but
//! the programs, a user, and folders for state and temporary files: no shell, no library, no certificates.

use serde_json::{Value, json};

use super::Made;
use super::debian;
use super::papers::Papers;
use super::programs::Programs;
use super::tree::{TEXT, Tree, digest, gzip};
use crate::process::{Failure, Program, Result, doing};

/// The user that the programs run as; what images without a shell commonly have.
const USER: u64 = 65_532;
/// Where the state folder is.
pub(super) const HOME: &str = "var/lib/portcullis";

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// `portcullis-VERSION-MACHINE-oci.tar`.
pub(super) fn make(programs: &Programs, papers: &Papers) -> Result<Made> {
    let layer = content(programs, papers).tar("", programs.time)?;
    let packed = gzip(&layer, programs.compression)?;
    let made = date(programs.time)?;
    let labels = json!({
        "org.opencontainers.image.title": "portcullis",
        "org.opencontainers.image.version": programs.told,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.created": made,
    });
    let config = json!({
        "created": made,
        "architecture": programs.target.debian,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/bin", format!("PORTCULLIS_HOME=/{HOME}"), format!("HOME=/{HOME}")],
            "Entrypoint": ["/usr/bin/portcullis"],
            "Cmd": ["serve"],
            "WorkingDir": format!("/{HOME}"),
            "Volumes": { format!("/{HOME}"): {} },
            "StopSignal": "SIGTERM",
            "Labels": labels,
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", digest(&layer))] },
        "history": [{ "created": made, "created_by": "cargo xtask package" }],
    });
    let config = text(&config)?;
    let manifest = text(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": described(CONFIG, &config),
        "layers": [described(LAYER, &packed)],
        "annotations": labels,
    }))?;
    let mut entry = described(MANIFEST, &manifest);
    if let Some(entry) = entry.as_object_mut() {
        let platform = json!({ "architecture": programs.target.debian, "os": "linux" });
        entry.insert("platform".to_owned(), platform);
        let name = json!({ "org.opencontainers.image.ref.name": programs.version });
        entry.insert("annotations".to_owned(), name);
    }
    let index = text(&json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry] }))?;

    let mut layout = Tree::default();
    layout.file("oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}", TEXT);
    layout.file("index.json", index, TEXT);
    for blob in [config, manifest, packed] {
        layout.file(&format!("blobs/sha256/{}", digest(&blob)), blob, TEXT);
    }
    let name = format!("portcullis-{}-{}-oci.tar", programs.version, programs.target.machine);
    Ok(Made { name, bytes: layout.tar("", programs.time)? })
}

fn content(programs: &Programs, papers: &Papers) -> Tree {
    let mut tree = Tree::default();
    debian::install(&mut tree, programs);
    tree.file("etc/passwd", format!("portcullis:x:{USER}:{USER}::/{HOME}:/nonexistent\n"), TEXT);
    tree.file("etc/group", format!("portcullis:x:{USER}:\n"), TEXT);
    tree.folder("tmp", 0o1777, 0);
    tree.folder(HOME, 0o700, USER);
    for (file, text) in papers.files() {
        tree.file(&format!("usr/share/doc/portcullis/{file}"), text, TEXT);
    }
    tree
}

/// How others refer to a blob.
fn described(kind: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": kind, "digest": format!("sha256:{}", digest(bytes)), "size": bytes.len() })
}

fn text(value: &Value) -> Result<Vec<u8>> {
    doing("write a part of the image", serde_json::to_vec(value))
}

/// Seconds since the epoch as RFC 3339 has them.
pub(super) fn date(seconds: u64) -> Result<String> {
    let written =
        Program::new("date").args(["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%dT%H:%M:%SZ"]).answer();
    written.ok_or_else(|| Failure::new(format!("{seconds} seconds after 1970 are no date")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_910_399, "2026-11-28T23:59:59Z"),
        ] {
            assert_eq!(date(seconds).unwrap(), expected);
        }
        assert!(date(u64::MAX).is_err());
    }
}
