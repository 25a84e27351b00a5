//! `cargo xtask package`: what people without Rust install.
//!
//! The programs are built for musl, so that they need no library ([`programs`]), and go with their papers ([`papers`])
//! into an archive, a Debian package, a container image, a wheel and an npm package. Each is written here, byte by byte
//! from a [`tree`], so that the same programs give the same packages on whichever machine. `--check` installs each into
//! an empty root, uses it and removes it ([`check`]).

mod booted;
mod check;
mod debian;
mod foreign;
mod image;
mod linked;
mod papers;
mod programs;
mod registries;
mod root;
mod tarball;
mod tools;
mod tree;
mod unit;

use std::fmt::Write as _;
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::process::{Failure, Program, Result, doing, root};
use papers::{BILL, Papers};
use programs::{Programs, TARGETS, Target};
use tree::digest;

/// Where packages are put unless a folder is named.
const FOLDER: &str = "target/package";
/// The list of digests.
const SUMS: &str = "SHA256SUMS";

/// A package, or a file that goes with them.
#[derive(Debug, PartialEq, Eq)]
struct Made {
    name: String,
    bytes: Vec<u8>,
}

/// Makes packages for the first target, or does what the words say: a folder, `--target TRIPLE`, `--check`.
///
/// # Errors
/// The words are not understood, something does not build, or what was built does not run.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    match words {
        ["--check"] => check::run(&Programs::tested()?),
        ["--check", "--programs", folder] => check::run(&Programs::lying_in(Path::new(folder))?),
        ["--check", "--release"] => check::run_twice(&Programs::release(Target::usual())?),
        ["--check", "--target", triple] => foreign::check(named(triple)?),
        ["--target", triple, rest @ ..] => write(named(triple)?, rest),
        rest => write(Target::usual(), rest),
    }
}

/// The targets that this machine does not run by itself.
pub(crate) fn foreign_targets() -> impl Iterator<Item = &'static str> {
    TARGETS.into_iter().filter(|target| *target != Target::usual()).map(|target| target.triple)
}

fn named(triple: &str) -> Result<Target> {
    let known = TARGETS.map(|target| target.triple).join(" and ");
    let target = TARGETS.into_iter().find(|target| target.triple == triple);
    target.ok_or_else(|| Failure::new(format!("packages are for {known}")))
}

fn write(target: Target, words: &[&str]) -> Result<()> {
    let folder: PathBuf = match words {
        [] => root().join(FOLDER),
        [folder] if !folder.starts_with('-') => Path::new(folder).to_owned(),
        _ => {
            return Err(Failure::new(
                "say `package [--target TRIPLE] [DIR]` or `package --check [--release | --programs DIR | --target TRIPLE]`",
            ));
        }
    };
    let changed = Program::new("git").args(["status", "--porcelain", "--untracked-files=no"]).answer();
    if changed.is_some_and(|changed| !changed.is_empty()) {
        println!("package: WARNING: files differ from the commit that the programs will name");
    }
    let programs = Programs::release(target)?;
    let made = packages(&programs)?;
    doing(&format!("make `{}`", folder.display()), fs::create_dir_all(&folder))?;
    for Made { name, bytes } in &made {
        let path = folder.join(name);
        doing(&format!("write `{}`", path.display()), fs::write(&path, bytes))?;
    }
    println!("package: portcullis {} for {}", programs.told, target.triple);
    for (name, bytes) in &programs.bytes {
        println!("{:>12}  {name}", bytes.len());
    }
    println!("package: in `{}`", folder.display());
    for Made { name, bytes } in &made {
        println!("{:>12}  {name}", bytes.len());
    }
    Ok(())
}

/// All packages of these programs, the bill of materials and the list of digests.
fn packages(programs: &Programs) -> Result<Vec<Made>> {
    let papers = Papers::of(programs)?;
    let pack: [fn(&Programs, &Papers) -> Result<Made>; 5] =
        [tarball::make, debian::make, image::make, registries::wheel, registries::npm];
    let mut made = side_by_side(&pack, |make| make(programs, &papers))?;
    let name = format!("portcullis-{}-{}-{BILL}", programs.version, programs.target.machine);
    made.push(Made { name, bytes: papers.bill.into_bytes() });
    let sums = made.iter().fold(String::new(), |mut sums, Made { name, bytes }| {
        let _never_fails = writeln!(sums, "{}  {name}", digest(bytes));
        sums
    });
    made.push(Made { name: SUMS.to_owned(), bytes: sums.into_bytes() });
    Ok(made)
}

/// Does all of them, as many at a time as there are processors, and returns what came of each in their order; or the
/// first failure.
fn side_by_side<J: Sync, T: Send>(jobs: &[J], work: impl Fn(&J) -> Result<T> + Sync) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let lanes = thread::available_parallelism().map_or(1, usize::from);
    let lane = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(number) else { return done };
            done.push((number, work(job)));
        }
    };
    let mut done: Vec<(usize, Result<T>)> = thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        let joined = lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|cause| resume_unwind(cause)));
        joined.flatten().collect()
    });
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// A file of `packaging/`.
fn packaging(path: &str) -> Result<String> {
    let path = root().join("packaging").join(path);
    doing(&format!("read `{}`", path.display()), fs::read_to_string(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_of_packing_give_the_same_bytes() {
        let programs = programs::sample();
        let made = packages(&programs).unwrap();
        assert_eq!(made, packages(&programs).unwrap());
        let names: Vec<&str> = made.iter().map(|made| made.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "portcullis-1.2.3-x86_64-linux.tar.gz",
                "portcullis_1.2.3_amd64.deb",
                "portcullis-1.2.3-x86_64-oci.tar",
                "portcullis_gate-1.2.3-py3-none-manylinux2014_x86_64.musllinux_1_1_x86_64.whl",
                "portcullis-gate-1.2.3-x86_64.tgz",
                "portcullis-1.2.3-x86_64-sbom.cdx.json",
                "SHA256SUMS",
            ]
        );
        // And whatever goes in comes out as something else.
        let mut other = programs.clone();
        other.bytes.insert("portcullis-hook", b"changed".to_vec());
        let changed = packages(&other).unwrap();
        assert!(made.iter().zip(&changed).all(|(one, other)| one.bytes != other.bytes));
    }

    #[test]
    fn words_that_are_not_understood_are_refused_before_anything_is_built() {
        for words in [
            &["--target", "sparc"][..],
            &["a", "b"],
            &["--fast"],
            &["--check", "x"],
            &["--check", "--target", "sparc"],
        ] {
            assert!(run(words).is_err(), "{words:?}");
        }
    }
}
