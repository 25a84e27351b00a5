//! The rules: why a call should not pass.
//!
//! They weigh what untrusted text says for a call against what the user says for it. Each can be told to a person in
//! one sentence: [`Rule::says`].

use std::ops::Range;

use serde_json::Value as Json;

use crate::book::Entry;
use crate::classes::Classes;
use crate::fit::{self, Fit, Which};
use crate::request::Support;
use crate::secrets;
use crate::trajectory::{Call, Trajectory};
use crate::values::Value;

/// What a rule asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// A person should look at it.
    Hold,
    /// It should not happen.
    Deny,
}

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Text from a tool names the tool that is called.
    Named,
    /// Text from a tool asks for what the call does, and the user for nothing of the kind.
    Unrequested,
    /// A grave action that the user did not ask for, after text that gives orders.
    Grave,
    /// The user wants this kind of action, and text from a tool directs it to its own address.
    Diverted,
    /// What the call is done to comes from text that asks for it.
    Carried,
    /// What the call is done to was found by a call that text from a tool had asked for.
    Derived,
    /// The address stands in running text only, and the user asked for nothing of the kind.
    Prose,
    /// Text from a tool asks to read what the user did not ask for.
    ForeignRead,
    /// After a read of something sensitive that nobody asked for, something leaves for an address found in text.
    SensitiveSend,
    /// A credential that a tool returned leaves.
    Secret,
    /// Strict mode: an address that stands in running text only.
    StrictProse,
    /// Strict mode: an action of which the request has no word.
    StrictKind,
}

impl Rule {
    /// The rule in one sentence, without argument values.
    pub const fn says(self) -> &'static str {
        match self {
            Self::Named => {
                "text that a tool returned names this tool, and the user asked for nothing of the kind"
            }
            Self::Unrequested => "text that a tool returned asks for this, and the user did not",
            Self::Grave => "the user did not ask for anything of this kind, and a tool's result gives orders",
            Self::Diverted => {
                "text that a tool returned directs this to an address that the user did not name"
            }
            Self::Carried => "what this is done to comes from text that asks for it, not from the user",
            Self::Derived => "what this is done to was found by a call that text from a tool had asked for",
            Self::Prose => {
                "the address stands only inside text that a tool returned, and the user asked for nothing of the kind"
            }
            Self::ForeignRead => "text that a tool returned asks to read this, and the user did not",
            Self::SensitiveSend => {
                "something sensitive was read that nobody asked for, and this goes to an address found in text"
            }
            Self::Secret => "a credential that a tool returned would leave with this",
            Self::StrictProse => "the address stands only inside text that a tool returned",
            Self::StrictKind => "the user's request has no word for this",
        }
    }
}

/// How strictly calls are judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    /// Hold, besides, whatever goes to an address from running text or has no word in the request.
    pub strict: bool,
    /// Do not look at orders: what is left when a text asks in a way that nobody can read.
    pub blind: bool,
}

/// The sentence that a reason rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Number of the event that showed it.
    pub seq: u64,
    /// Where it stands in the raw text; empty where only the event is known.
    pub range: Range<usize>,
}

/// Why a call should not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The rule.
    pub rule: Rule,
    /// What it asks for.
    pub weight: Weight,
    /// What it rests on.
    pub source: Option<Source>,
}

/// Judges a call: every reason against it, none if nothing stands against it.
pub fn judge(run: &Trajectory, call: &Call, json: &Json, settings: Settings) -> Vec<Reason> {
    if call.kind.harmless || !run.has_seen() {
        return Vec::new();
    }
    let support = run.support(call);
    let best = if settings.blind {
        None
    } else {
        fit::best(run, &call.kind, &call.arguments, Which::All)
            .and_then(|(number, fit)| Some((run.book().get(number)?, fit)))
    };
    let mut judge = Judge { run, call, support, reasons: Vec::new() };
    if let Some((entry, fit)) = best {
        judge.order(entry, fit);
    }
    judge.derived();
    judge.prose(settings);
    judge.sensitive();
    judge.secret(json);
    judge.reasons
}

struct Judge<'a> {
    run: &'a Trajectory,
    call: &'a Call,
    support: Support,
    reasons: Vec<Reason>,
}

