//! One clause: what it says, and the rule that it makes.

use std::ops::Range;

use super::context::{Context, Permission};
use super::events::{self, Approval};
use super::lexicon::{ABOUT_REPLIES, sense};
use super::look::Look;
use super::people::{self, Who};
use super::quantity::{self, Quantity, Span};
use super::rest::{left_over, vague};
use super::times::{self, Timing};
use super::tools::About;
use super::values::{self, Value};
use super::words::Clause;
use super::{limits, orders, required};
use crate::draft::{Put, Topic};
use crate::rule::{Condition, Stop, Test};

/// Words that forbid.
pub(super) const NEGATIVE: &[&str] = &[
    "never|not|cannot|can't|mustn't|don't|doesn't|won't|shouldn't|isn't|aren't|mayn't|nobody|none|no|nothing|forbidden|prohibited|banned|block|blocks|deny|denies|refuse|reject|stop|prevent|disallow|disallowed|off-limits|taboo|blocked|denied",
    "no one",
    "off limits",
    "keep out of",
    "stay away from|out",
];
/// Words of permissions that look like prohibitions.
pub(super) const FREE: &[&str] = &[
    "not restricted|limited|affected",
    "isn't|aren't restricted|limited|affected",
    "no restrictions|restriction|limits|limit|constraints|objections",
    "without limit|limits|restriction|restrictions",
    "unrestricted|unlimited|anytime",
    "any time",
    "no matter who|when",
    "doesn't|don't matter",
    "not an|a problem",
    "at will",
];
pub(super) const ALLOWED: &[&str] = &[
    "may|can|ok|okay|fine|allowed|permitted|free|welcome|unproblematic|stays|stay|remain|remains|acceptable",
    "go ahead",
    "all right",
    "is|are possible",
];
pub(super) const MUST: &[&str] =
    &["must|has|have to|be", "must|shall|should|mandatory|required", "needs|need to", "has|have to"];

/// Phrases that add nothing.
const ASIDES: &[&str] = &[
    "no matter in|what|which|who|how|when which|what? folder|directory|way|reason|place?",
    "for any|whatever reason",
    "at all",
    "under any|no circumstances",
    "no longer",
    "as well",
    "as usual",
    "on its|their own",
    "go ahead",
    "in any case",
    "let it|them|the agent|bot?",
    "regardless of",
];

/// What was found in a clause.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) look: Look,
    pub(super) sentence: Range<usize>,
    pub(super) span: Range<usize>,
    pub(super) negative: bool,
    pub(super) only: usize,
    pub(super) must: bool,
    pub(super) timing: Timing,
    pub(super) approval: Option<Approval>,
    pub(super) window: Option<Span>,
    pub(super) quantities: Vec<Quantity>,
    pub(super) who: Who,
    pub(super) tools: Vec<String>,
    pub(super) values: Vec<Value>,
}

/// Reads a clause.
#[expect(clippy::too_many_lines, reason = "one list of forms, in the order in which they are looked for")]
pub(super) fn read(context: &mut Context<'_>, clause: &Clause, next: Option<&Clause>) {
    let mut look = Look::of(clause);
    if about_replies(context, &look, clause) || read_only(context, &mut look, clause, next) {
        return;
    }
    for phrase in ASIDES {
        look.take_phrase(&[phrase]);
    }
    let elliptic = is_elliptic(&look);
    let timing = times::read(&mut look);
    let approval = events::approval(&mut look, &context.tools);
    if approval.is_none() && orders::read(context, &look, clause, &timing) {
        return;
    }
    let window = quantity::window(&mut look);
    let mut quantities = quantity::quantities(&mut look);
    carried_amount(context, &mut look, &mut quantities);
    let negative = look.find(NEGATIVE).is_some();
    let only = (0..look.len()).filter(|at| look.is_any(*at, &["only", "solely", "exclusively"])).count()
        + usize::from(
            look.find(&[
                "nowhere|nothing|nobody else",
                "no others|other",
                "anywhere else",
                "limited|restricted to",
                "outside the? following",
            ])
            .is_some(),
        );
    let must = look.find(MUST).is_some();
    let who = people::read(&mut look, &context.tools);
    let mut found = Found {
        sentence: clause.sentence.clone(),
        span: clause.span(),
        negative,
        only,
        must,
        timing,
        approval,
        window,
        quantities,
        who,
        tools: Vec::new(),
        values: Vec::new(),
        look,
    };
    if found.who.about.is_empty() && found.who.only.is_empty() && clause.goes_on && !found.who.anybody_named()
    {
        found.who.about = context.last_about.clone();
    }
    let free = found.look.find(FREE).is_some();
    let plain = !found.negative && found.only == 0 && !found.must && found.quantities.is_empty();
    let allowed = found.look.find(ALLOWED).is_some()
        || free
        || found.approval.as_ref().is_some_and(|approval| approval.none);
    let permits = elliptic
        || free && found.quantities.is_empty()
        || plain
            && allowed
            && found.approval.as_ref().is_none_or(|approval| approval.none)
            && !found.limits_by_time(clause);
    if permits || found.approval.as_ref().is_some_and(|approval| approval.none) {
        permission(context, found, clause);
        return;
    }
    if !find_tools(context, &mut found, clause) {
        return;
    }
    find_values(context, &mut found);
    make(context, &mut found, clause);
    context.last_tools.clone_from(&found.tools);
    context.last_about.clone_from(&found.who.about);
    context.last_values =
        found.values.iter().map(|value| (value.argument.clone(), value.test.clone())).collect();
}

