//! A developer's day under the profile that ships: nothing of it may be refused, changed or asked about.
//!
//! Each command is a run of its own, as an agent's commands are. Everything is run at each level; where the tests run
//! as root, as root and as a user with a home of its own.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis_contain::{Invocation, Level, Limits, Observed, Output, Profile, project};

use super::escape::reaches;
use super::world::{NOBODY, contained, give_away};

/// Where programs of a day are.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A home with a project in it.
pub(super) struct Day {
    folder: PathBuf,
    _removed_with_it: Option<tempfile::TempDir>,
    user: Option<u32>,
    pub(super) level: Level,
    path: String,
}

impl Day {
    /// One for each level that is reached and each user.
    pub(super) fn all() -> Vec<Self> {
        let is_root = rustix::process::geteuid().is_root();
        let users = if is_root { vec![Some(NOBODY), None] } else { vec![None] };
        let levels = [Level::Process, Level::Namespace].into_iter().filter(|level| reaches(*level));
        let make = |user: &Option<u32>, level| {
            let folder = folder();
            let day = Self::make(folder.path(), *user, level);
            Self { _removed_with_it: Some(folder), ..day }
        };
        levels.flat_map(|level| users.iter().map(move |user| make(user, level))).collect()
    }

    pub(super) fn make(folder: &Path, user: Option<u32>, level: Level) -> Self {
        let (folder, path) = (folder.to_owned(), PATH.to_owned());
        let day = Self { folder, _removed_with_it: None, user, level, path };
        fs::create_dir_all(day.project()).unwrap();
        fs::write(
            day.home().join(".gitconfig"),
            "[user]\nname = A B\nemail = a@b\n[init]\ndefaultBranch = main\n",
        )
        .unwrap();
        if let Some(user) = user {
            for path in [day.home(), day.home().join(".gitconfig"), day.project()] {
                chown(path, Some(user), Some(user)).unwrap();
            }
        }
        day
    }

    pub(super) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    pub(super) fn project(&self) -> PathBuf {
        self.home().join("project")
    }

    /// Everything belongs to the user of the day.
    fn give(&self) {
        match self.user {
            Some(_) => give_away(&self.project()),
            None => {
                // Files that were copied from others are root's own.
                let id = rustix::process::geteuid().as_raw();
                chown(&self.folder, Some(id), None).unwrap();
            }
        }
    }

    pub(super) fn who(&self) -> String {
        format!("{} as {}", self.level, self.user.map_or("oneself", |_| "another user"))
    }

    pub(super) fn write(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = self.project().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
        self.give();
    }

