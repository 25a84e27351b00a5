//! What a bundle's access policies let pass, as plain Cedar: policies whose *allow* is exactly a verdict that permits.
//!
//! Decisions, defaults and the rule that the weakest permit stands are this crate's, not Cedar's. Written out, they
//! let Cedar's own tools reason about two bundles. One thing cannot be written out: a policy that cannot be
//! evaluated denies here and is passed over there; [`Permission::may_fail`] names those that could.

use std::fmt::Write as _;

use cedar_policy_core::ast::{BinaryOp, ExprKind, UnaryOp};
use portcullis_core::bundle::Bundle;
use portcullis_core::verdict::Verdict;

use crate::Access;
use crate::policy::Policy;

/// From which verdict on a request counts as let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// It passes without anyone being asked.
    Passes,
    /// It passes, or a person may let it pass.
    MayBeGranted,
}

impl Through {
    fn lets(self, verdict: Verdict) -> bool {
        match self {
            Self::Passes => verdict.permits(),
            Self::MayBeGranted => verdict < Verdict::Deny,
        }
    }
}

/// The access policies of a bundle for tools that know nothing of decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// The policies, none of them annotated.
    pub policies: String,
    /// For each policy in `policies`, in order, the id of its policy in the bundle.
    pub ids: Vec<String>,
    /// Policies that compute with whole numbers and could overflow.
    pub may_fail: Vec<String>,
}

impl Access {
    /// What the policies let through. `bundle` is the one they were compiled from.
    pub fn permission(&self, bundle: &Bundle, through: Through) -> Permission {
        let mut out = Permission { policies: String::new(), ids: Vec::new(), may_fail: Vec::new() };
        let condition = |policy: &Policy| policy.template.condition().to_string();
        let permits = |policy: &&Policy| !policy.forbids && through.lets(policy.decision);
        let permitting: Vec<String> = self.policies.iter().filter(permits).map(condition).collect();
        let unless: String =
            permitting.iter().map(|condition| format!("\nunless {{ {condition} }}")).collect();
        for policy in &self.policies {
            if computes(policy) {
                out.may_fail.push(policy.id.clone());
            }
            let when = format!("when {{ {} }}", condition(policy));
            match (policy.forbids, through.lets(policy.decision)) {
                (false, true) => out.add("permit", &when, &policy.id),
                (true, false) => out.add("forbid", &when, &policy.id),
                // A permit that withholds does so where none is weaker, even if everything else may pass.
                (false, false) if through.lets(bundle.access.default) => {
                    out.add("forbid", &format!("{when}{unless}"), &policy.id);
                }
                // What only withholds changes nothing where nothing passes; what only warns never does.
                (false, false) | (true, true) => {}
            }
        }
        if through.lets(bundle.access.default) {
            out.add("permit", "", "the default");
        }
        out
    }
}

impl Permission {
    fn add(&mut self, effect: &str, conditions: &str, id: &str) {
        let _ = writeln!(self.policies, "{effect} (principal, action, resource)\n{conditions};");
        self.ids.push(id.to_owned());
    }
}

/// Whether a condition adds, subtracts, multiplies or negates: the only things that can fail once it is well typed.
fn computes(policy: &Policy) -> bool {
    let condition = policy.template.condition();
    condition.subexpressions().any(|part| {
        matches!(
            part.expr_kind(),
            ExprKind::BinaryApp { op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, .. }
                | ExprKind::UnaryApp { op: UnaryOp::Neg, .. }
        ) || may_not_parse(part.expr_kind())
    })
}

/// Constructors of extensions are given literals, which the validator has read; anything else could fail.
fn may_not_parse(kind: &ExprKind) -> bool {
    match kind {
        ExprKind::ExtensionFunctionApp { fn_name, args }
            if matches!(fn_name.to_string().as_str(), "ip" | "decimal" | "datetime" | "duration") =>
        {
            !args.iter().all(|arg| matches!(arg.expr_kind(), ExprKind::Lit(_)))
        }
        ExprKind::ExtensionFunctionApp { fn_name, .. } => {
            matches!(fn_name.to_string().as_str(), "offset" | "durationSince" | "toDate")
        }
        _ => false,
    }
}
