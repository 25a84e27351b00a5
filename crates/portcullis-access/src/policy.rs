//! One policy: its text, its place, and its decision for a request to which it applies.

use std::ops::Range;
use std::sync::Arc;

use cedar_policy_core::ast::{
    AnyId, Effect, Expr, ExprKind, Literal, Policy as CedarPolicy, PolicyID, Template, Var,
};
use cedar_policy_core::parser::Loc;
use portcullis_core::bundle::Diagnostic;
use portcullis_core::limits::MESSAGE_BYTES_MAX;
use portcullis_core::verdict::Verdict;

use crate::conditions::Members;

/// Longest name in `@id` and `@rule`, in bytes.
const ANNOTATION_NAME_BYTES_MAX: usize = 128;
/// The annotations that mean something.
const ANNOTATIONS: [&str; 4] = ["decision", "id", "reason", "rule"];

/// A policy, ready for use.
#[derive(Debug)]
pub(crate) struct Policy {
    /// `@id`, or the file's name and the policy's number in it: `clinic-3`.
    pub(crate) id: String,
    /// The file within the bundle.
    pub(crate) file: String,
    /// Where it is in the file, annotations included.
    pub(crate) span: Range<usize>,
    /// Line and column of its first word, from 1.
    pub(crate) place: (usize, usize),
    /// Whether it forbids.
    pub(crate) forbids: bool,
    /// `@decision`: what it asks for when it applies. *Deny* for `forbid`, *allow* for `permit`.
    pub(crate) decision: Verdict,
    /// `@reason`.
    pub(crate) reason: Option<String>,
    /// `access/` and `@rule`, or the id.
    pub(crate) rule: String,
    /// As Cedar has it.
    pub(crate) template: Arc<Template>,
    /// What must hold beyond the scope, ready to evaluate, or `None` if nothing.
    pub(crate) condition: Option<Expr>,
    /// Whether the condition looks at the context.
    pub(crate) in_context: bool,
    /// Whether the condition asks nothing about the resource and the action, so that it can be evaluated without
    /// what is known of them.
    pub(crate) about_principal: bool,
    /// The resources for which the condition holds, if it tests nothing else.
    pub(crate) members: Option<Members>,
}

fn looks_at_context(condition: &Expr) -> bool {
    condition.subexpressions().any(|part| matches!(part.expr_kind(), ExprKind::Var(Var::Context)))
}

/// Whether of all entities only the principal and its roles can matter: neither variables nor names lead to others.
fn looks_at_principal_alone(condition: &Expr) -> bool {
    condition.subexpressions().all(|part| match part.expr_kind() {
        ExprKind::Var(Var::Resource | Var::Action) => false,
        ExprKind::Lit(Literal::EntityUID(uid)) => {
            matches!(uid.entity_type().to_string().as_str(), "Principal" | "Role")
        }
        _ => true,
    })
}

/// Reads the policies of one parsed file, in the order of the text.
pub(crate) fn read(
    file: &str,
    source: &str,
    parsed: impl IntoIterator<Item = CedarPolicy>,
    mistakes: &mut Vec<Diagnostic>,
) -> Vec<Policy> {
    let mut parsed: Vec<(Range<usize>, CedarPolicy)> =
        parsed.into_iter().map(|policy| (span_of(policy.loc(), source), policy)).collect();
    parsed.sort_by_key(|(span, _)| span.start);
    let stem = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".cedar");
    let policies = parsed.into_iter().enumerate();
    policies
        .map(|(number, (span, policy))| {
            let default_id = format!("{stem}-{}", number + 1);
            read_one(&Source { file, text: source }, span, &policy, default_id, mistakes)
        })
        .collect()
}

struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn at(&self, span: Range<usize>, message: String) -> Diagnostic {
        Diagnostic::new(self.file, self.text, span, message)
    }
}

fn span_of(loc: Option<&Loc>, source: &str) -> Range<usize> {
    loc.map_or(0..0, |loc| {
        let end = loc.end().min(source.len());
        loc.start().min(end)..end
    })
}

