//! What is known from the clauses that were read already.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Reading;
use super::quantity::Quantity;
use super::tools::Tools;
use crate::draft::{Put, Question, Refusal, Topic};
use crate::rule::{Condition, Past, Rule, Stop, Test};
use crate::spec::Spec;

/// What a request has said so far.
#[derive(Debug)]
pub(super) struct Context<'s> {
    pub(super) tools: Tools<'s>,
    rules: Vec<Rule>,
    questions: Vec<Question>,
    refusals: Vec<Refusal>,
    /// The tools of the clause before.
    pub(super) last_tools: Vec<String>,
    /// Whom the clause before was about.
    pub(super) last_about: Vec<String>,
    /// The values of the clause before.
    pub(super) last_values: Vec<(String, Test)>,
    /// The amount that was named last: `anything above that`.
    pub(super) last_amount: Option<Quantity>,
    /// Rules that stand for *up to so much is fine*, until something else is said of what is above.
    pub(super) tentative: Vec<String>,
    /// Values that were named of each argument.
    pub(super) mentioned: BTreeMap<String, Vec<String>>,
    /// What is said to be allowed.
    permissions: Vec<Permission>,
}

/// What is said to be allowed.
#[derive(Debug, Clone)]
pub(super) struct Permission {
    pub(super) tools: Vec<String>,
    pub(super) about: Vec<String>,
    pub(super) values: Vec<(String, Test)>,
    pub(super) sentence: Range<usize>,
}

impl<'s> Context<'s> {
    pub(super) fn new(spec: &'s Spec) -> Self {
        Self {
            tools: Tools::new(spec),
            rules: Vec::new(),
            questions: Vec::new(),
            refusals: Vec::new(),
            last_tools: Vec::new(),
            last_about: Vec::new(),
            last_values: Vec::new(),
            last_amount: None,
            tentative: Vec::new(),
            mentioned: BTreeMap::new(),
            permissions: Vec::new(),
        }
    }

    pub(super) fn ask(&mut self, about: Topic, span: Range<usize>, text: impl Into<String>, put: Put) {
        self.question(about, span, text.into(), None, put);
    }

    /// A question that has a default, which the rules already follow.
    pub(super) fn ask_or(
        &mut self,
        about: Topic,
        span: Range<usize>,
        text: impl Into<String>,
        default: &str,
        put: Put,
    ) {
        self.question(about, span, text.into(), Some(default.to_owned()), put);
    }

    fn question(
        &mut self,
        about: Topic,
        span: Range<usize>,
        text: String,
        default: Option<String>,
        put: Put,
    ) {
        let again = self.questions.iter().any(|known| known.about == about && known.span == span);
        if again {
            return;
        }
        let count = self.questions.iter().filter(|known| known.about == about).count();
        let word = serde_json::to_value(about)
            .ok()
            .and_then(|word| word.as_str().map(str::to_owned))
            .unwrap_or_default();
        let id = if count == 0 { word } else { format!("{word}-{}", count + 1) };
        self.questions.push(Question { id, about, span, text, default, put });
    }

    pub(super) fn refuse(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.refusals.push(Refusal { span, message: message.into(), help: help.into() });
    }

    /// One rule more. Its id says what it is about.
    pub(super) fn rule(
        &mut self,
        span: Range<usize>,
        tools: &[String],
        when: Vec<Condition>,
        past: Option<Past>,
        stop: Stop,
    ) -> String {
        let tool = tools.first().map_or("calls", String::as_str);
        let stem: Vec<String> = super::lexicon::parts(tool);
        let verb = match (&stop, &past) {
            (Stop::Hold(_), _) => "approve",
            (_, Some(_)) => "order",
            _ => "guard",
        };
        let base = format!("{verb}-{}", stem.join("-"));
        let base: String = base.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
        let count = self
            .rules
            .iter()
            .filter(|rule| {
                rule.id == base
                    || rule
                        .id
                        .rsplit_once('-')
                        .is_some_and(|(start, end)| start == base && end.parse::<u32>().is_ok())
            })
            .count();
        let id = if count == 0 { base } else { format!("{base}-{}", count + 1) };
        let mut tools = tools.to_vec();
        tools.sort();
        tools.dedup();
        self.rules.push(Rule { id: id.clone(), span, tools, when, past, stop });
        id
    }

    /// Takes rules back that something more precise replaces.
    pub(super) fn take_back_tentative(&mut self) {
        let tentative = std::mem::take(&mut self.tentative);
        self.rules.retain(|rule| !tentative.contains(&rule.id));
    }

    pub(super) fn permit(&mut self, permission: Permission) {
        self.permissions.push(permission);
    }

    /// The roles that alone may call a tool, where a rule says so.
    pub(super) fn only_roles(&self, tool: &str) -> Vec<String> {
        let of = |rule: &Rule| match rule.when.as_slice() {
            [Condition::Not(inner)] if rule.tools.iter().any(|known| known == tool) => match inner.as_ref() {
                Condition::Role(roles) => roles.clone(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        self.rules.iter().flat_map(of).collect()
    }

    pub(super) fn finish(mut self, text: &str) -> Reading {
        let permissions = std::mem::take(&mut self.permissions);
        for permission in &permissions {
            let contradicted = self.rules.iter().any(|rule| contradicts(rule, permission));
            if contradicted {
                let sentence = permission.sentence.clone();
                let put = Put::Sentence;
                self.ask(Topic::Contradiction, sentence, "this allows what another sentence forbids; which one counts? (`drop` takes this sentence out)", put);
            }
        }
        if self.rules.is_empty() && self.questions.is_empty() && self.refusals.is_empty() {
            let message = "this says nothing that a call could be stopped by";
            self.ask(Topic::Meaning, 0..text.len(), message, Put::Replace);
        }
        Reading {
            text: text.to_owned(),
            rules: self.rules,
            questions: self.questions,
            refusals: self.refusals,
        }
    }
}

/// Whether a rule stops all that is said to be allowed.
fn contradicts(rule: &Rule, permission: &Permission) -> bool {
    let covers = permission.tools.iter().any(|tool| rule.tools.contains(tool));
    if !covers || rule.stop != Stop::Deny || rule.past.is_some() {
        return false;
    }
    rule.when.iter().all(|condition| match condition {
        Condition::Role(roles) => permission.about.iter().any(|role| roles.contains(role)),
        Condition::Not(inner) => match inner.as_ref() {
            Condition::Role(roles) => {
                !permission.about.is_empty() && !permission.about.iter().any(|role| roles.contains(role))
            }
            _ => false,
        },
        Condition::Argument(argument, test) => {
            permission.values.iter().any(|(own, value)| own == argument && value == test)
        }
        _ => false,
    })
}
