//! What a command may do and everything that it starts: the words of profiles. `portcullis-contain` makes them true.

mod permitted;
pub(crate) mod places;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::host::HostRule;

pub use permitted::{allowing, join};
pub use places::{CACHES, GIT, Places, TEMPORARY};

/// The version of the format of profiles.
pub const VERSION: u32 = 1;

/// Most paths of one kind in a profile.
pub(crate) const PATHS_MAX: usize = 256;
/// Most TCP ports of a profile.
pub(crate) const PORTS_MAX: usize = 256;
/// Most hosts of a profile.
pub(crate) const HOSTS_MAX: usize = 256;
/// Most repositories that git fetches from, in a profile.
pub(crate) const REMOTES_MAX: usize = 16;
/// Most names of variables in a profile.
pub(crate) const VARIABLES_MAX: usize = 512;

/// A level of confinement. Each holds what the one before it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing is confined.
    None,
    /// `no_new_privs`, no capabilities, limits, Landlock, seccomp.
    Process,
    /// The same within user, mount, pid, net, ipc and uts namespaces of the command's own.
    Namespace,
}

impl Level {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Process => "process",
            Self::Namespace => "namespace",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "process" => Ok(Self::Process),
            "namespace" => Ok(Self::Namespace),
            _ => Err(format!("`{text}` is no level; give `process` or `namespace`")),
        }
    }
}

/// What a command and everything that it starts may do. What is not named here it may not do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name, for messages and records.
    pub name: String,
    /// The format: 1.
    pub version: u32,
    /// The least level at which it may run; below it the command is not run.
    #[serde(default = "process")]
    pub level: Level,
    /// Files and folders to read, with all that is below.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// Files and folders to read and to execute programs from.
    #[serde(default)]
    pub execute: Vec<PathBuf>,
    /// Folders to read and to write, protected files aside.
    #[serde(default)]
    pub write: Vec<PathBuf>,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// Unix sockets on paths: agents' keys, D-Bus and docker listen on such.
    #[serde(default)]
    pub sockets: Sockets,
    /// What becomes of processes that it leaves running.
    #[serde(default)]
    pub background: Background,
    /// Whether git may change protected files in the course of its work.
    #[serde(default, skip_serializing_if = "Git::is_held")]
    pub git: Git,
    /// Repositories that git may fetch from, as `git fetch` takes them: names of remotes, or addresses. They are fetched
    /// by the supervisor, with the credentials of its user, and the command takes what it needs from there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remotes: Vec<String>,
    /// How much of what it does is looked at.
    #[serde(default)]
    pub watch: Watch,
    /// Names of variables that it sees. One that ends with `*` stands for all that begin so.
    #[serde(default)]
    pub environment: Vec<String>,
    /// How much it may use.
    #[serde(default)]
    pub limits: Limits,
}

fn process() -> Level {
    Level::Process
}

/// The network that a command has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// It cannot even make a socket of the internet's families.
    #[default]
    None,
    /// At the namespace level a loopback of its own, which nothing outside reaches. At the process level TCP with
    /// these ports only, whatever the address.
    Loopback(Vec<u16>),
    /// These hosts through the gate's proxy, besides a loopback of its own: `name`, or `*.name` for all below it, or an
    /// address; with `:port`, or else with 80 and 443. `private:name` may have addresses of private networks. Needs
    /// the namespace level.
    Hosts(Vec<String>),
}

/// The Unix sockets that a command has. Pairs of connected streams it always has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sockets {
    /// It cannot make one.
    #[default]
    None,
    /// Those that it makes itself. Needs the namespace level.
    Own,
    /// The same, and those at these paths or below them.
    Paths(Vec<PathBuf>),
}

impl Sockets {
    /// The paths that are named.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        match self {
            Self::None | Self::Own => &[],
            Self::Paths(paths) => paths,
        }
    }
}

/// What becomes of processes that a command leaves running.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// They are killed when it has ended.
    #[default]
    End,
    /// They go on, as contained as it was: for servers.
    Keep,
}

/// What becomes of protected files that are not as they were when git has done its work.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ProfileGit")]
pub enum Git {
    /// They get their old content again, whoever changed them.
    #[default]
    Held,
    /// Files of the project may become what git had of them before, and the repository's settings may say which branch
    /// follows which. All else is as with `Held`.
    Works,
}

impl Git {
    fn is_held(&self) -> bool {
        *self == Self::Held
    }
}

