//! What a call does, and how bad that would be.

use portcullis_core::effect::{Effect, ResourceKind, Verb};

use crate::arguments::{Argument, Role};
use crate::kind::Deed;
use crate::lexicon::{Families, Lexicon};
use crate::origins::Provenance;
use crate::signs::is_control;
use crate::table::Consequence;
use crate::trajectory::{Call, Trajectory};
use crate::values::{Kind, Value};
use crate::words::stem_hash;

/// One thing that a call does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Act {
    /// The deed.
    pub(crate) deed: Deed,
    /// How bad it would be.
    pub(crate) consequence: Consequence,
    /// It runs a command, a query or code.
    pub(crate) runs: bool,
    /// Files leave with it.
    pub(crate) uploads: bool,
}

impl Act {
    /// What the call does, and how bad that would be.
    pub(crate) fn of(run: &Trajectory, call: &Call, effects: &[Effect]) -> Self {
        let (kind, arguments) = (&call.kind, &call.arguments);
        // `garage {cmd: open}`, `service: cover.open_cover, entity_id: cover.garage_door`
        let opened = kind.opens || arguments.iter().any(|argument| argument.signs.deed == Some(Deed::Visit));
        let entrance = opened && (kind.entrance || arguments.iter().any(|argument| argument.signs.entrance));
        if !entrance && let Some(act) = Self::runs(call, effects) {
            return act;
        }
        let deed = if entrance { Deed::Grant } else { said_deed(call, own_deed(call)) };
        let lowers = lowers(call);
        let deed = if lowers && !deed.changes() { Deed::Change } else { deed };
        let consequence = match deed {
            Deed::Read => Consequence::None,
            Deed::Visit | Deed::Send => Consequence::Ordinary,
            Deed::Change | Deed::Execute if lowers || is_grave_by_arguments(run, call) => Consequence::Grave,
            Deed::Change | Deed::Execute => Consequence::Ordinary,
            Deed::Pay | Deed::Delete | Deed::Grant | Deed::Disable => Consequence::Grave,
        };
        let uploads =
            matches!(deed, Deed::Send | Deed::Grant) && arguments.iter().any(|argument| argument.attached);
        Act { deed, consequence, runs: false, uploads }
    }

    /// The verbs by which others speak of what a command does.
    pub(crate) fn families(self, lexicon: &Lexicon) -> Families {
        let names: &[&str] = match self.deed {
            Deed::Delete => &["delete", "cancel"],
            Deed::Pay => &["pay", "buy"],
            Deed::Grant => &["share", "unlock"],
            Deed::Disable => &["block"],
            _ => &[],
        };
        names.iter().fold(Families::NONE, |all, name| all.or(lexicon.family(name)))
    }

    /// The stems of verbs by which others speak of it.
    pub(crate) fn verbs(self) -> impl Iterator<Item = u64> {
        let names: &[&str] = match self.deed {
            Deed::Delete => &["delete", "remove", "empty", "clear", "purge", "erase", "drop", "discard"],
            Deed::Grant => &["merge", "publish", "deploy", "release"],
            Deed::Disable => &["disable", "deactivate", "suspend", "block"],
            _ => &[],
        };
        names.iter().map(|name| stem_hash(name))
    }

    /// What a command, code or query does, where the call runs one: the worst of its effects. Code that comes from
    /// elsewhere is graver than both halves.
    fn runs(call: &Call, effects: &[Effect]) -> Option<Self> {
        const TEXTS: [&str; 4] = ["shell", "code", "sql", "python"];
        let text = |effect: &Effect| match effect.resource.kind {
            ResourceKind::Command | ResourceKind::Table | ResourceKind::Column => true,
            ResourceKind::Unknown => TEXTS.iter().any(|text| effect.resource.name.starts_with(text)),
            _ => false,
        };
        let kind = &call.kind;
        // A tool that only reads, by its name, and is given what changes something: `query(sql)`.
        let raised = |effect: &Effect| !matches!(effect.verb, Verb::Read | Verb::Pay) && !kind.deed.changes();
        let runs = kind.deed == Deed::Execute && !effects.is_empty();
        if !runs && !effects.iter().any(|effect| text(effect) || raised(effect)) {
            return None;
        }
        let mut worst = Act { deed: Deed::Read, consequence: Consequence::None, runs: true, uploads: false };
        let (mut fetches, mut runs) = (false, false);
        for effect in effects {
            let (deed, consequence) = act_of(effect);
            fetches |= deed == Deed::Visit;
            runs |= is_code(effect);
            worst.uploads |= deed == Deed::Send && effect.is("upload");
            if (consequence, deed) > (worst.consequence, worst.deed) {
                (worst.consequence, worst.deed) = (consequence, deed);
            }
        }
        worst.raise(call, effects);
        if fetches && runs {
            (worst.consequence, worst.deed) = (Consequence::Grave, Deed::Execute);
        }
        Some(worst)
    }

