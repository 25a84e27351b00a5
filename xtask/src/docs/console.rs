//! Runs what the manual tells its readers to type.
//!
//! A fenced block whose info string begins with `console` is a session: a line that starts with `$ ` is a command (it
//! goes on after a backslash at the end of a line, and to the end of a document that it begins with `<<'END'`), what follows is its output as a reader would see it, and
//! `[exit 1]` at the end of that says that it fails on purpose. A command without output shown is only held to its
//! exit status. In output, `…` stands for any text within a line, and a line that is only `…` for any number of lines.
//!
//! The blocks of one page run in order, in one empty folder with a state folder of their own, the built binary first on
//! `PATH`, and `examples` where a clone of the repository has it. `console needs:curl` is left out, and said to be,
//! where there is no curl; `console no-run` is never run, and an HTML comment above it says why.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Files;
use crate::engine;
use crate::process::{Failure, Program, Result, doing, root};

/// How long one command may take.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(120);
/// Most output of one command that is looked at.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;
const POLL: Duration = Duration::from_millis(20);
/// Backticks that begin a block.
const FENCE_MIN: usize = 3;
/// Stands for anything.
const ANY: char = '…';

/// A block of commands.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// Line of the fence, from 1.
    line: usize,
    needs: Option<String>,
    commands: Vec<Typed>,
}

/// One command with what is shown of it.
#[derive(Debug, PartialEq, Eq)]
struct Typed {
    line: usize,
    command: String,
    output: Vec<String>,
    exit: i32,
}

/// Runs every block of the manual; what did not come out as shown.
pub(super) fn check(manual: &Files) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut pages = Vec::new();
    for (path, text) in manual {
        match blocks(text) {
            Ok(blocks) if blocks.is_empty() => {}
            Ok(blocks) => pages.push((path, blocks)),
            Err(problem) => problems.push(format!("{path}:{problem}")),
        }
    }
    if pages.is_empty() {
        return Ok(problems);
    }
    let binary = build()?;
    for (path, blocks) in pages {
        let place = Place::make(&binary)?;
        for block in blocks {
            if let Some(program) = block.needs.as_deref().filter(|program| !is_there(program)) {
                println!("docs: {path}:{}: SKIPPED, `{program}` is not on this machine", block.line);
                continue;
            }
            for typed in &block.commands {
                if let Some(problem) = place.run(typed)? {
                    problems.push(format!("{path}:{}: `{}`: {problem}", typed.line, typed.command));
                }
            }
            println!("docs: {path}:{}: {} commands run", block.line, block.commands.len());
        }
    }
    Ok(problems)
}

/// Builds the binary and says where it is. It is the one that the tests build: by itself it would have dependencies with
/// fewer features, and all that stands on those would be built twice.
pub(super) fn build() -> Result<PathBuf> {
    let mut found = None;
    Program::cargo(["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"])
        .lines(|line| {
            let message: Value = serde_json::from_str(line).unwrap_or_default();
            let says = |pointer, what: Value| message.pointer(pointer) == Some(&what);
            let binary = says("/target/kind/0", "bin".into())
                && says("/target/name", "portcullis".into())
                && says("/profile/test", false.into());
            if let Some(path) = message.get("executable").and_then(Value::as_str).filter(|_| binary) {
                found = Some(PathBuf::from(path));
            }
        })?;
    let binary: PathBuf = found.ok_or_else(|| Failure::new("cargo did not say where it put the binary"))?;
    // What an installation puts beside it.
    binary.parent().map_or(Ok(()), engine::put_into)?;
    Ok(binary)
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Where the commands of one page run.
struct Place {
    folder: PathBuf,
    path: std::ffi::OsString,
}

impl Place {
    fn make(binary: &Path) -> Result<Self> {
        let folder = Program::new("mktemp").args(["-d"]).answer();
        let folder =
            PathBuf::from(folder.ok_or_else(|| Failure::new("cannot make a folder with `mktemp -d`"))?);
        // The state folder is made by whoever needs it, as on any machine.
        for name in ["home", "here"] {
            doing(&format!("make `{name}`"), fs::create_dir(folder.join(name)))?;
        }
        let examples = folder.join("here/examples");
        doing("link `examples`", std::os::unix::fs::symlink(root().join("examples"), examples))?;
        let own = binary.parent().unwrap_or(binary).to_owned();
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&inherited)));
        Ok(Self { folder, path: doing("put the binary on `PATH`", path)? })
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        command
            .args(["-c", line])
            .current_dir(self.folder.join("here"))
            .env("PATH", &self.path)
            .env("HOME", self.folder.join("home"))
            .env("PORTCULLIS_HOME", self.folder.join("state"))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// Runs one command; what is wrong with what it did.
    fn run(&self, typed: &Typed) -> Result<Option<String>> {
        // A file rather than a pipe, and one for each command: a process that stays behind keeps its end open.
        let log = self.folder.join(format!("output-{}", typed.line));
        let output = doing("write the output of a command", File::create(&log))?;
        let errors = doing("write the output of a command", output.try_clone())?;
        let mut child = doing(
            "start `bash`",
            self.command(&typed.command).stdout(Stdio::from(output)).stderr(Stdio::from(errors)).spawn(),
        )?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = doing("wait for a command", child.try_wait())? {
                break status;
            }
            if start.elapsed() > COMMAND_TIME_MAX {
                doing("end a command", child.kill())?;
                doing("wait for a command", child.wait())?;
                return Ok(Some(format!("took more than {} s", COMMAND_TIME_MAX.as_secs())));
            }
            std::thread::sleep(POLL);
        };
        let mut text = Vec::new();
        let file = doing("read the output of a command", File::open(&log))?;
        doing("read the output of a command", file.take(OUTPUT_BYTES_MAX).read_to_end(&mut text))?;
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        Ok(judge(typed, status.code(), &lines))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The daemon that a command started, if it did, is ours to stop.
        if let Ok(pid) = fs::read_to_string(self.folder.join("state/daemon.pid")) {
            let pid = pid.trim();
            // It writes to its folder until it has ended.
            let until_gone =
                format!("kill {pid} && for _ in $(seq 50); do kill -0 {pid} || break; sleep 0.1; done");
            let _ = self.command(&until_gone).status();
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("xtask: cannot remove `{}`: {error}", self.folder.display());
        }
    }
}

