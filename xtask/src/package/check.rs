//! `cargo xtask package --check`: every package is installed into an empty root, used there and removed again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::booted;
use super::image::HOME;
use super::programs::{ALL, MAIN, Programs};
use super::root::{self, Root};
use super::tree::digest;
use super::unit;
use super::{Made, SUMS, packages, side_by_side};
use crate::process::{self, Failure, Program, Result, doing};

/// What a program may leave where it was started by `root`: the state folder, and what was made on purpose.
const STATE: &str = "root/";
/// The agent's side of a session with a server: one call that only reads.
const CALLS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"check","version":"0"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"retrieve_compliance_documents","arguments":{"query":"data privacy"}}}
"#;
/// What a coding agent tells its hook.
const EVENT: &str = r#"{"session_id":"s1","cwd":"/root","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":"rm -rf /"}}"#;
/// Where a bundle and a data folder are made.
const BUNDLE: &str = "/root/bundle";

/// Installs one package into a root, uses it and removes it.
type Attempt = fn(&Programs, &Path) -> Result<()>;

/// Makes the packages and tries each.
///
/// # Errors
/// What does not do as it should, with what it said.
pub(super) fn run(programs: &Programs) -> Result<()> {
    try_all(programs, &packages(programs)?)
}

/// The same, and packs once more to see that it gives the same packages.
///
/// # Errors
/// As [`run`], and where it does not.
pub(super) fn run_twice(programs: &Programs) -> Result<()> {
    let made = packages(programs)?;
    if made != packages(programs)? {
        return Err(Failure::new("two runs of packing the same programs gave different packages"));
    }
    try_all(programs, &made)
}

fn try_all(programs: &Programs, made: &[Made]) -> Result<()> {
    let folder = Program::new("mktemp").args(["-d"]).answer();
    let folder = PathBuf::from(folder.ok_or_else(|| Failure::new("cannot make a folder with `mktemp -d`"))?);
    let done = all(programs, made, &folder);
    doing(&format!("remove `{}`", folder.display()), fs::remove_dir_all(&folder))?;
    done
}

fn all(programs: &Programs, made: &[Made], folder: &Path) -> Result<()> {
    for Made { name, bytes } in made {
        doing(&format!("write `{name}`"), fs::write(folder.join(name), bytes))?;
    }
    Program::new("sha256sum").args(["--check", "--quiet", SUMS]).current_dir(folder).run()?;
    let named = |ending: &str| {
        let found = made.iter().find(|made| made.name.ends_with(ending));
        found
            .map(|made| folder.join(&made.name))
            .ok_or_else(|| Failure::new(format!("no package is `…{ending}`")))
    };
    let tries: [(&str, &[&str], Attempt); 5] = [
        ("-linux.tar.gz", &["bwrap"], archive),
        (".deb", &["bwrap", "dpkg", "systemd-analyze", "systemd-nspawn", "curl"], debian),
        ("-oci.tar", &["bwrap", "setpriv"], image),
        (".whl", &["bwrap", "python3"], wheel),
        (".tgz", &["bwrap", "npm"], npm),
    ];
    side_by_side(&tries, |(ending, needs, attempt)| {
        if let Some(program) = needs.iter().find(|program| !is_there(program)) {
            if process::may_install() {
                return Err(Failure::new(format!(
                    "there is no `{program}` to try the package `…{ending}` with"
                )));
            }
            println!(
                "package: SKIPPED, `{program}` is not on this machine to try the package `…{ending}` with"
            );
            return Ok(());
        }
        let begun = Instant::now();
        attempt(programs, &named(ending)?)
            .map_err(|failure| Failure::new(format!("the package `…{ending}`: {failure}")))?;
        println!("package: …{ending} installed, used and removed in {:.1} s", begun.elapsed().as_secs_f64());
        Ok(())
    })
    .map(drop)
}

fn is_there(program: &str) -> bool {
    Program::new(program).args(["--version"]).answer().is_some()
}

/// A root for these programs: with the C library of this machine, if they need one.
fn prepared(programs: &Programs) -> Result<Root> {
    let root = Root::empty()?;
    let program = root.path("tmp/program");
    for name in [ALL[0], ALL[3]] {
        let bytes = programs.bytes.get(name).map(Vec::as_slice).unwrap_or_default();
        doing("write a program", fs::write(&program, bytes))?;
        Program::new("chmod").args(["755".as_ref(), program.as_os_str()]).run()?;
        root.add_libraries(&program)?;
    }
    doing("remove a program", fs::remove_file(&program))?;
    Ok(root)
}