impl Who {
    fn anybody_named(&self) -> bool {
        false
    }
}

impl Found {
    /// `Deployments on Fridays are fine` is no rule; `Deployments: Mon-Thu` is.
    fn limits_by_time(&self, clause: &Clause) -> bool {
        self.timing.times.is_some() && !clause.topic.is_empty() && self.look.find(ALLOWED).is_none()
    }

    /// The place of words, in bytes.
    pub(super) fn place(&self, range: &Range<usize>) -> Range<usize> {
        self.look.span(range)
    }

    /// The conditions of whom, what and when that narrow which calls are meant.
    pub(super) fn filters(&self, with_times: bool) -> Vec<Condition> {
        let mut when = Vec::new();
        if !self.who.about.is_empty() {
            when.push(Condition::Role(self.who.about.clone()));
        }
        if !self.who.except.is_empty() {
            when.push(Condition::Not(Box::new(Condition::Role(self.who.except.clone()))));
        }
        when.extend(
            self.values.iter().map(|value| Condition::Argument(value.argument.clone(), value.test.clone())),
        );
        if with_times && let Some(times) = &self.timing.times {
            when.push(self.at(times.clone()));
        }
        when
    }

    /// Times, or all others: `outside of`.
    fn at(&self, times: crate::rule::Times) -> Condition {
        let before = self.timing.at.as_ref().map_or(0, |at| at.start);
        let outside = self
            .look
            .find_in(before.saturating_sub(3)..before, &["outside|outwith of?", "except|other than|but?"])
            .is_some();
        let at = Condition::At(times);
        if outside { Condition::Not(Box::new(at)) } else { at }
    }
}

/// What no gate of calls can see.
fn about_replies(context: &mut Context<'_>, look: &Look, clause: &Clause) -> bool {
    let word = (0..look.len()).find(|at| {
        look.is_any(*at, ABOUT_REPLIES) && !look.words.get(*at).is_some_and(|word| context.tools.names(word))
    });
    let made_up = look.find(&["make|makes|made up", "hallucinate", "tone of"]);
    let Some(at) = word.or(made_up.map(|found| found.start)) else { return false };
    let span = look.span(&(at..at + 1));
    let text = format!(
        "`{}` is about what the agent says, which no rule about calls can see; should this sentence be left out?",
        look.text(at)
    );
    let _ = span;
    context.ask(Topic::Enforceable, clause.sentence.clone(), text, Put::Sentence);
    true
}

/// `small ones don't`: the opposite of what was just said.
fn is_elliptic(look: &Look) -> bool {
    let last = (0..look.len()).rev().find(|at| !look.is_any(*at, &[".", ",", "!", ")", "either"]));
    let ends = ["don't", "doesn't", "isn't", "aren't"];
    last.is_some_and(|last| {
        look.is_any(last, &ends)
            || look.is_any(last, &["not"])
                && look.is_any(last.wrapping_sub(1), &["do", "does", "is", "are", "may", "can"])
            || look.phrase_at(last.wrapping_sub(1), "don't|doesn't|not need").is_some()
    })
}

