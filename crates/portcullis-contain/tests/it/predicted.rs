//! What commands really did, beside what was predicted of them: what the reader of commands misses, only containment
//! sees.
//!
//! Each command runs in a home of its own with a project in it, at the namespace level, without a network. The files
//! that it made, changed or deleted, what it tried and was refused, and the programs it started are compared with the
//! effects. A command of which it was predicted that it could do anything is counted apart.
//!
//! What is more than was predicted has to be in a list, [`ONLY_CONTAINMENT_SEES`]; with `PORTCULLIS_TEST_LONG=1` every
//! shell case of portcullis-effects is run, otherwise some of those that are quick. With `PORTCULLIS_TEST_COMMANDS=DIR` the
//! commands of the data sets in DIR (`*.jsonl.gz`) run as well, `PORTCULLIS_TEST_COMMANDS_MAX` of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis_contain::{
    AttemptWhat, Invocation, Level, Limits, Network, Observed, Output, Profile, Watch, project,
};
use portcullis_core::bundle::EffectSettings;
use portcullis_core::effect::{Effect, Effects, ResourceKind, Verb};
use portcullis_core::principal::Attribute;
use portcullis_effects::{Sink, Surroundings, shell};

use super::escape::reaches;
use super::world::{NOBODY, contained, give_away};

/// The home that the cases name.
const HOME: &str = "/home/u";
/// Commands of each data set, without another number.
const COMMANDS_MAX: usize = 150;

const SETUP: &str = "mkdir -p .ssh other project/src project/docs project/build project/target project/dist project/tests project/node_modules/x
echo key > .ssh/id_rsa; echo x > .bashrc; echo other > x; cd project
for file in README.md a b c x y a.txt b.txt c.txt x.txt file file.txt old.txt new.txt notes.txt log.txt in.txt data.csv \
  list.txt src/main.rs src/lib.rs src/a.c docs/x.md build/out.o target/t.o dist/d.js tests/t.sh .env Makefile; do
  echo \"$file\" > \"$file\"
done
git init -q . && git add . && git -c user.name=u -c user.email=u@u commit -qm start";

/// Shells, and what scripts of the system are made of: what they do is seen by itself.
const PLAIN: &[&str] =
    &["bash", "sh", "dash", "env", "perl", "python3.11", "node", "gzip", "git", "contain-helper"];

/// What the reader of commands does not say and need not: programs that programs start for their work, what they keep in
/// the home folder, and connections that they make for themselves. By a word of the command, what was done, and how the
/// name of it begins; `~` is the home folder.
const ONLY_CONTAINMENT_SEES: &[(&str, &str, &str)] = &[
    ("npm", "changed", "~/.npm/"),
    ("npx", "changed", "~/.npm/"),
    ("npm", "started", "git-remote-https"),
    ("npm", "started", "ssh"),
    ("pip", "connected", "socket AF_INET6"),
    ("venv", "connected", "socket AF_INET6"),
    // A version manager's script may be what starts Python.
    ("venv", "started", ""),
    ("gcloud", "changed", "~/.config/gcloud/"),
    ("gcloud", "connected", "socket AF_INET"),
    ("gcloud", "started", ""),
    ("terraform", "changed", "~/.terraform.d/"),
    ("terraform", "connected", "socket AF_INET"),
    ("gcc", "started", "cc1"),
    ("git", "started", "git-"),
    ("git", "started", "ssh"),
    ("submodule", "started", ""),
    ("xdg-open", "started", ""),
    ("filter-branch", "started", ""),
    ("maintenance", "started", "systemctl"),
    ("scp", "started", "ssh"),
    ("ssh-copy-id", "started", ""),
    ("apt", "started", "dpkg"),
    ("apt", "changed", "/var/lib/dpkg/"),
    ("gpg", "changed", "~/.gnupg/"),
    ("gpg", "started", "gpg-agent"),
    ("vim", "changed", "~/.viminfo"),
    ("mount", "changed", "/run/mount"),
    ("man", "changed", "/var/cache/man/"),
    ("man", "started", ""),
    ("su", "changed", "/var/log/btmp"),
    // What `/etc/profile` runs.
    ("bash", "started", "id"),
];
/// What looks for newer versions of itself, and only from time to time.
const SELDOM: &[&str] = &["terraform"];
/// Words of commands that take seconds, or differ with what is installed.
const SLOW: &[&str] = &[
    "npm",
    "npx",
    "pip",
    "pip3",
    "venv",
    "gcloud",
    "terraform",
    "apt",
    "ssh",
    "scp",
    "cargo",
    "docker",
    "kubectl",
    "man",
    "sleep",
    "curl",
    "wget",
    "go",
    "pnpm",
    "yarn",
    "gpg",
    "sudo",
    "su",
    "nc",
    "ping",
];
/// Of the quick ones, each one of so many is run without `PORTCULLIS_TEST_LONG`.
const ONE_OF: usize = 12;

