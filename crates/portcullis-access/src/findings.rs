//! The findings of a decision: one per policy and verdict, with all resources that it is about.

use std::collections::BTreeMap;

use portcullis_core::effect::Resource;
use portcullis_core::finding::{Finding, Span};
use portcullis_core::verdict::Verdict;

use crate::policy::Policy;
use crate::rules;
use crate::slices::PolicyNumber;

/// Places in the arguments that one finding names.
const SPANS_MAX: usize = 32;

/// One thing that is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touched<'a> {
    /// What is done to it.
    pub(crate) verb: &'static str,
    /// To what.
    pub(crate) resource: &'a Resource,
    /// Where the arguments say so.
    pub(crate) span: Option<&'a Span>,
}

/// Where a finding comes from, in the order of findings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// A policy could not be evaluated.
    Error(PolicyNumber),
    /// The arguments are not what the policies were checked against.
    Misfit(String),
    /// A policy.
    Policy(PolicyNumber),
    /// The bundle's default.
    Default,
}

#[derive(Debug, Default)]
struct Hit {
    policies: Vec<PolicyNumber>,
    resources: Vec<String>,
    spans: Vec<Span>,
    touched: BTreeMap<(&'static str, &'static str), usize>,
}

/// The findings of one decision in the making.
#[derive(Debug)]
pub(crate) struct Outcome {
    default: Verdict,
    hits: BTreeMap<(Source, Verdict), Hit>,
}

impl Outcome {
    pub(crate) fn new(default: Verdict) -> Self {
        Self { default, hits: BTreeMap::new() }
    }

    /// Adds the judgement on one resource to which the policies `applying` apply, while `failing` could not be
    /// evaluated.
    pub(crate) fn judge(
        &mut self,
        policies: &[Policy],
        touched: &Touched<'_>,
        applying: Vec<PolicyNumber>,
        failing: Vec<PolicyNumber>,
    ) {
        for at in &failing {
            self.add(Source::Error(*at), Verdict::Deny, touched, [*at]);
        }
        let (mut forbidden, mut permitted) = (Verdict::Allow, None);
        for (at, policy) in applying.iter().filter_map(|at| Some((*at, policies.get(*at)?))) {
            if policy.forbids {
                forbidden = forbidden.join(policy.decision);
                self.add(Source::Policy(at), policy.decision, touched, [at]);
            } else if permitted.is_none_or(|weakest| policy.decision < weakest) {
                permitted = Some(policy.decision);
            }
        }
        match permitted {
            // Nothing is left to add. A milder decision must not hide that nothing permits it.
            _ if forbidden >= Verdict::Deny => {}
            Some(Verdict::Allow) => {}
            Some(weakest) => {
                let those = |at: &&PolicyNumber| {
                    policies.get(**at).is_some_and(|policy| !policy.forbids && policy.decision == weakest)
                };
                let those: Vec<PolicyNumber> = applying.iter().filter(those).copied().collect();
                if let Some(first) = those.first().copied() {
                    self.add(Source::Policy(first), weakest, touched, those);
                }
            }
            None if self.default == Verdict::Allow || !failing.is_empty() => {}
            None => self.add(Source::Default, self.default, touched, []),
        }
    }

    /// Adds a denial because the arguments at `pointer` are not what the policies were checked against.
    pub(crate) fn misfit(&mut self, touched: &Touched<'_>, pointer: &str) {
        self.add(Source::Misfit(pointer.to_owned()), Verdict::Deny, touched, []);
    }

    fn add(
        &mut self,
        source: Source,
        verdict: Verdict,
        touched: &Touched<'_>,
        policies: impl IntoIterator<Item = PolicyNumber>,
    ) {
        let hit = self.hits.entry((source, verdict)).or_default();
        for at in policies {
            if !hit.policies.contains(&at) {
                hit.policies.push(at);
            }
        }
        *hit.touched.entry((touched.verb, touched.resource.kind.as_str())).or_default() += 1;
        hit.resources.push(touched.resource.to_string());
        if let Some(span) = touched.span
            && hit.spans.len() < SPANS_MAX
            && !hit.spans.contains(span)
        {
            hit.spans.push(span.clone());
        }
    }

    /// One finding a source and verdict, in the order of the bundle's policies.
    pub(crate) fn findings(self, policies: &[Policy]) -> Vec<Finding> {
        let findings = self.hits.into_iter().filter_map(|((source, verdict), hit)| {
            let finding = match source {
                Source::Policy(at) => by_policy(policies.get(at)?, verdict, &hit),
                Source::Error(at) => {
                    let id = &policies.get(at)?.id;
                    let message =
                        format!("the access policy `{id}` cannot be evaluated for: {}", hit.summary());
                    Finding::new(rules::POLICY_ERROR, verdict, message)
                }
                Source::Misfit(pointer) => {
                    let at =
                        if pointer.is_empty() { "as a whole".to_owned() } else { format!("at `{pointer}`") };
                    let message = format!(
                        "the arguments {at} do not match the schema that access policies were checked against"
                    );
                    Finding::new(rules::ARGUMENTS, verdict, message)
                }
                Source::Default => {
                    let message = format!("no access policy permits: {}", hit.summary());
                    Finding::new(rules::NOT_PERMITTED, verdict, message)
                }
            };
            let ids = hit.policies.iter().filter_map(|at| policies.get(*at)).map(|policy| policy.id.clone());
            let ids: Vec<String> = ids.collect();
            let mut finding = finding.against(hit.resources).by_policies(ids);
            finding.spans = hit.spans;
            Some(finding)
        });
        findings.collect()
    }
}

fn by_policy(policy: &Policy, verdict: Verdict, hit: &Hit) -> Finding {
    let message = policy.reason.clone().unwrap_or_else(|| {
        let id = &policy.id;
        let says = match verdict {
            Verdict::Review => "requires human approval for",
            Verdict::Warn => "warns of",
            Verdict::Clarify => "requires a question to the user before",
            Verdict::Pause => "pauses the run before",
            Verdict::Halt => "ends the run at",
            Verdict::Allow | Verdict::Modify | Verdict::Deny => "forbids",
        };
        format!("the access policy `{id}` {says}: {}", hit.summary())
    });
    let finding = Finding::new(policy.rule.clone(), verdict, message.clone());
    if verdict == Verdict::Clarify { finding.question(message) } else { finding }
}

impl Hit {
    /// `read column (3), call tool`: kinds and counts, never names that come from arguments.
    fn summary(&self) -> String {
        let parts = self.touched.iter().map(|((verb, kind), count)| match count {
            1 => format!("{verb} {kind}"),
            _ => format!("{verb} {kind} ({count})"),
        });
        parts.collect::<Vec<_>>().join(", ")
    }
}
