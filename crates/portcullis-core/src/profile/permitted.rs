//! The profile of an action: what the bundle gives it, and what of its effects was permitted besides.
//!
//! An effect that a policy or a person permitted must be possible: a file outside to read, a folder to write, a host to
//! reach. What no folder or host stands for (a container, a process of the machine, a server on its loopback) cannot be
//! given to something contained; then the action is not contained at all, and judged by its text alone.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use super::{CACHES, Git, Level, Limits, Network, Places, Profile, REMOTES_MAX, Sockets, is_remote};
use crate::bundle::registries;
use crate::effect::{Effect, Effects, Resource, ResourceKind, Verb};
use crate::host::{Host, HostRule};
use crate::principal::Attribute;

/// Ports of a host that are meant where none is named.
const WEB_PORTS: [i64; 2] = [80, 443];

/// The profile with what the effects of an action need besides. Its paths have to be [placed](Profile::at).
///
/// # Errors
/// Something contained cannot do this: why.
pub fn allowing(mut profile: Profile, effects: &Effects, places: &Places<'_>) -> Result<Profile, String> {
    for effect in effects.iter() {
        if effect.is("privileged") || effect.is("remote") {
            return Err(format!("`{effect}` is done as another user or on another machine"));
        }
        allow(&mut profile, effect, places)?;
    }
    if matches!(&profile.network, Network::Hosts(hosts) if !hosts.is_empty()) {
        // Below it a host cannot be told from another.
        profile.level = profile.level.max(Level::Namespace);
    }
    Ok(profile)
}

/// What both have.
#[must_use]
pub fn join(one: Profile, other: Profile) -> Profile {
    let both = |mut one: Vec<PathBuf>, other: Vec<PathBuf>| {
        one.extend(other);
        one.sort();
        one.dedup();
        one
    };
    let mut environment = [one.environment, other.environment].concat();
    environment.sort();
    environment.dedup();
    Profile {
        name: format!("{}+{}", one.name, other.name),
        version: one.version,
        level: one.level.max(other.level),
        read: both(one.read, other.read),
        execute: both(one.execute, other.execute),
        write: both(one.write, other.write),
        network: networks(one.network, other.network),
        sockets: sockets(one.sockets, other.sockets),
        background: one.background.max(other.background),
        git: one.git.max(other.git),
        remotes: {
            let mut remotes = [one.remotes, other.remotes].concat();
            remotes.sort();
            remotes.dedup();
            remotes
        },
        watch: one.watch.max(other.watch),
        environment,
        limits: Limits {
            wall_seconds: more(one.limits.wall_seconds, other.limits.wall_seconds),
            cpu_seconds: more(one.limits.cpu_seconds, other.limits.cpu_seconds),
            processes: more(one.limits.processes, other.limits.processes),
            file_bytes: more(one.limits.file_bytes, other.limits.file_bytes),
            memory_bytes: more(one.limits.memory_bytes, other.limits.memory_bytes),
            output_bytes: more(one.limits.output_bytes, other.limits.output_bytes),
            background_seconds: more(one.limits.background_seconds, other.limits.background_seconds),
        },
    }
}

fn more(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.max(other?))
}

fn sockets(one: Sockets, other: Sockets) -> Sockets {
    match (one, other) {
        (Sockets::None, sockets) | (sockets, Sockets::None) => sockets,
        (Sockets::Own, Sockets::Own) => Sockets::Own,
        (one, other) => {
            let mut paths = [one.paths(), other.paths()].concat();
            paths.sort();
            paths.dedup();
            Sockets::Paths(paths)
        }
    }
}

fn networks(one: Network, other: Network) -> Network {
    match (one, other) {
        (Network::Hosts(mut one), Network::Hosts(other)) => {
            one.extend(other);
            one.sort();
            one.dedup();
            Network::Hosts(one)
        }
        (hosts @ Network::Hosts(_), _) | (_, hosts @ Network::Hosts(_)) => hosts,
        // Without ports all of its own loopback is there.
        (Network::Loopback(one), Network::Loopback(other)) if one.is_empty() || other.is_empty() => {
            Network::Loopback(Vec::new())
        }
        (Network::Loopback(one), Network::Loopback(other)) => Network::Loopback([one, other].concat()),
        (loopback @ Network::Loopback(_), Network::None) | (Network::None, loopback) => loopback,
    }
}