/// What a command did to something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Done {
    Changed(String),
    Deleted(String),
    Started(String),
    Connected(String),
}

/// What became of commands.
#[derive(Debug, Default)]
struct Count {
    commands: usize,
    /// Not found, or not to be executed here.
    not_run: usize,
    /// It was predicted that they could do anything.
    anything: usize,
    /// They did what was predicted, and of them those that changed nothing and started nothing.
    predicted: usize,
    idle: usize,
    missed: BTreeMap<&'static str, Vec<String>>,
    /// What of it is in the list, by its place there.
    listed: BTreeSet<usize>,
    /// What is not.
    unlisted: Vec<String>,
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn make() -> Self {
        let folder = tempfile::Builder::new().prefix("portcullis-predicted-").tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let master = folder.path().join("master");
        fs::create_dir(&master).unwrap();
        let made =
            Command::new("bash").args(["-ec", SETUP]).current_dir(&master).env("HOME", &master).status();
        assert!(made.unwrap().success());
        give_away(&master);
        Self { folder }
    }

    /// A fresh home.
    fn home(&self) -> PathBuf {
        let home = self.folder.path().join("u");
        if home.exists() {
            Command::new("chmod").args(["-R", "u+rwx"]).arg(&home).status().unwrap();
            fs::remove_dir_all(&home).unwrap();
        }
        let copied = Command::new("cp").arg("-a").args([&self.folder.path().join("master"), &home]).status();
        assert!(copied.unwrap().success());
        home
    }

    /// What is predicted of a command, with the names of this place.
    fn predict(&self, text: &str) -> (String, Effects) {
        let there = self.folder.path().join("u").display().to_string();
        let text = text.replace(HOME, &there);
        let settings = EffectSettings::default();
        let workspace = format!("{there}/project");
        let surroundings = Surroundings {
            settings: &settings,
            workspace: Some(&workspace),
            home: Some(&there),
            directory: Some(&workspace),
        };
        let mut effects = Effects::none();
        shell::read(&text, &surroundings, &mut Sink::new(&mut effects, "/arguments/command"));
        (text, effects)
    }

    fn run(&self, text: &str) -> Observed {
        let home = self.home();
        let there = home.display().to_string();
        let workspace = home.join("project");
        let limits = Limits {
            wall_seconds: Some(5),
            cpu_seconds: Some(4),
            processes: Some(256),
            file_bytes: Some(16 << 20),
            output_bytes: Some(64 << 10),
            ..Limits::default()
        };
        let profile = Profile {
            limits,
            // All of the home: what is changed there is seen.
            write: vec![home.clone()],
            network: Network::None,
            watch: Watch::Changes,
            ..project(&workspace, Some(&home)).unwrap()
        };
        let variables =
            [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", &there), ("USER", "u"), ("LANG", "C.UTF-8")];
        let command = Invocation {
            program: "bash".into(),
            arguments: ["-c", text].map(Into::into).to_vec(),
            folder: Some(workspace.clone()),
            level: Some(Level::Namespace),
            environment: Some(variables.map(|(name, value)| (name.into(), value.into())).into()),
            output: Output::Kept,
            user: rustix::process::geteuid().is_root().then_some((NOBODY, NOBODY)),
            ..Invocation::default()
        };
        contained().run(&profile, &command).unwrap()
    }

    fn compare(&self, text: &str, count: &mut Count) {
        let (text, effects) = self.predict(text);
        count.commands += 1;
        if anything(&effects) {
            count.anything += 1;
            return;
        }
        let observed = self.run(&text);
        let done: BTreeSet<Done> = done(&observed).into_iter().filter(|done| !is_plain(done)).collect();
        if done.is_empty() && [126, 127].contains(&observed.ended.code()) {
            count.not_run += 1;
            return;
        }
        let is_missed = |done: &&Done| !effects.iter().any(|effect| covers(effect, done));
        let missed: Vec<&Done> = done.iter().filter(is_missed).collect();
        if missed.is_empty() {
            count.predicted += 1;
            count.idle += usize::from(done.is_empty());
        }
        for done in &missed {
            match self.listed(&text, done) {
                Some(place) => drop(count.listed.insert(place)),
                None => count.unlisted.push(format!("{text:?}: {done:?}")),
            }
        }
        for kind in missed.iter().map(|done| kind(done)).collect::<BTreeSet<_>>() {
            let these: Vec<_> = missed.iter().filter(|done| self::kind(done) == kind).take(3).collect();
            let shown: String = text.chars().take(160).collect();
            count.missed.entry(kind).or_default().push(format!("{shown:?}: {these:?}"));
        }
    }
}

impl Place {
    /// The entry of the list that speaks of what was done.
    fn listed(&self, text: &str, done: &Done) -> Option<usize> {
        let (Done::Changed(name) | Done::Deleted(name) | Done::Started(name) | Done::Connected(name)) = done;
        let name = name.replace(&self.folder.path().join("u").display().to_string(), "~");
        ONLY_CONTAINMENT_SEES.iter().position(|(word, what, start)| {
            has_word(text, word) && *what == kind(done) && name.starts_with(start)
        })
    }
}

/// Whether a word is in a command line, whatever is around it.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '-').any(|one| one == word)
}

