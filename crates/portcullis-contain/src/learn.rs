//! A profile drafted from what a command did and was refused, for somebody to review.
//!
//! It never grants more than the command had while it was looked at: what was refused is in comments. Folders are
//! those of the profile that it ran under, so far as they were used; in the project, the folders that it wrote.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use portcullis_core::host::{Host, HostRule, Reach};
use portcullis_core::observed::{Attempt, AttemptWhat, Connection, ConnectionVerdict, Observed};
use portcullis_core::profile::{Network, Profile};

use crate::protected;

/// Folders in one place beyond which the place itself is named.
const APART_MAX: usize = 4;
/// Refused things that are listed.
const REFUSED_MAX: usize = 64;
/// Names of folders and files with secrets: nobody should let them be read without a thought.
const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".env",
    ".git-credentials",
    "credentials",
    "credentials.toml",
    "secrets",
    "shadow",
    "id_rsa",
    "id_ed25519",
];

/// What a command did, where it was looked at with [`Watch::All`](portcullis_core::profile::Watch::All).
#[derive(Debug, Clone, Default)]
pub struct Did(pub Vec<Attempt>);

/// What a draft is for.
#[derive(Debug, Clone, Copy)]
pub enum Drafted<'a> {
    /// A file of its own, with this name.
    File(&'a str),
    /// The table of a bundle for an MCP server of this name.
    Server(&'a str),
}

/// The profile, as TOML. `used` is the profile that the command ran under; `root` is the project's folder.
#[must_use]
pub fn draft(what: Drafted<'_>, observed: &Observed, did: &Did, used: &Profile, root: &Path) -> String {
    let head = match what {
        Drafted::File(name) => format!("name = {}\nversion = 1\n", quoted(name)),
        Drafted::Server(name) => format!("[server.{}.contain]\n", quoted(name)),
    };
    let done = |what: AttemptWhat| {
        did.0.iter().filter(move |one| one.what == what).map(|one| Path::new(&one.target))
    };
    let programs = observed.programs.started.iter().map(|program| program.path.as_path());
    let executed: Vec<&Path> = programs.chain(done(AttemptWhat::Execute)).collect();
    let read: Vec<&Path> = done(AttemptWhat::Read).collect();
    let mut execute = folders(&executed, &used.execute);
    let write = written(&done(AttemptWhat::Write).collect::<Vec<_>>(), used, root);
    let below = |roots: &BTreeSet<PathBuf>, path: &Path| roots.iter().any(|root| path.starts_with(root));
    // Libraries are mapped as programs are: from where these are executed, they are too.
    let system: Vec<&Path> = read.iter().copied().filter(|path| !path.starts_with(root)).collect();
    execute.extend(folders(&system, &used.execute));
    let read: Vec<&Path> = read.into_iter().filter(|path| !below(&execute, path)).collect();
    let all: Vec<PathBuf> = used.read.iter().chain([&root.to_owned()]).cloned().collect();
    let read = folders(&read, &all);
    let mut text = String::new();
    let _infallible = write!(
        text,
        "# learned: drafted from one run, for you to review. Nothing here was granted before, and what was refused is in\n\
         # comments: add what it needs, and nothing else.\n\
         {head}level = \"{}\"\n{}{}{}{}",
        observed.level,
        list("execute", &execute),
        list("read", &read),
        list("write", &write),
        network(observed, did, used),
    );
    let names: Vec<String> = used.environment.iter().map(|name| quoted(name)).collect();
    let _infallible = writeln!(text, "environment = [{}]", names.join(", "));
    text.push_str(&refused(&observed.refused.attempts));
    text
}

/// The roots that these paths are below.
fn folders(paths: &[&Path], roots: &[PathBuf]) -> BTreeSet<PathBuf> {
    let root = |path: &&Path| {
        let mut above: Vec<&PathBuf> = roots.iter().filter(|root| path.starts_with(root)).collect();
        above.sort_by_key(|root| root.components().count());
        above.last().map(|root| (*root).clone())
    };
    paths.iter().filter_map(root).collect()
}

/// The folders in the project that were written; protected ones are never among them by themselves.
fn written(paths: &[&Path], used: &Profile, root: &Path) -> BTreeSet<PathBuf> {
    let within: Vec<&Path> = paths.iter().copied().filter(|path| path.starts_with(root)).collect();
    let others: Vec<PathBuf> = used.write.iter().filter(|other| *other != root).cloned().collect();
    let mut folders_within = BTreeSet::new();
    for path in within.into_iter().filter(|path| !protected::is_protected(path)) {
        let mut parts = path.strip_prefix(root).unwrap_or(path).components();
        let first = parts.next();
        // A file at the top needs the top.
        let folder = first.filter(|_| parts.next().is_some()).map(|first| root.join(first));
        folders_within.insert(folder.unwrap_or_else(|| root.to_owned()));
    }
    if folders_within.len() > APART_MAX || folders_within.contains(root) {
        folders_within = [root.to_owned()].into();
    }
    folders_within.extend(folders(paths, &others));
    folders_within
}

fn network(observed: &Observed, did: &Did, used: &Profile) -> String {
    if used.network == Network::None {
        return "network = \"none\"\n".to_owned();
    }
    let ports: BTreeSet<u16> = did
        .0
        .iter()
        .filter(|one| one.what == AttemptWhat::Connect)
        .filter_map(|one| one.target.parse::<SocketAddr>().ok())
        .map(|address| address.port())
        .collect();
    match (ports.is_empty(), &used.network) {
        (_, Network::Hosts(rules)) if !reached(observed, rules).is_empty() => {
            let hosts: Vec<String> = reached(observed, rules).iter().map(|host| quoted(host)).collect();
            format!("network = {{ hosts = [{}] }} # learned\n", hosts.join(", "))
        }
        (true, _) | (false, Network::Hosts(_)) => "network = \"none\"\n".to_owned(),
        (false, _) => {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            format!("network = {{ loopback = [] }} # learned: ports {}\n", ports.join(", "))
        }
    }
}

/// The hosts that it reached through the proxy, as a profile names them. Those that these rules let have private
/// addresses may have such again.
fn reached(observed: &Observed, rules: &[String]) -> BTreeSet<String> {
    let rules: Vec<HostRule> = rules.iter().filter_map(|rule| HostRule::parse(rule).ok()).collect();
    let permitted = observed.connections.iter().filter(|one| one.verdict == ConnectionVerdict::Permitted);
    let named = permitted.filter_map(|Connection { host, port, .. }| {
        let host =
            host.parse().map_or_else(|_| Host::parse(host).ok(), |address| Some(Host::Address(address)))?;
        let is_private = rules.iter().any(|rule| rule.reach(&host, *port) == Some(Reach::Private));
        let prefix = if is_private && matches!(host, Host::Name(_)) { "private:" } else { "" };
        let port = if matches!(port, 80 | 443) { String::new() } else { format!(":{port}") };
        Some(format!("{prefix}{host}{port}"))
    });
    named.collect()
}

fn list(field: &str, paths: &BTreeSet<PathBuf>) -> String {
    let mut text = format!("{field} = [");
    for path in paths {
        let _infallible = write!(text, "\n  {}, # learned", quoted(&path.display().to_string()));
    }
    text.push_str(if paths.is_empty() { "]\n" } else { "\n]\n" });
    text
}

/// What it wanted and did not get.
fn refused(attempts: &[Attempt]) -> String {
    let mut text = String::new();
    for Attempt { what, target, times } in attempts.iter().take(REFUSED_MAX) {
        let field = match what {
            AttemptWhat::Read => "read",
            AttemptWhat::Write => "write",
            AttemptWhat::Execute => "execute",
            AttemptWhat::Connect => "connect to",
            AttemptWhat::Call => "call",
        };
        let is_secret = Path::new(target).iter().any(|part| SECRETS.iter().any(|secret| part == *secret));
        let note = match (is_secret, protected::is_protected(Path::new(target))) {
            (true, _) => " (may hold secrets)",
            (_, true) => " (protected unless it is named itself)",
            _ => "",
        };
        let often = if *times == 1 { String::new() } else { format!(", {times} times") };
        let _infallible = writeln!(text, "# refused{often}: {field} {}{note}", quoted(target));
    }
    if attempts.len() > REFUSED_MAX {
        let _infallible = writeln!(text, "# refused: {} more", attempts.len() - REFUSED_MAX);
    }
    text
}

/// A string of TOML; on one line whatever is in it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.replace(char::is_control, " ")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Places;
    use portcullis_core::observed::{Ended, Files, Program, Programs, Refused, Seen};
    use portcullis_core::profile::Level;

    fn attempt(what: AttemptWhat, target: &str) -> Attempt {
        Attempt { what, target: target.to_owned(), times: 2 }
    }

    fn observed(refused: Vec<Attempt>) -> Observed {
        Observed {
            level: Level::Process,
            profile: "project".to_owned(),
            ended: Ended::Status(0),
            wall_ms: 1,
            cpu_ms: 1,
            survivors: 0,
            limits: Vec::new(),
            put_back: Vec::new(),
            programs: Programs {
                seen: Seen::All,
                started: vec![Program { path: "/usr/bin/make".into(), times: 1 }],
            },
            files: Files::default(),
            connections: Vec::new(),
            connections_left_out: 0,
            refused: Refused { seen: Seen::All, attempts: refused },
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }

    #[test]
    fn a_draft_is_a_profile_that_grants_what_was_used_and_no_more() {
        use AttemptWhat::{Connect, Read, Write};
        let root = Path::new("/code/project");
        let used = crate::project(root, None).unwrap();
        let did = Did(vec![
            attempt(Read, "/usr/lib/libc.so"),
            attempt(Read, "/etc/hosts"),
            attempt(Read, "/code/project/src/main.c"),
            attempt(Write, "/code/project/out/main.o"),
            attempt(Write, "/code/project/.git/config"),
            attempt(Write, "/dev/null"),
            attempt(Connect, "127.0.0.1:8080"),
        ]);
        let refused = vec![
            attempt(Read, "/home/x/.ssh/id_rsa"),
            attempt(Write, "/code/project/.envrc"),
            attempt(Write, "/etc/\nname = \"evil\""),
        ];
        let text = draft(Drafted::File("make"), &observed(refused.clone()), &did, &used, root);
        let profile =
            crate::parse(&text, &Places { workspace: None, home: None, here: Some(Path::new("/")) }).unwrap();
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(profile.name, "make");
        assert_eq!(profile.write, paths(&["/code/project/out"]));
        // The project of this test is not there, and what is not there is left out when a profile is read.
        assert_eq!(profile.read, paths(&["/etc"]));
        assert!(
            text.contains("read = [\n  \"/code/project\", # learned\n  \"/etc\", # learned\n]"),
            "{text}"
        );
        assert_eq!(profile.execute, paths(&["/usr"]));
        assert_eq!(profile.network, Network::Loopback(Vec::new()));
        assert!(
            text.contains("id_rsa\" (may hold secrets)") && text.contains(".envrc\" (protected"),
            "{text}"
        );
        assert!(text.contains("ports 8080") && !text.contains("\nname = \"evil\""), "{text}");
        // The same as a table of a bundle, whatever the server is called.
        let table = draft(Drafted::Server("a \"b\"\n"), &observed(refused), &did, &used, root);
        let parsed: toml::Table = table.parse().unwrap();
        let parsed = &parsed["server"]["a \"b\" "]["contain"];
        assert_eq!(parsed["write"][0].as_str(), Some("/code/project/out"), "{table}");
        assert!(parsed.get("name").is_none() && parsed.get("version").is_none());
    }

    #[test]
    fn hosts_are_those_that_were_reached() {
        let connection = |host: &str, port, verdict| Connection {
            host: host.to_owned(),
            port,
            address: None,
            sent: 1,
            received: 1,
            verdict,
        };
        let mut observed = observed(Vec::new());
        observed.connections = vec![
            connection("a.example", 443, ConnectionVerdict::Permitted),
            connection("x.in.example", 8080, ConnectionVerdict::Permitted),
            connection("evil.example", 443, ConnectionVerdict::Refused("not named".to_owned())),
        ];
        let rules = ["*.example", "private:*.in.example:8080", "b.example"].map(str::to_owned).to_vec();
        let used =
            Profile { network: Network::Hosts(rules), ..crate::project(Path::new("/p"), None).unwrap() };
        let text = network(&observed, &Did::default(), &used);
        assert_eq!(text, "network = { hosts = [\"a.example\", \"private:x.in.example:8080\"] } # learned\n");
        observed.connections.clear();
        assert_eq!(network(&observed, &Did::default(), &used), "network = \"none\"\n");
    }

    #[test]
    fn many_folders_become_the_one_that_they_are_in() {
        let root = Path::new("/p");
        let used = crate::project(root, None).unwrap();
        let paths = ["/p/a/x", "/p/b/x", "/p/c/x", "/p/d/x", "/p/e/x"].map(Path::new);
        assert_eq!(written(&paths, &used, root), [root.to_owned()].into());
        let two = written(&paths[..2], &used, root);
        assert_eq!(two, ["/p/a", "/p/b"].map(PathBuf::from).into());
    }
}
