//! `cargo xtask install`: installs the programs, and records the digest of the one that `portcullis` trusts.
//!
//! `portcullis-contain` takes the powers away from contained commands. `portcullis` executes it only with the digest that
//! lies beside it, so that a helper that was exchanged since is refused. Nothing but an installation knows the digest.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Failure, Program, Result, doing};

/// The program, and the file with its digest.
const HELPER: &str = "portcullis-contain";
const DIGEST: &str = "portcullis-contain.sha256";

/// Installs below a folder, or where cargo installs.
///
/// # Errors
/// Cargo fails, or the digest cannot be made or written.
pub(crate) fn run(root: Option<&Path>) -> Result<()> {
    let root = match root {
        Some(root) => root.to_owned(),
        None => usual()
            .ok_or_else(|| Failure::new("there is no home folder to install into; give `install DIR`"))?,
    };
    let programs = root.join("bin");
    // An old digest would have the new helper refused, if what follows fails half way.
    let digest = programs.join(DIGEST);
    if digest.exists() {
        doing(&format!("remove `{}`", digest.display()), fs::remove_file(&digest))?;
    }
    Program::cargo(["install", "--locked", "--path", "crates/portcullis", "--root"])
        .args([root.as_path()])
        .run()?;
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    record(&programs)?;
    println!("installed into `{}`; the digest of `{HELPER}` is in `{DIGEST}` beside it", programs.display());
    Ok(())
}

/// Records the digest of the helper in this folder.
fn record(programs: &Path) -> Result<()> {
    let helper = programs.join(HELPER);
    let said = Program::new("sha256sum").args([helper.as_path()]).answer();
    let digest = said.as_deref().and_then(|said| said.split_whitespace().next());
    let digest = digest.filter(|digest| digest.len() == 64 && digest.chars().all(|c| c.is_ascii_hexdigit()));
    let Some(digest) = digest else {
        return Err(Failure::new(format!("`sha256sum {}` says no digest", helper.display())));
    };
    let path = programs.join(DIGEST);
    doing(&format!("write `{}`", path.display()), fs::write(&path, format!("{digest}  {HELPER}\n")))
}

/// Where cargo installs, unless its settings say otherwise.
fn usual() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("CARGO_INSTALL_ROOT")
        .or_else(|| named("CARGO_HOME"))
        .or_else(|| Some(named("HOME")?.join(".cargo")))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_helper() {
        let folder = std::env::temp_dir().join(format!("portcullis-install-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        assert!(record(&folder).unwrap_err().to_string().contains("says no digest"));
        fs::write(folder.join(HELPER), "abc").unwrap();
        record(&folder).unwrap();
        let text = fs::read_to_string(folder.join(DIGEST)).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(text, format!("{abc}  portcullis-contain\n"));
    }
}
