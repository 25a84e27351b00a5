//! Effects: what an action would touch, independent of how its arguments spell it.
//!
//! `rm -r -f ../x`, `find .. -name x -delete` and `{"path": "../x", "recursive": true}` are three spellings of one
//! effect: *delete* the path `/home/u/x`. Policies speak of effects, so that a new spelling is not a way round
//! them. This module has the words; parsers turn arguments into them ([`EffectReader`]).
//!
//! Reading effects is pure: no file system, name service or clock is asked. A path is what its text says after
//! normalisation; where a link leads is not known here. Whatever a parser does not understand becomes an effect
//! on [`ResourceKind::Unknown`], never silence.

mod reader;

use std::collections::BTreeMap;
use std::fmt;

pub use reader::{EffectReader, LazyEffects};
use serde::{Deserialize, Serialize};

use crate::finding::Span;
use crate::limits::EFFECTS_MAX;
use crate::principal::Attribute;

/// What is done to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Its content becomes known to the agent.
    Read,
    /// It is made or changed.
    Write,
    /// It is removed, or emptied.
    Delete,
    /// It runs.
    Execute,
    /// Something leaves for it.
    Send,
    /// Money goes to it.
    Pay,
    /// Its permissions, settings or state are changed.
    Configure,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Write, Self::Delete, Self::Execute, Self::Send, Self::Pay, Self::Configure];

    /// The word in policies and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Execute => "execute",
            Self::Send => "send",
            Self::Pay => "pay",
            Self::Configure => "configure",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What sort of thing is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceKind {
    /// A file or folder, named by its absolute normalised path where the working directory is known.
    Path,
    /// A machine on a network, named by its canonical host name or address.
    Host,
    /// Someone who receives a message, named by address.
    Recipient,
    /// Someone who receives money.
    Payee,
    /// A table of a database: `table`, or `database.table`.
    Table,
    /// A column: the table's name, a dot, the column; `*` where all are meant and the table is not catalogued.
    Column,
    /// A program that runs, named without its folder.
    Command,
    /// A software package: `npm:left-pad`.
    Package,
    /// A version-control remote, by name or URL.
    Repository,
    /// A container or image.
    Container,
    /// Something in a cluster: `pods/web`.
    Cluster,
    /// A running process or service.
    Process,
    /// A setting that is not a file: a service, a cron table, a kernel parameter, an account.
    Setting,
    /// An environment variable; `*` for all.
    Environment,
    /// A tool that agent code calls by name.
    Tool,
    /// Something that people do, as the bundle's `activities/` describe it: `book-hotel`.
    Activity,
    /// Something that could not be read; the name says which language or wrapper.
    Unknown,
}

impl ResourceKind {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Path,
        Self::Host,
        Self::Recipient,
        Self::Payee,
        Self::Table,
        Self::Column,
        Self::Command,
        Self::Package,
        Self::Repository,
        Self::Container,
        Self::Cluster,
        Self::Process,
        Self::Setting,
        Self::Environment,
        Self::Tool,
        Self::Activity,
        Self::Unknown,
    ];

    /// The word in records and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Host => "host",
            Self::Recipient => "recipient",
            Self::Payee => "payee",
            Self::Table => "table",
            Self::Column => "column",
            Self::Command => "command",
            Self::Package => "package",
            Self::Repository => "repository",
            Self::Container => "container",
            Self::Cluster => "cluster",
            Self::Process => "process",
            Self::Setting => "setting",
            Self::Environment => "environment",
            Self::Tool => "tool",
            Self::Activity => "activity",
            Self::Unknown => "unknown",
        }
    }

    /// Whether it is outside of the machine and its databases, so that what reaches it has left.
    pub const fn is_elsewhere(self) -> bool {
        matches!(
            self,
            Self::Host | Self::Recipient | Self::Payee | Self::Repository | Self::Container | Self::Cluster
        )
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Properties by name. Which there are, and their types, is in [`RESOURCE_ATTRIBUTES`] and
/// [`EFFECT_ATTRIBUTES`]: the schema that policies are validated against is made from these tables.
pub type Attributes = BTreeMap<&'static str, Attribute>;

/// The type of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeType {
    /// True or false.
    Boolean,
    /// A whole number.
    Integer,
    /// A number with up to four decimal places.
    Decimal,
    /// Text.
    Text,
}

/// An attribute that parsers may set.
#[derive(Debug, Clone, Copy)]
pub struct AttributeMeta {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub type_: AttributeType,
    /// Whether it is set on every resource of the kind; the others may be absent.
    pub always: bool,
    /// What it means.
    pub meaning: &'static str,
}

