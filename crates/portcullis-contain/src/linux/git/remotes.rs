//! What a command fetches with git, fetched for it.
//!
//! A remote is reached with keys and passwords that no contained command sees. So the supervisor has git fetch from it,
//! outside and with nothing of the project running, into a repository of its own that borrows the project's objects. The
//! command's git then takes what it asks for from there: in place of `ssh` it gets a program that serves this
//! repository, and other addresses are written as those of `ssh`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::Git;
use crate::profile::Invocation;

/// What `git fetch` calls the remote that is not named.
const USUAL: &str = "origin";
/// How settings begin that say how remotes are reached.
const REACHING: &str =
    r"^(core\.(sshcommand|gitproxy)|credential\..*|http\..*|ssh\..*|protocol\..*|url\..*)$";
/// Most of them.
const SETTINGS_MAX: usize = 256;
/// What is fetched of a remote that no settings speak of.
const HEADS: &str = "refs/heads/*";
/// How names begin that forges have for what is proposed to be merged, and all names of references.
const NAMED: &[&str] = &["refs/", "pull/", "merge-requests/", "changes/"];
/// Most such names of a command line.
const NAMED_MAX: usize = 16;
/// Options that make git fetch from all remotes.
const ALL: &[&str] = &["--all", "--multiple"];
/// Most remotes.
const REMOTES_MAX: usize = 16;
/// Where the head of a remote is kept.
const HEAD: &str = "refs/portcullis/HEAD";

/// What was fetched.
#[derive(Debug, Default)]
pub(in crate::linux) struct Fetched {
    /// Folders for the command to read.
    pub(in crate::linux) read: Vec<PathBuf>,
    /// Variables for the command.
    pub(in crate::linux) environment: BTreeMap<OsString, OsString>,
    /// Commits that were fetched.
    pub(in crate::linux) tips: Vec<String>,
}

/// A remote, with the repository that stands for it.
struct Remote {
    /// What tells it from others in the arguments of `ssh`.
    path: String,
    folder: PathBuf,
}

impl Fetched {
    /// Fetches from these remotes into folders below one.
    pub(in crate::linux) fn from(git: &Git, names: &[String], command: &Invocation, within: &Path) -> Self {
        let words = words(command);
        let mut fetched = Self::default();
        let (mut served, mut instead) = (Vec::new(), Vec::new());
        for (number, name) in remotes(git, names, &words).iter().enumerate() {
            let stated = git.ask_line(&["config", "--get", &format!("remote.{name}.url")]);
            let is_remote = stated.is_some();
            let url = stated.unwrap_or_else(|| name.clone());
            if !is_remote && !is_address(git, &url) {
                // Git says so.
                continue;
            }
            let Some(resolved) = git.ask_line(&["ls-remote", "--get-url", "--", name]) else { continue };
            if let Some(local) = local(git, &resolved) {
                let tips = git.ask(&["ls-remote", "--", &resolved]).unwrap_or_default();
                fetched
                    .tips
                    .extend(tips.lines().filter_map(|line| line.split('\t').next().map(str::to_owned)));
                fetched.read.push(local);
                continue;
            }
            let Some((host, path)) = place(&resolved) else { continue };
            let folder = within.join(number.to_string());
            let there = Copy { git, folder: folder.clone() };
            if there.make().is_none() || !there.fetch(name, &resolved, is_remote, &words) {
                continue;
            }
            let tips = there.ask(&["for-each-ref", "--format=%(objectname)"]).unwrap_or_default();
            fetched.tips.extend(tips.lines().map(str::to_owned));
            fetched.read.push(folder.clone());
            if !is_ssh(&resolved) || url != resolved {
                instead.push((format!("url.ssh://{host}/{path}.insteadOf"), url));
            }
            served.push(Remote { path, folder });
        }
        fetched.settle(&served, instead);
        fetched
    }