fn kind(done: &Done) -> &'static str {
    match done {
        Done::Changed(_) => "changed",
        Done::Deleted(_) => "deleted",
        Done::Started(_) => "started",
        Done::Connected(_) => "connected",
    }
}

fn done(observed: &Observed) -> Vec<Done> {
    let text = |path: &Path| path.display().to_string();
    let mut all = Vec::new();
    for change in &observed.files.changes {
        let path = text(&change.path);
        let is_gone = !change.path.exists() && change.path.symlink_metadata().is_err();
        all.push(if is_gone { Done::Deleted(path) } else { Done::Changed(path) });
    }
    // What is put back was changed, whatever it is called now.
    all.retain(|done| !matches!(done, Done::Changed(path) if path.contains(".contained-")));
    all.extend(observed.put_back.iter().map(|back| Done::Changed(text(&back.path))));
    for program in &observed.programs.started {
        let name = program.path.file_name().map(|name| name.to_string_lossy().into_owned());
        all.extend(name.map(Done::Started));
    }
    for attempt in &observed.refused.attempts {
        match attempt.what {
            AttemptWhat::Write => all.push(Done::Changed(attempt.target.clone())),
            AttemptWhat::Connect => all.push(Done::Connected(attempt.target.clone())),
            AttemptWhat::Call if attempt.target.starts_with("socket AF_INET") => {
                all.push(Done::Connected(attempt.target.clone()));
            }
            _ => {}
        }
    }
    all
}

/// What is no effect of its own: the shell itself, and what programs start for their own work.
fn is_plain(done: &Done) -> bool {
    match done {
        Done::Changed(path) => {
            path.starts_with("/dev/") || path.starts_with("/proc/") || path.starts_with("/tmp")
        }
        Done::Started(name) => PLAIN.contains(&name.as_str()),
        _ => false,
    }
}

/// Whether an effect speaks for what was done.
fn covers(effect: &Effect, done: &Done) -> bool {
    let resource = &effect.resource;
    let path = |verbs: &[Verb], path: &str| {
        if resource.kind != ResourceKind::Path || !verbs.contains(&effect.verb) {
            return false;
        }
        if resource.attributes.get("resolved") == Some(&Attribute::Boolean(false)) {
            return true;
        }
        let known = match resource.name.find(['*', '?', '[', '{']) {
            Some(at) => return path.starts_with(resource.name.get(..at).unwrap()),
            None => Path::new(&resource.name),
        };
        let path = Path::new(path);
        // Into a folder, with the folders that lead there, or by way of a file beside it.
        path.starts_with(known)
            || known.starts_with(path)
            || (effect.verb == Verb::Write && path.parent() == known.parent())
    };
    // A repository is changed by git in its own folder.
    let in_git = |path: &str| path.contains("/.git/") && resource.name.contains("git");
    match done {
        Done::Changed(at) => path(&[Verb::Write, Verb::Delete, Verb::Configure], at) || in_git(at),
        Done::Deleted(at) => path(&[Verb::Delete, Verb::Write], at) || in_git(at),
        Done::Started(name) => {
            effect.verb == Verb::Execute
                && resource.kind == ResourceKind::Command
                && is_program(&resource.name, name)
        }
        // What is fetched, and what is on another machine, is reached over a network.
        Done::Connected(_) => {
            matches!(resource.kind, ResourceKind::Host | ResourceKind::Package | ResourceKind::Cluster)
                || effect.verb == Verb::Send
                || effect.attributes.get("remote") == Some(&Attribute::Boolean(true))
                || resource.attributes.get("remote") == Some(&Attribute::Boolean(true))
        }
    }
}