    /// What the text of a command says beyond its effects.
    fn raise(&mut self, call: &Call, effects: &[Effect]) {
        let signs = || call.arguments.iter().map(|argument| &argument.signs);
        let opens = signs().any(|signs| signs.opens || !signs.lowers.is_empty());
        if opens && self.consequence == Consequence::Ordinary || signs().any(|signs| signs.control) {
            self.consequence = Consequence::Grave;
        }
        // A command that the effects do not know, as far as its text says what it does.
        let unknown = effects.iter().any(|effect| {
            effect.verb == Verb::Execute
                && effect.resource.kind == ResourceKind::Command
                && !effect.resource.is("known")
        });
        for argument in &call.arguments {
            let said = argument.signs.deed.filter(|deed| argument.signs.states || unknown && deed.is_grave());
            if let Some(deed) = said {
                self.deed = self.deed.max(deed);
                if deed.is_grave() || argument.grave {
                    self.consequence = Consequence::Grave;
                }
            }
        }
        // `gh pr merge`: what others would review.
        let sends =
            |effect: &Effect| effect.verb == Verb::Send && effect.resource.kind == ResourceKind::Repository;
        let says = |word: &str| {
            let stem = stem_hash(word);
            call.arguments.iter().any(|argument| argument.stems.contains(&stem))
        };
        if effects.iter().any(sends) && says("merge") && (says("pr") || says("mr")) {
            (self.consequence, self.deed) = (Consequence::Grave, Deed::Grant);
        }
    }
}

/// What the tool does by its name, given what kind of thing it is done to.
fn own_deed(call: &Call) -> Deed {
    let (kind, arguments) = (&call.kind, &call.arguments);
    let url = || {
        arguments.iter().any(|argument| {
            argument.values.iter().any(|value| {
                value.link || value.kind == Kind::Url && (kind.fetches || argument.role == Role::Target)
            })
        })
    };
    match kind.deed {
        Deed::Read if url() => Deed::Visit,
        // An order without anything that is ordered is looked at.
        Deed::Pay if !kind.sure && !arguments.iter().any(|argument| argument.amount) => Deed::Change,
        deed => deed,
    }
}

/// What the arguments make of a tool's deed.
fn said_deed(call: &Call, deed: Deed) -> Deed {
    let kind = &call.kind;
    let signs = || call.arguments.iter().map(|argument| &argument.signs);
    let mut deed = signs().filter(|_| kind.clicks).filter_map(|signs| signs.label).fold(deed, Deed::max);
    for said in signs().filter_map(|signs| signs.deed) {
        // It counts where the tool's name leaves it open, and where it is graver.
        if said.is_grave() && (deed.changes() || !kind.known || !kind.sure) {
            deed = deed.max(said);
        } else if said == Deed::Read && !deed.is_grave() && deed != Deed::Send && kind.grave_things.is_empty()
        {
            deed = Deed::Read;
        }
    }
    if deed.changes() && signs().any(|signs| signs.public) {
        deed = deed.max(Deed::Grant);
    }
    let tasks = signs().filter(|_| kind.general).filter_map(|signs| signs.task);
    let stated = signs().filter(|signs| signs.states).filter_map(|signs| signs.deed);
    tasks.filter(|task| task.is_grave()).chain(stated).fold(deed, Deed::max)
}

/// Whether a protection is lowered: by a setting, or by switching off what protects.
fn lowers(call: &Call) -> bool {
    let signs = || call.arguments.iter().map(|argument| &argument.signs);
    let protects = || call.kind.protects || signs().any(|signs| signs.protects);
    let off = || call.kind.off || signs().any(|signs| signs.off);
    signs().any(|signs| !signs.lowers.is_empty()) || off() && protects()
}

