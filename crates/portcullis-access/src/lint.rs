//! What access policies may contain but probably do not intend: policies that never decide, that contradict each
//! other, that reach further than they seem to; names that do not exist.
//!
//! One policy covers another when its scope reaches at least as far and its conditions, taken apart at `&&`, all
//! are in the other too. That is a sufficient reason, not a necessary one: what is reported is true, and what is
//! not reported may still be; `portcullis policy diff --prove` answers such questions completely.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use cedar_policy_core::ast::{BinaryOp, EntityUID, Expr, ExprKind, ExprShapeOnly, Literal, UnaryOp};
use cedar_policy_core::validator::ValidationWarning;
use portcullis_core::bundle::{Bundle, Diagnostic, Lint};
use portcullis_core::effect::ResourceKind;
use portcullis_core::verdict::Verdict;

use crate::policy::Policy;
use crate::roles::roles;
use crate::scope::Scope;
use crate::{Access, compile};

/// The lints of a bundle's access policies, in the order of the text. None if it has no compiled policies.
pub fn lint(bundle: &Bundle) -> Vec<Lint> {
    let Some(access) = bundle.compiled::<Access>() else { return Vec::new() };
    let facts: Vec<Facts<'_>> = access.policies.iter().map(|policy| Facts::of(access, policy)).collect();
    let mut lints = Lints { bundle, found: Vec::new() };
    for (at, policy) in facts.iter().enumerate() {
        lints.alone(policy);
        lints.among(policy, at, &facts);
    }
    lints.names(access);
    lints.settings(access);
    lints.impossible(access);
    lints.found.sort_by(|a, b| {
        let key = |lint: &Lint| (lint.diagnostic.file.clone(), lint.diagnostic.span.start, lint.name);
        key(a).cmp(&key(b))
    });
    lints.found
}

/// A policy, taken apart.
struct Facts<'a> {
    policy: &'a Policy,
    scope: Scope<'a>,
    conjuncts: Vec<&'a Expr>,
}

impl<'a> Facts<'a> {
    fn of(access: &'a Access, policy: &'a Policy) -> Self {
        let mut conjuncts = Vec::new();
        if let Some(condition) = policy.template.non_scope_constraints() {
            split(condition, &mut conjuncts);
        }
        Self { policy, scope: Scope::of(&access.types, &policy.template), conjuncts }
    }

    /// Whether this policy applies whenever `other` does.
    fn covers(&self, other: &Self) -> bool {
        let stands = |mine: &&Expr| other.conjuncts.iter().any(|theirs| same(mine, theirs));
        self.scope.covers(&other.scope) && self.conjuncts.iter().all(stands)
    }
}

/// The parts of `a && b && …`.
fn split<'e>(expr: &'e Expr, into: &mut Vec<&'e Expr>) {
    match expr.expr_kind() {
        ExprKind::And { left, right } => {
            split(left, into);
            split(right, into);
        }
        ExprKind::Lit(Literal::Bool(true)) => {}
        _ => into.push(expr),
    }
}

fn same(a: &Expr, b: &Expr) -> bool {
    ExprShapeOnly::new_from_borrowed(a) == ExprShapeOnly::new_from_borrowed(b)
}

struct Lints<'a> {
    bundle: &'a Bundle,
    found: Vec<Lint>,
}

