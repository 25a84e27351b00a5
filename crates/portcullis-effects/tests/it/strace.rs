//! Runs the shell cases of the corpus and holds what they did to what was predicted.
//!
//! Each case runs in a root of its own: a few copied programs, a home with a project in it, no network. `strace` notes
//! every file that is written or removed, every program that starts and every connection; each must be covered by an
//! effect. A case with an effect on *unknown*, or with a program that is not known, predicted that it could be
//! anything; those are counted apart. A case whose heading ends in `(not run)` is not run.
//!
//! Only with `PORTCULLIS_TEST_LONG=1`, on Linux, where `strace`, `unshare` and overlay mounts in a user namespace are
//! to be had; otherwise the test says that it was skipped.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use portcullis_core::effect::{Effect, Effects, ResourceKind, Verb};
use portcullis_core::principal::Attribute;

use crate::cases;

/// Programs that cases may use; what is not on this machine is left out.
const PROGRAMS: &str = "awk base64 basename bash cat chmod chown cmp comm cp cut date dd df diff dirname du env \
    false find grep gunzip gzip head id install link ln ls mawk mkdir mktemp mv nice nohup od paste perl printf pwd \
    readlink realpath rm rmdir sed seq setsid sh shred sleep sort split stat stdbuf sync tac tail tar tee test timeout \
    touch tr true truncate uname uniq unlink wc whoami xargs yes";

/// Programs that others start for their own work.
const HELPERS: [&str; 2] = ["sh", "gzip"];

