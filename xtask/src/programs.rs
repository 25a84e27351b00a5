//! `cargo xtask programs`: what some tests want of the machine, and say `SKIPPED` without.
//!
//! `strace` makes system calls fail or be the last one. Go and its library of transparent logs
//! (`golang.org/x/mod/sumdb/tlog`) read what we publish. `cvc5` proves and disproves that access policies are narrower.
//! `curl` is one of the clients that reach hosts from within, and a Python project is tested in containment. Chromium is
//! what the console is used with. Packages are tried in roots that bubblewrap makes, and their service is looked at by
//! `systemd-analyze` and started in a container that `systemd-nspawn` boots. A Debian machine that runs us as root with
//! `CI=true` gets what it lacks of them from its own packages: 225 MB to download, 927 MB on the disk, nearly all of it
//! Chromium and Go. Everywhere else nothing is installed, and it is said which tests will be skipped.

use std::path::Path;

use crate::process::{self, Failure, Program, Result};

/// What a test wants.
struct Wanted {
    what: &'static str,
    /// The Debian packages that have it.
    packages: &'static [&'static str],
    is_there: fn() -> bool,
    tests: &'static str,
}

const WANTED: [Wanted; 8] = [
    Wanted {
        what: "strace",
        packages: &["strace"],
        is_there: strace,
        tests: "`injected` of portcullis-ledger, `strace` of portcullis-effects",
    },
    Wanted {
        what: "the system's Python with pytest and venv",
        packages: &["python3-pytest", "python3-venv"],
        is_there: pytest,
        tests: "the Python project of portcullis-contain (`day`)",
    },
    Wanted {
        what: "Go with golang.org/x/mod/sumdb/tlog",
        packages: &["golang-go", "golang-golang-x-mod-dev"],
        is_there: go,
        tests: "`go` of portcullis-ledger",
    },
    Wanted {
        what: "the solver cvc5",
        packages: &["cvc5"],
        is_there: cvc5,
        tests: "the proofs of portcullis-prove, `proofs_cover_the_whole_bundle` of portcullis",
    },
    Wanted {
        what: "Chromium and its driver",
        packages: &["chromium", "chromium-driver"],
        is_there: chromium,
        tests: "what people do with the pages of the console, `console::pages` of portcullis-gateway",
    },
    Wanted {
        what: "curl",
        packages: &["curl"],
        is_there: curl,
        tests: "`network` of portcullis-contain, as far as it is about curl",
    },
    Wanted {
        what: "bubblewrap",
        packages: &["bubblewrap"],
        is_there: bubblewrap,
        tests: "the packages in an empty root (`cargo xtask package --check`)",
    },
    Wanted {
        what: "systemd-analyze and systemd-nspawn",
        packages: &["systemd", "systemd-container"],
        is_there: systemd,
        tests: "the Debian package and its service",
    },
];

/// Where Debian puts the library; the test looks there.
const TLOG: &str = "/usr/share/gocode/src/golang.org/x/mod/sumdb/tlog";

fn strace() -> bool {
    Program::new("strace").args(["-V"]).answer().is_some()
}

fn pytest() -> bool {
    Program::new("/usr/bin/python3").args(["-c", "import pytest, ensurepip"]).answer().is_some()
}

fn go() -> bool {
    Program::new("go").args(["version"]).answer().is_some() && Path::new(TLOG).is_dir()
}

fn cvc5() -> bool {
    Program::new("cvc5").args(["--version"]).answer().is_some()
}

fn chromium() -> bool {
    let there = |program| Program::new(program).args(["--version"]).answer().is_some();
    there("chromium") && there("chromedriver")
}

fn curl() -> bool {
    Program::new("curl").args(["--version"]).answer().is_some()
}

fn bubblewrap() -> bool {
    Program::new("bwrap").args(["--version"]).answer().is_some()
}

fn systemd() -> bool {
    let there = |program| Program::new(program).args(["--version"]).answer().is_some();
    there("systemd-analyze") && there("systemd-nspawn")
}

/// Installs what is missing where that is ours to do, and says what will be skipped elsewhere.
///
/// # Errors
/// When the installation fails, or what was installed does not run.
pub(crate) fn install() -> Result<()> {
    let missing = || WANTED.iter().filter(|wanted| !(wanted.is_there)());
    if missing().next().is_some() && process::may_install() {
        let packages: Vec<&str> = missing().flat_map(|wanted| wanted.packages).copied().collect();
        println!("programs: installing Debian's {}", packages.join(", "));
        process::install(&packages)?;
        if let Some(wanted) = missing().next() {
            return Err(Failure::new(format!("{} is installed and does not run", wanted.what)));
        }
    }
    for wanted in missing() {
        println!(
            "programs: SKIPPED will be {}, for want of {} (on Debian: `apt-get install {}`)",
            wanted.tests,
            wanted.what,
            wanted.packages.join(" ")
        );
    }
    if missing().next().is_none() {
        println!("programs: everything that the tests want is there");
    }
    Ok(())
}
