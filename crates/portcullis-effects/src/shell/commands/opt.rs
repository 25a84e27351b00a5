//! What an option is, and what a word or an option does: data.

use portcullis_core::effect::{ResourceKind, Verb};

use super::super::interpreter::Interpreter;
use super::super::word::Word;

/// What happens to one word.
#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    /// Nothing: it is a text, a number, a pattern.
    Text,
    /// It names a path. `-` is none: it stands for an open stream.
    Path(Verb),
    /// It names a path, and all below is meant.
    Tree(Verb),
    /// It names a path or, with a scheme, a host.
    Place(Verb),
    /// It is a URL; without a scheme it is one of HTTP.
    Url(Verb),
    /// It is a host, with a port perhaps.
    Host(Verb),
    /// It names a resource of that kind; the text is put before the name.
    Named(Verb, ResourceKind, &'static str),
    /// It names a place where credentials are kept; the text is put before the name.
    Secret(Verb, &'static str),
    /// It is the name of a package of that ecosystem.
    Package(Verb, &'static str),
    /// It names a repository: a remote's name, a URL, a path.
    Repository(Verb),
    /// It is a path whose content leaves this machine.
    Upload,
    /// After an `@` it is a path whose content leaves this machine; else it is text.
    AtFile,
    /// It is a shell script.
    Script,
    /// It is a program in that language.
    Code(&'static str),
    /// It is SQL.
    Sql,
    /// It names a variable of the environment.
    Environment(Verb),
    /// What this function makes of it.
    By(fn(&Word, &mut Interpreter<'_, '_>)),
    /// All of these.
    All(&'static [Act]),
}

/// What the operands of a program are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operands {
    /// Each the same.
    Each(Act),
    /// Each the same; when there are none it is this word.
    EachOr(Act, &'static str),
    /// The first is something else than the others.
    First(Act, &'static Operands),
    /// Sources, and last the target. With an option [`Role::Target`] all are sources.
    Into { from: Act, to: Act },
}

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shell) enum Takes {
    /// None.
    Nothing,
    /// One, attached or in the next word.
    Value,
    /// One only when it is attached: `-i.bak`, `--color=never`.
    Attached,
    /// Two, the second of which counts: `--slurpfile NAME FILE`.
    Pair,
    /// All words that follow: a command that is run.
    Rest,
}

/// Options that are written alike and mean the same, or mean nothing here.
#[derive(Debug, Clone, Copy)]
pub(in crate::shell) struct Opt {
    /// Their names with dashes, separated by spaces.
    pub(super) names: &'static str,
    /// Whether a value follows.
    pub(super) takes: Takes,
    /// What they change.
    pub(super) role: Role,
}

/// What an option changes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    /// Nothing that is told here.
    Nothing,
    /// Effects on operands have these attributes.
    Marks(&'static [&'static str]),
    /// An act on the value.
    Does(Act),
    /// Acts on given words.
    Also(&'static [(Act, &'static str)]),
    /// The value is the folder that other paths start from.
    Base,
    /// The value is the target; all operands are sources.
    Target,
    /// Operands are something else, also by the value if it has one.
    Operands(Operands, Act),
    /// Nothing is changed, only shown: writing and deleting become reading.
    Dry,
    /// A text about the program is shown, and that is all.
    Help,
}

/// Flags without effect.
pub(in crate::shell) const fn flags(names: &'static str) -> Opt {
    Opt { names, takes: Takes::Nothing, role: Role::Nothing }
}

/// Options with a value, without effect.
pub(in crate::shell) const fn values(names: &'static str) -> Opt {
    Opt { names, takes: Takes::Value, role: Role::Nothing }
}

/// Options with a value only where it is attached, without effect.
pub(in crate::shell) const fn attached(names: &'static str) -> Opt {
    Opt { names, takes: Takes::Attached, role: Role::Nothing }
}

/// A flag that changes something.
pub(super) const fn flag(names: &'static str, role: Role) -> Opt {
    Opt { names, takes: Takes::Nothing, role }
}

/// An option whose value changes something.
pub(super) const fn value(names: &'static str, role: Role) -> Opt {
    Opt { names, takes: Takes::Value, role }
}

/// An option on whose value something is done.
pub(super) const fn does(names: &'static str, act: Act) -> Opt {
    Opt { names, takes: Takes::Value, role: Role::Does(act) }
}

/// An option with two values, on the second of which something is done.
pub(super) const fn pair(names: &'static str, act: Act) -> Opt {
    Opt { names, takes: Takes::Pair, role: Role::Does(act) }
}

/// An option after which all words are a command that is run.
pub(super) const fn runs(names: &'static str) -> Opt {
    Opt { names, takes: Takes::Rest, role: Role::Nothing }
}

/// `-r` and similar.
pub(super) const fn recursive(names: &'static str) -> Opt {
    flag(names, Role::Marks(&["recursive"]))
}

/// `-f` and similar.
pub(super) const fn force(names: &'static str) -> Opt {
    flag(names, Role::Marks(&["force"]))
}

/// The usual way to ask for help, of programs that know subcommands.
pub(super) const HELP: Opt = flag("--help", Role::Help);

pub(super) const READ: Act = Act::Path(Verb::Read);
pub(super) const WRITE: Act = Act::Path(Verb::Write);
pub(super) const DELETE: Act = Act::Path(Verb::Delete);
pub(super) const EXECUTE: Act = Act::Path(Verb::Execute);
/// The working directory, or that which an option names, is read.
pub(super) const READS_HERE: &[(Act, &str)] = &[(READ, ".")];
/// The working directory, or that which an option names, is changed.
pub(super) const WRITES_HERE: &[(Act, &str)] = &[(WRITE, ".")];

/// What the project in the working directory says is run, and changes it: its build, its tests, its scripts.
pub(super) const WORKS_HERE: &[(Act, &str)] = &[(WRITE, "."), (EXECUTE, ".")];

/// The value may name code or commands that are not seen in the text.
pub(super) const DOUBT: Act = Act::By(|_, shell| shell.sink.presume());
/// Settings are read that may name code or commands.
pub(super) const SETTINGS: Act = Act::All(&[READ, DOUBT]);

/// A setting is changed.
pub(super) const fn setting(prefix: &'static str) -> Act {
    Act::Named(Verb::Configure, ResourceKind::Setting, prefix)
}
