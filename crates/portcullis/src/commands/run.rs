//! `portcullis run`: a command that can do what its profile says, and nothing else.

mod ticket;

use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use portcullis_contain::{
    ConnectionVerdict, ContainError, Contained, HostRule, Invocation, Level, Missing, Network, Observed,
    Places, Profile, PutBack, PutBackHow, Watch, explain, parse, project as project_profile, settle,
};
use portcullis_core::bundle::built_in_profile;

use crate::cli::{Global, Json};
use crate::exit;
use crate::failure::Failure;
use crate::out::clean_line;

/// Most bytes of a profile's file that are read; the parser takes fewer.
const PROFILE_BYTES_MAX: u64 = 1 << 20;
/// The profile without a file.
const PROJECT: &str = "project";

const EXAMPLES: &str = "\
Examples:
  portcullis run -- cargo test
  portcullis run --net none --write out -- python3 build.py
  portcullis run --net registry.example --net '*.files.example:8443' -- npm ci
  portcullis run --level namespace --json seen.json -- make

Without --profile the project is written (the folder with `.git`, or this one), but never hooks, git's settings, \
start-up files, and agents' settings and instructions in it. System and toolchains are read. There is no network but \
a loopback. docs/contain.md says what each level holds, and what it does not.
Exit codes: the command's, 128 and the signal's number where one ended it; 127 and 126 where it cannot be found or \
executed; 3 where the level is not reached, and 64 for a mistake here: it was not run then.";

/// Run a command that can do what its profile says, and nothing else
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// `project`, `fetch`, `read-only`, or a file with a profile
    #[arg(long, value_name = "P", default_value = PROJECT)]
    profile: PathBuf,
    /// Run an action that the daemon permitted to run contained, under its profile: for hooks
    #[arg(long, value_name = "T", hide = true, conflicts_with_all = ["profile", "read", "write", "net", "level"])]
    ticket: Option<String>,
    /// The profile itself, as JSON, placed and settled: for `portcullis mcp`
    #[arg(long, value_name = "TEXT", hide = true, conflicts_with = "profile")]
    profile_json: Option<String>,
    /// A folder to read and to execute programs from, besides the profile's
    #[arg(long, value_name = "DIR")]
    read: Vec<PathBuf>,
    /// A folder to write and to read, besides the profile's
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// `none`, `loopback`, or a host to reach besides the profile's: `name`, `*.name`, an address, each also with
    /// `:port`; `private:name` where the name leads to a private network
    #[arg(long, value_name = "NET", value_parser = Net::parse)]
    net: Vec<Net>,
    /// Run at this level or not at all; otherwise at the highest that is reached, and not below the profile's
    #[arg(long, value_enum, value_name = "L")]
    level: Option<LevelArg>,
    /// Look at what it reads as well, so that the first refusal that is explained can be one of reading
    #[arg(long)]
    explain: bool,
    /// Write what was observed to F; - is standard error
    #[arg(long, value_name = "F", value_parser = Json::file, default_value = Json::NONE, hide_default_value = true)]
    json: Json,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Debug, Clone)]
enum Net {
    /// No sockets of the internet's families at all.
    None,
    /// A loopback of its own at the level `namespace`; nothing at the level `process`.
    Loopback,
    /// A host.
    Host(String),
}

