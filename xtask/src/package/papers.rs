//! What goes with the programs on paper: licences, and a bill of what they are made of (CycloneDX 1.5).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::image::date;
use super::linked::{self, Everything, Id, Linked};
use super::programs::{MAIN, Programs};
use super::tree::digest;
use crate::process::{Failure, Result, doing, root};

/// The bill's name inside packages, and beside them.
pub(super) const BILL: &str = "sbom.cdx.json";
/// How names of files with licences begin, in capitals.
const LICENCES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
/// A longer file is not a licence.
const LICENCE_BYTES_MAX: u64 = 256 << 10;
/// Licences of what is part of our own sources or of no crate.
const OTHERS: [(&str, &str); 2] = [
    ("musl", "packaging/licences/musl"),
    ("WordNet 3.1 (words in wordnet.txt)", "crates/portcullis-trajectory/src/data/WORDNET-LICENSE"),
];

/// The papers of a package.
#[derive(Debug, Clone)]
pub(super) struct Papers {
    licence: String,
    others: String,
    pub(super) bill: String,
}

impl Papers {
    /// Reads what is linked and writes all of them.
    ///
    /// # Errors
    /// Something that is linked cannot be found, or has no licence.
    pub(super) fn of(programs: &Programs) -> Result<Self> {
        let all = linked::everything(programs.target)?;
        let licence = doing("read `LICENSE`", fs::read_to_string(root().join("LICENSE")))?;
        Ok(Self { licence, others: licences(&all)?, bill: bill(programs, &all)? })
    }

    /// By name.
    pub(super) fn files(&self) -> [(String, &str); 3] {
        [
            ("LICENSE".to_owned(), self.licence.as_str()),
            ("THIRD-PARTY-LICENSES".to_owned(), self.others.as_str()),
            (BILL.to_owned(), self.bill.as_str()),
        ]
    }
}

/// The licences of all that is linked, each text once.
fn licences(all: &Everything) -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = String::new();
    for ((name, version), linked) in all.iter().filter(|((name, _), _)| !name.starts_with(MAIN)) {
        let Linked { licence, folder, .. } = linked;
        if licence.is_empty() {
            return Err(Failure::new(format!("{name} {version} names no licence, so it cannot be shipped")));
        }
        let found = folder.as_deref().map(files_of).transpose()?.unwrap_or_default();
        if found.is_empty() {
            let _never_fails = writeln!(without, "  {name} {version}: {licence}");
        }
        for text in found {
            texts.entry(text).or_default().push(format!("{name} {version} ({licence})"));
        }
    }
    for (what, path) in OTHERS {
        let text = doing(&format!("read `{path}`"), fs::read_to_string(root().join(path)))?;
        texts.entry(text).or_default().push(what.to_owned());
    }
    let mut sorted: Vec<(Vec<String>, String)> =
        texts.into_iter().map(|(text, users)| (users, text)).collect();
    sorted.sort();
    let mut written = "The programs hold work of others, under the licences below.\n".to_owned();
    for (users, text) in sorted {
        let _never_fails = write!(written, "\n----\n{}\n\n{}\n", users.join("\n"), text.trim_end());
    }
    let _never_fails =
        write!(written, "\n----\nThese say their licence and come without a text of it:\n{without}");
    Ok(written)
}

fn files_of(folder: &Path) -> Result<Vec<String>> {
    let what = format!("read the folder `{}`", folder.display());
    let mut texts = Vec::new();
    for entry in doing(&what, fs::read_dir(folder))? {
        let entry = doing(&what, entry)?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_licence = LICENCES.iter().any(|begin| name.starts_with(begin))
            && entry.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= LICENCE_BYTES_MAX);
        if is_licence {
            let text = doing(&format!("read `{}`", entry.path().display()), fs::read(entry.path()))?;
            texts.push(String::from_utf8_lossy(&text).into_owned());
        }
    }
    Ok(texts)
}

fn bill(programs: &Programs, all: &Everything) -> Result<String> {
    let mut components: Vec<Value> = programs
        .bytes
        .iter()
        .map(|(name, bytes)| {
            json!({
                "type": "file",
                "bom-ref": format!("file:{name}"),
                "name": name,
                "hashes": [{ "alg": "SHA-256", "content": digest(bytes) }],
            })
        })
        .collect();
    components.extend(all.iter().map(|(id, linked)| component(id, linked)));
    let mut dependencies: Vec<Value> = all
        .iter()
        .map(|(id, linked)| {
            let depends: Vec<String> = linked.depends.iter().map(reference).collect();
            json!({ "ref": reference(id), "dependsOn": depends })
        })
        .collect();
    let top: Vec<String> = all
        .keys()
        .filter(|(name, _)| [MAIN, "portcullis-starlark", "rust-std", "musl"].contains(&name.as_str()))
        .map(reference)
        .collect();
    let own = format!("pkg:generic/{MAIN}@{}?arch={}", programs.version, programs.target.machine);
    dependencies.push(json!({ "ref": own, "dependsOn": top }));
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": date(programs.time)?,
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": MAIN,
                "version": programs.told,
                "licenses": [{ "expression": "Apache-2.0" }],
                "purl": own,
            },
        },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(format!("{}\n", doing("write the bill of materials", serde_json::to_string_pretty(&bill))?))
}

fn component(id: &Id, linked: &Linked) -> Value {
    let (name, version) = id;
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(id),
        "name": name,
        "version": version,
        // `blessing` is SQLite's, of which SPDX knows the name as well.
        "licenses": [{ "expression": linked.licence }],
        "purl": reference(id),
    });
    if let Some(fields) = component.as_object_mut() {
        if let Some(checksum) = &linked.checksum {
            fields.insert("hashes".to_owned(), json!([{ "alg": "SHA-256", "content": checksum }]));
        }
        if !linked.repository.is_empty() {
            let references = json!([{ "type": "vcs", "url": linked.repository }]);
            fields.insert("externalReferences".to_owned(), references);
        }
    }
    component
}

/// A package URL: of crates, and of what is none.
fn reference((name, version): &Id) -> String {
    let kind = if ["rust-std", "musl", "sqlite"].contains(&name.as_str()) || name.starts_with(MAIN) {
        "generic"
    } else {
        "cargo"
    };
    // A plus sign of a version means a space in a URL.
    format!("pkg:{kind}/{name}@{}", version.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linked(licence: &str) -> Linked {
        Linked { licence: licence.to_owned(), checksum: Some("ab".to_owned()), ..Linked::default() }
    }

    #[test]
    fn nothing_without_a_licence_is_shipped() {
        let id = ("b".to_owned(), "2.0.0+x".to_owned());
        let named = licences(&Everything::from([(id.clone(), linked("MIT"))])).unwrap();
        assert!(named.contains("  b 2.0.0+x: MIT"), "{named}");
        assert!(named.contains("Princeton"), "{named}");
        let refused = licences(&Everything::from([(id.clone(), linked(""))])).unwrap_err().to_string();
        assert!(refused.contains("b 2.0.0+x names no licence"), "{refused}");
        let component = component(&id, &linked("MIT"));
        assert_eq!(component["purl"], "pkg:cargo/b@2.0.0%2Bx");
        assert_eq!(component["hashes"][0]["content"], "ab");
    }
}