fn read_one(
    source: &Source<'_>,
    span: Range<usize>,
    policy: &CedarPolicy,
    default_id: String,
    mistakes: &mut Vec<Diagnostic>,
) -> Policy {
    for (key, annotation) in policy.annotations() {
        let key: &str = key.as_ref();
        if !ANNOTATIONS.contains(&key) {
            let span = span_of(annotation.loc.as_ref(), source.text);
            let message = format!("`@{key}` is not an annotation of access policies");
            mistakes.push(source.at(span, message).did_you_mean(key, ANNOTATIONS));
        }
    }
    let forbids = policy.effect() == Effect::Forbid;
    let id = name(source, policy, "id", mistakes).unwrap_or(default_id);
    let rule = name(source, policy, "rule", mistakes).unwrap_or_else(|| id.clone());
    let reason = annotation(policy, "reason").map(|(reason, place)| {
        if reason.trim().is_empty() || reason.len() > MESSAGE_BYTES_MAX {
            let message = format!("`@reason` must have 1 to {MESSAGE_BYTES_MAX} bytes");
            mistakes.push(source.at(span_of(place, source.text), message));
        }
        reason.to_owned()
    });
    let place = source.at(span.clone(), String::new());
    let template = Arc::new(policy.template().new_id(PolicyID::from_string(&id)));
    Policy {
        decision: decision(source, policy, forbids, mistakes),
        file: source.file.to_owned(),
        place: (place.line, place.column),
        condition: template.non_scope_constraints().cloned(),
        in_context: template.non_scope_constraints().is_some_and(looks_at_context),
        about_principal: template.non_scope_constraints().is_some_and(looks_at_principal_alone),
        members: None,
        rule: format!("access/{rule}"),
        id,
        span,
        forbids,
        reason,
        template,
    }
}

fn annotation<'p>(policy: &'p CedarPolicy, key: &str) -> Option<(&'p str, Option<&'p Loc>)> {
    let key: AnyId = key.parse().ok()?;
    policy.annotation(&key).map(|annotation| (annotation.as_ref(), annotation.loc.as_ref()))
}

/// The decisions that a policy may ask for.
const fn decisions(forbids: bool) -> &'static [Verdict] {
    if forbids {
        &[Verdict::Deny, Verdict::Review, Verdict::Warn, Verdict::Clarify, Verdict::Pause, Verdict::Halt]
    } else {
        &[Verdict::Allow, Verdict::Warn, Verdict::Clarify, Verdict::Pause, Verdict::Review]
    }
}

fn decision(
    source: &Source<'_>,
    policy: &CedarPolicy,
    forbids: bool,
    mistakes: &mut Vec<Diagnostic>,
) -> Verdict {
    let default = if forbids { Verdict::Deny } else { Verdict::Allow };
    let Some((word, place)) = annotation(policy, "decision") else { return default };
    let known = decisions(forbids);
    match Verdict::from_name(word).filter(|verdict| known.contains(verdict)) {
        Some(verdict) => verdict,
        None => {
            let effect = if forbids { "forbid" } else { "permit" };
            let message = format!("`{word}` is not a decision of a `{effect}` policy");
            let known = known.iter().map(|verdict| verdict.as_str());
            mistakes.push(source.at(span_of(place, source.text), message).did_you_mean(word, known));
            default
        }
    }
}

/// The value of `@id` or `@rule`.
fn name(
    source: &Source<'_>,
    policy: &CedarPolicy,
    key: &str,
    mistakes: &mut Vec<Diagnostic>,
) -> Option<String> {
    let (name, place) = annotation(policy, key)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
    if name.is_empty() || name.len() > ANNOTATION_NAME_BYTES_MAX || !name.bytes().all(fits) {
        let message = format!(
            "`@{key}` must have 1 to {ANNOTATION_NAME_BYTES_MAX} letters, digits, `-`, `_`, `.` or `/`"
        );
        mistakes.push(source.at(span_of(place, source.text), message));
    }
    Some(name.to_owned())
}

/// Ids that occur twice in a bundle.
pub(crate) fn twice(policies: &[Policy], sources: impl Fn(&str) -> String, mistakes: &mut Vec<Diagnostic>) {
    let mut first = std::collections::HashMap::new();
    for policy in policies {
        if let Some((file, line)) = first.insert(policy.id.as_str(), (policy.file.as_str(), policy.place.0)) {
            let message = format!("the policy id `{}` is taken: {file}:{line}", policy.id);
            let source = sources(&policy.file);
            mistakes.push(
                Diagnostic::new(&policy.file, &source, policy.span.clone(), message).help("give it an `@id`"),
            );
        }
    }
}
