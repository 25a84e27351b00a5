//! What a call does, and how bad that would be.

use portcullis_core::effect::{Effect, ResourceKind, Verb};

use crate::arguments::Role;
use crate::kind::Deed;
use crate::origins::Provenance;
use crate::table::Consequence;
use crate::trajectory::{Call, Trajectory};
use crate::values::Kind;

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
        let kind = &call.kind;
        let arguments = &call.arguments;
        let url = arguments.iter().any(|argument| {
            argument.values.iter().any(|value| {
                value.link || value.kind == Kind::Url && (kind.fetches || argument.role == Role::Target)
            })
        });
        let deed = match kind.deed {
            Deed::Read if url => Deed::Visit,
            // An order without anything that is ordered is looked at.
            Deed::Pay if !kind.sure && !arguments.iter().any(|argument| argument.amount) => Deed::Change,
            deed => deed,
        };
        if let Some(act) = Self::runs(call, effects) {
            return act;
        }
        let deed =
            arguments.iter().filter_map(|argument| argument.deed).fold(deed, |deed, said| match said {
                // What an argument says is done counts where the tool's name leaves it open, and where it is graver.
                said if said.is_grave() && (deed.changes() || !kind.known) => deed.max(said),
                Deed::Read if !deed.is_grave() && deed != Deed::Send => Deed::Read,
                _ => deed,
            });
        let opens = arguments.iter().any(|argument| argument.opens);
        let grave_argument = !kind.safe
            && arguments.iter().any(|argument| {
                (argument.grave || argument.amount && argument.numbers.len() == 1) && !argument.is_content()
            });
        let control = arguments.iter().any(|argument| argument.control);
        let bank = call.values().any(|value| {
            value.iban && run.origins().of(value.hash).is_some_and(|from| from >= Provenance::Named)
        });
        let consequence = match deed {
            Deed::Read => Consequence::None,
            Deed::Change if control || bank => Consequence::Grave,
            Deed::Visit | Deed::Send | Deed::Execute => Consequence::Ordinary,
            Deed::Change if kind.grave || opens && !kind.entry || grave_argument && !kind.entry => {
                Consequence::Grave
            }
            Deed::Change => Consequence::Ordinary,
            Deed::Pay | Deed::Delete | Deed::Grant | Deed::Disable => Consequence::Grave,
        };
        let uploads =
            matches!(deed, Deed::Send | Deed::Grant) && arguments.iter().any(|argument| argument.attached);
        Act { deed, consequence, runs: false, uploads }
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
        let raised = |effect: &Effect| !matches!(effect.verb, Verb::Read) && !kind.deed.changes();
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
        let opens = call.arguments.iter().any(|argument| argument.opens);
        if opens && worst.consequence == Consequence::Ordinary {
            worst.consequence = Consequence::Grave;
        }
        if fetches && runs {
            (worst.consequence, worst.deed) = (Consequence::Grave, Deed::Execute);
        }
        Some(worst)
    }
}

/// What an effect of a command, a query or code is.
fn act_of(effect: &Effect) -> (Deed, Consequence) {
    use Consequence::{Grave, None, Ordinary};
    let resource = &effect.resource;
    let local = resource.is("loopback");
    let system = resource.name.starts_with("/etc") || resource.is("control") || resource.is("secret");
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
        (Verb::Delete, ResourceKind::Table) if effect.is("unbounded") => (Deed::Delete, Grave),
        (Verb::Delete, _) => (Deed::Delete, Ordinary),
        // What it does stands among the other effects.
        (Verb::Execute, ResourceKind::Command) if resource.is("known") => (Deed::Read, None),
        (Verb::Execute, _) => (Deed::Execute, Ordinary),
        (Verb::Send, _) if local => (Deed::Change, Ordinary),
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