/// `anything above that`
fn carried_amount(context: &mut Context<'_>, look: &mut Look, quantities: &mut Vec<Quantity>) {
    let Some(last) = &context.last_amount else { return };
    if let Some(over) = look.find(&[
        "above|over|beyond|more|exceeding|higher|larger|bigger than? that|this|it",
        "anything|everything above|over|more|beyond|bigger|larger|higher",
        "larger|higher|bigger|greater amounts|sums|ones|refunds|payments",
        "above|over|beyond need|needs|requires|require|has|must|is|are",
    ]) {
        let end = if look
            .phrase_at(over.start, "above|over|beyond need|needs|requires|require|has|must|is|are")
            .is_some()
        {
            over.start + 1
        } else {
            over.end
        };
        look.take(over.start..end);
        quantities.push(Quantity { says: quantity::Says::Over, range: over.start..end, ..last.clone() });
        context.take_back_tentative();
    }
}

/// `read access only`, `read-only`
fn read_only(context: &mut Context<'_>, look: &mut Look, clause: &Clause, next: Option<&Clause>) -> bool {
    let Some(phrase) = look.find(&[
        "read access only|rights?",
        "read-only access|rights|permissions?",
        "only read",
        "only have|get|has|gets read|viewing|view access|rights|permission?",
        "readonly access?",
        "only look|view|read but",
        "view only access?",
        "view-only access?",
    ]) else {
        return false;
    };
    if look.find_in(phrase.end..look.len(), &["if|after|once|when"]).is_some() {
        return false;
    }
    look.take(phrase.clone());
    let who = people::read(look, &context.tools);
    let about = if who.about.is_empty() { who.only.clone() } else { who.about.clone() };
    context.last_about.clone_from(&about);
    if let Some(vague) = &who.vague {
        context.ask(Topic::Who, look.span(vague), "who is that? name the roles", Put::Replace);
        return true;
    }
    // What follows says what may not be done.
    if next.is_some_and(|next| next.goes_on) {
        return true;
    }
    let reads = |tool: &crate::spec::Tool| {
        let read = sense("read");
        let first = tool.description.split_whitespace().next().unwrap_or_default().to_lowercase();
        super::lexicon::parts(&tool.name).iter().any(|part| sense(part) == read) || sense(&first) == read
    };
    let spec = context.tools.spec;
    let writing: Vec<String> =
        spec.tools.iter().filter(|tool| !reads(tool)).map(|tool| tool.name.clone()).collect();
    let reading: Vec<&str> =
        spec.tools.iter().filter(|tool| reads(tool)).map(|tool| tool.name.as_str()).collect();
    let span = look.span(&phrase);
    if writing.is_empty() {
        context.ask(Topic::Tool, span, "no tool here does more than read; which one is meant?", Put::Append);
        return true;
    }
    let text = format!("which tools only read? taken: {}", reading.join(", "));
    context.ask_or(Topic::Tool, span, text, &reading.join(", "), Put::Choice);
    let when = if about.is_empty() { Vec::new() } else { vec![Condition::Role(about)] };
    context.rule(clause.span(), &writing, when, None, Stop::Deny);
    true
}

fn permission(context: &mut Context<'_>, mut found: Found, clause: &Clause) {
    let words: Vec<_> = found.look.left_in(0..found.look.len());
    let words: Vec<_> = words.iter().filter_map(|at| found.look.words.get(*at)).collect();
    let About::These(tools) = context.tools.about(&words, &clause.topic, |_| true) else { return };
    found.tools.clone_from(&tools);
    find_values(context, &mut found);
    let values = found.values.iter().map(|value| (value.argument.clone(), value.test.clone())).collect();
    context.last_tools.clone_from(&tools);
    context.last_about.clone_from(&found.who.about);
    context.permit(Permission { tools, about: found.who.about, values, sentence: clause.sentence.clone() });
}

