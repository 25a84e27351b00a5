//! The programs of a package: built for a target, stripped, and held to one version.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use flate2::Compression;

use super::tools::Tools;
use super::tree::digest;
use crate::docs;
use crate::engine;
use crate::process::{Failure, Program, Result, doing, root};

/// The program itself.
pub(super) const MAIN: &str = "portcullis";
/// The programs beside it whose digests are recorded.
pub(super) const HELPERS: [&str; 2] = ["portcullis-contain", "portcullis-starlark"];
/// Where an ELF header names the machine.
const ELF_MACHINE: std::ops::Range<usize> = 18..20;
/// All of them.
pub(super) const ALL: [&str; 4] = [MAIN, "portcullis-hook", "portcullis-contain", "portcullis-starlark"];

/// What is packed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    /// As rustc calls it.
    pub(super) triple: &'static str,
    /// As `uname -m` does, and names of archives.
    pub(super) machine: &'static str,
    /// As Debian, Go and so container images call it.
    pub(super) debian: &'static str,
    /// As node calls it.
    pub(super) node: &'static str,
    /// As ELF does in its header.
    elf: u16,
}

/// The targets, of which the first is the usual one where the machine is none of them.
pub(super) const TARGETS: [Target; 2] = [
    Target { triple: "x86_64-unknown-linux-musl", machine: "x86_64", debian: "amd64", node: "x64", elf: 62 },
    Target {
        triple: "aarch64-unknown-linux-musl",
        machine: "aarch64",
        debian: "arm64",
        node: "arm64",
        elf: 183,
    },
];

impl Target {
    /// The one of this machine.
    pub(super) fn usual() -> Self {
        let this = TARGETS.into_iter().find(|target| target.machine == std::env::consts::ARCH);
        this.unwrap_or(TARGETS[0])
    }
}

/// Built programs with all that a package says of them.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    /// Stripped, by name.
    pub(super) bytes: BTreeMap<&'static str, Vec<u8>>,
    /// The version without the commit.
    pub(super) version: String,
    /// As `portcullis --version` says it, with the commit.
    pub(super) told: String,
    pub(super) target: Target,
    /// How much work goes into making packages small.
    pub(super) compression: Compression,
    /// Time of everything in a package, in seconds since the epoch.
    pub(super) time: u64,
    /// Manual pages and completions, by path below `share`.
    pub(super) share: BTreeMap<String, Vec<u8>>,
}

impl Programs {
    /// Builds them, optimised and without need of any library, for a target.
    ///
    /// # Errors
    /// Something that building takes is missing, it fails, or two programs are of different versions.
    pub(super) fn release(target: Target) -> Result<Self> {
        let tools = Tools::of(target)?;
        let (built, engine) = build(target, &tools, ["release", "release"])?;
        // A package is made once and copied often.
        Self::of(&built, &engine, target, &tools, Compression::best())
    }

    /// Builds them for a target as quickly as can be: for seeing that they build and run.
    ///
    /// # Errors
    /// As [`Self::release`].
    pub(super) fn quick(target: Target, tools: &Tools) -> Result<Self> {
        let (built, engine) = build(target, tools, ["demo", "dev"])?;
        Self::of(&built, &engine, target, tools, Compression::fast())
    }

