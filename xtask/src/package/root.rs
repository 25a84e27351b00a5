//! A root folder with nothing in it but a package, and how programs run in it.
//!
//! bubblewrap makes the folder the root of a program, with `/proc` and the usual devices and an empty environment. So
//! there is no Rust, no shell and no library but what the package brings.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::{Failure, Program, Result, doing};

/// How long a program may take.
const TIME_MAX: Duration = Duration::from_secs(120);
/// Most output that is looked at.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;
const POLL: Duration = Duration::from_millis(10);

/// The folder; it is removed at the end.
#[derive(Debug)]
pub(super) struct Root {
    folder: PathBuf,
}

/// How a program ended and what it said.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) said: String,
}

impl Root {
    /// An empty one, but for the folders that something is mounted on.
    pub(super) fn empty() -> Result<Self> {
        let folder = Program::new("mktemp").args(["-d"]).answer();
        let folder =
            PathBuf::from(folder.ok_or_else(|| Failure::new("cannot make a folder with `mktemp -d`"))?);
        let made = Self { folder };
        for (name, mode) in
            [("proc", "755"), ("dev", "755"), ("tmp", "1777"), ("root", "700"), ("root/project", "700")]
        {
            let path = made.path(name);
            doing(&format!("make `{}`", path.display()), fs::create_dir(&path))?;
            Program::new("chmod").args([mode.as_ref(), path.as_os_str()]).run()?;
        }
        Program::new("chmod").args(["755".as_ref(), made.folder.as_os_str()]).run()?;
        Ok(made)
    }

    /// A path within it as it is from outside.
    pub(super) fn path(&self, within: &str) -> PathBuf {
        self.folder.join(within)
    }

    /// Adds what a program is linked with, where it is not linked with everything: the C library of this machine.
    pub(super) fn add_libraries(&self, program: &Path) -> Result<()> {
        let listed = Program::new("ldd").args([program]).answer().unwrap_or_default();
        for path in listed.split_whitespace().filter(|word| word.starts_with('/')) {
            let to = self.path(path.trim_start_matches('/'));
            let what = format!("copy `{path}`");
            doing(&what, to.parent().map_or(Ok(()), fs::create_dir_all))?;
            doing(&what, fs::copy(path, &to))?;
        }
        Ok(())
    }

    /// Everything in it by path, without what is mounted.
    pub(super) fn listed(&self) -> Result<Vec<String>> {
        let found =
            Program::new("find").args([self.folder.as_os_str()]).args(["-printf", "%P\\n"]).output()?;
        let mut found: Vec<String> =
            found.lines().filter(|path| !path.is_empty()).map(str::to_owned).collect();
        found.sort();
        Ok(found)
    }

    /// A program in a folder of it, as `root` of the machine or as another user, with these variables and no others.
    pub(super) fn command(
        &self,
        user: Option<&str>,
        folder: &str,
        variables: &[(&str, &str)],
        words: &[&str],
    ) -> Command {
        let mut line: Vec<String> = Vec::new();
        if let Some(user) = user {
            let given = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"];
            line.extend(given.map(str::to_owned));
        }
        line.extend(["bwrap", "--bind"].map(str::to_owned));
        line.push(self.folder.display().to_string());
        line.extend(
            ["/", "--proc", "/proc", "--dev", "/dev", "--chdir", folder, "--clearenv"].map(str::to_owned),
        );
        for (name, value) in variables {
            line.extend(["--setenv", name, value].map(str::to_owned));
        }
        let mut words = line.iter().map(String::as_str).chain(words.iter().copied());
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).stdin(Stdio::null());
        command
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("xtask: cannot remove `{}`: {error}", self.folder.display());
        }
    }
}

/// Runs a command to its end, with this on its standard input.
pub(super) fn ended(mut command: Command, input: &str) -> Result<Ended> {
    let shown = format!("{command:?}");
    // A file rather than a pipe: a daemon that it starts keeps its end open.
    let log = tempfile()?;
    let output = doing("write the output of a program", fs::File::create(&log))?;
    let errors = doing("write the output of a program", output.try_clone())?;
    command.stdin(Stdio::piped()).stdout(output).stderr(errors);
    let mut child = doing(&format!("start {shown}"), command.spawn())?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that reads nothing may have ended.
        let _gone = stdin.write_all(input.as_bytes());
    }
    let code = wait(&mut child, &shown)?;
    let mut said = Vec::new();
    let file = doing("read the output of a program", fs::File::open(&log))?;
    doing("read the output of a program", file.take(OUTPUT_BYTES_MAX).read_to_end(&mut said))?;
    doing("remove the output of a program", fs::remove_file(&log))?;
    Ok(Ended { code, said: String::from_utf8_lossy(&said).into_owned() })
}

/// Waits for a program, and ends it when it is late.
pub(super) fn wait(child: &mut Child, shown: &str) -> Result<Option<i32>> {
    let start = Instant::now();
    loop {
        if let Some(status) = doing(&format!("wait for {shown}"), child.try_wait())? {
            return Ok(status.code());
        }
        if start.elapsed() > TIME_MAX {
            doing(&format!("end {shown}"), child.kill())?;
            doing(&format!("wait for {shown}"), child.wait())?;
            return Err(Failure::new(format!("{shown} took more than {} s", TIME_MAX.as_secs())));
        }
        std::thread::sleep(POLL);
    }
}

fn tempfile() -> Result<PathBuf> {
    let path = Program::new("mktemp").answer();
    path.map(PathBuf::from).ok_or_else(|| Failure::new("cannot make a file with `mktemp`"))
}