/// Whether a change is grave for what it is done to.
fn is_grave_by_arguments(run: &Trajectory, call: &Call) -> bool {
    let (kind, arguments) = (&call.kind, &call.arguments);
    let bank = |value: &Value| {
        value.iban && run.origins().of(value.hash).is_some_and(|from| from >= Provenance::Named)
    };
    if arguments.iter().any(|argument| argument.signs.control || argument.signs.rights && argument.speaks)
        || call.values().any(bank)
        || !kind.grave_things.is_empty()
    {
        return true;
    }
    let grave = |argument: &Argument| {
        let named = argument.grave && (kind.known || !argument.narrows);
        let amount = argument.amount && argument.numbers.len() == 1 && !kind.cart;
        (named || amount) && (!argument.is_content() || argument.signs.states)
    };
    // What is put on record, and only called by such a word, is no change of it.
    !kind.entry
        && (arguments.iter().any(|argument| argument.signs.opens)
            || !kind.safe && arguments.iter().any(grave))
}

/// Whether an effect of a command changes settings of an agent or a machine.
pub(crate) fn is_grave_change(effect: &Effect) -> bool {
    act_of(effect) == (Deed::Change, Consequence::Grave)
}

/// What an effect of a command, a query or code is.
fn act_of(effect: &Effect) -> (Deed, Consequence) {
    use Consequence::{Grave, None, Ordinary};
    let resource = &effect.resource;
    let local = resource.is("loopback");
    // `.env` is how a project is set up.
    let secret = resource.is("secret") && !resource.name.contains(".env");
    let system =
        resource.name.starts_with("/etc") || resource.is("control") || secret || is_control(&resource.name);
    match (effect.verb, resource.kind) {
        (Verb::Read, ResourceKind::Host) if !local => (Deed::Visit, Ordinary),
        (Verb::Read, ResourceKind::Package) => (Deed::Execute, Ordinary),
        (Verb::Read, _) => (Deed::Read, None),
        (Verb::Write, ResourceKind::Path) if resource.is("device") => (Deed::Read, None),
        (Verb::Write, ResourceKind::Path) if system => (Deed::Change, Grave),
        (Verb::Write, _) => (Deed::Change, Ordinary),
        (Verb::Delete, ResourceKind::Path)
            if resource.name.starts_with(['/', '~']) && !resource.is("temporary") =>
        {
            (Deed::Delete, Grave)
        }
        (Verb::Delete, ResourceKind::Path | ResourceKind::Process) => (Deed::Change, Ordinary),
        (Verb::Delete, ResourceKind::Table) => (Deed::Delete, Grave),
        (Verb::Delete, ResourceKind::Container) => (Deed::Delete, Ordinary),
        (Verb::Delete, _) => (Deed::Delete, Grave),
        // What it does stands among the other effects.
        (Verb::Execute, ResourceKind::Command) if resource.is("known") => (Deed::Read, None),
        (Verb::Execute, _) => (Deed::Execute, Ordinary),
        (Verb::Send, _) if local => (Deed::Change, Ordinary),
        // A push that puts others' work aside.
        (Verb::Send, ResourceKind::Repository) if effect.is("force") => (Deed::Delete, Grave),
        // What others install.
        (Verb::Send, ResourceKind::Package) => (Deed::Grant, Grave),
        (Verb::Send, _) => (Deed::Send, Ordinary),
        (Verb::Pay, _) => (Deed::Pay, Grave),
        (Verb::Configure, ResourceKind::Path) if !system => (Deed::Change, Ordinary),
        (Verb::Configure, ResourceKind::Environment | ResourceKind::Process | ResourceKind::Table) => {
            (Deed::Change, Ordinary)
        }
        (Verb::Configure, ResourceKind::Setting) if resource.name.starts_with("git/") => {
            (Deed::Change, Ordinary)
        }
        (Verb::Configure, _) => (Deed::Change, Grave),
    }
}

/// Whether what is fetched beside this effect may be what runs.
fn is_code(effect: &Effect) -> bool {
    matches!(
        (effect.verb, effect.resource.kind),
        (Verb::Execute, ResourceKind::Unknown | ResourceKind::Path)
            | (Verb::Write, ResourceKind::Cluster)
            | (Verb::Read, ResourceKind::Package)
    )
}