    /// Those that the tests use, built without optimisation for this machine: for trying the packages, not for giving away.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(super) fn tested() -> Result<Self> {
        let built = docs::built()?;
        Self::lying_in(built.parent().unwrap_or(Path::new("/")))
    }

    /// Those that lie in a folder already, as the tests build them.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(super) fn lying_in(folder: &Path) -> Result<Self> {
        Self::of(folder, folder, Target::usual(), &Tools::of_this_machine(), Compression::fast())
    }

    /// Those of a folder, with the engine from another.
    ///
    /// # Errors
    /// One is missing, cannot be stripped, or is of another version.
    fn of(
        folder: &Path,
        engine: &Path,
        target: Target,
        tools: &Tools,
        compression: Compression,
    ) -> Result<Self> {
        let place = |name: &str| if name == HELPERS[1] { engine.join(name) } else { folder.join(name) };
        let told = agreed(&ALL.map(place), tools)?;
        let bytes = ALL.iter().map(|name| Ok((*name, stripped(&place(name), target, tools)?)));
        let version = told.split(' ').next().unwrap_or_default().to_owned();
        Ok(Self {
            bytes: bytes.collect::<Result<_>>()?,
            version,
            told,
            target,
            compression,
            time: time()?,
            share: share(&folder.join(MAIN), tools)?,
        })
    }

    /// The programs and the digests of the helpers, as they lie in one folder.
    pub(super) fn files(&self) -> BTreeMap<String, (Vec<u8>, bool)> {
        let mut files = BTreeMap::new();
        for (name, bytes) in &self.bytes {
            files.insert((*name).to_owned(), (bytes.clone(), true));
            if HELPERS.contains(name) {
                let line = format!("{}  {name}\n", digest(bytes));
                files.insert(format!("{name}.sha256"), (line.into_bytes(), false));
            }
        }
        files
    }
}

/// Builds the programs of the workspace and the engine in these profiles, and says in which folders they are.
fn build(target: Target, tools: &Tools, [ours, engines]: [&str; 2]) -> Result<(PathBuf, PathBuf)> {
    let cargo = |profile: &str, arguments: &[&str]| {
        let mut program =
            Program::cargo(["build", "--locked", "--target", target.triple, "--profile", profile])
                .args(arguments)
                .env(&flags_variable(target.triple), remapped());
        for (name, value) in &tools.variables {
            program = program.env(name, value);
        }
        program.run()
    };
    cargo(ours, &["--package", MAIN, "--bins"])?;
    cargo(engines, &["--manifest-path", engine::MANIFEST, "--target-dir", engine::TARGET])?;
    let named = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let built = named.join(target.triple).join(folder_of(ours));
    let engine = root().join(engine::TARGET).join(target.triple).join(folder_of(engines));
    Ok((built, engine))
}

/// Where cargo puts what it builds in a profile.
fn folder_of(profile: &str) -> &str {
    if profile == "dev" { "debug" } else { profile }
}

/// The variable with rustc's flags for a target alone, so that no other build starts over.
fn flags_variable(triple: &str) -> String {
    format!("CARGO_TARGET_{}_RUSTFLAGS", triple.to_uppercase().replace('-', "_"))
}

/// Names of folders of this machine are in no program: the same sources give the same bytes wherever they lie.
fn remapped() -> String {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home).unwrap_or_default();
    format!(
        "--remap-path-prefix={}=/portcullis --remap-path-prefix={}=/cargo",
        root().display(),
        cargo.display()
    )
}

/// The version that all these programs say they are.
fn agreed(programs: &[PathBuf], tools: &Tools) -> Result<String> {
    let mut told: Option<String> = None;
    for path in programs {
        let asked = tools.program(path).args(["--version"]);
        let shown = asked.shown();
        let said = asked.answer().ok_or_else(|| {
            Failure::new(format!("`{shown}` fails; is the program built for that machine?"))
        })?;
        // The name comes first.
        let version = said.split_once(' ').map(|(_, version)| version.to_owned()).unwrap_or_default();
        match &told {
            Some(told) if *told != version => {
                return Err(Failure::new(format!(
                    "`{}` is of version {version}, the program before it of {told}; build all of them again",
                    path.display()
                )));
            }
            _ => told = Some(version),
        }
    }
    told.ok_or_else(|| Failure::new("there is no program to pack"))
}