const fn always(name: &'static str, type_: AttributeType, meaning: &'static str) -> AttributeMeta {
    AttributeMeta { name, type_, always: true, meaning }
}

const fn maybe(name: &'static str, type_: AttributeType, meaning: &'static str) -> AttributeMeta {
    AttributeMeta { name, type_, always: false, meaning }
}

use AttributeType::{Boolean, Decimal, Integer, Text};

/// Attributes of resources, by kind. Booleans that are not set are false.
pub const RESOURCE_ATTRIBUTES: &[(ResourceKind, &[AttributeMeta])] = &[
    (
        ResourceKind::Path,
        &[
            always("inside", Boolean, "is the workspace of the run, or inside it"),
            always(
                "secret",
                Boolean,
                "matches the bundle's `secrets` patterns, which mark where credentials are kept",
            ),
            always(
                "control",
                Boolean,
                "runs automatically later, or controls what an agent may do: git hooks, settings of editors and agents",
            ),
            always("gate", Boolean, "belongs to the gate itself: its tokens, keys or store"),
            always("temporary", Boolean, "is in a folder for temporary files"),
            always("device", Boolean, "is a harmless device such as /dev/null"),
            always("glob", Boolean, "is a pattern for several paths"),
            always(
                "resolved",
                Boolean,
                "is fully known; false if it contains a variable or the output of a command",
            ),
        ],
    ),
    (
        ResourceKind::Host,
        &[
            always("loopback", Boolean, "is this machine"),
            always("private", Boolean, "is an address of a private or link-local network"),
            always("metadata", Boolean, "is a cloud metadata service"),
            always("address", Boolean, "is an IP address, however it was written"),
            always("userinfo", Boolean, "the URL carried a name or password"),
            always("resolved", Boolean, "is fully known; false if it contains a variable"),
            maybe("scheme", Text, "the scheme of the URL"),
            maybe("port", Integer, "the port, explicit or by scheme"),
            maybe("path", Text, "the path of the URL"),
        ],
    ),
    (ResourceKind::Recipient, &[maybe("domain", Text, "the part after the @, in canonical form")]),
    (
        ResourceKind::Payee,
        &[maybe("amount", Decimal, "how much"), maybe("currency", Text, "ISO 4217 code, upper case")],
    ),
    (ResourceKind::Table, &[always("catalogued", Boolean, "the bundle's `tables/` list it")]),
    (
        ResourceKind::Column,
        &[
            always("catalogued", Boolean, "the bundle's `tables/` list it"),
            always("table", Text, "the table's name"),
        ],
    ),
    (
        ResourceKind::Command,
        &[
            always(
                "known",
                Boolean,
                "its effects are known; the action's other effects are the complete list",
            ),
            always(
                "by_path",
                Boolean,
                "the call names the program or script by path, which is a separate effect",
            ),
            maybe("subcommand", Text, "its subcommand: `push` in `git push`"),
        ],
    ),
    (ResourceKind::Package, &[]),
    (ResourceKind::Repository, &[]),
    (ResourceKind::Container, &[]),
    (ResourceKind::Cluster, &[]),
    (ResourceKind::Process, &[]),
    (
        ResourceKind::Setting,
        &[always("secret", Boolean, "holds credentials: a password store, a keyring, a clipboard")],
    ),
    (ResourceKind::Environment, &[always("secret", Boolean, "its name is that of a credential")]),
    (ResourceKind::Tool, &[]),
    (ResourceKind::Activity, &[]),
    (ResourceKind::Unknown, &[maybe("why", Text, "the part that could not be read")]),
];

/// Attributes of effects, whatever the resource. Booleans that are not set are false.
pub const EFFECT_ATTRIBUTES: &[AttributeMeta] = &[
    always("recursive", Boolean, "with everything below"),
    always("unbounded", Boolean, "a delete or update without a limiting condition"),
    always("force", Boolean, "with an option that overrides protections"),
    always("privileged", Boolean, "as another user, by sudo and the like"),
    always("remote", Boolean, "on another machine"),
    always("upload", Boolean, "the content of a file is sent with it"),
    always("history", Boolean, "rewrites or discards recorded history"),
    always("sweeps_gate", Boolean, "with everything below, including the gate's own tokens and keys"),
];

/// A thing that is touched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Resource {
    /// What sort of thing.
    pub kind: ResourceKind,
    /// Its canonical name within the kind.
    pub name: String,
    /// Properties, from [`RESOURCE_ATTRIBUTES`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: Attributes,
}

impl Resource {
    /// A resource without attributes.
    pub fn new(kind: ResourceKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), attributes: Attributes::new() }
    }

    /// With one attribute more.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Attribute>) -> Self {
        self.attributes.insert(name, value.into());
        self
    }

    /// Whether a boolean attribute is set.
    pub fn is(&self, name: &str) -> bool {
        matches!(self.attributes.get(name), Some(Attribute::Boolean(true)))
    }
}

