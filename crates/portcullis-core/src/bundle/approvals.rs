//! Reads `[approvals]` of `portcullis.toml`: who may decide about what is held, and under which rules.
//!
//! ```toml
//! [approvals]
//! grant_max_s = 28800           # the longest that a grant may last
//! questions_per_hour = 60       # further ones are queued
//! require_note = true           # a decision needs a note
//! four_eyes = true              # nobody grants what is asked for on their own behalf
//! release = ["security"]        # roles that may release a frozen principal, or all
//!
//! [[approvals.rule]]            # the first that fits a request
//! rules = ["access/payments"]   # what holds the call; `access/*` for all that begin so
//! tools = ["pay_*"]
//! roles = ["finance"]           # who may grant it
//! quorum = 2
//! escalate_after_s = 900        # from then on these roles may grant it as well
//! escalate_to = ["security"]
//! ```
//!
//! `[[approvals.webhook]]` is read by [`webhooks`](super::webhooks).

use std::collections::BTreeSet;

use super::toml_table::{Field, File, Table};
use super::webhooks::{self, Webhook};
use crate::limits::NAME_BYTES_MAX;

/// The most rules of a bundle.
const APPROVAL_RULES_MAX: usize = 256;
/// The most people who may have to agree.
const QUORUM_MAX: u32 = 16;

/// How approvals are asked for and decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// How long a held call waits for an answer before it returns `approval_pending`, in seconds. Clients give up
    /// after 60 s, so at most 50.
    pub wait_s: u32,
    /// How long a request stays open, in seconds.
    pub request_ttl_s: u32,
    /// How long a grant can be claimed unless its giver says otherwise, in seconds.
    pub grant_ttl_s: u32,
    /// The longest that its giver may let it last, in seconds.
    pub grant_max_s: u32,
    /// How many requests are put before people in an hour; further ones are queued. `None`: all of them.
    pub questions_per_hour: Option<u32>,
    /// What every decision requires, unless a rule says otherwise.
    pub requirement: Requirement,
    /// The roles that may release a frozen principal, or all; empty: any approver may.
    pub release: BTreeSet<String>,
    /// Requirements of particular requests. The first one that fits is the one that counts.
    pub rules: Vec<ApprovalRule>,
    /// Who else is told of requests, and may answer them.
    pub webhooks: Vec<Webhook>,
}

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self {
            wait_s: 25,
            request_ttl_s: 24 * 3_600,
            grant_ttl_s: 900,
            grant_max_s: 8 * 3_600,
            questions_per_hour: None,
            requirement: Requirement::default(),
            release: BTreeSet::new(),
            rules: Vec::new(),
            webhooks: Vec::new(),
        }
    }
}

/// What a decision requires of those who make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The roles that may grant; empty: any approver may. Any approver may refuse.
    pub roles: BTreeSet<String>,
    /// How many different approvers have to grant.
    pub quorum: u32,
    /// Whether a decision needs a note.
    pub require_note: bool,
    /// Whether an approver may not grant what is asked for on their own behalf.
    pub four_eyes: bool,
    /// After how many seconds of waiting other roles may grant as well, and which.
    pub escalation: Option<(u32, BTreeSet<String>)>,
}

impl Default for Requirement {
    fn default() -> Self {
        Self { roles: BTreeSet::new(), quorum: 1, require_note: false, four_eyes: false, escalation: None }
    }
}

impl Requirement {
    /// Whether somebody with these roles may grant what has waited for so long.
    pub fn may_grant(&self, roles: &BTreeSet<String>, waited_s: u64) -> bool {
        let others = self.escalated_to(waited_s);
        self.roles.is_empty()
            || !self.roles.is_disjoint(roles)
            || others.is_some_and(|others| !others.is_disjoint(roles))
    }

    /// The roles that may grant as well, once a request has waited for so long.
    pub fn escalated_to(&self, waited_s: u64) -> Option<&BTreeSet<String>> {
        self.escalation.as_ref().filter(|(after, _)| waited_s >= u64::from(*after)).map(|(_, to)| to)
    }
}