/// Finds the tools, or asks for them.
fn find_tools(context: &mut Context<'_>, found: &mut Found, clause: &Clause) -> bool {
    let needs_money = found.quantities.iter().any(|quantity| quantity.currency.is_some());
    let left = found.look.left_in(0..found.look.len());
    let words: Vec<_> = left.iter().filter_map(|at| found.look.words.get(*at)).collect();
    let fits = |tool: &crate::spec::Tool| {
        !needs_money
            || tool.arguments.iter().any(super::tools::is_number)
            || !super::tools::money_arguments(tool).is_empty()
    };
    let about = context.tools.about(&words, &clause.topic, fits);
    let carries = words.iter().any(|word| {
        ["it", "them", "this", "that", "those", "these", "they", "offer", "anything", "one", "ones"]
            .contains(&word.text.as_str())
    });
    match about {
        About::These(tools) => found.tools = tools,
        About::Either(tools)
            if tools.iter().any(|tool| context.last_tools.contains(tool)) && clause.goes_on =>
        {
            found.tools.clone_from(&context.last_tools);
        }
        About::Either(tools) => {
            let text = format!("which tool is meant: {}?", tools.join(" or "));
            context.ask(Topic::Tool, found.span.clone(), text, Put::Append);
            return false;
        }
        About::Nothing
            if !context.last_tools.is_empty()
                && (carries || clause.goes_on || speaks_of_last(context, found)) =>
        {
            found.tools.clone_from(&context.last_tools);
        }
        About::Nothing => {
            let says = found.negative
                || found.only > 0
                || found.must
                || !found.quantities.is_empty()
                || found.approval.is_some()
                || found.timing.times.is_some()
                || !found.who.only.is_empty();
            if says {
                let names: Vec<&str> =
                    context.tools.spec.tools.iter().take(8).map(|tool| tool.name.as_str()).collect();
                let text = format!("no tool does this; which one is meant? there are: {}", names.join(", "));
                if vague(context, found) {
                    return false;
                }
                context.ask(Topic::Tool, found.span.clone(), text, Put::Append);
            } else if context.tools.spec.tools.is_empty()
                || words.iter().any(|word| context.tools.names(word))
            {
                context.ask(
                    Topic::Meaning,
                    found.span.clone(),
                    "what is this to say about calls?",
                    Put::Replace,
                );
            }
            return false;
        }
    }
    true
}

/// Whether values of the last tools' arguments are named.
fn speaks_of_last(context: &Context<'_>, found: &Found) -> bool {
    let mut look = found.look.clone();
    let tool = context.last_tools.first().and_then(|tool| context.tools.spec.tool(tool));
    tool.is_some_and(|tool| !values::read(&mut look, tool, false).is_empty())
}

fn find_values(context: &mut Context<'_>, found: &mut Found) {
    let Some(tool) = found.tools.first().and_then(|tool| context.tools.spec.tool(tool)) else { return };
    let forbids = found.negative && found.only == 0;
    // `in any other currency`
    let other = found.look.find(&["any? other|another"]);
    let other = other.and_then(|other| {
        let words = found.look.slice(other.end..(other.end + 2).min(found.look.len()));
        let argument = super::tools::argument(tool, &words)?.name.clone();
        let mut known = context.mentioned.get(&argument)?.clone();
        known.sort();
        known.dedup();
        Some((other.start..other.end + 1, argument, known))
    });
    if let Some((range, argument, known)) = other {
        found.look.take(range.clone());
        let test = Test::OneOf(known);
        found.values.push(Value { argument, test, words: range.collect() });
        found.only += 1;
        return;
    }
    let of_amounts = found.quantities.iter().any(|quantity| quantity.currency.is_some());
    found.values = values::read(&mut found.look, tool, forbids);
    for value in &found.values {
        if let Test::OneOf(list) = &value.test {
            context.mentioned.entry(value.argument.clone()).or_default().extend(list.clone());
        }
    }
    if of_amounts {
        // A currency that belongs to an amount is no value of its own.
        let is_code = |text: &String| quantity::currency(&text.to_lowercase()).is_some();
        found.values.retain(|value| !matches!(&value.test, Test::OneOf(list) if list.iter().all(is_code)));
    }
}

/// Makes rules of what was found.
fn make(context: &mut Context<'_>, found: &mut Found, clause: &Clause) {
    let must_ask = unclear(context, found);
    let before = found.quantities.len();
    let made = if found.approval.is_some() {
        limits::approval(context, found)
    } else if let Some(made) = limits::repeated(context, found) {
        made
    } else if before > 0 || limits::is_limit(found) {
        limits::read(context, found)
    } else if let Some(made) = required::read(context, found) {
        made
    } else {
        constraint(context, found)
    };
    let _ = clause;
    if made || must_ask {
        left_over(context, found);
    }
}