impl Lints<'_> {
    fn push(&mut self, name: &'static str, policy: &Policy, message: String, help: &str) {
        let diagnostic = self.at(policy, self.head(policy), message).help(help);
        self.found.push(Lint { name, diagnostic });
    }

    fn at(&self, policy: &Policy, span: Range<usize>, message: String) -> Diagnostic {
        let source = self.bundle.access.files.get(&policy.file).map_or("", String::as_str);
        Diagnostic::new(&policy.file, source, span, message)
    }

    /// The first line of a policy.
    fn head(&self, policy: &Policy) -> Range<usize> {
        let source = self.bundle.access.files.get(&policy.file).map_or("", String::as_str);
        let text = source.get(policy.span.clone()).unwrap_or_default();
        let first = text.lines().next().unwrap_or_default();
        policy.span.start..policy.span.start + first.len()
    }

    /// What can be said of a policy by itself.
    fn alone(&mut self, facts: &Facts<'_>) {
        let policy = facts.policy;
        let id = &policy.id;
        if policy.forbids {
        } else if self.bundle.access.default == Verdict::Allow && policy.decision == Verdict::Allow {
            let message = format!("`{id}` has no effect: the bundle allows whatever is not forbidden");
            self.push("useless-permit", policy, message, "set `[access] default`, or remove the policy");
        } else if facts.scope.is_unlimited() && facts.conjuncts.is_empty() {
            let message = format!("`{id}` permits every action for every principal");
            self.push("over-broad", policy, message, "name a principal, an action or a resource");
        }
        if contradictory(&facts.conjuncts) {
            let message = format!("`{id}` never applies: two of its conditions exclude each other");
            self.push("never-matches", policy, message, "join them with `||`, or remove one");
        }
    }

    /// What can be said of a policy in view of the others.
    fn among(&mut self, facts: &Facts<'_>, at: usize, all: &[Facts<'_>]) {
        let policy = facts.policy;
        let others = || all.iter().enumerate().filter(|(other, _)| *other != at);
        let twin = |other: usize, by: &Facts<'_>| facts.covers(by) && at < other;
        let shadow = others().find(|(other, by)| {
            by.policy.forbids == policy.forbids
                && outweighs(by.policy, policy)
                && by.covers(facts)
                && !twin(*other, by)
        });
        if let Some((_, by)) = shadow {
            let message = format!(
                "`{}` has no effect: `{}` applies to every request that it applies to",
                policy.id, by.policy.id
            );
            self.push("shadowed-policy", policy, message, "remove it, or narrow the other one");
        }
        if policy.forbids {
            return;
        }
        let denies =
            |by: &Facts<'_>| by.policy.forbids && by.policy.decision >= Verdict::Deny && by.covers(facts);
        if let Some((_, by)) = others().find(|(_, by)| denies(by)) {
            let (name, message) = if facts.covers(by) {
                let message = format!("`{}` permits exactly what `{}` forbids", policy.id, by.policy.id);
                ("conflicting-policies", message)
            } else {
                let message =
                    format!("`{}` never permits anything: `{}` forbids all of it", policy.id, by.policy.id);
                ("unreachable-policy", message)
            };
            self.push(name, policy, message, "remove one of the two, or narrow it");
        }
    }

    /// Roles, tables and columns in policies that do not exist.
    fn names(&mut self, access: &Access) {
        let roles = roles(self.bundle);
        let tables = &self.bundle.effects.tables;
        let columns: Vec<String> = tables
            .iter()
            .flat_map(|(table, of)| of.columns.iter().map(move |column| format!("{table}.{column}")))
            .collect();
        for policy in &access.policies {
            let condition = policy.template.condition();
            for (uid, span) in literals(&condition, policy) {
                let name: &str = uid.eid().as_ref();
                let kind = access.types.kind(uid.entity_type());
                let (what, known): (_, Vec<&str>) = match kind {
                    Some(ResourceKind::Table) if !tables.is_empty() => {
                        ("table", tables.keys().map(String::as_str).collect())
                    }
                    Some(ResourceKind::Column) if !tables.is_empty() => {
                        ("column", columns.iter().map(String::as_str).collect())
                    }
                    None if access.types.role(name) == *uid && !roles.is_empty() => {
                        ("role", roles.iter().copied().collect())
                    }
                    _ => continue,
                };
                if !known.contains(&name) {
                    let message =
                        format!("`{}` names the {what} `{name}`, which the bundle does not list", policy.id);
                    let near = portcullis_core::bundle::nearest(name, &known);
                    let diagnostic = self.at(policy, span, message);
                    let diagnostic = match near {
                        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                        None => diagnostic,
                    };
                    self.found.push(Lint { name: "unknown-name", diagnostic });
                }
            }
        }
    }

    /// Declarations that no policy uses.
    fn settings(&mut self, access: &Access) {
        let given = roles(self.bundle);
        let (mut attributes, mut roles) = (BTreeSet::new(), BTreeSet::new());
        for policy in &access.policies {
            let condition = policy.template.condition();
            for part in condition.subexpressions() {
                match part.expr_kind() {
                    ExprKind::GetAttr { attr, .. } | ExprKind::HasAttr { attr, .. } => {
                        attributes.insert(attr.to_string());
                    }
                    ExprKind::ExtHasAttr { attrs, .. } => {
                        attributes.extend(attrs.iter().map(ToString::to_string))
                    }
                    ExprKind::Lit(Literal::EntityUID(uid)) => {
                        let name: &str = uid.eid().as_ref();
                        if access.types.role(name) == **uid {
                            roles.insert(name.to_owned());
                        }
                    }
                    _ => {}
                }
            }
        }
        let settings = &self.bundle.access;
        let mut unused = Vec::new();
        for name in settings.attributes.keys().filter(|name| !attributes.contains(*name)) {
            unused.push(("unused-attribute", format!("no access policy uses the attribute `{name}`")));
        }
        for (alias, role) in settings.role_aliases.iter().filter(|(_, role)| !roles.contains(*role)) {
            unused.push((
                "unused-role",
                format!("`{alias}` is an alias of the role `{role}`, which no policy names"),
            ));
        }
        for role in given.into_iter().filter(|role| !roles.contains(*role)) {
            unused
                .push(("unused-role", format!("a credential has the role `{role}`, which no policy names")));
        }
        self.found.extend(unused.into_iter().map(|(name, message)| {
            let diagnostic = Diagnostic::new("portcullis.toml", "", 0..0, message)
                .help("remove it, or add a policy that uses it");
            Lint { name, diagnostic }
        }));
    }

    /// What Cedar's validator warns of: conditions that no types can fulfil, scopes without a request, look-alikes.
    fn impossible(&mut self, access: &Access) {
        let mut warned: BTreeMap<String, (&'static str, String)> = BTreeMap::new();
        for warning in compile::warnings(&access.schema, &access.policies) {
            let (id, name, message) = match &warning {
                ValidationWarning::ImpossiblePolicy(w) => (
                    &w.policy_id,
                    "never-matches",
                    "never applies: its conditions are always false".to_owned(),
                ),
                ValidationWarning::InvalidActionApplication(w) => (
                    &w.policy_id,
                    "never-matches",
                    "never applies: its action does not apply to such resources".to_owned(),
                ),
                ValidationWarning::MixedScriptString(w) => {
                    (&w.policy_id, "look-alike", "has a string that mixes several scripts".to_owned())
                }
                ValidationWarning::BidiCharsInString(w) => (
                    &w.policy_id,
                    "look-alike",
                    "has a string with bidirectional control characters".to_owned(),
                ),
                ValidationWarning::BidiCharsInIdentifier(w) => (
                    &w.policy_id,
                    "look-alike",
                    "has an identifier with bidirectional control characters".to_owned(),
                ),
                ValidationWarning::MixedScriptIdentifier(w) => {
                    (&w.policy_id, "look-alike", "has an identifier that mixes several scripts".to_owned())
                }
                ValidationWarning::ConfusableIdentifier(w) => (
                    &w.policy_id,
                    "look-alike",
                    "has an identifier that is easily confused with another".to_owned(),
                ),
            };
            warned.entry(id.to_string()).or_insert((name, message));
        }
        for policy in &access.policies {
            if let Some((name, message)) = warned.get(&policy.id) {
                let message = format!("`{}` {message}", policy.id);
                self.push(name, policy, message, "`portcullis access schema` shows what there is");
            }
        }
    }
}

