//! A developer's day through the hook and the bundle that ships: each command is permitted, runs contained as the client
//! is told to run it, and works.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use portcullis_contain::{Contained, Level, probe};
use serde_json::{Value, json};

use super::{Client, Program, decision, input, told};
use crate::command::Ran;
use crate::expected::is_skipped;

struct Day {
    client: Client,
    folder: tempfile::TempDir,
    asked: u32,
}

impl Day {
    /// Nothing where this machine contains nothing.
    fn begin(files: &[(&str, &str)]) -> Option<Self> {
        let helper = Contained::with_helper(Path::new(env!("CARGO_BIN_EXE_portcullis-contain"))).unwrap();
        if is_skipped(Level::Process, probe(&helper).unwrap().reached, "") {
            return None;
        }
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let day = Self { client: Client::containing(Program::Small), folder, asked: 0 };
        day.write(files);
        Some(day)
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn write(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = self.project().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }

    /// What the client's shell is told to run: the hook permits it without a question.
    fn permitted(&mut self, line: &str) -> Command {
        self.asked += 1;
        let event = input("pre-bash", |input| {
            input["cwd"] = self.project().to_str().unwrap().into();
            input["tool_input"] = json!({ "command": line });
            input["tool_use_id"] = format!("toolu_{}", self.asked).into();
        });
        let mut hook = self.client.hook(&[]);
        hook.env("HOME", home()).env("CLAUDE_PROJECT_DIR", self.project());
        let [answer] = told(hook, &event).json().try_into().unwrap();
        let answer: Value = answer;
        assert_eq!(decision(&answer), "allow", "{line}: {answer}");
        let updated = &answer["hookSpecificOutput"]["updatedInput"]["command"];
        let updated = updated.as_str().filter(|text| text.contains(" run --ticket ")).expect(line);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", updated]).current_dir(self.project());
        shell.env("HOME", home()).env_remove("PORTCULLIS_HOME");
        shell
    }

    /// It works, and nothing that it did was put back.
    fn works(&mut self, line: &str) {
        let ran: Ran = self.permitted(line).output().unwrap().into();
        assert_eq!(ran.code, 0, "{line}: {}{}", ran.stdout, ran.stderr);
        assert!(!ran.stderr.contains("is protected"), "{line}: {}", ran.stderr);
    }

    /// As somebody sets up a project.
    fn before(&self, script: &str) {
        let made =
            Command::new("/bin/sh").args(["-ec", script]).current_dir(self.project()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}

/// The home that toolchains are found from.
fn home() -> PathBuf {
    std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from)
}

fn has(program: &str, arguments: &[&str]) -> bool {
    let there = Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success());
    if !there {
        println!("SKIPPED: no `{program} {}`", arguments.join(" "));
    }
    there
}

const FORMATS: &str = "#!/bin/sh\nsed -i 's/ *$//' file\ngit add file\n";

#[test]
fn git_with_hooks_branches_worktrees_and_a_remote() {
    let Some(mut day) = Day::begin(&[("file", "one\n"), ("AGENTS.md", "old\n")]) else { return };
    day.before(
        "git init -q -b main; git config user.name A; git config user.email a@b; git add .; git commit -qm start
         git clone -q --bare . ../origin.git; git remote add origin ../origin.git; git fetch -q; git branch -q -u origin/main
         git clone -q ../origin.git ../other; cd ../other; git config user.name A; git config user.email a@b
         echo new > AGENTS.md; echo x > x; git add .; git commit -qm other; git push -q",
    );
    day.write(&[(".git/hooks/pre-commit", FORMATS), (".git/hooks/post-checkout", "#!/bin/sh\ntrue\n")]);
    for line in [
        "git status",
        "git diff --stat",
        "echo 'two  ' >> file; git add -A && git commit -qm two",
        "git fetch origin",
        "git pull --rebase",
        "git checkout -b feature",
        "echo three >> file && git commit -qam three",
        "git switch main",
        "git merge -q --no-edit feature",
        "git branch -d feature",
        "git checkout -q -b tracking --track origin/main",
        "git checkout -q main",
        "echo wip >> file; git stash",
        "git stash pop",
        "git checkout -q -- file",
        "git worktree add -q .w -b w",
        "git -C .w log --oneline",
        "git worktree remove .w",
        "git log --oneline -5",
        "git rebase -q HEAD~1",
    ] {
        day.works(line);
    }
    let read = |name: &str| fs::read_to_string(day.project().join(name)).unwrap();
    assert_eq!((read("AGENTS.md").as_str(), read("file").as_str()), ("new\n", "one\ntwo\nthree\n"));
}

#[test]
fn an_npm_project() {
    if !has("npm", &["--version"]) {
        return;
    }
    let package = r#"{"name": "thing", "version": "1.0.0", "scripts": {"test": "node --test", "build": "node build.js"}}"#;
    let files = [
        ("package.json", package),
        (
            "build.js",
            "const fs = require('fs'); fs.mkdirSync('dist', {recursive: true}); fs.writeFileSync('dist/x', 'x');\n",
        ),
        ("one.test.js", "require('node:test')('one', () => {});\n"),
    ];
    let Some(mut day) = Day::begin(&files) else { return };
    for line in ["npm test --silent", "npm run build", "node build.js && ls dist"] {
        day.works(line);
    }
}

#[test]
fn a_python_project() {
    if !has("python3", &["-c", "import pytest"]) {
        return;
    }
    let test = "import tempfile\n\ndef test_one(tmp_path):\n    (tmp_path / 'x').write_text('x')\n    tempfile.mkdtemp()\n";
    let Some(mut day) = Day::begin(&[("test_one.py", test), ("run.py", "print('ran')\n")]) else { return };
    for line in ["python3 -m pytest -q", "python3 run.py > out && cat out"] {
        day.works(line);
    }
}

#[test]
fn a_crate_is_built_and_tested() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let manifest = read("Cargo.toml");
    let lines = manifest.lines().filter(|line| !line.starts_with("default-members"));
    let lines = lines.map(|line| if line.starts_with("members") { "members = [\"crates/*\"]" } else { line });
    let manifest = lines.collect::<Vec<_>>().join("\n");
    let Some(mut day) = Day::begin(&[("Cargo.toml", &manifest), ("Cargo.lock", &read("Cargo.lock"))]) else {
        return;
    };
    let crates = day.project().join("crates");
    fs::create_dir(&crates).unwrap();
    let copied = Command::new("cp").arg("-r").arg(root.join("crates/portcullis-hook")).arg(&crates).status();
    assert!(copied.unwrap().success());
    for line in ["cargo build --offline --quiet", "cargo test --offline --quiet"] {
        day.works(line);
    }
}