impl fmt::Display for Resource {
    /// `path /etc/passwd`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// One thing that an action would do to one resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Effect {
    /// What is done.
    pub verb: Verb,
    /// To what.
    pub resource: Resource,
    /// How, from [`EFFECT_ATTRIBUTES`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: Attributes,
    /// The stretch of the arguments that says so. Inside nested text (`sh -c '…'`) the whole of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

impl Effect {
    /// An effect without attributes and place.
    pub fn new(verb: Verb, resource: Resource) -> Self {
        Self { verb, resource, attributes: Attributes::new(), span: None }
    }

    /// With one attribute more.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Attribute>) -> Self {
        self.attributes.insert(name, value.into());
        self
    }

    /// Whether a boolean attribute is set.
    pub fn is(&self, name: &str) -> bool {
        matches!(self.attributes.get(name), Some(Attribute::Boolean(true)))
    }
}

impl Effect {
    /// Whether it can be judged by its text alone: what is touched is known completely, here, and nothing runs whose own
    /// effects are not in the text. A script, a build, a package or a container may do anything.
    pub fn is_seen(&self) -> bool {
        let resource = &self.resource;
        let is_named = match resource.kind {
            // Packages bring programs that run when they are installed, and fetching one mostly installs it.
            ResourceKind::Unknown | ResourceKind::Package => false,
            ResourceKind::Path | ResourceKind::Host => resource.is("resolved"),
            ResourceKind::Command => resource.is("known"),
            ResourceKind::Table | ResourceKind::Column | ResourceKind::Environment => true,
            _ => !resource.name.contains('*'),
        };
        let runs_unseen = self.verb == Verb::Execute
            && !matches!(resource.kind, ResourceKind::Command | ResourceKind::Activity);
        is_named && !runs_unseen && !self.is("remote")
    }
}

impl fmt::Display for Effect {
    /// `delete path /etc/passwd`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)
    }
}

/// Everything that an action would touch, in the order of the text, without repetitions of the same effect. At most
/// [`EFFECTS_MAX`]; any further effects collapse into one effect on [`ResourceKind::Unknown`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Effects {
    list: Vec<Effect>,
    /// An unknown part of the text was assumed to be harmless.
    #[serde(skip)]
    presumed: bool,
}

impl Effects {
    /// Nothing is touched.
    pub const fn none() -> Self {
        Self { list: Vec::new(), presumed: false }
    }

    /// Adds an effect. One that differs from an earlier one only in its place is left out.
    pub fn push(&mut self, effect: Effect) {
        let same = |other: &Effect| {
            other.verb == effect.verb
                && other.resource == effect.resource
                && other.attributes == effect.attributes
        };
        if self.is_full() || self.list.iter().any(same) {
            return;
        }
        if self.list.len() + 1 == EFFECTS_MAX {
            let why = format!("more than {EFFECTS_MAX} effects");
            let rest = Resource::new(ResourceKind::Unknown, "effects").with("why", why);
            self.list.push(Effect { span: effect.span, ..Effect::new(Verb::Execute, rest) });
        } else {
            self.list.push(effect);
        }
    }

    /// Notes that a part of the text, such as an unknown option, was assumed to be harmless.
    pub const fn presume(&mut self) {
        self.presumed = true;
    }

    /// Adds those of another reading of the same action, with what was presumed there.
    pub fn absorb(&mut self, other: Self) {
        self.presumed |= other.presumed;
        self.extend(other.list);
    }

    /// Changes each of them; how many there are and what was presumed stays.
    #[must_use]
    pub fn map(self, change: impl FnMut(Effect) -> Effect) -> Self {
        Self { list: self.list.into_iter().map(change).collect(), ..self }
    }

    /// Whether all of them can be judged by the text: see [`Effect::is_seen`]; and no part of it was only presumed to do
    /// nothing.
    pub fn are_seen(&self) -> bool {
        !self.presumed && self.list.iter().all(Effect::is_seen)
    }

    /// Whether the limit is reached, so that reading further has no effect.
    pub fn is_full(&self) -> bool {
        self.list.len() >= EFFECTS_MAX
    }
}

impl std::ops::Deref for Effects {
    type Target = [Effect];

    fn deref(&self) -> &[Effect] {
        &self.list
    }
}

impl Extend<Effect> for Effects {
    fn extend<T: IntoIterator<Item = Effect>>(&mut self, effects: T) {
        for effect in effects {
            self.push(effect);
        }
    }
}