/// The program without symbols.
fn stripped(path: &Path, target: Target, tools: &Tools) -> Result<Vec<u8>> {
    let small = path.with_extension("stripped");
    Program::new(&tools.strip).args(["--strip-all", "-o"]).args([small.as_path(), path]).run()?;
    let bytes = doing(&format!("read `{}`", small.display()), fs::read(&small));
    doing(&format!("remove `{}`", small.display()), fs::remove_file(&small))?;
    let bytes = bytes?;
    if bytes.get(ELF_MACHINE) != Some(&target.elf.to_le_bytes()) {
        return Err(Failure::new(format!("`{}` is no program for {}", path.display(), target.machine)));
    }
    Ok(bytes)
}

/// The time of everything in a package: `SOURCE_DATE_EPOCH`, or that of the commit.
fn time() -> Result<u64> {
    const VARIABLE: &str = "SOURCE_DATE_EPOCH";
    let told = match std::env::var(VARIABLE) {
        Ok(told) => told,
        Err(_) => Program::new("git").args(["log", "-1", "--format=%ct"]).answer().ok_or_else(|| {
            Failure::new(format!(
                "there is no commit to take the time from; set {VARIABLE} to seconds since 1970"
            ))
        })?,
    };
    doing(&format!("read the time `{told}` as seconds since 1970"), told.trim().parse::<u64>())
}

/// What the program itself writes for `share`: manual pages and completions.
fn share(program: &Path, tools: &Tools) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut share = BTreeMap::new();
    for (shell, path) in [
        ("bash", "bash-completion/completions/portcullis"),
        ("fish", "fish/vendor_completions.d/portcullis.fish"),
        ("zsh", "zsh/site-functions/_portcullis"),
    ] {
        let script = tools.program(program).args(["completions", shell]).output()?;
        share.insert(path.to_owned(), script.into_bytes());
    }
    let folder = program.with_extension("man");
    tools.program(program).args(["manual".as_ref(), folder.as_os_str()]).run()?;
    let what = format!("read `{}`", folder.display());
    for page in doing(&what, fs::read_dir(&folder))? {
        let page = doing(&what, page)?;
        let path = format!("man/man1/{}", page.file_name().to_string_lossy());
        share.insert(path, doing(&what, fs::read(page.path()))?);
    }
    doing(&format!("remove `{}`", folder.display()), fs::remove_dir_all(&folder))?;
    Ok(share)
}

/// Programs that are none, for tests of what is done with their bytes.
#[cfg(test)]
pub(super) fn sample() -> Programs {
    Programs {
        bytes: ALL.into_iter().map(|name| (name, format!("{name}\n").repeat(999).into_bytes())).collect(),
        version: "1.2.3".to_owned(),
        told: "1.2.3 (0123456789ab)".to_owned(),
        target: TARGETS[0],
        compression: Compression::best(),
        time: 1_700_000_000,
        share: BTreeMap::from([("man/man1/portcullis.1".to_owned(), b"page".to_vec())]),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn says(folder: &Path, name: &str, version: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\necho {name} '{version}'\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn programs_of_two_versions_are_not_packed_together() {
        let folder = std::env::temp_dir().join(format!("portcullis-agreed-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let here = Tools::of_this_machine();
        let one = says(&folder, "one", "0.1.0 (aaaaaaaaaaaa)");
        let same = says(&folder, "same", "0.1.0 (aaaaaaaaaaaa)");
        let other = says(&folder, "other", "0.1.0 (bbbbbbbbbbbb)");
        assert_eq!(agreed(&[one.clone(), same], &here).unwrap(), "0.1.0 (aaaaaaaaaaaa)");
        let refused = agreed(&[one, other], &here).unwrap_err().to_string();
        assert!(refused.contains("other` is of version 0.1.0 (bbbbbbbbbbbb)"), "{refused}");
        assert!(agreed(&[folder.join("absent")], &here).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn flags_are_those_of_one_target() {
        assert_eq!(
            flags_variable("x86_64-unknown-linux-musl"),
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS"
        );
    }
}
