//! What differs between two bundles, part by part, and in which direction.
//!
//! Recorded runs show which verdicts a change of policy changes, and a proof covers access policies; neither covers a
//! limit that was never reached, or a mode. This looks at everything else: each part of a bundle is named here, so
//! that a part that is added to [`Bundle`] does not compile before it is.
//!
//! A direction is about what a part alone allows: more steps, fewer keywords, a milder verdict are *looser*. Where
//! nothing general can be said (another schema, another table of columns), the part *changed*.

mod approvals;
mod containment;
mod contracts;
mod credentials;
mod models;
mod oauth;
mod sequences;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug, Display};

use serde::Serialize;

use super::{
    AccessSettings, AnchorTime, AuthoritySettings, Bundle, Citations, EffectSettings, EngineSettings,
    FlowSettings, LedgerSettings, LoopSettings, MonitorSettings, Programs, Scores, VerificationSettings,
    WorkSettings,
};
use crate::escalation::EscalationSettings;
use crate::event::Mode;
use crate::policy::{PrincipalBudget, RuntimePolicy, Window};
use crate::verdict::Verdict;

/// Longest value that is shown, in bytes.
const VALUE_BYTES_MAX: usize = 120;
/// How much of what two long values have in common is shown before the place where they part, in bytes.
const CONTEXT_BYTES: usize = 20;

/// Which way a part changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// It allows more, records less, or asks less of a person.
    Loosened,
    /// Another setting of which nothing general can be said: it may allow more.
    Changed,
    /// It allows less.
    Tightened,
    /// It bears on no verdict.
    Neutral,
}

impl Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loosened => "loosened",
            Self::Changed => "changed",
            Self::Tightened => "tightened",
            Self::Neutral => "neutral",
        })
    }
}

/// A part that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The part, as it is written in a bundle: `unknown_tools`, ``policy `Default` max_steps``.
    pub part: String,
    /// What it was.
    pub old: String,
    /// What it is.
    pub new: String,
    /// Which way it changed.
    pub direction: Direction,
    /// Whether it is among what a proof about access policies is about.
    pub access: bool,
}

/// What differs between two bundles, the loosened parts first.
pub(super) fn differences(old: &Bundle, new: &Bundle) -> Vec<Difference> {
    let mut found = Found(Vec::new());
    // Taken apart in full: a new part has to be given a place here.
    let Bundle {
        digest: _,
        mode,
        unknown_tools,
        trust_hints,
        approvals,
        registry: _,
        effects,
        contain,
        servers,
        ledger,
        work,
        loops,
        flow,
        sequences,
        authority,
        verification,
        escalation,
        scores,
        contracts,
        contract_model: _,
        call_models: _,
        monitors,
        access,
        programs,
        engines,
        knowledge,
        plans,
        credentials,
        oauth,
        tests,
        policies,
        default_policy: _,
        // Made of the parts above, or places of theirs.
        keywords: _,
        compiled: _,
        policy_places: _,
        contract_places: _,
        tool_places: _,
        authority_entries: _,
    } = old;
    found.ranked("mode", mode_rank(*mode), mode_rank(new.mode), mode, &new.mode);
    found.unlisted((*unknown_tools, *trust_hints), (new.unknown_tools, new.trust_hints));
    found.approvals(approvals, &new.approvals);
    found.value("policy", &old.default_policy(), &new.default_policy());
    found.runtime_policies(policies, &new.policies);
    found.tools(old, new);
    found.effects(effects, &new.effects);
    found.contain(contain, &new.contain);
    found.servers(servers, &new.servers);
    found.ledger(ledger, &new.ledger);
    found.work(*work, new.work);
    found.loops_and_flow((loops, flow), (&new.loops, &new.flow));
    found.sequences(sequences, &new.sequences);
    found.authority(authority, &new.authority);
    found.verification(verification.as_ref(), new.verification.as_ref());
    found.escalation(escalation, &new.escalation);
    found.scores(*scores, new.scores);
    found.contracts(contracts, &new.contracts);
    found.models(old, new);
    found.monitors(monitors, &new.monitors);
    found.access(access, &new.access);
    found.programs((programs, engines), (&new.programs, &new.engines));
    found.callers((credentials, oauth.as_ref()), new);
    found.neutral("knowledge.json", knowledge, &new.knowledge);
    found.neutral("plans/", plans, &new.plans);
    found.named("", tests, &new.tests, Direction::Neutral);
    let mut found = found.0;
    found.sort_by_key(|difference| difference.direction);
    found
}