fn judge(typed: &Typed, exit: Option<i32>, lines: &[&str]) -> Option<String> {
    let shown = || lines.iter().map(|line| format!("\n    {line}")).collect::<String>();
    if exit != Some(typed.exit) {
        let exit = exit.map_or_else(|| "a signal".to_owned(), |exit| exit.to_string());
        return Some(format!("ended with {exit}, the page says {}:{}", typed.exit, shown()));
    }
    let wanted: Vec<&str> = typed.output.iter().map(String::as_str).collect();
    if wanted.is_empty() || fits(&wanted, lines) {
        return None;
    }
    let wanted: String = wanted.iter().map(|line| format!("\n    {line}")).collect();
    Some(format!("the page shows{wanted}\n  and it printed{}", shown()))
}

/// Whether the lines are what the page shows. Cost: the product of both lengths.
fn fits(wanted: &[&str], lines: &[&str]) -> bool {
    covers(
        wanted.len(),
        lines.len(),
        |at| wanted.get(at).is_some_and(|line| is_any(line)),
        |at, line| wanted.get(at).zip(lines.get(line)).is_some_and(|(wanted, line)| line_fits(wanted, line)),
    )
}

fn is_any(line: &str) -> bool {
    line.trim().chars().eq([ANY])
}

fn line_fits(wanted: &str, line: &str) -> bool {
    let wanted: Vec<char> = wanted.chars().collect();
    let line: Vec<char> = line.chars().collect();
    covers(
        wanted.len(),
        line.len(),
        |at| wanted.get(at) == Some(&ANY),
        |at, place| wanted.get(at) == line.get(place),
    )
}

/// Whether a pattern of `wanted` elements covers `found` elements exactly, where an element that is `any` covers any
/// number of them. Goes back to the last such element upon a mismatch, as glob matching does.
fn covers(
    wanted: usize,
    found: usize,
    any: impl Fn(usize) -> bool,
    equal: impl Fn(usize, usize) -> bool,
) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut last_any = None;
    while place < found {
        if at < wanted && any(at) {
            last_any = Some((at, place));
            at += 1;
        } else if at < wanted && equal(at, place) {
            at += 1;
            place += 1;
        } else if let Some((star, from)) = last_any {
            last_any = Some((star, from + 1));
            at = star + 1;
            place = from + 1;
        } else {
            return false;
        }
    }
    (at..wanted).all(any)
}

/// The blocks of a page that are to be run. A mistake begins with its line.
fn blocks(text: &str) -> std::result::Result<Vec<Block>, String> {
    let mut found = Vec::new();
    let mut before = "";
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    while let Some((number, line)) = lines.next() {
        let (fence, info) = line.split_at(line.bytes().take_while(|byte| *byte == b'`').count());
        if fence.len() < FENCE_MIN {
            if !line.trim().is_empty() {
                before = line;
            }
            continue;
        }
        let mut inside = Vec::new();
        loop {
            match lines.next() {
                Some((_, line)) if line.trim_end() == fence => break,
                Some(line) => inside.push(line),
                None => return Err(format!("{number}: the block is not closed")),
            }
        }
        let mut words = info.split_whitespace();
        let commented = before.trim_end().ends_with("-->");
        before = line;
        if words.next() != Some("console") {
            continue;
        }
        match words.next() {
            Some("no-run") if commented => {}
            Some("no-run") => {
                return Err(format!("{number}: an HTML comment above must say why this is not run"));
            }
            None => found.push(Block { line: number, needs: None, commands: commands(&inside)? }),
            Some(word) => match word.strip_prefix("needs:") {
                Some(program) => {
                    let needs = Some(program.to_owned());
                    found.push(Block { line: number, needs, commands: commands(&inside)? });
                }
                None => return Err(format!("{number}: `{word}` is not known here: no-run, needs:PROGRAM")),
            },
        }
    }
    Ok(found)
}