fn allow(profile: &mut Profile, effect: &Effect, places: &Places<'_>) -> Result<(), String> {
    let Resource { kind, name, .. } = &effect.resource;
    match kind {
        ResourceKind::Path => path(profile, effect, places),
        ResourceKind::Host => host(profile, effect),
        ResourceKind::Package => {
            let ecosystem = name.split_once(':').map_or("", |(ecosystem, _)| ecosystem);
            let hosts = registries(ecosystem);
            if !hosts.is_empty() {
                reach(profile, hosts.iter().map(|host| (*host).to_owned()));
                let caches = PathBuf::from(CACHES);
                if !profile.write.contains(&caches) {
                    profile.write.push(caches);
                }
            }
            Ok(())
        }
        // Programs are executed from the profile's folders; what they are called with has effects of its own.
        ResourceKind::Command | ResourceKind::Unknown | ResourceKind::Tool | ResourceKind::Activity => Ok(()),
        ResourceKind::Environment if effect.verb != Verb::Read || name == "*" => Ok(()),
        ResourceKind::Environment => {
            if !profile.shows(name) {
                profile.environment.push(name.clone());
            }
            Ok(())
        }
        // A repository that is named by its address has its host as an effect of its own. What git only fetches from is
        // fetched for it, by what it is called.
        ResourceKind::Repository if is_fetched(profile, effect) && is_remote(name) => {
            if !profile.remotes.contains(name) {
                if profile.remotes.len() >= REMOTES_MAX {
                    return Err(format!("it fetches from more than {REMOTES_MAX} repositories"));
                }
                profile.remotes.push(name.clone());
            }
            Ok(())
        }
        ResourceKind::Repository if name.contains("://") || name.starts_with(['/', '.']) => Ok(()),
        ResourceKind::Repository => Err(format!("where the repository `{name}` is, is not in the text")),
        ResourceKind::Recipient
        | ResourceKind::Payee
        | ResourceKind::Table
        | ResourceKind::Column
        | ResourceKind::Container
        | ResourceKind::Cluster
        | ResourceKind::Process
        | ResourceKind::Setting => Err(format!("`{effect}` is beyond folders and hosts")),
    }
}

/// A file or folder that the profile does not have.
fn path(profile: &mut Profile, effect: &Effect, places: &Places<'_>) -> Result<(), String> {
    let resource = &effect.resource;
    // What the text does not say cannot be given: it is refused where it is beyond the profile.
    if resource.is("device") || !resource.is("resolved") {
        return Ok(());
    }
    let path = fixed_part(resource);
    let is_change = !matches!(effect.verb, Verb::Read | Verb::Execute);
    let below = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
    let there = match effect.verb {
        Verb::Read => below(&profile.read) || below(&profile.execute) || below(&profile.write),
        Verb::Execute => below(&profile.execute),
        _ => below(&profile.write),
    };
    // Files of a project that control something are protected unless they are named themselves.
    let is_protected = is_change && effect.verb != Verb::Delete && resource.is("control");
    if there && !is_protected {
        return Ok(());
    }
    // What is removed is an entry of the folder that it is in.
    let path = match (effect.verb, path.parent()) {
        (Verb::Delete, Some(above)) if !resource.is("glob") => above,
        _ => path,
    };
    let is_wide = |path: &Path| {
        path.parent().is_none()
            || places.home.is_some_and(|home| home.starts_with(path))
            || !path.is_absolute()
    };
    // A new file is an entry of its folder too.
    let needed = if is_change && !there { path.parent().unwrap_or(path) } else { path };
    if is_wide(path) || is_wide(needed) {
        return Err(format!("`{effect}` needs all of the home folder or of the file system"));
    }
    let into = match effect.verb {
        Verb::Read => &mut profile.read,
        Verb::Execute => &mut profile.execute,
        _ => &mut profile.write,
    };
    if !into.iter().any(|known| known == path) {
        into.push(path.to_owned());
    }
    Ok(())
}

/// Whether this is git's to fetch, and the profile is git's.
fn is_fetched(profile: &Profile, effect: &Effect) -> bool {
    profile.git == Git::Works && effect.verb == Verb::Read
}

/// The path up to the first pattern in it.
fn fixed_part(resource: &Resource) -> &Path {
    let path = Path::new(&resource.name);
    if !resource.is("glob") {
        return path;
    }
    let is_pattern = |part: &Path| part.to_string_lossy().contains(['*', '?', '[', '{']);
    path.ancestors().find(|part| !is_pattern(part)).unwrap_or(path)
}

