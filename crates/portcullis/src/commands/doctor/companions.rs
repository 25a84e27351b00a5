//! Whether the programs beside this one are of its version: they are installed together, and an upgrade that replaced
//! only some of them is the usual cause of helpers that refuse to work.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Check, Health};

/// What is installed beside `portcullis`.
const NAMES: [&str; 3] = ["portcullis-hook", "portcullis-contain", "portcullis-starlark"];
/// Characters of a version that are shown.
const SHOWN_CHARS_MAX: usize = 100;

pub(super) fn check() -> Check {
    let own = env!("PORTCULLIS_VERSION");
    let folder = std::env::current_exe().and_then(|path| path.canonicalize());
    let folder = folder.ok().and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default();
    let (mut others, mut missing) = (Vec::new(), Vec::new());
    for name in NAMES {
        let path = folder.join(name);
        if !path.exists() {
            missing.push(name);
        } else if let Some(other) = other(&path, name, own) {
            others.push(format!("`{name}` {other}"));
        }
    }
    if !others.is_empty() {
        return Check::new("programs", Health::Warn, format!("this is {own}, but {}", others.join(", ")))
            .remedy(format!("install all programs in {} again, from one package", folder.display()));
    }
    if !missing.is_empty() {
        return Check::new("programs", Health::Warn, format!("{own}; not beside it: {}", missing.join(", ")))
            .remedy(format!("install all programs in {} again, from one package", folder.display()));
    }
    Check::new("programs", Health::Ok, format!("{own}; those beside it are of the same version"))
}

/// What a program says of itself, where it is another version.
fn other(path: &Path, name: &str, own: &str) -> Option<String> {
    let output = Command::new(path).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let said = match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Ok(_) => return Some("does not say its version".to_owned()),
        Err(error) => return Some(format!("does not start: {error}")),
    };
    let version = said.strip_prefix(name).map_or(said.as_str(), str::trim);
    (version != own).then(|| format!("is {}", version.chars().take(SHOWN_CHARS_MAX).collect::<String>()))
}