/// The requirement of some requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRule {
    /// The rules that hold the call, as findings name them, `*` at the end standing for any rest; empty: any.
    pub rules: BTreeSet<String>,
    /// The tools that wait, in the same way; empty: any.
    pub tools: BTreeSet<String>,
    /// What a decision requires.
    pub requirement: Requirement,
}

impl ApprovalRule {
    fn fits<'r>(&self, mut held_by: impl Iterator<Item = &'r str>, tool: &str) -> bool {
        let named = |names: &BTreeSet<String>, name: &str| names.iter().any(|pattern| fits(pattern, name));
        (self.rules.is_empty() || held_by.any(|rule| named(&self.rules, rule)))
            && (self.tools.is_empty() || named(&self.tools, tool))
    }
}

pub(super) fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

impl ApprovalSettings {
    /// What a decision requires about a call of a tool that these rules hold.
    pub fn requirement_for<'r>(
        &self,
        held_by: impl Iterator<Item = &'r str> + Clone,
        tool: &str,
    ) -> &Requirement {
        let rule = self.rules.iter().find(|rule| rule.fits(held_by.clone(), tool));
        rule.map_or(&self.requirement, |rule| &rule.requirement)
    }
}

/// Reads the fields that stand in the file itself.
pub(super) fn read_times(table: &mut Table<'_, '_>) -> ApprovalSettings {
    let mut settings = ApprovalSettings::default();
    if let Some(wait_s) = table.integer("approval_wait_s", 0) {
        /// MCP clients give up on a call after 60 s.
        const WAIT_S_MAX: u32 = 50;
        settings.wait_s = wait_s.min(WAIT_S_MAX);
    }
    settings.request_ttl_s = table.integer("approval_request_ttl_s", 1).unwrap_or(settings.request_ttl_s);
    settings.grant_ttl_s = table.integer("approval_grant_ttl_s", 1).unwrap_or(settings.grant_ttl_s);
    settings.grant_max_s = settings.grant_max_s.max(settings.grant_ttl_s);
    settings
}

/// Reads the table. `settings` are those of the file itself.
pub(super) fn read(
    file: &File<'_>,
    mut table: Table<'_, '_>,
    settings: ApprovalSettings,
) -> ApprovalSettings {
    let span = table.span.clone();
    let grant_max_s = table.integer("grant_max_s", 1).unwrap_or(settings.grant_max_s);
    if grant_max_s < settings.grant_ttl_s {
        let message = format!(
            "`grant_max_s` is {grant_max_s}, less than `approval_grant_ttl_s`, which is {}",
            settings.grant_ttl_s
        );
        file.report(file.at(span, message).help("lower `approval_grant_ttl_s`, or raise `grant_max_s`"));
    }
    let questions_per_hour = table.integer("questions_per_hour", 1);
    let release = roles(file, table.strings("release"));
    let tables = table.tables("rule");
    let webhooks = webhooks::read(file, table.tables("webhook"));
    let requirement = requirement(file, &mut table, &Requirement::default());
    if let Some(first) = tables.get(APPROVAL_RULES_MAX) {
        let message = format!("there are more than {APPROVAL_RULES_MAX} rules of approvals");
        file.report(file.at(first.span.clone(), message));
    }
    let rules = tables.into_iter().take(APPROVAL_RULES_MAX).map(|table| read_rule(file, table, &requirement));
    let rules = rules.collect();
    table.finish();
    ApprovalSettings { grant_max_s, questions_per_hour, release, rules, requirement, webhooks, ..settings }
}

fn read_rule(file: &File<'_>, mut table: Table<'_, '_>, general: &Requirement) -> ApprovalRule {
    let rules = patterns(file, table.strings("rules"));
    let tools = patterns(file, table.strings("tools"));
    let requirement = requirement(file, &mut table, general);
    table.finish();
    ApprovalRule { rules, tools, requirement }
}

