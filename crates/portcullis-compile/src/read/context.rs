//! What is known from the clauses that were read already.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::Reading;
use super::quantity::Quantity;
use super::tools::Tools;
use crate::draft::{Put, Question, Refusal, Topic};
use crate::narrowed;
use crate::rule::{Asks, Condition, Past, Rule, Stop, Test};
use crate::spec::Spec;

/// What a request has said so far.
#[derive(Debug, Clone)]
pub(super) struct Context<'s> {
    pub(super) tools: Arc<Tools<'s>>,
    rules: Vec<Rule>,
    questions: Vec<Question>,
    refusals: Vec<Refusal>,
    /// The tools of the clause before.
    pub(super) last_tools: Vec<String>,
    /// Whom the clause before was about.
    pub(super) last_about: Vec<String>,
    /// The amount that was named last: `anything above that`.
    pub(super) last_amount: Option<Quantity>,
    /// Rules that stand for *up to so much is fine*, until something else is said of what is above.
    tentative: Vec<String>,
    /// Whether the next rule is such a one.
    pub(super) tentative_next: bool,
    /// Roles that the request names as such.
    pub(super) roles: Vec<String>,
    /// Words of the sentence that nothing was made of.
    pub(super) unplaced: Vec<(String, Range<usize>)>,
    /// Clauses that say something and of which no rule was made.
    pub(super) unmade: Vec<Range<usize>>,
    /// Clauses that speak of nothing that a call could be stopped by.
    pub(super) beside: Vec<Range<usize>>,
    /// Which of several tools is taken where nobody can tell.
    pub(super) choice: Option<usize>,
    /// The tools among which it had to be chosen.
    pub(super) ties: Vec<String>,
    /// Values that were named of each argument.
    pub(super) mentioned: BTreeMap<String, Vec<String>>,
    /// What is said to be allowed.
    permissions: Vec<Permission>,
}

/// What is said to be allowed.
#[derive(Debug, Clone)]
pub(super) struct Permission {
    /// It says that no approval is needed.
    pub(super) unapproved: bool,
    pub(super) tools: Vec<String>,
    pub(super) about: Vec<String>,
    pub(super) values: Vec<(String, Test)>,
    pub(super) sentence: Range<usize>,
}

impl<'s> Context<'s> {
    pub(super) fn new(spec: &'s Spec) -> Self {
        Self {
            tools: Arc::new(Tools::new(spec)),
            rules: Vec::new(),
            questions: Vec::new(),
            refusals: Vec::new(),
            last_tools: Vec::new(),
            last_about: Vec::new(),
            last_amount: None,
            tentative: Vec::new(),
            tentative_next: false,
            roles: Vec::new(),
            unplaced: Vec::new(),
            unmade: Vec::new(),
            beside: Vec::new(),
            choice: None,
            ties: Vec::new(),
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
        self.questions.push(Question { id, about, span, text, default, put, offers: Vec::new() });
    }

    /// A question that has readings of the sentence as answers.
    pub(super) fn offer(&mut self, about: Topic, span: Range<usize>, text: String, offers: Vec<String>) {
        self.ask(about, span, text, Put::Sentence);
        if let Some(question) = self.questions.last_mut() {
            question.offers = offers;
        }
    }

    /// Whether a question or refusal is about a part of these words.
    pub(super) fn has_asked(&self, span: &Range<usize>) -> bool {
        let within = |other: &Range<usize>| other.start < span.end && span.start < other.end;
        self.questions.iter().any(|question| question.default.is_none() && within(&question.span))
            || self.refusals.iter().any(|refusal| within(&refusal.span))
    }

    /// The rules of the last sentence are not for these roles. Whether there are any.
    pub(super) fn exempt(&mut self, roles: &[String]) -> bool {
        let Some(last) = self.rules.last().map(|rule| rule.span.clone()) else { return false };
        for rule in self.rules.iter_mut().filter(|rule| rule.span == last) {
            rule.when.push(Condition::Not(Box::new(Condition::Role(roles.to_vec()))));
        }
        true
    }

    /// The tools that are taken of several that fit equally.
    pub(super) fn choose(&mut self, tools: &[String]) -> Vec<String> {
        self.ties = tools.to_vec();
        self.chosen(tools)
    }

    pub(super) fn chosen(&self, tools: &[String]) -> Vec<String> {
        match self.choice {
            Some(choice) => tools.get(choice).cloned().into_iter().collect(),
            None => tools.to_vec(),
        }
    }

    /// What was found so far, to see what a sentence adds.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        (self.rules.len(), self.questions.len(), self.refusals.len())
    }

    /// The rules since then.
    pub(super) fn rules_from(&self, place: usize) -> &[Rule] {
        self.rules.get(place..).unwrap_or_default()
    }

    /// Takes back the rules since then.
    pub(super) fn drop_from(&mut self, place: usize) {
        self.rules.truncate(place);
    }

    /// The arguments that the rules since then are about.
    pub(super) fn arguments_from(&self, place: usize) -> Vec<String> {
        fn of(condition: &Condition, all: &mut Vec<String>) {
            match condition {
                Condition::Argument(name, _) => all.push(name.clone()),
                Condition::Not(inner) => of(inner, all),
                Condition::Any(inner) | Condition::All(inner) => inner.iter().for_each(|one| of(one, all)),
                _ => {}
            }
        }
        let mut all = Vec::new();
        for rule in self.rules_from(place) {
            rule.when.iter().for_each(|condition| of(condition, &mut all));
            if let Some(past) = &rule.past {
                all.extend(past.same.iter().flat_map(|(one, other)| [one.clone(), other.clone()]));
                if let Asks::Sum(name, _) = &past.asks {
                    all.push(name.clone());
                }
            }
        }
        all
    }