impl Net {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "loopback" => Ok(Self::Loopback),
            host => HostRule::parse(host).map(|_| Self::Host(host.to_owned())),
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LevelArg {
    /// Landlock, seccomp, limits, no capabilities
    Process,
    /// The same in namespaces of its own
    Namespace,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if let Some(text) = &args.ticket {
        return ticket::run(text, args, global);
    }
    let here =
        std::env::current_dir().map_err(|error| Failure::unreadable(format!("this folder: {error}")))?;
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let mut profile = profile(args, &here, home.as_deref())?;
    profile.execute.extend(args.read.iter().map(|path| here.join(path)));
    profile.write.extend(args.write.iter().map(|path| here.join(path)));
    profile.network = network(&args.net, profile.network)?;
    if args.explain {
        profile.watch = Watch::All;
    }
    let mut words = args.command.iter().cloned();
    let command = Invocation {
        program: words.next().unwrap_or_default(),
        arguments: words.collect(),
        level: args.level.map(|level| match level {
            LevelArg::Process => Level::Process,
            LevelArg::Namespace => Level::Namespace,
        }),
        forward_signals: true,
        ..Invocation::default()
    };
    let observed =
        Contained::new().and_then(|contained| contained.run(&profile, &command)).map_err(refused)?;
    tell(&args.json, &observed)?;
    say(&observed, &profile, args.level.is_some() || args.profile_json.is_some());
    Ok(observed.ended.code())
}

/// The network that the arguments leave of the profile's.
fn network(args: &[Net], profile: Network) -> Result<Network, Failure> {
    let hosts = args.iter().filter_map(|net| match net {
        Net::Host(host) => Some(host.clone()),
        Net::None | Net::Loopback => None,
    });
    let added: Vec<String> = hosts.collect();
    match (args, profile) {
        ([], profile) => Ok(profile),
        ([Net::None], _) => Ok(Network::None),
        ([Net::Loopback], _) => Ok(Network::Loopback(Vec::new())),
        (all, profile) if added.len() == all.len() => {
            let named = if let Network::Hosts(hosts) = profile { hosts } else { Vec::new() };
            Ok(Network::Hosts([named, added].concat()))
        }
        _ => Err(Failure::usage("`--net none` and `--net loopback` stand alone")
            .help("with hosts there is a loopback anyway")),
    }
}

fn profile(args: &Args, here: &Path, home: Option<&Path>) -> Result<Profile, Failure> {
    if let Some(text) = &args.profile_json {
        return serde_json::from_str(text)
            .map_err(|error| Failure::usage(format!("`--profile-json`: {error}")));
    }
    if let Some(built_in) = args.profile.to_str().and_then(built_in_profile) {
        let places = Places { workspace: Some(narrow(project(here, home), home)?), home, here: Some(here) };
        let placed = built_in.at(&places).map_err(Failure::usage)?;
        return settle(placed, home, Missing::Refused).map_err(refused);
    }
    let shown = args.profile.display();
    let unread = |error| Failure::unreadable(format!("the profile `{shown}`: {error}"));
    let mut text = String::new();
    let file = fs::File::open(&args.profile).map_err(unread)?;
    file.take(PROFILE_BYTES_MAX).read_to_string(&mut text).map_err(unread)?;
    let places = Places { workspace: Some(project(here, home)), home, here: Some(here) };
    parse(&text, &places).map_err(refused)
}

/// The profile of the project that this folder is in, with the project's folder.
pub(super) fn project_here() -> Result<(Profile, PathBuf), Failure> {
    let here =
        std::env::current_dir().map_err(|error| Failure::unreadable(format!("this folder: {error}")))?;
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    project_of(&here, home.as_deref())
}

fn project_of(here: &Path, home: Option<&Path>) -> Result<(Profile, PathBuf), Failure> {
    let folder = narrow(project(here, home), home)?;
    Ok((project_profile(folder, home).map_err(refused)?, folder.to_owned()))
}

/// A folder that can be written as a whole: neither the home folder nor one above it.
fn narrow<'a>(folder: &'a Path, home: Option<&Path>) -> Result<&'a Path, Failure> {
    let is_above_home = home.is_some_and(|home| is_below(home, folder));
    if is_above_home || folder.parent().is_none() {
        let shown = folder.display();
        let why = if is_above_home { "it contains your home folder" } else { "it is the root of all files" };
        return Err(Failure::usage(format!(
            "`{shown}` is no project: {why}, and all of it could be written"
        ))
        .help("go into a project, or give --profile with a file that names folders"));
    }
    Ok(folder)
}

/// Whether one folder is below the other or the same, by whatever names.
fn is_below(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.starts_with(folder) || real(path).starts_with(real(folder))
}

/// The folder with `.git` that this one is in, unless that is the home folder or above; otherwise this one.
fn project<'a>(here: &'a Path, home: Option<&Path>) -> &'a Path {
    let is_above_home = |folder: &Path| home.is_some_and(|home| is_below(home, folder));
    let mut above = here.ancestors().take_while(|folder| !is_above_home(folder));
    above.find(|folder| folder.join(".git").exists()).unwrap_or(here)
}

/// Why it was not run.
pub(super) fn refused(error: ContainError) -> Failure {
    match &error {
        ContainError::Profile(_) => Failure::usage(&error).help("docs/contain.md says what a profile has"),
        ContainError::Start { missing, .. } => Failure::not_started(&error, *missing),
        ContainError::Level { .. } => Failure::unreadable(&error)
            .help("it was not run; `portcullis doctor` says which level this machine reaches"),
        ContainError::Helper { .. } => Failure::unreadable(&error).help("it was not run"),
        _ => Failure::unreadable(&error),
    }
}