/// Asks about hours and people that the words leave open.
fn unclear(context: &mut Context<'_>, found: &Found) -> bool {
    let mut asked = false;
    if let Some(vague) = &found.timing.vague {
        let text =
            format!("which hours are `{}`? such as `Mon-Fri 9:00 to 17:00 UTC`", words_of(found, vague));
        context.ask(Topic::Hours, found.place(vague), text, Put::Replace);
        asked = true;
    }
    if let Some(dates) = &found.timing.yearless {
        let text = "of which year? write the dates with it";
        context.ask(Topic::Hours, found.place(dates), text, Put::Replace);
    }
    if let Some(zone) = &found.timing.place_zone {
        let text = "rules know offsets from UTC and no summer time; write the hours in UTC";
        context.ask(Topic::Zone, found.place(zone), text, Put::Replace);
    }
    let timed =
        found.timing.times.as_ref().is_some_and(|times| {
            times.minutes.is_some() || !times.weekdays.is_empty() || times.dates.is_some()
        });
    if let (true, false, Some(at)) = (timed, found.timing.zoned, &found.timing.at) {
        context.ask_or(Topic::Zone, found.place(at), "in which time zone?", "UTC", Put::Append);
    }
    if let Some(vague) = &found.who.vague {
        let text =
            format!("who is `{}`? name the roles, as in `people with the role x`", words_of(found, vague));
        context.ask(Topic::Who, found.place(vague), text, Put::Replace);
        asked = true;
    }
    asked
}

pub(super) fn words_of(found: &Found, range: &Range<usize>) -> String {
    let words: Vec<&str> = found.look.slice(range.clone()).iter().map(|word| word.written.as_str()).collect();
    words.join(" ")
}

/// Who may, when, with which values; or never.
fn constraint(context: &mut Context<'_>, found: &mut Found) -> bool {
    let tools = found.tools.clone();
    let span = found.sentence.clone();
    if found.who.vague.is_some() || found.timing.vague.is_some() {
        return true;
    }
    let not = |condition: Condition| Condition::Not(Box::new(condition));
    if !found.who.only.is_empty() {
        let only = Condition::Role(found.who.only.clone());
        let twice = found.only > 1;
        let mut when = found.filters(!twice);
        when.push(not(only));
        context.rule(span.clone(), &tools, when, None, Stop::Deny);
        if let (true, Some(times)) = (twice, found.timing.times.clone()) {
            let when = vec![not(Condition::At(times))];
            context.rule(span, &tools, when, None, Stop::Deny);
        }
        return true;
    }
    let strict = found.only > 0
        || (found.must && !found.negative)
        || !found.negative && found.look.find(ALLOWED).is_none();
    if let (true, Some(times)) = (strict, found.timing.times.clone()) {
        let mut when = found.filters(false);
        when.push(not(found.at(times)));
        context.rule(span, &tools, when, None, Stop::Deny);
        return true;
    }
    if !found.values.is_empty() && (found.only > 0 || found.must && !found.negative) {
        only_values(context, found);
        return true;
    }
    if found.negative {
        let age = limits::age(found);
        let mut when = found.filters(true);
        when.extend(age);
        context.rule(span, &tools, when, None, Stop::Deny);
        return true;
    }
    if found.only > 0 || found.must {
        return true;
    }
    context.ask(
        Topic::Meaning,
        found.span.clone(),
        "what is this to stop? say who, when, how much, or never",
        Put::Replace,
    );
    false
}

/// `only to these`, `must be one of these`
fn only_values(context: &mut Context<'_>, found: &Found) {
    let values =
        found.values.iter().map(|value| Condition::Argument(value.argument.clone(), value.test.clone()));
    let all: Vec<Condition> = values.collect();
    let mut when = Vec::new();
    if !found.who.about.is_empty() {
        when.push(Condition::Role(found.who.about.clone()));
    }
    if !found.who.except.is_empty() {
        when.push(Condition::Not(Box::new(Condition::Role(found.who.except.clone()))));
    }
    for condition in all {
        let mut when = when.clone();
        when.push(Condition::Not(Box::new(condition)));
        context.rule(found.sentence.clone(), &found.tools, when, None, Stop::Deny);
    }
}