    /// Whether a question without a default, or a refusal, came since then.
    pub(super) fn blocked_from(&self, (_, questions, refusals): (usize, usize, usize)) -> bool {
        self.refusals.len() > refusals
            || self.questions.iter().skip(questions).any(|question| question.default.is_none())
    }

    /// Takes rules back until something was answered.
    pub(super) fn take_back(&mut self, (rules, questions, _): (usize, usize, usize)) {
        self.rules.truncate(rules);
        self.questions.truncate(questions);
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
    ) {
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
        if std::mem::take(&mut self.tentative_next) {
            self.tentative.push(id.clone());
        }
        let rule = Rule { id, span, tools, when, past, stop };
        let says_the_same = |known: &Rule| {
            let as_known = Rule { id: known.id.clone(), span: known.span.clone(), ..rule.clone() };
            as_known == *known
        };
        if self.rules.iter().any(says_the_same) {
            return;
        }
        if let Some(condition) = narrowed::unstated(&rule, self.tools.spec) {
            self.refuse_condition(rule.span, &condition);
        } else {
            self.rules.push(rule);
        }
    }

    fn refuse_condition(&mut self, span: Range<usize>, condition: &str) {
        let message = format!(
            "a rule about what came before cannot be for the calls alone of which this holds: {condition}"
        );
        let help =
            "leave the condition out, offer these calls as a tool of their own, or hold them for a person";
        self.refuse(span, message, help);
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

    /// What is said to be fine up to an amount is no rule where another says what becomes of more.
    fn settle_tentative(&mut self) {
        let others = |rule: &Rule| -> Vec<Condition> {
            let is_bound =
                |condition: &&Condition| matches!(condition, Condition::Argument(_, Test::Compares(..)));
            rule.when.iter().filter(|condition| !is_bound(condition)).cloned().collect()
        };
        let bounds = |rule: &Rule| {
            let names = rule.when.iter().filter_map(|condition| match condition {
                Condition::Argument(name, Test::Compares(..)) => Some(name.clone()),
                _ => None,
            });
            names.collect::<Vec<_>>()
        };
        let firm: Vec<(Vec<String>, Vec<String>, Vec<Condition>)> = self
            .rules
            .iter()
            .filter(|rule| !self.tentative.contains(&rule.id))
            .map(|rule| (rule.tools.clone(), bounds(rule), others(rule)))
            .collect();
        let tentative = std::mem::take(&mut self.tentative);
        self.rules.retain(|rule| {
            let own = bounds(rule);
            let replaced = firm.iter().any(|(tools, names, theirs)| {
                *theirs == others(rule)
                    && tools.iter().any(|tool| rule.tools.contains(tool))
                    && names.iter().any(|name| own.contains(name))
            });
            !(tentative.contains(&rule.id) && replaced)
        });
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
        let clash = self.rules.iter().enumerate().find_map(|(place, rule)| {
            let before = self.rules.iter().take(place).find(|other| clash(rule, other, &self.tentative))?;
            Some((before.span.clone(), rule.span.clone()))
        });
        if let Some((_, span)) = clash {
            let text = "this sets another limit than a sentence before it; which one counts? (`drop` takes this sentence out)";
            self.ask(Topic::Contradiction, span, text, Put::Sentence);
        }
        self.settle_tentative();
        let is_open = self.questions.iter().any(|question| question.default.is_none());
        if self.rules.is_empty() && !is_open && self.refusals.is_empty() {
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

/// Whether two sentences set different limits to the same: the wider one says that what the narrower stops is fine.
fn clash(one: &Rule, other: &Rule, tentative: &[String]) -> bool {
    if one.span == other.span || !one.tools.iter().any(|tool| other.tools.contains(tool)) {
        return false;
    }
    if let (Some(past), Some(theirs)) = (&one.past, &other.past) {
        let alike = matches!((&past.asks, &theirs.asks), (Asks::Count(a), Asks::Count(b)) if a != b)
            || matches!((&past.asks, &theirs.asks), (Asks::Sum(x, a), Asks::Sum(y, b)) if x == y && a != b);
        return alike
            && past.same == theirs.same
            && past.within == theirs.within
            && one.when == other.when
            && one.stop == other.stop;
    }
    let bound = |rule: &Rule| match rule.when.as_slice() {
        [Condition::Argument(name, Test::Compares(compare, value))] => Some((name.clone(), *compare, *value)),
        _ => None,
    };
    let (Some((name, compare, value)), Some((theirs, their_compare, limit))) = (bound(one), bound(other))
    else {
        return false;
    };
    let free = |rule: &Rule| tentative.contains(&rule.id);
    let same = name == theirs && compare == their_compare && value != limit;
    same && (one.stop == other.stop && !free(one) && !free(other)
        || free(one) && !free(other) && value > limit
        || free(other) && !free(one) && limit > value)
}

/// Whether a rule stops all that is said to be allowed.
fn contradicts(rule: &Rule, permission: &Permission) -> bool {
    let covers = permission.tools.iter().any(|tool| rule.tools.contains(tool));
    if covers && permission.unapproved && matches!(rule.stop, Stop::Hold(_)) && rule.past.is_none() {
        return rule.when.is_empty();
    }
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