/// The fields that a rule and the table itself have in common. What a rule does not say is as the table has it.
fn requirement(file: &File<'_>, table: &mut Table<'_, '_>, general: &Requirement) -> Requirement {
    let span = table.span.clone();
    let given = table.strings("roles");
    let roles = if given.is_some() { roles(file, given) } else { general.roles.clone() };
    let quorum = table.integer("quorum", 1).unwrap_or(general.quorum);
    if quorum > QUORUM_MAX {
        file.report(file.at(span.clone(), format!("`quorum` is {quorum}; the limit is {QUORUM_MAX}")));
    }
    let after = table.integer("escalate_after_s", 1);
    let to = table.strings("escalate_to");
    let escalation = match (after, to) {
        (Some(after), Some(to)) => Some((after, self::roles(file, Some(to)))),
        (None, None) => general.escalation.clone(),
        _ => {
            let message = "`escalate_after_s` and `escalate_to` need each other";
            file.report(file.at(span.clone(), message).help("give both, or remove the one that is there"));
            None
        }
    };
    if escalation.is_some() && roles.is_empty() {
        let message = "`escalate_to` adds nobody: without `roles`, any approver may grant";
        file.report(file.at(span, message).help("name in `roles` who may grant from the beginning"));
    }
    Requirement {
        roles,
        quorum,
        require_note: table.boolean("require_note").unwrap_or(general.require_note),
        four_eyes: table.boolean("four_eyes").unwrap_or(general.four_eyes),
        escalation,
    }
}

fn roles(file: &File<'_>, given: Option<Vec<Field<String>>>) -> BTreeSet<String> {
    let given = given.unwrap_or_default();
    given.into_iter().filter_map(|role| checked(file, role, |_| None)).collect()
}

/// Names, of which the last character may be `*`.
pub(super) fn patterns(file: &File<'_>, given: Option<Vec<Field<String>>>) -> BTreeSet<String> {
    let star = |name: &str| {
        let rest = name.strip_suffix('*').unwrap_or(name);
        rest.contains('*').then_some("`*` may stand at the end only")
    };
    let given = given.unwrap_or_default();
    given.into_iter().filter_map(|name| checked(file, name, star)).collect()
}

fn checked(
    file: &File<'_>,
    name: Field<String>,
    wrong: impl Fn(&str) -> Option<&'static str>,
) -> Option<String> {
    let length = 1..=NAME_BYTES_MAX;
    let message = match wrong(&name.value) {
        _ if !length.contains(&name.value.len()) => format!("a name must have 1 to {NAME_BYTES_MAX} bytes"),
        Some(why) => format!("`{}`: {why}", name.value),
        None => return Some(name.value),
    };
    file.report(file.at(name.span, message));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_first_rule_that_fits_says_what_a_decision_requires() {
        let rule = |rules: &[&str], tools: &[&str], quorum| ApprovalRule {
            rules: set(rules),
            tools: set(tools),
            requirement: Requirement { quorum, ..Requirement::default() },
        };
        let settings = ApprovalSettings {
            rules: vec![
                rule(&["access/pay*"], &["bank_*"], 4),
                rule(&["access/*"], &[], 3),
                rule(&[], &["restart"], 2),
            ],
            ..ApprovalSettings::default()
        };
        let quorum =
            |rules: &[&str], tool: &str| settings.requirement_for(rules.iter().copied(), tool).quorum;
        assert_eq!(quorum(&["access/payments"], "bank_transfer"), 4);
        assert_eq!(quorum(&["access/payments"], "mail"), 3);
        assert_eq!(quorum(&["registry/unknown-tool", "access/x"], "mail"), 3, "any rule that holds it");
        assert_eq!(quorum(&["registry/unknown-tool"], "restart"), 2);
        assert_eq!(quorum(&["registry/unknown-tool"], "restarts"), 1);
    }

    #[test]
    fn other_roles_may_grant_after_a_time() {
        let requirement = Requirement {
            roles: set(&["finance"]),
            escalation: Some((60, set(&["security"]))),
            ..Requirement::default()
        };
        assert!(requirement.may_grant(&set(&["finance", "x"]), 0));
        assert!(!requirement.may_grant(&set(&["security"]), 59));
        assert!(requirement.may_grant(&set(&["security"]), 60));
        assert!(!requirement.may_grant(&set(&["x"]), 60));
        assert!(Requirement::default().may_grant(&set(&[]), 0));
    }
}