const SETUP: &str = r#"set -e
root=$1; shift
mkdir -p "$root"/usr/bin "$root"/usr/lib "$root"/usr/lib64 "$root"/{dev,proc,etc,tmp,var/tmp,root,srv}
for link in bin:usr/bin lib:usr/lib lib64:usr/lib64; do ln -s "${link#*:}" "$root/${link%%:*}"; done
for program in "$@"; do
  path=$(command -v "$program") || continue
  case $path in /*) ;; *) path=/usr/bin/$program; [ -x "$path" ] || continue ;; esac
  cp -L "$path" "$root/usr/bin/$program"
  ldd "$path" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library" | sed 's#^/lib#/usr/lib#')"
    cp -nL "$library" "$root$(echo "$library" | sed 's#^/lib#/usr/lib#')"
  done
done
touch "$root"/dev/null "$root"/dev/zero "$root"/dev/urandom "$root"/dev/tty
echo 'root:x:0:0::/root:/bin/sh' > "$root/etc/passwd"; echo '127.0.0.1 localhost' > "$root/etc/hosts"
home=$root/home/u; mkdir -p "$home/.ssh" "$home/project"/{src,docs,build,target,dist,tests,node_modules/x}
echo key > "$home/.ssh/id_rsa"; echo x > "$home/.bashrc"; echo other > "$home/x"; mkdir "$home/other"
cd "$home/project"
for file in README.md a b c x y a.txt b.txt c.txt x.txt file file.txt old.txt new.txt notes.txt log.txt in.txt data.csv \
  list.txt src/main.rs src/lib.rs src/a.c docs/x.md build/out.o target/t.o dist/d.js tests/t.sh .env Makefile; do
  echo "$file" > "$file"
done
"#;

const RUN: &str = r#"set -e
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/up,workdir=$2/work" "$2/root"
for device in null zero urandom; do mount --bind "/dev/$device" "$2/root/dev/$device"; done
mount -t proc proc "$2/root/proc"
exec chroot "$2/root" /usr/bin/env -i HOME=/home/u PATH=/usr/bin:/bin USER=u LANG=C.UTF-8 \
  /usr/bin/bash -c 'cd /home/u/project; exec /usr/bin/bash -c "$1" portcullis-case' - "$3"
"#;

/// What a process did to something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Done {
    Wrote(String),
    Made(String),
    Removed(String),
    Configured(String),
    Started(String),
    Connected(String),
}

fn sandbox() -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("master");
    fs::create_dir(&root).unwrap();
    let setup = Command::new("bash")
        .args(["-c", SETUP, "-"])
        .arg(&root)
        .args(PROGRAMS.split_whitespace())
        .stderr(Stdio::inherit())
        .status();
    assert!(setup.unwrap().success(), "the root for the cases could not be made");
    let trial = run(folder.path(), &root, "echo trial > made");
    trial.contains(&Done::Wrote("/home/u/project/made".into())).then_some((folder, root))
}

/// Runs a command and reads what strace saw of it.
fn run(folder: &Path, root: &Path, text: &str) -> BTreeSet<Done> {
    let layer = tempfile::tempdir_in(folder).unwrap();
    for name in ["up", "work", "root"] {
        fs::create_dir(layer.path().join(name)).unwrap();
    }
    let trace = layer.path().join("trace");
    let calls = "trace=%file,%process,connect,fchdir";
    let _ended_somehow = Command::new("timeout")
        .args(["-s", "KILL", "10", "strace", "-f", "-y", "-qq", "-s", "65536", "-e", calls, "-o"])
        .arg(&trace)
        .args(["unshare", "-Urmpnf", "--kill-child", "bash", "-c", RUN, "-"])
        .arg(root)
        .arg(layer.path())
        .arg(text)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let trace = fs::read(&trace).unwrap_or_default();
    let trace = String::from_utf8_lossy(&trace);
    let prefix = layer.path().join("root").to_str().unwrap().to_owned();
    let started = trace.lines().skip_while(|line| !line.contains("\"portcullis-case\"]")).skip(1);
    let mut folders = Folders { prefix, of: HashMap::new() };
    started.flat_map(|line| folders.read_line(line)).collect()
}

/// Where each process stands.
struct Folders {
    prefix: String,
    of: HashMap<String, String>,
}

impl Folders {
    fn of(&self, process: &str) -> String {
        self.of.get(process).cloned().unwrap_or_else(|| "/home/u/project".into())
    }

    /// Reads `PID call(arguments) = result`.
    fn read_line(&mut self, line: &str) -> Vec<Done> {
        let Some((process, call)) = line.split_once(' ') else { return Vec::new() };
        let result = line.rsplit("= ").next().unwrap_or_default().split(' ').next().unwrap_or_default();
        let forks = ["clone", "clone3", "fork", "vfork"];
        if forks.iter().any(|name| {
            call.trim().starts_with(&format!("{name}(")) || call.contains(&format!("<... {name} resumed>"))
        }) {
            self.of.insert(result.to_owned(), self.of(process));
            return Vec::new();
        }
        // A call in parts shows its arguments on the first line only.
        let Some((call, arguments)) = call.trim().split_once('(') else { return Vec::new() };
        let paths = paths(arguments, &self.of(process), &self.prefix);
        if call == "chdir" && result == "0" {
            self.of.extend(paths.first().map(|path| (process.to_owned(), path.clone())));
        }
        if call == "fchdir" && result == "0" {
            let opened = arguments.split_once('<').and_then(|(_, rest)| rest.rsplit_once('>'));
            let inside = opened.map(|(path, _)| path.strip_prefix(&self.prefix).unwrap_or(path));
            self.of.extend(inside.map(|path| (process.to_owned(), normal(path))));
        }
        what(call, arguments, &paths)
    }
}

fn what(call: &str, rest: &str, paths: &[String]) -> Vec<Done> {
    let path = |number: usize| paths.get(number).cloned().into_iter();
    match call {
        "open" | "openat" | "creat" => {
            let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| rest.contains(flag));
            if writes || call == "creat" { path(0).map(Done::Wrote).collect() } else { Vec::new() }
        }
        "mkdir" | "mkdirat" => path(0).map(Done::Made).collect(),
        "mknod" | "mknodat" | "truncate" | "utimensat" | "utime" | "utimes" => {
            path(0).map(Done::Wrote).collect()
        }
        "link" | "linkat" | "symlink" => path(1).map(Done::Wrote).collect(),
        "symlinkat" => path(1).map(Done::Wrote).collect(),
        "unlink" | "unlinkat" | "rmdir" => path(0).map(Done::Removed).collect(),
        "rename" | "renameat" | "renameat2" => {
            path(0).map(Done::Removed).chain(path(1).map(Done::Wrote)).collect()
        }
        "chmod" | "fchmodat" | "fchmodat2" | "chown" | "lchown" | "fchownat" => {
            path(0).map(Done::Configured).collect()
        }
        "execve" if !rest.contains("ENOENT") => {
            let name = |path: String| path.rsplit('/').next().unwrap_or_default().to_owned();
            path(0).map(name).map(Done::Started).collect()
        }
        "connect" if rest.contains("AF_INET") => {
            let address = rest.split('"').nth(1).unwrap_or_default();
            vec![Done::Connected(address.to_owned())]
        }
        _ => Vec::new(),
    }
}

/// The quoted paths of a call, each against the folder `fd</folder>` before it.
fn paths(arguments: &str, current: &str, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folder = current.to_owned();
    let mut rest = arguments;
    while let Some(at) = rest.find(['<', '"']) {
        let after = rest.get(at..).unwrap();
        let opener = after.chars().next().unwrap();
        let body = after.get(1..).unwrap();
        let closer = if opener == '<' { '>' } else { '"' };
        let mut escaped = false;
        let end = body.char_indices().find(|(_, c)| {
            let found = *c == closer && !escaped;
            escaped = *c == '\\' && !escaped;
            found
        });
        let Some((end, _)) = end else { break };
        let text = body.get(..end).unwrap();
        if opener == '<' {
            folder = text.to_owned();
        } else {
            let text = unescaped(text);
            let whole = if text.starts_with('/') { text.clone() } else { format!("{folder}/{text}") };
            let inside = whole.strip_prefix(prefix).unwrap_or(&whole);
            found.push(normal(inside));
        }
        rest = body.get(end + 1..).unwrap();
    }
    found
}

/// Text as strace quotes it: C's escapes.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(first @ b'0'..=b'7') => {
                let mut value = u32::from(first - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|digit| (b'0'..=b'7').contains(digit)) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                }
                bytes.push(value as u8);
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Whether an effect speaks for what was done.
fn covers(effect: &Effect, done: &Done) -> bool {
    let resource = &effect.resource;
    let path = |verbs: &[Verb], path: &String, made: bool| {
        if resource.kind != ResourceKind::Path || !verbs.contains(&effect.verb) {
            return false;
        }
        let name = normal(&resource.name);
        // What a variable names can be anything.
        if resource.attributes.get("resolved") == Some(&Attribute::Boolean(false)) {
            return true;
        }
        let known = match resource.name.find(['*', '?', '[', '{']) {
            Some(at) => return path.starts_with(resource.name.get(..at).unwrap()),
            None => name.as_str(),
        };
        let below = |outer: &str, inner: &str| {
            inner.strip_prefix(outer.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
        };
        // `cp a folder` writes below; `mkdir -p a/b` makes what leads there; editing in place goes by a sibling.
        let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        known == path
            || below(known, path)
            || (made && below(path, known))
            || (effect.verb == Verb::Write && folder(known) == folder(path))
    };
    match done {
        Done::Wrote(at) => path(&[Verb::Write, Verb::Delete, Verb::Configure], at, false),
        Done::Made(at) => path(&[Verb::Write], at, true),
        Done::Removed(at) => path(&[Verb::Delete, Verb::Write], at, false),
        Done::Configured(at) => path(&[Verb::Configure, Verb::Write], at, false),
        Done::Started(name) => {
            effect.verb == Verb::Execute && resource.kind == ResourceKind::Command && resource.name == *name
        }
        Done::Connected(_) => resource.kind == ResourceKind::Host,
    }
}

/// Whether the effects say that it could be anything.
fn anything(effects: &Effects) -> bool {
    effects.iter().any(|effect| {
        let known = effect.resource.attributes.get("known");
        effect.resource.kind == ResourceKind::Unknown || known == Some(&Attribute::Boolean(false))
    })
}

fn harmless(done: &Done) -> bool {
    match done {
        Done::Wrote(at) => at.starts_with("/dev/") || at.starts_with("/proc/self/fd/"),
        // What `tar`, `awk`, `sed` and the like start to do their own work; what that does is seen by itself.
        Done::Started(name) => HELPERS.contains(&name.as_str()),
        _ => false,
    }
}

#[test]
fn what_commands_do_was_predicted() {
    if std::env::var_os("PORTCULLIS_TEST_LONG").is_none() {
        return;
    }
    let Some((folder, root)) = sandbox() else {
        eprintln!("skipped: no strace, or no overlay mounts in a user namespace");
        return;
    };
    let (mut held, mut open, mut idle, mut wrong) = (0, 0, 0, Vec::new());
    for case in cases::of_language("sh") {
        if case.heading.ends_with("(not run)") {
            continue;
        }
        if anything(&case.effects) {
            open += 1;
            continue;
        }
        let done = run(folder.path(), &root, &case.text);
        let surprises: Vec<&Done> = done
            .iter()
            .filter(|done| !harmless(done) && !case.effects.iter().any(|effect| covers(effect, done)))
            .collect();
        if done.is_empty() {
            idle += 1;
        }
        if surprises.is_empty() {
            held += 1;
        } else {
            wrong.push(format!("{} ({}): {surprises:?}", case.heading, case.text.replace('\n', "; ")));
        }
    }
    eprintln!(
        "{held} cases did what was predicted ({idle} of them nothing), {open} predicted that it could be anything"
    );
    assert!(wrong.is_empty(), "{} cases did what was not predicted:\n{}", wrong.len(), wrong.join("\n"));
}