/// How much of what a command does is looked at while it runs. What it may do is the same.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Watch {
    /// Nothing: nothing is told, and it costs no time.
    Nothing,
    /// Programs that are started, files that are not as they were, and calls that no contained command makes.
    Programs,
    /// What is refused of writing and connecting as well. Each such call costs some microseconds.
    #[default]
    Changes,
    /// What is read as well, and what was not refused.
    All,
}

/// How much a command may use. What is absent is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "ProfileLimits")]
pub struct Limits {
    /// Time that passes, in seconds; then everything is killed.
    pub wall_seconds: Option<u64>,
    /// Processor time of each process, in seconds.
    pub cpu_seconds: Option<u64>,
    /// Processes and threads at once. At the process level they come on top of those that the machine has when the
    /// command starts. It does not bind root.
    pub processes: Option<u64>,
    /// Bytes of each file that is written.
    pub file_bytes: Option<u64>,
    /// Bytes of standard output and standard error together; then everything is killed.
    pub output_bytes: Option<u64>,
    /// Bytes of private memory of each process; more is refused to it.
    pub memory_bytes: Option<u64>,
    /// With `background = "keep"`: time that what was left running goes on, in seconds; then it is killed.
    pub background_seconds: Option<u64>,
}

/// Whether git takes this for a repository and nothing else.
pub(crate) fn is_remote(name: &str) -> bool {
    const BYTES_MAX: usize = 4096;
    let is_plain = !name.is_empty() && name.len() <= BYTES_MAX && !name.contains(|c: char| c.is_control());
    // An option; a transport that is a command; what the text does not say.
    is_plain && !name.starts_with('-') && !name.contains("::") && !name.contains('*')
}

impl Profile {
    /// Holds the profile to its limits.
    ///
    /// # Errors
    /// It is beyond one, or names a path that is not absolute: what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        for (field, paths) in self.paths() {
            if let Some(path) = paths.iter().find(|path| !path.is_absolute()) {
                return Err(format!("`{field}`: `{}` is not absolute", path.display()));
            }
        }
        self.within_limits()
    }

    fn paths(&self) -> [(&'static str, &[PathBuf]); 4] {
        let sockets = self.sockets.paths();
        [("read", &self.read), ("execute", &self.execute), ("write", &self.write), ("sockets", sockets)]
    }

    /// The same, wherever its paths are taken from.
    pub(crate) fn within_limits(&self) -> Result<(), String> {
        for (field, paths) in self.paths() {
            if paths.len() > PATHS_MAX {
                return Err(format!("`{field}` has more than {PATHS_MAX} paths"));
            }
        }
        if let Some(root) = self.write.iter().find(|path| path.has_root() && path.parent().is_none()) {
            return Err(format!("`write`: `{}` is everything; name the folders", root.display()));
        }
        match &self.network {
            Network::Loopback(ports) if ports.len() > PORTS_MAX => {
                return Err(format!("`network` has more than {PORTS_MAX} ports"));
            }
            Network::Hosts(hosts) if hosts.len() > HOSTS_MAX => {
                return Err(format!("`network` has more than {HOSTS_MAX} hosts"));
            }
            Network::Hosts(hosts) => {
                let wrong = hosts.iter().find_map(|host| HostRule::parse(host).err());
                wrong.map_or(Ok(()), |why| Err(format!("`network`: {why}")))?;
            }
            _ => {}
        }
        if self.environment.len() > VARIABLES_MAX {
            return Err(format!("`environment` has more than {VARIABLES_MAX} names"));
        }
        if self.remotes.len() > REMOTES_MAX {
            return Err(format!("`remotes` has more than {REMOTES_MAX} names"));
        }
        if let Some(wrong) = self.remotes.iter().find(|name| !is_remote(name)) {
            return Err(format!(
                "`remotes`: `{wrong}` is no name of a remote, and no address of a repository"
            ));
        }
        if self.level == Level::None {
            return Err("`level` is `process` or `namespace`".to_owned());
        }
        Ok(())
    }

    /// The least level at which it may run: its own, and with named hosts or with sockets that of namespaces. Below it
    /// nothing holds a command to the proxy, since rules for ports know no addresses, nor to some sockets.
    #[must_use]
    pub fn least_level(&self) -> Level {
        match (&self.network, &self.sockets) {
            (Network::Hosts(_), _) | (_, Sockets::Own | Sockets::Paths(_)) => Level::Namespace,
            _ => self.level,
        }
    }

    /// Whether a variable of this name is seen.
    #[must_use]
    pub fn shows(&self, name: &str) -> bool {
        self.environment.iter().any(|shown| match shown.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => shown == name,
        })
    }
}
