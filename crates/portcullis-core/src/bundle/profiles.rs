//! Reads profiles of contained commands: `[profile.NAME]` of `portcullis.toml`, `[server."NAME".contain]`, and files.
//!
//! ```toml
//! [profile.build]
//! extends = "project"                  # a built-in one, or another of this bundle; without it nothing is granted
//! read = ["/srv/data"]                 # `{workspace}`, `{home}` and `~`, `{tmp}`, `{git}`, `{caches}`
//! network = { hosts = ["docs.rs"] }    # or "none", or { loopback = [8080] }
//! limits = { wall_seconds = 600 }
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::diagnostic::Diagnostic;
use super::toml_table::{Field, File, Table};
use crate::host::HostRule;
use crate::limits::NAME_BYTES_MAX;
use crate::profile::places::{STARTS, Start};
use crate::profile::{
    Background, Git, HOSTS_MAX, Level, Limits, Network, PATHS_MAX, PORTS_MAX, Profile, Sockets,
    VARIABLES_MAX, VERSION, Watch,
};

/// Longest path of a profile, in bytes.
const PATH_BYTES_MAX: usize = 4096;
/// Profiles that extend each other, from the first to the last.
const EXTENDS_MAX: usize = 16;
/// Where the built-in ones are.
const BUILT_IN_FILE: &str = "profiles.toml";
/// What is in it.
pub const BUILT_IN_PROFILES: &str = include_str!("profiles.toml");
static BUILT_IN: LazyLock<BTreeMap<String, Profile>> = LazyLock::new(built_in);

/// Package registries by the name of the ecosystem in `package npm:left-pad`.
const REGISTRIES: &[(&str, &[&str])] = &[
    ("cargo", &["crates.io", "index.crates.io", "static.crates.io"]),
    ("npm", &["registry.npmjs.org", "registry.yarnpkg.com"]),
    ("pypi", &["pypi.org", "files.pythonhosted.org"]),
    ("gem", &["rubygems.org", "index.rubygems.org"]),
    ("golang", &["proxy.golang.org", "sum.golang.org"]),
    ("maven", &["repo.maven.apache.org", "repo1.maven.org"]),
    ("nuget", &["api.nuget.org"]),
    ("composer", &["repo.packagist.org", "github.com", "codeload.github.com"]),
];

/// The hosts that packages of an ecosystem come from.
#[must_use]
pub fn registries(ecosystem: &str) -> &'static [&'static str] {
    REGISTRIES.iter().find(|(name, _)| *name == ecosystem).map_or(&[], |(_, hosts)| hosts)
}

/// The built-in profile of that name: `read-only`, `project`, `git` or `fetch`. Its paths are not [placed](Profile::at).
#[must_use]
pub fn built_in_profile(name: &str) -> Option<Profile> {
    BUILT_IN.get(name).cloned()
}

/// Reads a profile from a file of its own, with `name` and `version`. Its paths are not [placed](Profile::at).
///
/// # Errors
/// It is no profile, of another version, or beyond a limit: all that is wrong, with places in `file`.
pub fn read_profile(file: &str, text: &str) -> Result<Profile, Vec<Diagnostic>> {
    let file = File::new(file, text);
    let parsed = file.parse();
    let profile = parsed.as_ref().and_then(|parsed| {
        let mut table = Table::new(&file, "profile", 0..0, parsed.get_ref());
        let name = super::placed::name_field(&file, &mut table, "name");
        match table.integer("version", 1) {
            Some(VERSION) => {}
            Some(other) => {
                file.report(file.at(0..0, format!("version {other}; this program knows {VERSION}")));
            }
            None => table.missing("version"),
        }
        let name = name.map_or_else(String::new, |name| name.value);
        let stated = Stated::read(&file, table);
        flat_one(&file, &name, &stated, &BTreeMap::new())
    });
    drop(parsed);
    match (profile, file.finish()) {
        (Some(profile), wrong) if wrong.is_empty() => Ok(profile),
        (_, wrong) => Err(wrong),
    }
}

fn built_in() -> BTreeMap<String, Profile> {
    let file = File::new(BUILT_IN_FILE, BUILT_IN_PROFILES);
    let parsed = file.parse();
    let profiles = parsed.as_ref().map(|parsed| {
        let mut table = Table::new(&file, "file", 0..0, parsed.get_ref());
        let stated = table.named_tables("profile").into_iter();
        let stated = stated.map(|(name, table)| (name.value, Stated::read(&file, table))).collect();
        flatten(&file, &stated, &BTreeMap::new())
    });
    profiles.unwrap_or_default()
}