fn mode_rank(mode: Mode) -> u32 {
    u32::from(mode == Mode::Enforce)
}

/// A limit of which 0 means none.
fn some(limit: u32) -> Option<u64> {
    (limit > 0).then_some(u64::from(limit))
}

/// Both values, cut to what can be shown: from a little before the place where they part.
fn around_difference(old: &str, new: &str) -> (String, String) {
    let alike = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
    let from = if old.len().max(new.len()) > VALUE_BYTES_MAX {
        old.floor_char_boundary(alike.saturating_sub(CONTEXT_BYTES))
    } else {
        0
    };
    let cut = |text: &str| {
        let rest = text.get(from..).unwrap_or_default();
        let shown = rest.get(..rest.floor_char_boundary(VALUE_BYTES_MAX)).unwrap_or_default();
        let (before, after) =
            (if from > 0 { "…" } else { "" }, if shown.len() < rest.len() { "…" } else { "" });
        format!("{before}{shown}{after}")
    };
    (cut(old), cut(new))
}

struct Found(Vec<Difference>);

impl Found {
    /// Tools that the bundle does not list.
    fn unlisted(&mut self, old: (Verdict, bool), new: (Verdict, bool)) {
        self.verdict("unknown_tools", old.0, new.0);
        self.flag("trust_hints", old.1, new.1, false);
    }

    fn loops_and_flow(&mut self, old: (&LoopSettings, &FlowSettings), new: (&LoopSettings, &FlowSettings)) {
        self.limit("[loops] alike", some(old.0.alike), some(new.0.alike));
        self.limit("[loops] denials", some(old.0.denials), some(new.0.denials));
        self.flag("[flow] strict", old.1.strict, new.1.strict, true);
    }

    fn push(&mut self, part: impl Into<String>, old: String, new: String, direction: Direction) {
        let (old, new) = around_difference(&old, &new);
        self.0.push(Difference { part: part.into(), old, new, direction, access: false });
    }

    /// Something of which nothing general can be said.
    fn value<T: PartialEq + Debug>(&mut self, part: impl Into<String>, old: &T, new: &T) {
        if old != new {
            self.push(part, format!("{old:?}"), format!("{new:?}"), Direction::Changed);
        }
    }