    /// Without containment, as somebody sets up a project.
    pub(super) fn before(&self, script: &str) {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-ec", script]).current_dir(self.project());
        shell.env_clear().env("HOME", self.home()).env("PATH", &self.path);
        if let Some(user) = self.user {
            std::os::unix::process::CommandExt::uid(&mut shell, user);
            std::os::unix::process::CommandExt::gid(&mut shell, user);
        }
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub(super) fn run_in(&self, folder: &Path, root: &Path, script: &str) -> Observed {
        self.run_under(&project(root, Some(&self.home())).unwrap(), folder, script)
    }

    /// Under a profile, with the limits of a test.
    pub(super) fn run_under(&self, profile: &Profile, folder: &Path, script: &str) -> Observed {
        let limits = Limits { wall_seconds: Some(300), output_bytes: Some(4 << 20), ..Limits::default() };
        let profile = Profile { limits, ..profile.clone() };
        let home = self.home().display().to_string();
        let variables =
            [("PATH", self.path.as_str()), ("HOME", &home), ("LANG", "C.UTF-8"), ("TERM", "dumb")];
        let command = Invocation {
            program: "/bin/sh".into(),
            arguments: ["-ec", script].map(Into::into).to_vec(),
            folder: Some(folder.to_owned()),
            level: Some(self.level),
            environment: Some(variables.map(|(name, value)| (name.into(), value.into())).into()),
            output: Output::Kept,
            user: self.user.map(|user| (user, user)),
            ..Invocation::default()
        };
        contained().run(&profile, &command).unwrap()
    }

    /// A command of the day: it works, and nothing that it did is put back.
    pub(super) fn works(&self, script: &str) {
        self.works_in(&self.project(), &self.project(), script);
    }

    pub(super) fn works_in(&self, folder: &Path, root: &Path, script: &str) {
        self.worked(script, &self.run_in(folder, root, script));
    }

    /// It worked, and nothing that it did was put back.
    pub(super) fn worked(&self, script: &str, observed: &Observed) {
        let who = self.who();
        let told = format!("{}{}", text(&observed.stdout), text(&observed.stderr));
        println!("{who}: `{script}`: {} ms, {:?}", observed.wall_ms, observed.refused);
        assert_eq!(observed.ended.code(), 0, "{who}: `{script}`: {:?}\n{told}", observed.refused);
        assert!(observed.put_back.is_empty(), "{who}: `{script}`: {:?}", observed.put_back);
        assert!(observed.limits.is_empty(), "{who}: `{script}`: {:?}", observed.limits);
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("portcullis-day-").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    folder
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether the programs of a test are there.
pub(super) fn are_there(programs: &[&str]) -> bool {
    let is_missing = |name: &&&str| !PATH.split(':').any(|folder| Path::new(folder).join(name).exists());
    let missing: Vec<_> = programs.iter().filter(is_missing).collect();
    if !missing.is_empty() {
        println!("SKIPPED: {missing:?} not below {PATH}");
    }
    missing.is_empty()
}

const HOOK: &str = "#!/bin/sh\necho ran >> hooks-that-ran\n";

#[test]
fn git_with_hooks_and_worktrees() {
    if !are_there(&["git"]) {
        return;
    }
    for day in Day::all() {
        day.write(&[("file", "one\n"), (".gitignore", "hooks-that-ran\n.worktrees\nclone\n")]);
        day.before("git init -q; git add .; git commit -qm start");
        for hook in ["pre-commit", "commit-msg", "post-checkout", "pre-rebase"] {
            day.write(&[(&format!(".git/hooks/{hook}"), HOOK)]);
        }
        for script in [
            "git status --short; git log --oneline; git diff HEAD",
            "echo two >> file; git add file; git commit -qm two; grep -q ran hooks-that-ran",
            "git checkout -qb feature; echo more > other; git add .; git commit -qm feature; git tag v1",
            "git checkout -q main; echo three >> file; git commit -qam three",
            "git checkout -q feature; git rebase -q main",
            "echo wip >> file; git stash -q; git stash pop -q; git checkout -q -- file",
            "git checkout -q main; git merge -q --no-edit feature; git branch -d feature",
            "git worktree add -q .worktrees/w -b w; git worktree list",
            "cd .worktrees/w; echo x > x; git add x; git commit -qm x; git status --short",
            "git cherry-pick w; git revert --no-edit HEAD; git reset -q --hard HEAD~1",
            "git commit -q --amend --no-edit; git rm -q file; git mv other third; git commit -qm moved",
            "git clone -q . clone; git -C clone log --oneline; git fetch -q clone main",
            "git bisect start HEAD HEAD~2; git bisect reset; git blame third; git archive HEAD > /dev/null",
            "for n in 1 2 3 4 5; do echo $n > n; git add n; git commit -qm $n; done; git -c gc.auto=1 gc --auto -q",
            "git gc -q; git fsck; git reflog expire --expire=now --all",
        ] {
            day.works(script);
        }
        // A command that starts in a worktree writes what the worktree has in the repository.
        let tree = day.project().join(".worktrees/w");
        day.works_in(
            &tree,
            &tree,
            "echo y > y; git add y; git commit -qm y; git stash list; git rebase -q main",
        );
        day.works("git worktree remove .worktrees/w; git branch -D w; git worktree prune");
    }
}

/// What these do to git's settings is never done; each says so in git's words or in ours.
#[test]
fn git_does_not_get_at_its_settings() {
    if !are_there(&["git"]) {
        return;
    }
    for day in Day::all() {
        day.write(&[("file", "one\n")]);
        day.before(
            "git init -q; echo old > AGENTS.md; git add .; git commit -qm start; git branch other
             git checkout -q -b differs; echo new > AGENTS.md; git commit -qam differs; git checkout -q main
             git remote add origin .; git fetch -q",
        );
        let read = |name: &str| fs::read_to_string(day.project().join(name)).unwrap();
        let before = (read(".git/config"), read("AGENTS.md"));
        for script in [
            "git remote add another .",
            "git config user.name X",
            "git branch -u origin/other",
            "git checkout -q -b tracking --track origin/other",
            "git branch -D tracking",
            "git push -q -u origin HEAD:refs/heads/pushed",
            "git submodule add ./ sub",
            "git worktree add -q w2 -b w2",
            "git branch -m w2 w3",
            "git checkout differs",
        ] {
            let observed = day.run_in(&day.project(), &day.project(), script);
            println!(
                "{}: `{script}`: {} {} {:?}",
                day.who(),
                observed.ended.code(),
                text(&observed.stderr),
                observed.put_back
            );
            assert_eq!((read(".git/config"), read("AGENTS.md")), before, "{}: {script}", day.who());
        }
    }
}

#[test]
fn a_python_project_with_pytest_in_an_environment_of_its_own() {
    let python = "/usr/bin/python3";
    let has = |module: &str| {
        Command::new(python)
            .args(["-c", &format!("import {module}")])
            .output()
            .is_ok_and(|it| it.status.success())
    };
    if !are_there(&["python3"]) || !has("pytest") || !has("ensurepip") {
        return println!("SKIPPED: {python} has no pytest or no venv");
    }
    for day in Day::all() {
        day.write(&[
            ("pyproject.toml", "[project]\nname = \"thing\"\nversion = \"1\"\n"),
            ("thing.py", "def twice(x):\n    return 2 * x\n"),
            ("test_thing.py", PYTEST),
        ]);
        let venv = "/usr/bin/python3 -m venv --without-pip --system-site-packages .venv";
        // Outside of namespaces there is no shared memory, which several processes of Python need.
        let pool = "python -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))'";
        let scripts = [
            venv,
            ". .venv/bin/activate; python -m pytest -q",
            ". .venv/bin/activate; python -m pytest -q -p no:cacheprovider -k twice; python -m compileall -q .",
            ". .venv/bin/activate; python -m pip --version; python -m pip list > /dev/null",
            ". .venv/bin/activate; python -c 'import sqlite3; sqlite3.connect(\"data.db\").execute(\"create table t (x)\")'",
        ];
        for script in scripts.into_iter().chain((day.level == Level::Namespace).then_some(pool)) {
            day.works(&script.replace("python -c", "/usr/bin/python3 -c"));
        }
    }
}

const PYTEST: &str = "import subprocess, tempfile, threading, pathlib
from thing import twice

def test_twice():
    assert twice(2) == 4

def test_files(tmp_path):
    (tmp_path / 'x').write_text('x')
    with tempfile.NamedTemporaryFile() as file:
        file.write(b'x')
    assert pathlib.Path.home().name == 'home'

def test_processes(capfd):
    assert subprocess.run(['git', '--version'], capture_output=True).returncode == 0
    threads = [threading.Thread(target=print) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
";

#[test]
fn an_npm_project() {
    if !are_there(&["node", "npm"]) {
        return;
    }
    for day in Day::all() {
        day.write(&[
            ("package.json", PACKAGE),
            ("vendor/left/package.json", "{\"name\": \"left\", \"version\": \"1.0.0\", \"main\": \"index.js\"}"),
            ("vendor/left/index.js", "module.exports = (text) => text.padStart(8);\n"),
            ("src/index.js", "console.log(require('left')('x'));\n"),
            ("test/index.test.js", "const test = require('node:test'); const left = require('left');\ntest('left', (t) => { if (left('x').length !== 8) throw new Error('short'); });\n"),
            ("scripts/build.js", "const fs = require('fs'); fs.mkdirSync('dist', {recursive: true});\nfs.copyFileSync('src/index.js', 'dist/index.js'); fs.rmSync('gone', {recursive: true, force: true});\n"),
        ]);
        day.before("npm install --offline --no-audit --no-fund --loglevel=error");
        for script in [
            "npm test --silent",
            "npm run build; node dist/index.js",
            "npm ls; npm pkg get name; npx --offline --no-install left 2>/dev/null || true",
            "rm -rf node_modules; npm install --offline --no-audit --no-fund; npm ci --offline --no-audit --no-fund",
            "node -e 'new (require(\"worker_threads\").Worker)(\"1\", {eval: true})'",
            "node -e 'require(\"child_process\").execSync(\"ls\")'",
        ] {
            day.works(script);
        }
    }
}

const PACKAGE: &str = r#"{
  "name": "thing", "version": "1.0.0", "private": true,
  "scripts": { "test": "node --test test/", "prebuild": "echo before", "build": "node scripts/build.js" },
  "dependencies": { "left": "file:vendor/left" }
}
"#;

#[test]
fn make_gcc_and_pipelines() {
    if !are_there(&["make", "gcc", "sed", "awk", "find"]) {
        return;
    }
    for day in Day::all() {
        day.write(&[
            ("Makefile", "all: hello\nhello: hello.o\n\t$(CC) -o $@ $^\n%.o: %.c\n\t$(CC) -O2 -c $<\ncheck: hello\n\t./hello | grep hello\nclean:\n\trm -f *.o hello\n.PHONY: all check clean\n"),
            ("hello.c", "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n"),
            ("a/one.txt", "b\na\nc\n"),
            ("a/two.txt", "1 2\n3 4\n"),
            ("run.sh", "#!/bin/sh\nset -e\ntrap 'echo left' EXIT\nx=$(mktemp); echo y > $x; cat < $x; rm $x\n"),
        ]);
        for script in [
            "make -j2; make check; make clean",
            "sed -i 's/hello/hullo/' hello.c; grep -rn hullo . | wc -l",
            "find . -name '*.txt' -print0 | xargs -0 sort | uniq -c | awk '{ n += $1 } END { print n }' > counted",
            "find . -name '*.txt' -exec cp {} {}.bak \\;; find . -name '*.bak' -delete",
            "./run.sh; tar czf a.tgz a; tar tzf a.tgz; gzip -dc a.tgz > a.tar; rm a.tgz a.tar",
            "cat /etc/passwd | cut -d: -f1 | sort > users; diff users users; cmp users users; rm users",
            "ls -la; du -sh .; df . ; id; ps > /dev/null; uname -a; date; nproc; env | sort",
            "mkdir -p x/y/z; touch -d yesterday x/y; chmod -R go-rwx x; mv x w; ln -s w v; rm -rf w v",
            "sleep 0.1 & wait; kill -0 $$; (exit 3) || true; echo err >&2",
            "time -p true 2>/dev/null || true; seq 3 | while read n; do echo $n; done; yes | head -1000 | md5sum",
            "nohup sh -c 'echo x' > log 2>&1; setsid true; nice -n 5 true; timeout 5 true; flock lock true",
        ] {
            day.works(script);
        }
        // The pipes belong to who started the command: by their names others cannot open them, contained or not.
        if day.user.is_none() {
            day.works("echo out > /dev/stdout; echo err > /dev/stderr");
        }
    }
}

/// A server in the background of one command. Outside of namespaces there is no network to listen on.
#[test]
fn a_dev_server_in_the_background() {
    if !are_there(&["python3", "curl", "node"]) {
        return;
    }
    for day in Day::all().iter().filter(|day| day.level == Level::Namespace) {
        day.write(&[
            ("index.html", "hello\n"),
            (
                "server.js",
                "require('http').createServer((_, answer) => answer.end('hello\\n')).listen(3000);\n",
            ),
        ]);
        let ask = "curl -sf --retry 50 --retry-delay 0 --retry-connrefused --retry-max-time 20";
        day.works(&format!(
            "/usr/bin/python3 -m http.server 8000 --bind 127.0.0.1 > log 2>&1 & s=$!; {ask} http://127.0.0.1:8000/ | grep hello; kill $s; wait $s || true"
        ));
        day.works(&format!("node server.js & s=$!; {ask} http://localhost:3000/ | grep hello; kill $s"));
        // One that is left running ends with the command.
        day.works(&format!("node server.js & {ask} http://[::1]:3000/ | grep hello"));
    }
}

/// Cargo's home and toolchain, which only root may look into where the tests run as root: they are mounted, read-only,
/// into the home of the day, in a mount namespace of this test's own.
#[test]
fn cargo_builds_and_tests_the_smallest_crate() {
    const INSIDE: &str = "PORTCULLIS_TEST_DAY";
    let is_root = rustix::process::geteuid().is_root();
    let Some(folder) = std::env::var_os(INSIDE).map(PathBuf::from) else {
        let folder = folder();
        let name = "day::cargo_builds_and_tests_the_smallest_crate";
        let inside = std::env::current_exe().unwrap();
        let mut test = if is_root { Command::new("unshare") } else { Command::new(&inside) };
        if is_root {
            test.args(["--mount", "--propagation", "private"]).arg(&inside);
        }
        let output = test.args(["--exact", name, "--nocapture"]).env(INSIDE, folder.path()).output().unwrap();
        println!("{}", text(&output.stdout));
        assert!(output.status.success(), "{}", text(&output.stderr));
        return;
    };
    let levels = [Level::Process, Level::Namespace].into_iter().filter(|level| reaches(*level));
    for level in levels {
        let mut day = Day::make(&folder, is_root.then_some(NOBODY), level);
        if !day.home().join(".cargo").exists() {
            day.bring_cargo(is_root);
            day.bring_crate("portcullis-hook");
        }
        let toolchain = day.home().join(".rustup/toolchains/day/bin");
        day.path = format!("{}:{PATH}", toolchain.display());
        // What is built under one level is up to date under the other.
        let more = "cargo check --offline --quiet; cargo clean --offline --quiet -p portcullis-hook; cargo doc --offline --quiet --no-deps";
        let is_long = std::env::var_os("PORTCULLIS_TEST_LONG").is_some();
        if !is_long {
            println!("SKIPPED without PORTCULLIS_TEST_LONG=1: `{more}`");
        }
        for script in [
            "cargo build --offline --quiet",
            "cargo test --offline --quiet",
            "touch crates/*/src/lib.rs; cargo build --offline --quiet; cargo metadata --offline --no-deps --format-version 1 > /dev/null; cargo tree --offline",
        ].into_iter().chain(is_long.then_some(more)) {
            day.works(script);
        }
    }
}

impl Day {
    fn bring_cargo(&self, is_root: bool) {
        let home = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cargo");
        let cargo = std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from);
        let program = PathBuf::from(std::env::var_os("CARGO").unwrap());
        let toolchain = program.parent().and_then(Path::parent).unwrap();
        for (from, to) in [(cargo.as_path(), ".cargo"), (toolchain, ".rustup/toolchains/day")] {
            let to = self.home().join(to);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            if is_root {
                fs::create_dir_all(&to).unwrap();
                for options in ["bind", "bind,remount,ro"] {
                    let status = Command::new("mount").args(["-o", options]).args([from, &to]).status();
                    assert!(status.unwrap().success());
                }
            } else {
                std::os::unix::fs::symlink(from, &to).unwrap();
            }
        }
    }

    /// A workspace with a single crate of this one.
    fn bring_crate(&self, name: &str) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        let manifest = manifest.lines().filter(|line| !line.starts_with("default-members"));
        let manifest: Vec<&str> = manifest
            .map(|line| if line.starts_with("members") { "members = [\"crates/*\"]" } else { line })
            .collect();
        let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap();
        self.write(&[("Cargo.toml", &manifest.join("\n")), ("Cargo.lock", &lock)]);
        let source = root.join("crates").join(name);
        let mut folders = vec![source.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let shown = format!("crates/{name}/{}", path.strip_prefix(&source).unwrap().display());
                    self.write(&[(&shown, &fs::read_to_string(&path).unwrap())]);
                }
            }
        }
    }
}
