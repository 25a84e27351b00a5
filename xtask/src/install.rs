//! `cargo xtask install`: installs the programs, and records the digest of the one that `portcullis` trusts.
//!
//! `portcullis-contain` takes the powers away from contained commands, `portcullis-starlark` runs guard programs. `portcullis`
//! executes them only with the digests that lie beside them, so that one that was exchanged since is refused. Nothing but
//! an installation knows the digests.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Failure, Program, Result, doing};

/// The programs whose digests are recorded.
const HELPERS: [&str; 2] = ["portcullis-contain", ENGINE];
/// The engine of guard programs, which is built on its own.
const ENGINE: &str = "portcullis-starlark";

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
    for digest in HELPERS.map(|helper| programs.join(file_of(helper))).iter().filter(|digest| digest.exists())
    {
        doing(&format!("remove `{}`", digest.display()), fs::remove_file(digest))?;
    }
    let install = |path: &str| {
        Program::cargo(["install", "--locked", "--path", path, "--root"]).args([root.as_path()]).run()
    };
    install("crates/portcullis")?;
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    install("engines/starlark")?;
    HELPERS.iter().try_for_each(|helper| record(&programs, helper))?;
    println!(
        "installed into `{}`; the digests of `{}` are in files beside them",
        programs.display(),
        HELPERS.join("` and `")
    );
    Ok(())
}

/// The file with the digest of a helper.
fn file_of(helper: &str) -> String {
    format!("{helper}.sha256")
}

/// Records the digest of a helper in this folder.
fn record(programs: &Path, name: &str) -> Result<()> {
    let helper = programs.join(name);
    let said = Program::new("sha256sum").args([helper.as_path()]).answer();
    let digest = said.as_deref().and_then(|said| said.split_whitespace().next());
    let digest = digest.filter(|digest| digest.len() == 64 && digest.chars().all(|c| c.is_ascii_hexdigit()));
    let Some(digest) = digest else {
        return Err(Failure::new(format!("`sha256sum {}` says no digest", helper.display())));
    };
    let path = programs.join(file_of(name));
    doing(&format!("write `{}`", path.display()), fs::write(&path, format!("{digest}  {name}\n")))
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
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for helper in HELPERS {
            assert!(record(&folder, helper).unwrap_err().to_string().contains("says no digest"));
            fs::write(folder.join(helper), "abc").unwrap();
            record(&folder, helper).unwrap();
            let text = fs::read_to_string(folder.join(file_of(helper))).unwrap();
            assert_eq!(text, format!("{abc}  {helper}\n"));
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