/// A profile as it is written: what it does not say is that of the one it extends.
#[derive(Debug, Clone)]
pub(super) struct Stated {
    /// Where it is.
    pub(super) span: Range<usize>,
    pub(super) extends: Option<Field<String>>,
    level: Option<Level>,
    read: Vec<PathBuf>,
    execute: Vec<PathBuf>,
    write: Vec<PathBuf>,
    network: Option<Network>,
    sockets: Option<Sockets>,
    background: Option<Background>,
    git: Option<Git>,
    remotes: Vec<String>,
    watch: Option<Watch>,
    environment: Vec<String>,
    limits: Limits,
}

impl Stated {
    /// Reads the table to its end.
    pub(super) fn read(file: &File<'_>, mut table: Table<'_, '_>) -> Self {
        let limits = |mut table: Table<'_, '_>| {
            let limits = Limits {
                wall_seconds: table.large("wall_seconds"),
                cpu_seconds: table.large("cpu_seconds"),
                processes: table.large("processes"),
                file_bytes: table.large("file_bytes"),
                memory_bytes: table.large("memory_bytes"),
                output_bytes: table.large("output_bytes"),
                background_seconds: table.large("background_seconds"),
            };
            table.finish();
            limits
        };
        let stated = Self {
            span: table.span.clone(),
            extends: table.string("extends"),
            level: table.word("level", &[("process", Level::Process), ("namespace", Level::Namespace)]),
            read: paths(file, &mut table, "read"),
            execute: paths(file, &mut table, "execute"),
            write: paths(file, &mut table, "write"),
            network: network(file, &mut table),
            sockets: sockets(file, &mut table),
            background: table.word("background", &[("end", Background::End), ("keep", Background::Keep)]),
            git: table.word("git", &[("held", Git::Held), ("works", Git::Works)]),
            remotes: table
                .strings("remotes")
                .unwrap_or_default()
                .into_iter()
                .map(|name| name.value)
                .collect(),
            watch: table.word(
                "watch",
                &[
                    ("nothing", Watch::Nothing),
                    ("programs", Watch::Programs),
                    ("changes", Watch::Changes),
                    ("all", Watch::All),
                ],
            ),
            environment: environment(file, &mut table),
            limits: table.table("limits").map(limits).unwrap_or_default(),
        };
        table.finish();
        stated
    }

    /// With what it extends.
    fn over(&self, name: &str, below: Option<&Profile>) -> Profile {
        let list = |own: &[PathBuf], below: Option<&Vec<PathBuf>>| -> Vec<PathBuf> {
            let mut all = below.cloned().unwrap_or_default();
            all.extend(own.iter().filter(|path| !below.is_some_and(|below| below.contains(path))).cloned());
            all
        };
        let mut environment = below.map(|below| below.environment.clone()).unwrap_or_default();
        environment.extend(self.environment.iter().cloned());
        let under = below.map(|below| below.limits).unwrap_or_default();
        let own = self.limits;
        Profile {
            name: name.to_owned(),
            version: VERSION,
            level: self.level.or(below.map(|below| below.level)).unwrap_or(Level::Process),
            read: list(&self.read, below.map(|below| &below.read)),
            execute: list(&self.execute, below.map(|below| &below.execute)),
            write: list(&self.write, below.map(|below| &below.write)),
            network: match (&self.network, below.map(|below| &below.network)) {
                (Some(Network::Hosts(own)), Some(Network::Hosts(below))) => {
                    let more = own.iter().filter(|host| !below.contains(host));
                    Network::Hosts(below.iter().chain(more).cloned().collect())
                }
                (Some(own), _) => own.clone(),
                (None, below) => below.cloned().unwrap_or_default(),
            },
            sockets: match (&self.sockets, below.map(|below| &below.sockets)) {
                (Some(Sockets::Paths(own)), Some(below @ Sockets::Paths(_))) => {
                    Sockets::Paths(list(own, Some(&below.paths().to_vec())))
                }
                (Some(own), _) => own.clone(),
                (None, below) => below.cloned().unwrap_or_default(),
            },
            background: self.background.or(below.map(|below| below.background)).unwrap_or_default(),
            git: self.git.or(below.map(|below| below.git)).unwrap_or_default(),
            remotes: {
                let below = below.map(|below| below.remotes.as_slice()).unwrap_or_default();
                let more = self.remotes.iter().filter(|name| !below.contains(name));
                below.iter().chain(more).cloned().collect()
            },
            watch: self.watch.or(below.map(|below| below.watch)).unwrap_or_default(),
            environment,
            limits: Limits {
                wall_seconds: own.wall_seconds.or(under.wall_seconds),
                cpu_seconds: own.cpu_seconds.or(under.cpu_seconds),
                processes: own.processes.or(under.processes),
                file_bytes: own.file_bytes.or(under.file_bytes),
                memory_bytes: own.memory_bytes.or(under.memory_bytes),
                output_bytes: own.output_bytes.or(under.output_bytes),
                background_seconds: own.background_seconds.or(under.background_seconds),
            },
        }
    }
}