/// Whether a command goes on in the next line.
#[derive(Debug, PartialEq, Eq)]
enum Open<'t> {
    Nothing,
    Line,
    /// Up to the line that is this word.
    Document(&'t str),
}

impl<'t> Open<'t> {
    fn after(line: &'t str) -> Self {
        let quoted = line.split_once("<<'").and_then(|(_, rest)| rest.split_once('\''));
        match quoted {
            Some((end, _)) => Self::Document(end),
            None if line.ends_with('\\') => Self::Line,
            None => Self::Nothing,
        }
    }
}

/// Whether a command leaves a reader's shell in another folder. Here every command begins in the page's folder, so that
/// nothing else would notice.
fn moves(command: &str) -> bool {
    let mut parts = command.split([';', '&', '|']).map(str::trim_start);
    parts.any(|part| matches!(part.split_whitespace().next(), Some("cd" | "pushd")))
}

fn commands(inside: &[(usize, &str)]) -> std::result::Result<Vec<Typed>, String> {
    let mut found: Vec<Typed> = Vec::new();
    let mut open = Open::Nothing;
    for (number, line) in inside {
        let line = line.trim_end();
        match (found.last_mut(), line.strip_prefix("$ ")) {
            (Some(last), _) if open != Open::Nothing => {
                last.command.push('\n');
                last.command.push_str(line);
                open = match open {
                    Open::Document(end) if line != end => Open::Document(end),
                    Open::Document(_) => Open::Nothing,
                    _ => Open::after(line),
                };
            }
            (_, Some(command)) if moves(command) => {
                return Err(format!(
                    "{number}: a reader's shell stays in the folder that `cd` names, and the next commands run in \
                     another one; put `cd` into parentheses"
                ));
            }
            (_, Some(command)) => {
                open = Open::after(command);
                found.push(Typed { line: *number, command: command.to_owned(), output: Vec::new(), exit: 0 });
            }
            (None, None) => return Err(format!("{number}: the block must begin with a command, `$ ...`")),
            (Some(last), None) => match line.strip_prefix("[exit ").and_then(|rest| rest.strip_suffix(']')) {
                Some(exit) => {
                    last.exit = exit.parse().map_err(|_| format!("{number}: `{exit}` is no exit status"))?;
                }
                None => last.output.push(line.to_owned()),
            },
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_as_a_reader_would() {
        let page = "Text.\n\n````console\n$ one\nout\n$ two \\\n    more\n[exit 2]\n$ cat <<'END'\n```\nEND\n````\n\n```sh\nnot this\n```\n\n\
            <!-- it needs a browser -->\n```console no-run\n$ three\n```\n```console needs:curl\n$ four\n```\n";
        let found = blocks(page).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].line, found[0].needs.as_deref()), (3, None));
        let typed = |line, command: &str, output: &[&str], exit| Typed {
            line,
            command: command.to_owned(),
            output: output.iter().map(|line| (*line).to_owned()).collect(),
            exit,
        };
        assert_eq!(
            found[0].commands,
            [
                typed(4, "one", &["out"], 0),
                typed(6, "two \\\n    more", &[], 2),
                typed(9, "cat <<'END'\n```\nEND", &[], 0),
            ]
        );
        assert_eq!(found[1].needs.as_deref(), Some("curl"));
    }

    #[test]
    fn mistakes_name_the_line() {
        for (page, problem) in [
            ("Text.\n```console no-run\n$ one\n```\n", "2: an HTML comment"),
            ("```console\nout\n```\n", "2: the block must begin"),
            ("```console\n$ one\n[exit x]\n```\n", "3: `x` is no exit status"),
            ("```console fast\n```\n", "1: `fast` is not known"),
            ("```console\n$ one\n", "1: the block is not closed"),
            ("```console\n$ cd a && one\n```\n", "2: a reader's shell stays"),
            ("```console\n$ one; cd a\n```\n", "2: a reader's shell stays"),
        ] {
            let found = blocks(page).unwrap_err();
            assert!(found.starts_with(problem), "{found}");
        }
    }

    #[test]
    fn a_subshell_may_change_its_folder() {
        assert_eq!(blocks("```console\n$ (cd a && one)\n```\n").unwrap()[0].commands.len(), 1);
    }

    #[test]
    fn output_fits_with_wildcards() {
        assert!(fits(&["run …", "…", "done"], &["run 0a1b", "x", "y", "done"]));
        assert!(fits(&["…"], &[]));
        assert!(fits(&["a…c…e"], &["abcde"]));
        assert!(!fits(&["a…c"], &["abcd"]));
        assert!(!fits(&["a", "b"], &["a"]));
        assert!(!fits(&["a"], &["a", "b"]));
    }

    #[test]
    fn a_command_is_held_to_exit_status_and_output() {
        let typed = Typed { line: 1, command: "x".into(), output: vec!["yes".into()], exit: 1 };
        assert_eq!(judge(&typed, Some(1), &["yes"]), None);
        assert!(judge(&typed, Some(0), &["yes"]).unwrap().contains("ended with 0, the page says 1"));
        assert!(judge(&typed, Some(1), &["no"]).unwrap().contains("and it printed\n    no"));
    }
}