/// The client runs it in the background: it goes on, contained, until the client ends it.
#[test]
fn a_dev_server_in_the_background() {
    if !has("node", &["--version"]) {
        return;
    }
    let serves = "require('http').createServer((_, answer) => answer.end('x')).listen(8123, '127.0.0.1');\n";
    let Some(mut day) = Day::begin(&[("index.html", "hello\n"), ("server.js", serves)]) else { return };
    // As a client does, with a process group of its own, which it ends as a whole.
    let mut server: Child = day
        .permitted("node server.js")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    // At the level `process` there is no network to listen on.
    let helper = Contained::with_helper(Path::new(env!("CARGO_BIN_EXE_portcullis-contain"))).unwrap();
    let has_network = probe(&helper).unwrap().reached == Level::Namespace;
    assert_eq!(server.try_wait().unwrap().is_none(), has_network);
    day.works("ls && cat index.html");
    let left = || {
        let folders = fs::read_dir("/proc").unwrap().flatten().map(|process| process.path().join("cwd"));
        let project = day.project();
        folders.filter_map(|folder| fs::read_link(folder).ok()).any(|folder| folder == project)
    };
    assert_eq!(left(), has_network, "a process works in the project while the server is there");
    let group = format!("-{}", server.id());
    let _gone = Command::new("kill").args(["-TERM", "--", &group]).status().unwrap();
    server.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while left() {
        assert!(Instant::now() < until, "the server goes on after it was ended");
        std::thread::sleep(Duration::from_millis(50));
    }
}