fn host(profile: &mut Profile, effect: &Effect) -> Result<(), String> {
    let host = &effect.resource;
    let text = |name: &str| match host.attributes.get(name) {
        Some(Attribute::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    // The supervisor goes there, for git: the command cannot.
    if is_fetched(profile, effect) && matches!(text("scheme"), Some("ssh" | "git")) {
        return Ok(());
    }
    if !host.is("resolved") {
        return Err("the host is not in the text".to_owned());
    }
    if host.is("loopback") {
        return Err(
            "a contained command has a loopback of its own, without the servers of this machine".to_owned()
        );
    }
    if !matches!(text("scheme"), None | Some("http" | "https" | "ws" | "wss")) {
        return Err(format!("`{}` is not reached by HTTP", host.name));
    }
    let port = match host.attributes.get("port") {
        Some(Attribute::Integer(port)) if !WEB_PORTS.contains(port) => format!(":{port}"),
        _ => String::new(),
    };
    let name = match host.name.parse::<Ipv6Addr>() {
        Ok(address) => Host::Address(address.into()).to_string(),
        Err(_) => host.name.clone(),
    };
    let named = format!("{name}{port}");
    HostRule::parse(&named)?;
    reach(profile, [named]);
    Ok(())
}

fn reach(profile: &mut Profile, more: impl IntoIterator<Item = String>) {
    let mut hosts = match std::mem::take(&mut profile.network) {
        Network::Hosts(hosts) => hosts,
        Network::None | Network::Loopback(_) => Vec::new(),
    };
    hosts.extend(more);
    hosts.sort();
    hosts.dedup();
    profile.network = Network::Hosts(hosts);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::built_in_profile;

    const WORKSPACE: &str = "/home/u/project";

    fn places() -> Places<'static> {
        let (workspace, home) = (Path::new(WORKSPACE), Path::new("/home/u"));
        Places { workspace: Some(workspace), home: Some(home), here: Some(workspace) }
    }

    fn project() -> Profile {
        built_in_profile("project").unwrap().at(&places()).unwrap()
    }

    fn allowed(effects: &[Effect]) -> Result<Profile, String> {
        let mut all = Effects::none();
        all.extend(effects.iter().cloned());
        allowing(project(), &all, &places())
    }

    fn on(verb: Verb, path: &str) -> Effect {
        Effect::new(verb, Resource::new(ResourceKind::Path, path).with("resolved", true))
    }

    fn web(verb: Verb, host: &str, port: i64) -> Effect {
        let host = Resource::new(ResourceKind::Host, host);
        Effect::new(verb, host.with("resolved", true).with("scheme", "https").with("port", port))
    }

    #[test]
    fn what_the_profile_has_needs_nothing_more() {
        let build =
            [on(Verb::Write, WORKSPACE), on(Verb::Execute, WORKSPACE), on(Verb::Read, "/usr/include/x.h")];
        assert_eq!(allowed(&build).unwrap(), project());
        assert_eq!(project().network, Network::Loopback(Vec::new()));
    }

    #[test]
    fn a_folder_that_was_permitted_is_added_and_no_other() {
        let copied = allowed(&[on(Verb::Write, "/srv/app"), on(Verb::Read, "/var/log/syslog")]).unwrap();
        let (mut write, mut read) = (project().write, project().read);
        write.push("/srv/app".into());
        read.push("/var/log/syslog".into());
        assert_eq!(copied, Profile { write, read, ..project() });
        let removed = allowed(&[on(Verb::Delete, "/srv/app/x")]).unwrap();
        assert!(removed.write.contains(&"/srv/app".into()), "{removed:?}");
        let pattern =
            Resource::new(ResourceKind::Path, "/srv/app/*.log").with("resolved", true).with("glob", true);
        let removed = allowed(&[Effect::new(Verb::Delete, pattern)]).unwrap();
        assert!(removed.write.contains(&"/srv/app".into()), "{removed:?}");
    }

    #[test]
    fn a_protected_file_is_written_only_where_it_is_named() {
        let path = format!("{WORKSPACE}/.envrc");
        let control = Resource::new(ResourceKind::Path, &path).with("resolved", true).with("control", true);
        let written = allowed(&[Effect::new(Verb::Write, control)]).unwrap();
        assert!(written.write.contains(&path.into()));
    }

    #[test]
    fn everything_is_never_added() {
        for (verb, path) in [
            (Verb::Read, "/"),
            (Verb::Read, "/home"),
            (Verb::Read, "/home/u"),
            (Verb::Write, "/home/u/notes"),
            (Verb::Write, "/x"),
            (Verb::Delete, "/home/u/x"),
        ] {
            assert!(allowed(&[on(verb, path)]).is_err(), "{verb} {path}");
        }
        let pattern =
            Resource::new(ResourceKind::Path, "/home/u/*").with("resolved", true).with("glob", true);
        assert!(allowed(&[Effect::new(Verb::Read, pattern)]).is_err());
    }

    #[test]
    fn hosts_are_reached_where_they_are_named() {
        let fetched =
            allowed(&[web(Verb::Read, "docs.rs", 443), web(Verb::Read, "x.example", 8080)]).unwrap();
        assert_eq!(fetched.network, Network::Hosts(vec!["docs.rs".into(), "x.example:8080".into()]));
        assert_eq!(fetched.level, Level::Namespace);
        let address = allowed(&[web(Verb::Read, "2001:db8::7", 8080)]).unwrap();
        assert_eq!(address.network, Network::Hosts(vec!["[2001:db8::7]:8080".into()]));
        assert!(allowed(&[web(Verb::Read, "*", 443)]).is_err());
        let pushed =
            Effect::new(Verb::Send, Resource::new(ResourceKind::Repository, "https://h.example/x.git"));
        let pushed = allowed(&[pushed, web(Verb::Send, "h.example", 443)]).unwrap();
        assert_eq!(pushed.network, Network::Hosts(vec!["h.example".into()]));
    }

    #[test]
    fn packages_bring_their_registries_and_caches() {
        let package = |name: &str| Effect::new(Verb::Read, Resource::new(ResourceKind::Package, name));
        let installed = allowed(&[package("npm:left-pad"), package("npm:*")]).unwrap();
        assert_eq!(
            installed.network,
            Network::Hosts(vec!["registry.npmjs.org".into(), "registry.yarnpkg.com".into()])
        );
        assert_eq!(installed.write.iter().filter(|path| **path == Path::new(CACHES)).count(), 1);
        assert_eq!(allowed(&[package("nobody:x")]).unwrap().network, project().network);
    }

    #[test]
    fn git_fetches_from_what_is_named_and_pushes_nowhere() {
        let named = |verb, name: &str| Effect::new(verb, Resource::new(ResourceKind::Repository, name));
        let git = |effects: &[Effect]| {
            let mut all = Effects::none();
            all.extend(effects.iter().cloned());
            allowing(Profile { git: Git::Works, ..project() }, &all, &places())
        };
        let ssh = Resource::new(ResourceKind::Host, "h").with("resolved", true).with("scheme", "ssh");
        let pulled = [named(Verb::Read, "origin"), named(Verb::Read, "origin"), on(Verb::Write, WORKSPACE)];
        let pulled = git(&pulled).unwrap();
        assert_eq!((pulled.remotes, pulled.network), (vec!["origin".to_owned()], project().network));
        let by_address =
            git(&[named(Verb::Read, "git@h:x/y"), Effect::new(Verb::Read, ssh.clone())]).unwrap();
        assert_eq!(by_address.remotes, ["git@h:x/y"]);
        assert!(git(&[named(Verb::Send, "origin")]).is_err());
        assert!(git(&[Effect::new(Verb::Send, ssh)]).is_err());
        for none in ["--upload-pack=x", "ext::sh -c x", "", "*"] {
            assert!(git(&[named(Verb::Read, none)]).is_err(), "{none}");
        }
    }

    #[test]
    fn what_is_beyond_folders_and_hosts_is_not_contained() {
        let loopback =
            Resource::new(ResourceKind::Host, "localhost").with("resolved", true).with("loopback", true);
        for effect in [
            Effect::new(Verb::Read, Resource::new(ResourceKind::Container, "web")),
            Effect::new(Verb::Configure, Resource::new(ResourceKind::Setting, "git/user.name")),
            Effect::new(Verb::Send, Resource::new(ResourceKind::Repository, "origin")),
            Effect::new(Verb::Read, loopback),
            Effect::new(Verb::Read, Resource::new(ResourceKind::Host, "*")),
            Effect::new(
                Verb::Read,
                Resource::new(ResourceKind::Host, "h").with("resolved", true).with("scheme", "ssh"),
            ),
            on(Verb::Write, WORKSPACE).with("privileged", true),
        ] {
            assert!(allowed(std::slice::from_ref(&effect)).is_err(), "{effect}");
        }
    }

    #[test]
    fn two_profiles_together_have_what_each_has() {
        let (project, fetch) = (project(), built_in_profile("fetch").unwrap().at(&places()).unwrap());
        let joined = join(project.clone(), fetch.clone());
        assert_eq!(joined.network, fetch.network);
        assert!(project.write.iter().all(|path| joined.write.contains(path)));
        assert_eq!(joined.limits, project.limits);
        let limited =
            Profile { limits: Limits { wall_seconds: Some(1), ..Limits::default() }, ..project.clone() };
        assert_eq!(join(limited, project).limits.wall_seconds, None);
    }
}
