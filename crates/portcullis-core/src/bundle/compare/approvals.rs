//! How approvals are asked for and decided.

use std::collections::BTreeSet;

use super::Found;
use crate::bundle::approvals::{ApprovalRule, Requirement};
use crate::bundle::{ApprovalSettings, Webhook};

impl Found {
    pub(super) fn approvals(&mut self, old: &ApprovalSettings, new: &ApprovalSettings) {
        let ApprovalSettings {
            wait_s,
            request_ttl_s,
            grant_ttl_s,
            grant_max_s,
            questions_per_hour,
            requirement,
            release,
            rules,
            webhooks,
        } = old;
        let longest = |seconds: u32| Some(u64::from(seconds));
        self.neutral("approval_wait_s", wait_s, &new.wait_s);
        self.limit("approval_request_ttl_s", longest(*request_ttl_s), longest(new.request_ttl_s));
        self.limit("approval_grant_ttl_s", longest(*grant_ttl_s), longest(new.grant_ttl_s));
        self.limit("[approvals] grant_max_s", longest(*grant_max_s), longest(new.grant_max_s));
        self.neutral("[approvals] questions_per_hour", questions_per_hour, &new.questions_per_hour);
        self.requirement("[approvals]", requirement, &new.requirement);
        self.may("[approvals] release", release, &new.release);
        self.approval_rules(rules, &new.rules);
        self.webhooks(webhooks, &new.webhooks);
    }

    /// A webhook decides nothing by itself, but is told what is held.
    fn webhooks(&mut self, old: &[Webhook], new: &[Webhook]) {
        self.value("[[approvals.webhook]]", &old, &new);
    }

    /// Rules are compared one by one where nothing but their requirements changed: the first that fits counts, so that
    /// of any other change nothing general can be said.
    fn approval_rules(&mut self, old: &[ApprovalRule], new: &[ApprovalRule]) {
        let same =
            |(old, new): (&ApprovalRule, &ApprovalRule)| old.rules == new.rules && old.tools == new.tools;
        if old.len() != new.len() || !old.iter().zip(new).all(same) {
            return self.value("[[approvals.rule]]", &old, &new);
        }
        for (number, (old, new)) in (1..).zip(old.iter().zip(new)) {
            self.requirement(&format!("[[approvals.rule]] {number}"), &old.requirement, &new.requirement);
        }
    }

    fn requirement(&mut self, part: &str, old: &Requirement, new: &Requirement) {
        let Requirement { roles, quorum, require_note, four_eyes, escalation } = old;
        self.may(&format!("{part} roles"), roles, &new.roles);
        self.ranked(format!("{part} quorum"), *quorum, new.quorum, quorum, &new.quorum);
        self.flag(format!("{part} require_note"), *require_note, new.require_note, true);
        self.flag(format!("{part} four_eyes"), *four_eyes, new.four_eyes, true);
        self.value(format!("{part} escalate_to"), escalation, &new.escalation);
    }

    /// The roles that may do something; no role means that any approver may.
    fn may(&mut self, part: &str, old: &BTreeSet<String>, new: &BTreeSet<String>) {
        match (old.is_empty(), new.is_empty()) {
            (false, false) => self.list(part, old, new, true),
            (old_any, new_any) => {
                let shown = |any: bool| if any { "any approver" } else { "some roles" };
                self.ranked(part, u32::from(!old_any), u32::from(!new_any), &shown(old_any), &shown(new_any));
            }
        }
    }
}