fn archive(programs: &Programs, package: &Path) -> Result<()> {
    let root = prepared(programs)?;
    let before = root.listed()?;
    let opt = root.path("opt");
    doing("make `opt`", fs::create_dir(&opt))?;
    Program::new("tar").args(["-xzf".as_ref(), package.as_os_str(), "-C".as_ref(), opt.as_os_str()]).run()?;
    let name =
        package.file_name().unwrap_or_default().to_string_lossy().trim_end_matches(".tar.gz").to_owned();
    let path = format!("/opt/{name}/bin");
    Used::new(&root, &path, programs).everything()?;
    doing("remove the programs", fs::remove_dir_all(&opt))?;
    only_state(&root, &before)
}

fn debian(programs: &Programs, package: &Path) -> Result<()> {
    let root = prepared(programs)?;
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
        doing(&format!("make `{folder}`"), fs::create_dir_all(root.path(folder)))?;
    }
    doing("make the list of packages", fs::write(root.path("var/lib/dpkg/status"), ""))?;
    let before = root.listed()?;
    let dpkg = |words: &[&str]| {
        let folder = root.path("");
        // The root has no shell. The scripts see from `DPKG_ROOT` that they must leave the machine alone.
        Program::new("dpkg")
            .arg(format!("--root={}", folder.display()))
            .args(["--force-script-chrootless", "--log=/dev/null", "--no-triggers"])
            .args(words)
            .output()
    };
    let path = package.display().to_string();
    dpkg(&["--install", &path])?;
    let listed = dpkg(&["--listfiles", MAIN])?;
    for file in [
        "/usr/bin/portcullis",
        "/usr/lib/systemd/system/portcullis.service",
        "/usr/share/man/man1/portcullis.1.gz",
    ] {
        if !listed.lines().any(|line| line == file) {
            return Err(Failure::new(format!("`{file}` is not among the files of the package")));
        }
    }
    let unit = root.path("usr/lib/systemd/system/portcullis.service");
    unit::hold(&unit)?;
    booted::hold(&root.path("usr"))?;
    Used::new(&root, "/usr/bin", programs).everything()?;
    dpkg(&["--remove", MAIN])?;
    if !root.path("etc/default/portcullis").is_file() {
        return Err(Failure::new("removing took the administrator's settings along; only a purge may"));
    }
    dpkg(&["--purge", MAIN])?;
    let theirs = |path: &String| !path.starts_with("var/lib/dpkg/");
    let before: Vec<String> = before.into_iter().filter(theirs).collect();
    doing("remove dpkg's own files", fs::remove_dir_all(root.path("var/lib/dpkg")))?;
    only_state(&root, &before)
}

