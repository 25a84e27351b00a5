//! Access control: who may do what to which resource, written in Cedar.
//!
//! A bundle's `access/*.cedar` speak of *principals* (whose credential the agent acts with: id, roles, attributes),
//! *actions* (the verbs of effects, and `call:TOOL` for every tool) and *resources* (paths, hosts, columns, ...; the
//! words of [`portcullis_core::effect`]). The schema is made from the bundle ([`schema_text`]); policies are
//! validated against it when the bundle loads, so a misspelt attribute is an error with its place and not a policy
//! that never applies. [`Access`] is what a bundle's policies compile to, [`AccessGuard`] asks it.
//!
//! ```cedar
//! @reason("billing staff see no diagnoses")
//! forbid (principal in Role::"billing", action == Action::"read", resource in Table::"diagnosis");
//! ```
//!
//! Annotations: `@id("…")` names the policy, `@rule("…")` the rule of its findings, `@reason("…")` is their message,
//! and `@decision("…")` the verdict: *deny* for `forbid` and *allow* for `permit` where it says nothing else.
//!
//! Speed comes from asking little: policies are found by what their scope names, so that those about other things
//! cost nothing ([`slices`]), and policies that only list resources are asked about all resources of an action at
//! once ([`conditions`]).

mod bounds;
mod compile;
mod conditions;
mod decide;
mod diagnose;
mod findings;
mod guard;
mod lint;
mod permission;
mod policy;
mod request;
mod roles;
mod schema;
mod scope;
mod slices;
mod uid;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;

use cedar_policy_core::ast::{SlotEnv, Value};
use cedar_policy_core::entities::Entities;
use portcullis_core::bundle::{Bundle, FunctionRole};
use portcullis_core::verdict::Verdict;

pub use bounds::{BRACKETS_MAX, DOTS_MAX, OPERATORS_MAX};
pub use compile::{AccessCompiler, POLICIES_MAX};
pub use guard::AccessGuard;
pub use lint::lint;
pub use permission::{Permission, Through};
pub use schema::schema_text;

/// Rules of findings that no policy names.
pub mod rules {
    /// Nothing permits it, and the bundle's default is not *allow*.
    pub const NOT_PERMITTED: &str = "access/not-permitted";
    /// A policy could not be evaluated.
    pub const POLICY_ERROR: &str = "access/policy-error";
    /// The run has no principal.
    pub const NO_PRINCIPAL: &str = "access/no-principal";
    /// An attribute of the principal is not of the declared type.
    pub const PRINCIPAL_ATTRIBUTE: &str = "access/principal-attribute";
    /// The arguments of a call do not fit the schema that policies about it were checked against.
    pub const ARGUMENTS: &str = "access/arguments";
}

/// The access policies of a bundle, ready for use.
#[derive(Debug)]
pub struct Access {
    policies: Vec<policy::Policy>,
    slices: slices::Slices,
    types: uid::Types,
    constants: Entities,
    /// By tool id: the arguments that policies can speak of.
    arguments: HashMap<String, Vec<schema::Field>>,
    /// By tool id: its risk as Cedar has it, which takes long to make.
    risks: HashMap<String, Value>,
    schema: String,
    no_slots: SlotEnv,
}

/// What is known of a policy without asking it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyInfo<'a> {
    /// Its id, as findings name it.
    pub id: &'a str,
    /// The rule of its findings.
    pub rule: &'a str,
    /// The file within the bundle.
    pub file: &'a str,
    /// The line of its first word, from 1.
    pub line: usize,
    /// The column of its first word in characters, from 1.
    pub column: usize,
    /// Its bytes in the file.
    pub span: Range<usize>,
    /// Whether it forbids; otherwise it permits.
    pub forbids: bool,
    /// The verdict it asks for when it applies.
    pub decision: Verdict,
}

impl Access {
    /// The policies in the order of files and of the text.
    pub fn policies(&self) -> impl Iterator<Item = PolicyInfo<'_>> {
        self.policies.iter().map(|policy| PolicyInfo {
            id: &policy.id,
            rule: &policy.rule,
            file: &policy.file,
            line: policy.place.0,
            column: policy.place.1,
            span: policy.span.clone(),
            forbids: policy.forbids,
            decision: policy.decision,
        })
    }

    /// The schema that the policies were validated against, in Cedar's syntax.
    pub fn schema_text(&self) -> &str {
        &self.schema
    }
}

/// Whether the bundle knows a tool of that name: in its registry, or as what agent code calls.
fn names_tool(bundle: &Bundle, name: &str) -> bool {
    let called = |role: &FunctionRole| matches!(role, FunctionRole::CallTool(tool) if tool == name);
    bundle.registry.iter().any(|tool| tool.name == name) || bundle.effects.functions.values().any(called)
}