/// Profiles with what they extend, which is one of them or a built-in one. What is wrong is reported.
pub(super) fn flat(file: &File<'_>, stated: &BTreeMap<String, Stated>) -> BTreeMap<String, Profile> {
    flatten(file, stated, &BUILT_IN)
}

/// A profile that is none of these, with what it extends. What is wrong is reported.
pub(super) fn flat_one(
    file: &File<'_>,
    name: &str,
    profile: &Stated,
    stated: &BTreeMap<String, Stated>,
) -> Option<Profile> {
    Chain { file, stated, built_in: &BUILT_IN }.flat(name, profile)
}

fn flatten(
    file: &File<'_>,
    stated: &BTreeMap<String, Stated>,
    built_in: &BTreeMap<String, Profile>,
) -> BTreeMap<String, Profile> {
    let chain = Chain { file, stated, built_in };
    let flat = |(name, profile): (&String, &Stated)| Some((name.clone(), chain.flat(name, profile)?));
    stated.iter().filter_map(flat).collect()
}

/// What profiles may extend.
struct Chain<'c, 'f> {
    file: &'c File<'f>,
    stated: &'c BTreeMap<String, Stated>,
    built_in: &'c BTreeMap<String, Profile>,
}

impl Chain<'_, '_> {
    /// A profile with what it extends; `None` if that is wrong, which is reported.
    fn flat(&self, name: &str, profile: &Stated) -> Option<Profile> {
        // From the profile down to what it rests on.
        let (mut chain, mut flat) = (vec![(name, profile)], None);
        while let Some((at, extends)) =
            chain.last().and_then(|(at, last)| Some((*at, last.extends.as_ref()?)))
        {
            let wanted = extends.value.as_str();
            // A profile that has a built-in one's name can only mean that one.
            let means_built_in = wanted == at && self.built_in.contains_key(wanted);
            let next = self.stated.get_key_value(wanted).filter(|_| !means_built_in);
            match next {
                Some((next, below))
                    if chain.len() < EXTENDS_MAX && chain.iter().all(|(on, _)| on != next) =>
                {
                    chain.push((next, below));
                }
                Some(_) => {
                    self.report_circle(&chain, extends);
                    return None;
                }
                None => {
                    flat = Some(self.built_in.get(wanted).cloned().or_else(|| self.report_unknown(extends))?);
                    break;
                }
            }
        }
        for (_, profile) in chain.iter().rev() {
            flat = Some(profile.over(name, flat.as_ref()));
        }
        let flat = flat?;
        if let Err(problem) = flat.within_limits() {
            let message = format!("`{name}`: {problem}, with what it extends");
            self.file.report(self.file.at(profile.span.clone(), message));
        }
        Some(flat)
    }

    fn report_circle(&self, chain: &[(&str, &Stated)], extends: &Field<String>) {
        let names: Vec<&str> = chain.iter().map(|(name, _)| *name).chain([extends.value.as_str()]).collect();
        let message = format!("profiles extend each other in a circle, or too many: {}", names.join(", "));
        let diagnostic = self.file.at(extends.span.clone(), message);
        self.file.report(diagnostic.help("let one of them stand on its own"));
    }

    fn report_unknown(&self, extends: &Field<String>) -> Option<Profile> {
        let known = self.stated.keys().chain(self.built_in.keys()).map(String::as_str);
        let diagnostic =
            self.file.at(extends.span.clone(), format!("there is no profile `{}`", extends.value));
        self.file.report(diagnostic.did_you_mean(&extends.value, known));
        None
    }
}

fn paths(file: &File<'_>, table: &mut Table<'_, '_>, field: &'static str) -> Vec<PathBuf> {
    let fields = table.strings(field).unwrap_or_default();
    if let Some(first) = fields.get(PATHS_MAX) {
        file.report(file.at(first.span.clone(), format!("`{field}` has more than {PATHS_MAX} paths")));
    }
    let mut all = Vec::new();
    for Field { value, span } in fields.into_iter().take(PATHS_MAX) {
        let path = Path::new(&value);
        let problem = match Start::of(path) {
            _ if value.is_empty() || value.len() > PATH_BYTES_MAX || value.contains('\0') => {
                Some(format!("a path has 1 to {PATH_BYTES_MAX} bytes"))
            }
            Err(problem) => {
                let first = value.split('/').next().unwrap_or_default();
                let diagnostic = file.at(span, format!("`{field}`: {problem}"));
                let is_known = STARTS.contains(&first);
                file.report(if is_known { diagnostic } else { diagnostic.did_you_mean(first, STARTS) });
                continue;
            }
            Ok(None) if field == "write" && path.parent().is_none() => {
                Some(format!("`{value}` is everything; name the folders"))
            }
            Ok(_) => None,
        };
        match problem {
            Some(problem) => file.report(file.at(span, format!("`{field}`: {problem}"))),
            None => all.push(value.into()),
        }
    }
    all
}