fn image(programs: &Programs, package: &Path) -> Result<()> {
    let folder = Root::empty()?;
    let layout = folder.path("tmp");
    Program::new("tar")
        .args(["-xf".as_ref(), package.as_os_str(), "-C".as_ref(), layout.as_os_str()])
        .run()?;
    let index = read_json(&layout.join("index.json"))?;
    let manifest: Value = json(&blob(&layout, index.pointer("/manifests/0"))?)?;
    let config: Value = json(&blob(&layout, manifest.pointer("/config"))?)?;
    let layer = blob(&layout, manifest.pointer("/layers/0"))?;
    let packed = folder.path("root/layer.tar.gz");
    doing("write the layer", fs::write(&packed, &layer))?;
    let root = prepared(programs)?;
    Program::new("tar")
        .args(["--numeric-owner", "--same-owner", "-xzpf"])
        .args([packed.as_os_str(), "-C".as_ref(), root.path("").as_os_str()])
        .run()?;
    if root.path("bin/sh").exists() || root.path("usr/bin/sh").exists() {
        return Err(Failure::new("there is a shell in the image"));
    }
    let list = |pointer: &str| -> Vec<String> {
        let found = config.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        found.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let user = config.pointer("/config/User").and_then(Value::as_str).unwrap_or_default();
    let user = user.split(':').next().unwrap_or_default();
    if user.is_empty() || user == "0" {
        return Err(Failure::new("the image runs as root"));
    }
    let environment = list("/config/Env");
    let variables: Vec<(&str, &str)> = environment.iter().filter_map(|pair| pair.split_once('=')).collect();
    let (entry, command) = (list("/config/Entrypoint"), list("/config/Cmd"));
    let words: Vec<&str> = entry.iter().chain(&command).map(String::as_str).collect();
    // As a container engine starts it; it serves until it is told to end.
    let mut serving = doing(
        "start the image",
        root.command(Some(user), "/", &variables, &words).stderr(Stdio::null()).spawn(),
    )?;
    let used = Used { root: &root, user: Some(user), variables: variables.clone(), programs, folder: "/" };
    let socket = root.path(HOME).join("gate.sock");
    let outcome = until(|| socket.exists()).and_then(|()| {
        used.says(&["portcullis", "doctor"], "", 0, "ok    daemon")?;
        used.says(&["portcullis", "demo"], "", 0, "INVALID  tampered.export")
    });
    used.stop(HOME)?;
    let ended = root::wait(&mut serving, "the image")?;
    outcome?;
    if ended == Some(0) {
        Ok(())
    } else {
        Err(Failure::new(format!("the image ended with {ended:?} on SIGTERM")))
    }
}

fn wheel(programs: &Programs, package: &Path) -> Result<()> {
    let root = prepared(programs)?;
    let place = root.path("venv");
    Program::new("python3").args(["-m", "venv", "--without-pip"]).args([&place]).run()?;
    let python = place.join("bin/python");
    let before = root.listed()?;
    let pip = |words: &[&str]| {
        Program::new("python3")
            .args(["-m", "pip", "--disable-pip-version-check", "--quiet", "--python"])
            .args([&python])
            .args(words)
            .run()
    };
    let path = package.display().to_string();
    pip(&["install", "--no-index", "--no-deps", &path])?;
    Used::new(&root, "/venv/bin", programs).briefly()?;
    pip(&["uninstall", "--yes", "portcullis-gate"])?;
    only_state(&root, &before)
}

fn npm(programs: &Programs, package: &Path) -> Result<()> {
    let root = prepared(programs)?;
    // As wherever node is installed; npm leaves them.
    for folder in ["usr/bin", "usr/lib/node_modules"] {
        doing(&format!("make `{folder}`"), fs::create_dir_all(root.path(folder)))?;
    }
    let before = root.listed()?;
    let npm = |words: &[&str]| {
        Program::new("npm")
            .args(["--global", "--offline", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"])
            .args([root.path("usr")])
            .args(words)
            .run()
    };
    let path = package.display().to_string();
    npm(&["install", &path])?;
    Used::new(&root, "/usr/bin", programs).briefly()?;
    npm(&["uninstall", "portcullis-gate"])?;
    only_state(&root, &before)
}

/// A root with the programs installed, and how they are started in it.
struct Used<'a> {
    root: &'a Root,
    user: Option<&'a str>,
    variables: Vec<(&'a str, &'a str)>,
    programs: &'a Programs,
    /// Where they are started.
    folder: &'a str,
}

impl<'a> Used<'a> {
    fn new(root: &'a Root, path: &'a str, programs: &'a Programs) -> Self {
        Self {
            root,
            user: None,
            variables: vec![("HOME", "/root"), ("PATH", path)],
            programs,
            folder: "/root/project",
        }
    }

    /// Starts a program with an input, and holds it to an exit code and to what it has to say.
    fn says(&self, words: &[&str], input: &str, code: i32, text: &str) -> Result<()> {
        let ended = root::ended(self.root.command(self.user, self.folder, &self.variables, words), input)?;
        if ended.code == Some(code) && ended.said.contains(text) {
            return Ok(());
        }
        let wanted = format!("it should end with {code} and say `{text}`");
        Err(Failure::new(format!(
            "`{}` ended with {:?}, {wanted}:\n{}",
            words.join(" "),
            ended.code,
            ended.said
        )))
    }

    /// That it starts, is the version that was packed, and finds its helpers.
    fn briefly(&self) -> Result<()> {
        let path = self.variables.iter().find(|(name, _)| *name == "PATH").map_or("/", |(_, path)| path);
        for name in ["portcullis", "portcullis-hook"] {
            self.says(&[name, "--version"], "", 0, &format!("{name} {}", self.programs.told))?;
        }
        self.says(
            &["portcullis", "run", "--level", "process", "--read", path, "--", "portcullis", "--version"],
            "",
            0,
            "portcullis ",
        )?;
        self.program()
    }

    /// What users do.
    fn everything(&self) -> Result<()> {
        self.briefly()?;
        self.says(&["portcullis", "demo"], "", 0, "INVALID  tampered.export")?;
        let trace = crate::process::root().join("examples/traces/assistant.jsonl");
        doing("copy a trace", fs::copy(&trace, self.root.path("root/trace.jsonl")))?;
        self.says(&["portcullis", "check", "/root/trace.jsonl"], "", 1, "restricted-keyword")?;
        let done = self.gate();
        self.stop("root/.local/state/portcullis")?;
        done
    }

    /// A guard program, which runs in the engine beside `portcullis`.
    fn program(&self) -> Result<()> {
        let from = crate::process::root().join("examples");
        let to = self.root.path("root");
        Program::new("cp").args(["-R".as_ref(), from.join("programs").as_os_str(), to.as_os_str()]).run()?;
        Program::new("cp").args(["-R".as_ref(), from.join("actions").as_os_str(), to.as_os_str()]).run()?;
        let program = "/root/programs/programs/refunds.star";
        let words = [
            "portcullis",
            "program",
            "run",
            program,
            "--action",
            "/root/actions/refund.json",
            "--bundle",
            "/root/programs",
        ];
        self.says(&words, "", 2, "more than EUR 100")
    }

    /// A server behind the gate, the hook, and the record of what they did.
    fn gate(&self) -> Result<()> {
        let server = ["portcullis", "demo-server", "/root/data"];
        self.says(&[&["portcullis", "init", "-o", BUNDLE, "--"][..], &server].concat(), "", 0, "drafted ")?;
        let words = [&["portcullis", "mcp", "--bundle", BUNDLE, "--"][..], &server].concat();
        let log = self.root.path("root/answers");
        let answers = doing("write the answers", fs::File::create(&log))?;
        let mut command = self.root.command(self.user, self.folder, &self.variables, &words);
        command.stdin(Stdio::piped()).stdout(answers).stderr(Stdio::null());
        let mut gate = doing("start the gate", command.spawn())?;
        // The session lasts until its input ends.
        let mut input = gate.stdin.take();
        if let Some(input) = &mut input {
            doing("speak to the gate", std::io::Write::write_all(input, CALLS.as_bytes()))?;
        }
        let answered = until(|| fs::read_to_string(&log).is_ok_and(|text| text.contains("\"id\":2")));
        drop(input);
        root::wait(&mut gate, "the gate")?;
        answered?;
        let text = doing("read the answers", fs::read_to_string(&log))?;
        if !text.contains("doc_") {
            return Err(Failure::new(format!("the call through the gate brought no document:\n{text}")));
        }
        self.says(&["portcullis-hook"], EVENT, 0, "deny")?;
        until(|| self.closed_run().is_some())?;
        let run = self.closed_run().unwrap_or_default();
        self.says(
            &["portcullis", "export", &run, "-o", "/root/run.export", "--trust-out", "/root/trust"],
            "",
            0,
            "",
        )?;
        self.says(&["portcullis", "verify", "/root/run.export", "--trust", "/root/trust"], "", 0, "VALID")?;
        // A new log is made step by step beside the first calls, and its checkpoint last.
        let checkpoint = self.root.path("root/.local/state/portcullis/log/checkpoint");
        until(|| checkpoint.is_file())?;
        self.says(&["portcullis", "fsck"], "", 0, "")?;
        self.says(&["portcullis", "doctor"], "", 0, "ok    store")
    }

    /// The run of the session with the server, which ended; that of the hook goes on.
    fn closed_run(&self) -> Option<String> {
        let words = ["portcullis", "runs", "list", "--json"];
        let listed =
            root::ended(self.root.command(self.user, self.folder, &self.variables, &words), "").ok()?;
        let mut runs = listed.said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let run = runs.find(|run| run.get("phase").and_then(Value::as_str) == Some("closed"))?;
        Some(run.get("run")?.as_str()?.to_owned())
    }

    /// Has the daemon of a state folder end, and waits for it.
    fn stop(&self, home: &str) -> Result<()> {
        let socket = self.root.path(home).join("gate.sock");
        let Ok(pid) = fs::read_to_string(self.root.path(home).join("daemon.pid")) else { return Ok(()) };
        Program::new("kill").args([pid.trim()]).run()?;
        until(|| !socket.exists())
    }
}

/// Waits for something that happens within seconds.
fn until(happened: impl Fn() -> bool) -> Result<()> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let begun = Instant::now();
    while !happened() {
        if begun.elapsed() > PATIENCE {
            return Err(Failure::new(format!(
                "what was waited for did not happen within {} s",
                PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Whether nothing is left but what was there before, and what users made on purpose in their home.
fn only_state(root: &Root, before: &[String]) -> Result<()> {
    let left: Vec<String> = root
        .listed()?
        .into_iter()
        .filter(|path| !before.contains(path) && !path.starts_with(STATE))
        .collect();
    if left.is_empty() { Ok(()) } else { Err(Failure::new(format!("removing it left {}", left.join(", ")))) }
}

fn read_json(path: &Path) -> Result<Value> {
    json(&doing(&format!("read `{}`", path.display()), fs::read(path))?)
}

fn json(bytes: &[u8]) -> Result<Value> {
    doing("read a part of the image", serde_json::from_slice(bytes))
}

/// The blob that another refers to, held to its digest and its size.
fn blob(layout: &Path, reference: Option<&Value>) -> Result<Vec<u8>> {
    let of = |name: &str| reference.and_then(|reference| reference.get(name));
    let named = of("digest").and_then(Value::as_str).and_then(|named| named.strip_prefix("sha256:"));
    let named = named.ok_or_else(|| Failure::new("a part of the image is referred to without a digest"))?;
    let bytes = doing(&format!("read the blob {named}"), fs::read(layout.join("blobs/sha256").join(named)))?;
    if digest(&bytes) != named || of("size").and_then(Value::as_u64) != u64::try_from(bytes.len()).ok() {
        return Err(Failure::new(format!("the blob {named} is not what its name says")));
    }
    Ok(bytes)
}