/// Whether `by` decides wherever both apply: a permit that asks for no more, a forbid that asks for no less.
fn outweighs(by: &Policy, policy: &Policy) -> bool {
    if policy.forbids { by.decision >= policy.decision } else { by.decision <= policy.decision }
}

/// Two conditions of which one is the other's opposite, or which want one thing to equal two.
fn contradictory(conjuncts: &[&Expr]) -> bool {
    let opposite = |a: &Expr, b: &Expr| matches!(a.expr_kind(), ExprKind::UnaryApp { op: UnaryOp::Not, arg } if same(arg, b));
    let pairs =
        conjuncts.iter().enumerate().flat_map(|(at, a)| conjuncts.iter().skip(at + 1).map(move |b| (*a, *b)));
    pairs.into_iter().any(|(a, b)| {
        opposite(a, b) || opposite(b, a) || {
            match (equality(a), equality(b)) {
                (Some((this, one)), Some((that, other))) => same(this, that) && one != other,
                _ => false,
            }
        }
    })
}

/// `x == literal`, either way round.
fn equality(expr: &Expr) -> Option<(&Expr, &Literal)> {
    let ExprKind::BinaryApp { op: BinaryOp::Eq, arg1, arg2 } = expr.expr_kind() else { return None };
    match (arg1.expr_kind(), arg2.expr_kind()) {
        (ExprKind::Lit(_), ExprKind::Lit(_)) => None,
        (_, ExprKind::Lit(literal)) => Some((arg1, literal)),
        (ExprKind::Lit(literal), _) => Some((arg2, literal)),
        _ => None,
    }
}

/// The entities that a condition names, with their places.
fn literals<'e>(condition: &'e Expr, policy: &Policy) -> Vec<(&'e EntityUID, Range<usize>)> {
    let uids = condition.subexpressions().filter_map(|part| match part.expr_kind() {
        ExprKind::Lit(Literal::EntityUID(uid)) => {
            let span = part.source_loc().or_else(|| uid.loc()).map(|loc| loc.start()..loc.end());
            Some((uid.as_ref(), span.unwrap_or_else(|| policy.span.clone())))
        }
        _ => None,
    });
    uids.collect()
}