fn tell(json: &Json, observed: &Observed) -> Result<(), Failure> {
    let Json::File(path) = json else { return Ok(()) };
    let text = serde_json::to_string(observed).map_err(std::io::Error::from)? + "\n";
    if path == Path::new("-") {
        // Standard error may be a terminal that is gone; the command has run.
        let _unwritten = std::io::stderr().write_all(text.as_bytes());
        return Ok(());
    }
    fs::write(path, text)
        .map_err(|error| Failure::unreadable(format!("`{}`: {error}; the command has run", path.display())))
}

/// One line for each thing that somebody has to know, on standard error.
fn say(observed: &Observed, profile: &Profile, level_was_asked: bool) {
    let mut lines = Vec::new();
    if observed.level < Level::Namespace && !level_was_asked {
        let level = observed.level;
        lines.push(format!(
            "ran at the level `{level}`; `portcullis doctor` says why, docs/contain.md what it leaves open"
        ));
    }
    for limit in &observed.limits {
        let field = limit.field();
        lines.push(format!(
            "it reached a limit: `{field}` under `[limits]` of the profile `{}`",
            observed.profile
        ));
    }
    let connection = refused_connections(observed);
    let is_explained = connection.is_some();
    lines.extend(connection);
    for PutBack { path, how } in &observed.put_back {
        let path = path.display();
        lines.push(match how {
            PutBackHow::Restored => {
                format!("`{path}` is protected: it was changed, and has its old content again")
            }
            PutBackHow::SetAside(new) => {
                format!("`{path}` is protected: the new one is `{}` now", new.display())
            }
            PutBackHow::Failed(why) => format!("`{path}` is protected and was changed: look at it ({why})"),
        });
    }
    // Where it ended well, it could do without.
    if observed.ended.code() != exit::YES && !is_explained {
        lines.extend(explain(observed, profile));
    }
    for line in lines {
        let _unwritten = writeln!(std::io::stderr(), "portcullis: {}", clean_line(&line));
    }
}

/// The first connection that was refused, with what to write, and how many other hosts there were.
fn refused_connections(observed: &Observed) -> Option<String> {
    let mut refused = Vec::new();
    for made in &observed.connections {
        let ConnectionVerdict::Refused(why) = &made.verdict else { continue };
        if !refused.iter().any(|(host, port, _)| (*host, *port) == (&made.host, made.port)) {
            refused.push((&made.host, made.port, why));
        }
    }
    let (first, others) = refused.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        1 => "; and one other".to_owned(),
        more => format!("; and {more} others"),
    };
    let (host, port, why) = first;
    let shown = if host.is_empty() { "a connection".to_owned() } else { format!("`{host}:{port}`") };
    Some(format!("{shown} was refused: {why}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_added_and_the_rest_stands_alone() {
        let net = |texts: &[&str], profile| {
            let args: Vec<Net> = texts.iter().map(|text| Net::parse(text).unwrap()).collect();
            network(&args, profile)
        };
        let hosts = |hosts: &[&str]| Network::Hosts(hosts.iter().map(|&host| host.to_owned()).collect());
        assert_eq!(net(&[], hosts(&["a.test"])).unwrap(), hosts(&["a.test"]));
        assert_eq!(net(&["b.test:1"], hosts(&["a.test"])).unwrap(), hosts(&["a.test", "b.test:1"]));
        assert_eq!(net(&["b.test"], Network::None).unwrap(), hosts(&["b.test"]));
        assert_eq!(net(&["none"], hosts(&["a.test"])).unwrap(), Network::None);
        assert_eq!(net(&["loopback"], Network::None).unwrap(), Network::Loopback(Vec::new()));
        for both in [["none", "a.test"], ["a.test", "loopback"], ["none", "loopback"]] {
            assert!(net(&both, Network::None).is_err(), "{both:?}");
        }
        assert!(Net::parse("https://a.test").is_err() && Net::parse("a.test:0").is_err());
    }

    #[test]
    fn the_project_is_the_repository_but_never_the_home_folder() {
        let home = tempfile::tempdir().unwrap();
        let inner = home.path().join("code/project/src");
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir(home.path().join(".git")).unwrap();
        assert_eq!(project(&inner, Some(home.path())), inner);
        fs::create_dir(home.path().join("code/project/.git")).unwrap();
        assert_eq!(project(&inner, Some(home.path())), home.path().join("code/project"));
        for folder in [home.path(), home.path().parent().unwrap(), Path::new("/")] {
            assert!(project_of(folder, Some(home.path())).is_err(), "{folder:?}");
        }
        std::os::unix::fs::symlink(home.path(), inner.join("home")).unwrap();
        assert!(project_of(&inner.join("home"), Some(home.path())).is_err());
    }
}