/// `"none"`, `{ loopback = [PORTS] }` or `{ hosts = [HOSTS] }`.
fn network(file: &File<'_>, table: &mut Table<'_, '_>) -> Option<Network> {
    if !table.is_table("network") {
        return table.word("network", &[("none", ())]).map(|()| Network::None);
    }
    let mut table = table.table("network")?;
    let span = table.span.clone();
    let (ports, hosts) = (table.json("loopback"), table.strings("hosts"));
    table.finish();
    match (ports, hosts) {
        (Some(ports), None) => {
            let numbers =
                ports.value.as_array().map(|all| all.iter().map(port).collect::<Option<Vec<u16>>>());
            match numbers {
                Some(Some(numbers)) if numbers.len() <= PORTS_MAX => Some(Network::Loopback(numbers)),
                _ => {
                    let message =
                        format!("`loopback` is a list of at most {PORTS_MAX} ports, from 1 to 65535");
                    file.report(file.at(ports.span, message));
                    None
                }
            }
        }
        (None, Some(hosts)) => {
            if let Some(first) = hosts.get(HOSTS_MAX) {
                file.report(file.at(first.span.clone(), format!("`hosts` has more than {HOSTS_MAX} names")));
            }
            for Field { value, span } in &hosts {
                if let Err(wrong) = HostRule::parse(value) {
                    file.report(file.at(span.clone(), wrong));
                }
            }
            // What was reported is left out, so that it is not reported again of the whole profile.
            let named = hosts.into_iter().take(HOSTS_MAX).map(|host| host.value);
            Some(Network::Hosts(named.filter(|host| HostRule::parse(host).is_ok()).collect()))
        }
        _ => {
            file.report(
                file.at(span, "`network` is \"none\", { loopback = [PORTS] } or { hosts = [NAMES] }"),
            );
            None
        }
    }
}

/// `"none"`, `"own"` or `{ paths = [PATHS] }`.
fn sockets(file: &File<'_>, table: &mut Table<'_, '_>) -> Option<Sockets> {
    if !table.is_table("sockets") {
        let is_own = table.word("sockets", &[("none", false), ("own", true)])?;
        return Some(if is_own { Sockets::Own } else { Sockets::None });
    }
    let mut table = table.table("sockets")?;
    let paths = paths(file, &mut table, "paths");
    if paths.is_empty() {
        let message = "`sockets` is \"none\", \"own\" or { paths = [PATHS] }";
        file.report(file.at(table.span.clone(), message));
    }
    table.finish();
    Some(Sockets::Paths(paths))
}

fn port(value: &serde_json::Value) -> Option<u16> {
    value.as_u64().and_then(|number| u16::try_from(number).ok()).filter(|port| *port > 0)
}

fn environment(file: &File<'_>, table: &mut Table<'_, '_>) -> Vec<String> {
    let names = table.strings("environment").unwrap_or_default();
    if let Some(first) = names.get(VARIABLES_MAX) {
        file.report(
            file.at(first.span.clone(), format!("`environment` has more than {VARIABLES_MAX} names")),
        );
    }
    let mut all = Vec::new();
    for Field { value, span } in names.into_iter().take(VARIABLES_MAX) {
        let name = value.strip_suffix('*').unwrap_or(&value);
        if value.is_empty() || name.contains(['=', '*', '\0']) || value.len() > NAME_BYTES_MAX {
            let message = format!("`{value}` is no name of a variable; `*` stands only at its end");
            file.report(file.at(span, message));
        } else {
            all.push(value);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_profiles_are_read_without_a_mistake() {
        let file = File::new(BUILT_IN_FILE, BUILT_IN_PROFILES);
        let parsed = file.parse().unwrap();
        let mut table = Table::new(&file, "file", 0..0, parsed.get_ref());
        let stated = table.named_tables("profile").into_iter();
        let stated = stated.map(|(name, table)| (name.value, Stated::read(&file, table))).collect();
        flatten(&file, &stated, &BTreeMap::new());
        table.finish();
        drop(parsed);
        assert_eq!(file.finish(), []);
        assert_eq!(BUILT_IN.keys().collect::<Vec<_>>(), ["fetch", "git", "project", "read-only"]);
        assert!(built_in_profile("read-only").unwrap().write.is_empty());
        assert_eq!(built_in_profile("project").unwrap().name, "project");
    }

    #[test]
    fn fetching_reaches_every_registry() {
        let Network::Hosts(hosts) = built_in_profile("fetch").unwrap().network else {
            panic!("it names hosts")
        };
        for (ecosystem, needed) in REGISTRIES {
            for host in *needed {
                assert!(hosts.iter().any(|known| known == host), "{ecosystem}: {host}");
            }
        }
    }
}