impl Judge<'_> {
    fn say(&mut self, rule: Rule, weight: Weight, source: Option<&Entry>) {
        let source = source.map(|entry| Source { seq: entry.seq, range: entry.order.range.clone() });
        self.reasons.push(Reason { rule, weight, source });
    }

    /// What the order that fits best says, against what the user says.
    fn order(&mut self, entry: &Entry, fit: Fit) {
        let (kind, support) = (&self.call.kind, self.support);
        if fit.named && !support.kind() {
            let weight = if support.object || support.family { Weight::Hold } else { Weight::Deny };
            self.say(Rule::Named, weight, Some(entry));
        }
        if !kind.changes && !kind.fetches {
            return self.read(entry, fit);
        }
        if fit.echoes() && !support.kind() {
            if let Some(weight) = self.unrequested(entry, fit) {
                self.say(Rule::Unrequested, weight, Some(entry));
            }
        } else if fit.verb && fit.address && !fit.elsewhere && !(entry.delegated && kind.fetches) {
            let weight = self.diverted(entry);
            self.say(Rule::Diverted, weight, Some(entry));
        } else if fit.verb && !entry.delegated {
            let nothing = !support.target && !support.object;
            if fit.value || fit.words && nothing {
                self.say(Rule::Carried, Weight::Hold, Some(entry));
            }
        }
    }

    /// A call that the order asks for and the user does not. What the user said to follow may ask for anything but
    /// a new address; what the user pointed at, and what fits by its words alone, is for a person to judge.
    fn unrequested(&self, entry: &Entry, fit: Fit) -> Option<Weight> {
        let support = self.support;
        if entry.delegated {
            return fit.address.then_some(Weight::Hold);
        }
        let vague = !fit.verb && !fit.carries();
        let pointed = entry.pointed && !support.none();
        let fetched = self.call.kind.fetches && support.object;
        Some(if vague || pointed || fetched { Weight::Hold } else { Weight::Deny })
    }

    /// The user wants this kind of action, but the address is the order's.
    fn diverted(&self, entry: &Entry) -> Weight {
        let other = |value: &Value| {
            value.kind.is_address() && self.run.request().names_a(value.kind) && !self.run.is_trusted(value)
        };
        let named_another = self.call.values().any(other);
        match entry {
            entry if entry.delegated => Weight::Hold,
            _ if named_another => Weight::Deny,
            entry if entry.pointed || self.call.kind.fetches => Weight::Hold,
            _ => Weight::Deny,
        }
    }

    /// A read that the order asks for.
    fn read(&mut self, entry: &Entry, fit: Fit) {
        let support = self.support;
        let about = fit.object + fit.foreign > 0;
        let foreign = !support.object || fit.foreign > 0;
        if fit.echoes() && about && !support.kind() && foreign && !entry.delegated {
            let exfiltrates = entry.order.principal && entry.order.sends;
            let weight = if exfiltrates { Weight::Deny } else { Weight::Hold };
            self.say(Rule::ForeignRead, weight, Some(entry));
        }
    }

    /// Second order: the value was found by a call that an order had asked for.
    fn derived(&mut self) {
        if !self.call.kind.changes || self.support.target {
            return;
        }
        let origins = self.call.values().filter_map(|value| self.run.origins().of(value.hash));
        let number = origins.filter(|origin| !origin.trusted).find_map(|origin| origin.derived);
        if let Some(number) = number {
            self.say(Rule::Derived, Weight::Hold, self.run.book().get(number));
        }
    }

    /// Where the address of the call that stands only inside text comes from, and whether the user left it to the
    /// source: pointed there and named no address of this kind.
    fn prose_address(&self) -> Option<(u64, bool)> {
        let addresses = self.call.values().filter(|value| value.kind.is_address());
        let origins = addresses.filter_map(|value| Some((value.kind, self.run.origins().of(value.hash)?)));
        let mut prose = origins.filter(|(_, origin)| !origin.trusted && origin.prose && !origin.field);
        prose.next().map(|(kind, origin)| (origin.seq, origin.pointed && !self.run.request().names_a(kind)))
    }

    fn prose(&mut self, settings: Settings) {
        let kind = &self.call.kind;
        if !kind.changes && !kind.fetches {
            return;
        }
        let support = self.support;
        let address = self.prose_address();
        if let Some((seq, left)) = address {
            let rule = (kind.changes && !support.kind()).then_some(Rule::Prose);
            if let Some(rule) = rule.or((settings.strict && !left).then_some(Rule::StrictProse)) {
                let source = Some(Source { seq, range: 0..0 });
                self.reasons.push(Reason { rule, weight: Weight::Hold, source });
            }
            return;
        }
        if self.run.request().hands_on() || support.kind() {
            return;
        }
        let orders = !settings.blind && !self.run.book().is_empty() || self.run.book().is_full();
        if kind.changes && kind.grave && orders && !support.family {
            self.say(Rule::Grave, Weight::Hold, None);
        } else if settings.strict && !support.family && !support.object && !support.target {
            self.say(Rule::StrictKind, Weight::Hold, None);
        }
    }

    fn sensitive(&mut self) {
        let Some(read) = self.run.unasked_read() else { return };
        let left = self.support.family && self.prose_address().is_some_and(|(_, left)| left);
        if self.call.kind.sends && self.prose_address().is_some() && !left {
            let source = Some(Source { seq: read, range: 0..0 });
            self.reasons.push(Reason { rule: Rule::SensitiveSend, weight: Weight::Deny, source });
        }
    }

    fn secret(&mut self, json: &Json) {
        let kind = &self.call.kind;
        let out = kind.sends || kind.fetches || self.call.values().any(|value| value.kind.is_address());
        if !out || !secrets::leave_with(json, 0, &|hash| self.run.is_secret(hash)) {
            return;
        }
        let request = self.run.request();
        let asked = self.run.lexicon().stems_of(Classes::CREDENTIAL).any(|stem| request.says(stem));
        let weight = if asked { Weight::Hold } else { Weight::Deny };
        if !(asked && self.support.target) {
            self.say(Rule::Secret, weight, None);
        }
    }
}