    /// How the command's git comes to what was fetched.
    fn settle(&mut self, served: &[Remote], mut settings: Vec<(String, String)>) {
        settings.push(("fetch.recurseSubmodules".to_owned(), "no".to_owned()));
        let mut set = |name: String, value: String| self.environment.insert(name.into(), value.into());
        for (number, (key, value)) in settings.iter().enumerate() {
            set(format!("GIT_CONFIG_KEY_{number}"), key.clone());
            set(format!("GIT_CONFIG_VALUE_{number}"), value.clone());
        }
        set("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string());
        if served.is_empty() {
            return;
        }
        let cases = served.iter().map(|remote| {
            let (path, folder) = (quoted(&remote.path), quoted(&remote.folder.display().to_string()));
            format!("*{path}*) git upload-pack {folder};; ")
        });
        let cases: String = cases.collect();
        let not_there = "*) echo 'portcullis: this repository was not fetched' >&2; exit 1;; ";
        set(
            "GIT_SSH_COMMAND".to_owned(),
            format!("portcullis_serves() {{ case \"$*\" in {cases}{not_there}esac; }}; portcullis_serves"),
        );
        set("GIT_SSH_VARIANT".to_owned(), "ssh".to_owned());
    }
}

/// The words of a command line, roughly: what is looked for among them has a form of its own.
fn words(command: &Invocation) -> Vec<String> {
    let texts = command.arguments.iter().filter_map(|text| text.to_str());
    let split = |c: char| c.is_whitespace() || ";|&()'\"`".contains(c);
    texts.flat_map(|text| text.split(split)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The remotes that are meant by these names.
fn remotes(git: &Git, names: &[String], words: &[String]) -> Vec<String> {
    let mut all: Vec<String> = names.to_vec();
    if names.iter().any(|name| name == USUAL) {
        let branch = git.ask_line(&["symbolic-ref", "--quiet", "--short", "HEAD"]);
        let follows =
            branch.and_then(|branch| git.ask_line(&["config", "--get", &format!("branch.{branch}.remote")]));
        all.extend(follows.filter(|name| name != "."));
    }
    if words.iter().any(|word| ALL.contains(&word.as_str())) {
        all.extend(git.ask(&["remote"]).unwrap_or_default().lines().map(str::to_owned));
    }
    all.sort();
    all.dedup();
    all.retain(|name| !name.starts_with('-') && !name.contains("::"));
    all.truncate(REMOTES_MAX);
    all
}

/// Whether this is where a repository is, rather than a name.
fn is_address(git: &Git, name: &str) -> bool {
    name.contains([':', '/']) || git.folder.join(name).is_dir()
}

/// The folder of a repository on this machine.
fn local(git: &Git, url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("file://").unwrap_or(url);
    let is_path = url.starts_with("file://") || !url.contains(':') || url.starts_with(['/', '.']);
    is_path.then(|| git.folder.join(path).canonicalize().ok()).flatten()
}

fn is_ssh(url: &str) -> bool {
    url.starts_with("ssh://") || !url.contains("://")
}

/// Host and path of an address: `ssh://git@h:22/o/r`, `https://h/o/r`, `git@h:o/r`.
fn place(url: &str) -> Option<(String, String)> {
    let (host, path) = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?,
        None => url.split_once(':')?,
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let plain = |c: char| c.is_alphanumeric() || "/-_.~+:%@[]".contains(c);
    let is_plain = !host.is_empty() && !path.is_empty() && host.chars().chain(path.chars()).all(plain);
    is_plain.then(|| (host.to_owned(), path.trim_start_matches('/').to_owned()))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The repository that stands for a remote while a command runs.
struct Copy<'g> {
    git: &'g Git,
    folder: PathBuf,
}

impl Copy<'_> {
    fn ask(&self, arguments: &[&str]) -> Option<String> {
        let there = Git { folder: self.folder.clone(), ..self.git.clone() };
        there.ask(arguments)
    }

    /// Makes it: it borrows the project's objects, so that only new ones are fetched.
    fn make(&self) -> Option<()> {
        let format = self.git.ask_line(&["rev-parse", "--show-object-format"])?;
        let path =
            |name: &str| self.git.ask_line(&["rev-parse", "--path-format=absolute", "--git-path", name]);
        let folder = self.folder.to_str()?;
        let format = format!("--object-format={format}");
        self.git.ask(&["init", "--quiet", "--bare", "--template=", &format, folder])?;
        let write = |name: &str, text: &[u8]| self.write(name, text);
        write("objects/info/alternates", format!("{}\n", path("objects")?).as_bytes())?;
        if let Ok(shallow) = std::fs::read(path("shallow")?) {
            write("shallow", &shallow)?;
        }
        // The command's git asks for what it wants.
        self.ask(&["config", "uploadpack.allowAnySHA1InWant", "true"])?;
        self.ask(&["config", "uploadpack.allowFilter", "true"]).map(drop)
    }

    /// Writes a file in it as the user that git runs as.
    fn write(&self, name: &str, text: &[u8]) -> Option<()> {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent()?).ok()?;
        let mut file = std::fs::File::create(&path).ok()?;
        file.write_all(text).ok()?;
        if let Some((user, group)) = self.git.user {
            std::os::unix::fs::chown(path.parent()?, Some(user), Some(group)).ok()?;
            std::os::unix::fs::chown(&path, Some(user), Some(group)).ok()?;
        }
        Some(())
    }

    /// Fetches what the remote's settings say and the command names. Whether that worked; git says why it did not.
    fn fetch(&self, name: &str, url: &str, is_remote: bool, words: &[String]) -> bool {
        let stated =
            is_remote.then(|| self.git.ask(&["config", "--get-all", &format!("remote.{name}.fetch")]));
        let stated = stated.flatten().unwrap_or_default();
        let sources = stated.lines().filter_map(|line| line.trim_start_matches('+').split(':').next());
        let mut names: Vec<String> =
            sources.filter(|source| source.starts_with("refs/")).map(str::to_owned).collect();
        if names.is_empty() {
            names.push(HEADS.to_owned());
        }
        names.push("refs/tags/*".to_owned());
        let usual: Vec<String> = names.iter().map(|name| format!("+{name}:{name}")).collect();
        let mut all = usual.clone();
        all.push(format!("+HEAD:{HEAD}"));
        all.extend(named(words).map(|name| format!("+{name}:{name}")));
        // Of what is named some may not be there, and an empty remote has no head.
        if !self.run(url, &all, Stdio::null()) && !self.run(url, &usual, Stdio::inherit()) {
            return false;
        }
        if let Some(head) = self.ask(&["rev-parse", "--verify", "--quiet", HEAD]) {
            let _unborn = self.ask(&["update-ref", "--no-deref", "HEAD", head.trim()]);
        }
        true
    }

    fn run(&self, url: &str, what: &[String], errors: Stdio) -> bool {
        let there = Git { folder: self.folder.clone(), ..self.git.clone() };
        let mut arguments = vec!["fetch", "--quiet", "--no-write-fetch-head", "--no-tags", "--", url];
        arguments.extend(what.iter().map(String::as_str));
        let mut git = there.command(&arguments);
        git.env_remove("GIT_NO_LAZY_FETCH");
        // How the project says that remotes are reached. Relative programs in it lead nowhere from this folder.
        let settings =
            self.git.ask(&["config", "--local", "-z", "--get-regexp", REACHING]).unwrap_or_default();
        let pairs = settings.split('\0').filter_map(|pair| pair.split_once('\n')).take(SETTINGS_MAX);
        let mut count = 0;
        for (number, (key, value)) in pairs.enumerate() {
            git.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
            count = number + 1;
        }
        git.env("GIT_CONFIG_COUNT", count.to_string());
        git.env("GIT_DIR", OsStr::new(&self.folder));
        git.stdout(Stdio::null()).stderr(errors).status().is_ok_and(|status| status.success())
    }
}

/// What a command names of a remote by the form of its name.
fn named(words: &[String]) -> impl Iterator<Item = String> {
    let plain =
        |word: &&str| word.chars().all(|c| c.is_alphanumeric() || "/-_.".contains(c)) && !word.contains("..");
    let sources = words.iter().filter_map(|word| word.trim_start_matches('+').split(':').next());
    let known = sources.filter(|word| NAMED.iter().any(|start| word.starts_with(start))).filter(plain);
    let full = |word: &str| match word.starts_with("refs/") {
        true => word.to_owned(),
        false => format!("refs/{word}"),
    };
    known.map(full).take(NAMED_MAX).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (url, host, path) in [
            ("git@h.example:o/r.git", "h.example", "o/r.git"),
            ("ssh://git@h.example:2222/o/r", "h.example:2222", "o/r"),
            ("https://user:pw@h.example/o/r.git", "h.example", "o/r.git"),
        ] {
            assert_eq!(place(url), Some((host.to_owned(), path.to_owned())), "{url}");
        }
        for url in ["h", "https://h", "git@h:o'r", "h:"] {
            assert_eq!(place(url), None, "{url}");
        }
    }

    #[test]
    fn proposals_are_found_by_the_form_of_their_names() {
        let command = Invocation {
            arguments: ["-c", "git fetch origin 'pull/12/head:pr' && git log ../pull/x"]
                .map(Into::into)
                .to_vec(),
            ..Invocation::default()
        };
        assert_eq!(named(&words(&command)).collect::<Vec<_>>(), ["refs/pull/12/head"]);
    }
}