/// Whether a program is started under this name: `awk` is a link to `mawk`.
fn is_program(said: &str, started: &str) -> bool {
    let led_to = |name: &str| {
        let place = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin"]
            .iter()
            .map(|folder| Path::new(folder).join(name));
        let mut real = place.filter_map(|path| path.canonicalize().ok());
        real.next().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
    };
    said == started
        || said.ends_with(&format!("/{started}"))
        || led_to(said).as_deref() == Some(started)
        || led_to(started).is_some_and(|real| Some(real) == led_to(said))
}

/// Whether the effects say that it could be anything.
fn anything(effects: &Effects) -> bool {
    effects.iter().any(|effect| {
        let known = effect.resource.attributes.get("known");
        effect.resource.kind == ResourceKind::Unknown || known == Some(&Attribute::Boolean(false))
    })
}

impl Count {
    fn print(&self, source: &str) {
        let missed: Vec<String> =
            self.missed.iter().map(|(kind, all)| format!("{} {kind}", all.len())).collect();
        println!(
            "{source}: {} commands; {} not run here; {} predicted to do anything; {} as predicted, {} of them without a change; more than predicted: {}",
            self.commands,
            self.not_run,
            self.anything,
            self.predicted,
            self.idle,
            missed.join(", ")
        );
        for (kind, all) in &self.missed {
            all.iter().for_each(|one| println!("  {kind}: {one}"));
        }
    }
}

/// The shell cases of portcullis-effects.
fn cases() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../portcullis-effects/tests/cases/shell");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(file).unwrap();
        for part in
            text.split("\n## ").skip(1).filter(|part| !part.lines().next().unwrap().ends_with("(not run)"))
        {
            let block = part.split_once("```sh\n").and_then(|(_, rest)| rest.split_once("\n```"));
            found.extend(block.map(|(block, _)| block.to_owned()));
        }
    }
    found
}

/// The commands of a data set: fields named `command`, or `text` of a kind `shell`.
fn commands(file: &Path) -> Vec<String> {
    let unpacked = Command::new("gzip").arg("-dc").arg(file).output().unwrap();
    let text = String::from_utf8_lossy(&unpacked.stdout).into_owned();
    let values = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let shell = values.filter_map(|value| {
        let is_shell = value["kind"].as_str().is_none_or(|kind| ["shell", "bash"].contains(&kind));
        let text = value["command"].as_str().or(value["text"].as_str())?;
        is_shell.then(|| text.to_owned())
    });
    let all: Vec<String> = shell.collect();
    let max = std::env::var("PORTCULLIS_TEST_COMMANDS_MAX").ok().and_then(|max| max.parse().ok());
    let step = all.len().div_ceil(max.unwrap_or(COMMANDS_MAX)).max(1);
    all.into_iter().step_by(step).collect()
}

/// Whether a program is there.
fn is_installed(name: &str) -> bool {
    ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|folder| Path::new(folder).join(name).exists())
}

#[test]
fn commands_do_what_was_predicted() {
    let is_long = std::env::var_os("PORTCULLIS_TEST_LONG").is_some();
    if !reaches(Level::Namespace) {
        return;
    }
    let place = Place::make();
    let mut texts = cases();
    if !is_long {
        texts.retain(|text| !SLOW.iter().any(|word| has_word(text, word)));
        texts = texts.into_iter().step_by(ONE_OF).collect();
    }
    let mut count = Count::default();
    texts.iter().for_each(|text| place.compare(text, &mut count));
    count.print("cases of portcullis-effects");
    // Some machines lack programs; a few are run anywhere.
    assert!(count.predicted * 3 > count.commands, "{count:?}");
    assert!(
        count.unlisted.is_empty(),
        "more than was predicted, and not in the list:\n{}",
        count.unlisted.join("\n")
    );
    let is_unused = |(at, (word, ..)): &(usize, &(&str, &str, &str))| {
        !count.listed.contains(at) && is_installed(word) && !SELDOM.contains(word)
    };
    let unused: Vec<_> = ONLY_CONTAINMENT_SEES.iter().enumerate().filter(is_unused).collect();
    assert!(!is_long || unused.is_empty(), "the list has what nothing does: {unused:?}");
}

/// The commands of data sets, which are not in the repository: they are counted and printed.
#[test]
fn commands_of_data_sets_beside_what_was_predicted() {
    let Some(data) = std::env::var_os("PORTCULLIS_TEST_COMMANDS").map(PathBuf::from) else {
        return println!("SKIPPED without PORTCULLIS_TEST_COMMANDS=DIR");
    };
    if !reaches(Level::Namespace) {
        return;
    }
    let place = Place::make();
    for file in fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path()) {
        let mut count = Count::default();
        commands(&file).iter().for_each(|text| place.compare(text, &mut count));
        count.print(&file.file_name().unwrap().to_string_lossy());
    }
}