    /// The same, entry by entry.
    fn entries<T: PartialEq + Debug>(
        &mut self,
        part: &str,
        old: &BTreeMap<String, T>,
        new: &BTreeMap<String, T>,
    ) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let (before, after) = (old.get(name), new.get(name));
            if before != after {
                let shown = |value: Option<&T>| value.map_or_else(|| "none".to_owned(), |v| format!("{v:?}"));
                self.push(format!("{part} `{name}`"), shown(before), shown(after), Direction::Changed);
            }
        }
    }

    /// Named things that do nothing by themselves: a new one and one that is gone make no difference, and another one may.
    fn named<T: PartialEq + Debug>(
        &mut self,
        part: &str,
        old: &BTreeMap<String, T>,
        new: &BTreeMap<String, T>,
        changed: Direction,
    ) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let of = format!("{part}`{name}`");
            match (old.get(name), new.get(name)) {
                (None, _) => self.push(of, "none".to_owned(), "added".to_owned(), Direction::Neutral),
                (_, None) => self.push(of, "there".to_owned(), "gone".to_owned(), Direction::Neutral),
                (Some(before), Some(after)) if before != after => {
                    self.push(of, format!("{before:?}"), format!("{after:?}"), changed);
                }
                _ => {}
            }
        }
    }

    fn scores(&mut self, old: Scores, new: Scores) {
        let rank = |scores: Scores| u32::from(scores == Scores::Stop);
        self.ranked("[monitors] scores", rank(old), rank(new), &old, &new);
    }

    /// Programs, what they load, and engines.
    fn programs(
        &mut self,
        (old, old_engines): (&Programs, &[EngineSettings]),
        (new, new_engines): (&Programs, &[EngineSettings]),
    ) {
        let engines = |all: &[EngineSettings]| -> BTreeMap<String, String> {
            all.iter().map(|engine| (format!("engine {}", engine.name), format!("{engine:?}"))).collect()
        };
        self.narrowing(old.files(), new.files());
        self.entries("module", old.modules(), new.modules());
        self.narrowing(&engines(old_engines), &engines(new_engines));
    }

    /// What can only narrow: one more is tighter, one less looser.
    fn narrowing(&mut self, old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let direction = match (old.get(name), new.get(name)) {
                (Some(old), Some(new)) if old == new => continue,
                (Some(_), Some(_)) => Direction::Changed,
                (Some(_), None) => Direction::Loosened,
                (None, _) => Direction::Tightened,
            };
            let shown =
                |text: Option<&String>| text.map_or_else(|| "none".to_owned(), |text| format!("{text:?}"));
            self.push(format!("`{name}`"), shown(old.get(name)), shown(new.get(name)), direction);
        }
    }

    fn neutral<T: PartialEq + Debug>(&mut self, part: impl Into<String>, old: &T, new: &T) {
        if old != new {
            self.push(part, format!("{old:?}"), format!("{new:?}"), Direction::Neutral);
        }
    }

    /// Something with an order: of two values the one with the higher rank is the stricter.
    fn ranked<T: Debug>(&mut self, part: impl Into<String>, old_rank: u32, new_rank: u32, old: &T, new: &T) {
        if old_rank != new_rank {
            let direction = if new_rank < old_rank { Direction::Loosened } else { Direction::Tightened };
            self.push(part, words(old), words(new), direction);
        }
    }

    fn verdict(&mut self, part: impl Into<String>, old: Verdict, new: Verdict) {
        if old != new {
            let direction = if new < old { Direction::Loosened } else { Direction::Tightened };
            self.push(part, old.to_string(), new.to_string(), direction);
        }
    }

    /// A switch of which one position is the stricter.
    fn flag(&mut self, part: impl Into<String>, old: bool, new: bool, strict: bool) {
        if old != new {
            let direction = if new == strict { Direction::Tightened } else { Direction::Loosened };
            self.push(part, old.to_string(), new.to_string(), direction);
        }
    }

    /// A limit, or `None` for no limit.
    fn limit(&mut self, part: impl Into<String>, old: Option<u64>, new: Option<u64>) {
        if old == new {
            return;
        }
        let shown =
            |limit: Option<u64>| limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
        let looser = new.is_none_or(|new| old.is_some_and(|old| new > old));
        let direction = if looser { Direction::Loosened } else { Direction::Tightened };
        self.push(part, shown(old), shown(new), direction);
    }

    /// A list; `grants` if more entries allow more, otherwise they forbid more.
    fn list<'a>(
        &mut self,
        part: &str,
        old: impl IntoIterator<Item = &'a String>,
        new: impl IntoIterator<Item = &'a String>,
        grants: bool,
    ) {
        let (old, new): (BTreeSet<&String>, BTreeSet<&String>) =
            (old.into_iter().collect(), new.into_iter().collect());
        let mut differ = |entries: Vec<&&String>, added: bool| {
            if entries.is_empty() {
                return;
            }
            let names = entries.iter().map(|entry| format!("`{entry}`")).collect::<Vec<_>>().join(", ");
            let direction = if added == grants { Direction::Loosened } else { Direction::Tightened };
            let (before, after) = if added { ("-".to_owned(), names) } else { (names, "-".to_owned()) };
            self.push(part, before, after, direction);
        };
        differ(new.difference(&old).collect(), true);
        differ(old.difference(&new).collect(), false);
    }

    fn runtime_policies(&mut self, old: &[RuntimePolicy], new: &[RuntimePolicy]) {
        for policy in old {
            match new.iter().find(|other| other.name == policy.name) {
                Some(other) => self.runtime_policy(policy, other),
                None => self.push(
                    format!("policy `{}`", policy.name),
                    "there".into(),
                    "gone".into(),
                    Direction::Tightened,
                ),
            }
        }
        for policy in new.iter().filter(|policy| !old.iter().any(|other| other.name == policy.name)) {
            // Anyone who opens a run may ask for it.
            self.push(
                format!("policy `{}`", policy.name),
                "none".into(),
                "added".into(),
                Direction::Loosened,
            );
        }
    }

    fn runtime_policy(&mut self, old: &RuntimePolicy, new: &RuntimePolicy) {
        let RuntimePolicy {
            name,
            allowed_types,
            max_steps,
            max_side_effects,
            max_bytes,
            max_cost_micros,
            principal,
            approval_for_side_effects,
            restricted_keywords,
            escalate_on_verification_fail,
        } = old;
        let part = |field: &str| format!("policy `{name}` {field}");
        self.list(&part("allowed_types"), allowed_types, &new.allowed_types, true);
        self.limit(part("max_steps"), Some((*max_steps).into()), Some(new.max_steps.into()));
        self.limit(
            part("max_side_effects"),
            Some((*max_side_effects).into()),
            Some(new.max_side_effects.into()),
        );
        self.limit(part("max_bytes"), *max_bytes, new.max_bytes);
        self.limit(part("max_cost"), *max_cost_micros, new.max_cost_micros);
        self.budget(&part("[principal]"), principal.as_ref(), new.principal.as_ref());
        let field = "approval_for_side_effects";
        self.flag(part(field), *approval_for_side_effects, new.approval_for_side_effects, true);
        self.list(&part("restricted_keywords"), restricted_keywords, &new.restricted_keywords, false);
        let field = "escalate_on_verification_fail";
        self.flag(part(field), *escalate_on_verification_fail, new.escalate_on_verification_fail, true);
    }

    fn budget(&mut self, part: &str, old: Option<&PrincipalBudget>, new: Option<&PrincipalBudget>) {
        match (old, new) {
            (None, None) => {}
            (None, Some(_)) => self.push(part, "none".into(), "added".into(), Direction::Tightened),
            (Some(_), None) => self.push(part, "there".into(), "gone".into(), Direction::Loosened),
            (Some(old), Some(new)) => {
                let PrincipalBudget { per, max_steps, max_side_effects, max_bytes, max_cost_micros } = *old;
                // The same limits over a shorter window are more in all.
                let rank = |window: Window| u32::from(window == Window::Day);
                self.ranked(format!("{part} per"), rank(per), rank(new.per), &per, &new.per);
                self.limit(format!("{part} max_steps"), max_steps, new.max_steps);
                self.limit(format!("{part} max_side_effects"), max_side_effects, new.max_side_effects);
                self.limit(format!("{part} max_bytes"), max_bytes, new.max_bytes);
                self.limit(format!("{part} max_cost"), max_cost_micros, new.max_cost_micros);
            }
        }
    }

    fn effects(&mut self, old: &EffectSettings, new: &EffectSettings) {
        let EffectSettings {
            unknown,
            unknown_code,
            contain_unknown,
            contain_unknown_code,
            workspace,
            home,
            secrets,
            dialect,
            tables,
            functions,
            activities,
        } = old;
        self.verdict("[effects] unknown", *unknown, new.unknown);
        self.verdict("[effects] unknown_code", *unknown_code, new.unknown_code);
        self.flag("[effects] unknown contain", *contain_unknown, new.contain_unknown, false);
        self.flag("[effects] unknown_code contain", *contain_unknown_code, new.contain_unknown_code, false);
        self.value("[effects] workspace", workspace, &new.workspace);
        self.value("[effects] home", home, &new.home);
        self.list("[effects] secrets", secrets, &new.secrets, false);
        self.value("[effects] dialect", dialect, &new.dialect);
        self.value("tables/", tables, &new.tables);
        self.value("functions/", functions, &new.functions);
        self.value("activities/", activities, &new.activities);
    }

    fn ledger(&mut self, old: &LedgerSettings, new: &LedgerSettings) {
        let LedgerSettings { redact, anchor } = *old;
        self.flag("[ledger] redact", redact, new.redact, true);
        let before = |anchor: AnchorTime| anchor == AnchorTime::BeforeEffects;
        self.ranked(
            "[ledger] anchor",
            before(anchor).into(),
            before(new.anchor).into(),
            &anchor,
            &new.anchor,
        );
    }

    fn work(&mut self, old: WorkSettings, new: WorkSettings) {
        let WorkSettings { attempts, revisions, steps, accept_agent_criteria } = old;
        self.limit("[work] attempts", some(attempts), some(new.attempts));
        self.limit("[work] revisions", some(revisions), some(new.revisions));
        self.limit("[work] steps", some(steps), some(new.steps));
        self.flag("[work] accept_agent_criteria", accept_agent_criteria, new.accept_agent_criteria, false);
    }

    fn authority(&mut self, old: &AuthoritySettings, new: &AuthoritySettings) {
        let AuthoritySettings { identities, domains, recipients, hosts, directories } = old;
        self.list("[authority] identities", identities, &new.identities, true);
        self.list("[authority] domains", domains, &new.domains, true);
        self.list("[authority] recipients", recipients, &new.recipients, true);
        self.list("[authority] hosts", hosts, &new.hosts, true);
        self.list("[authority] directories", directories, &new.directories, true);
    }

    fn verification(&mut self, old: Option<&VerificationSettings>, new: Option<&VerificationSettings>) {
        let (old, new) = match (old, new) {
            (Some(old), Some(new)) => (old, new),
            (None, None) => return,
            (None, Some(_)) => {
                return self.push("[verification]", "none".into(), "added".into(), Direction::Tightened);
            }
            (Some(_), None) => {
                return self.push("[verification]", "there".into(), "gone".into(), Direction::Loosened);
            }
        };
        let VerificationSettings { sources, citations, given_documents, high_risk } = old;
        self.value("[verification] sources", sources, &new.sources);
        let rank = |citations: Citations| match citations {
            Citations::Never => 0,
            Citations::WithDocuments => 1,
            Citations::Always => 2,
        };
        let part = "[verification] citations";
        self.ranked(part, rank(*citations), rank(new.citations), citations, &new.citations);
        self.flag("[verification] given_documents", *given_documents, new.given_documents, false);
        match (high_risk, &new.high_risk) {
            (Some(old), Some(new)) => self.list("[verification] high_risk", old, new, false),
            (old, new) => self.value("[verification] high_risk", old, new),
        }
    }

    fn escalation(&mut self, old: &EscalationSettings, new: &EscalationSettings) {
        let EscalationSettings { table, adaptive } = old;
        self.value("[escalation] adaptive", adaptive, &new.adaptive);
        if *table == new.table {
            return;
        }
        let (before, after) = (table.rows(), new.table.rows());
        let conditions = |row: &crate::escalation::Row| -> Vec<_> {
            row.conditions.iter().map(|condition| condition.signal).collect()
        };
        let alike = before.len() == after.len()
            && before.iter().zip(after).all(|(old, new)| conditions(old) == conditions(new));
        if !alike {
            let rows = |rows: usize| format!("{rows} rows");
            let direction = if after.len() < before.len() { Direction::Loosened } else { Direction::Changed };
            return self.push("[escalation] row", rows(before.len()), rows(after.len()), direction);
        }
        for (number, (old, new)) in before.iter().zip(after).enumerate().filter(|(_, (old, new))| old != new)
        {
            let higher =
                old.conditions.iter().zip(&new.conditions).any(|(old, new)| new.at_least > old.at_least);
            let looser = higher || new.level < old.level;
            let direction = if looser { Direction::Loosened } else { Direction::Tightened };
            let shown = |row: &crate::escalation::Row| {
                let conditions = row.conditions.iter();
                let mut text: Vec<String> = conditions
                    .map(|condition| format!("{} >= {}", condition.signal.as_str(), condition.at_least))
                    .collect();
                text.push(row.level.as_str().to_owned());
                text.join(", ")
            };
            self.push(format!("[[escalation.row]] {}", number + 1), shown(old), shown(new), direction);
        }
    }

    fn monitors(&mut self, old: &MonitorSettings, new: &MonitorSettings) {
        let MonitorSettings { weights, concepts, patterns } = old;
        self.value("monitors.toml [weights]", weights, &new.weights);
        self.entries("monitors.toml [[concept]]", concepts, &new.concepts);
        if *patterns == new.patterns {
            return;
        }
        let gone = patterns.iter().filter(|pattern| !new.patterns.contains(pattern));
        let gone: Vec<&str> = gone.map(|pattern| pattern.name.as_str()).collect();
        let added = new.patterns.iter().filter(|pattern| !patterns.contains(pattern));
        let added: Vec<&str> = added.map(|pattern| pattern.name.as_str()).collect();
        let direction = match (gone.is_empty(), added.is_empty()) {
            (true, _) => Direction::Tightened,
            (false, true) => Direction::Loosened,
            (false, false) => Direction::Changed,
        };
        self.push("monitors.toml [[pattern]]", gone.join(", "), added.join(", "), direction);
    }

    fn access(&mut self, old: &AccessSettings, new: &AccessSettings) {
        let from = self.0.len();
        let AccessSettings { default, attributes, role_aliases, files } = old;
        self.verdict("[access] default", *default, new.default);
        self.value("[access] attributes", attributes, &new.attributes);
        self.value("[access] role_aliases", role_aliases, &new.role_aliases);
        self.entries("access/", files, &new.files);
        self.0.iter_mut().skip(from).for_each(|difference| difference.access = true);
    }
}

/// The word of an enumeration as bundles write it.
fn words<T: Debug>(value: &T) -> String {
    let mut text = String::new();
    for letter in format!("{value:?}").chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}
