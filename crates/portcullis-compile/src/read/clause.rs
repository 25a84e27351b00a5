//! Reads one clause. Readers take the words of times, approvals, amounts, people and tools out of it, one after another and
//! wherever they stand, and put them into the slots of `Found`. If two parts of the clause are about calls, it is an order
//! (`sequences`); if it exempts or allows somebody, that is noted in the context; otherwise `frames` makes rules from the
//! slots. Words that are left over are noted, so that `decide` can ask about them.

use std::ops::Range;

use super::anchors::{self, Mood};
use super::approval::{self, Approval};
use super::content::{COMPARATIVES, ELSEWHERE, TURNING};
use super::context::{Context, Permission};
use super::lexicon::{ABOUT_REPLIES, VAGUE, VAGUE_AMOUNTS, is_filler};
use super::look::Look;
use super::order::{self, Order};
use super::people::{self, Who};
use super::quantity::{self, Quantity, Says, Span};
use super::times::{self, Timing};
use super::tools::About;
use super::words::{Clause, Word};
use super::{frames, names, sequences};
use crate::draft::{Put, Topic};
use crate::rule::{Condition, Rule, Test};
use crate::spec::Tool;

/// What was found in a clause.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) look: Look,
    pub(super) sentence: Range<usize>,
    pub(super) span: Range<usize>,
    /// How many of the words are a heading.
    pub(super) topic: usize,
    pub(super) mood: Mood,
    pub(super) timing: Timing,
    pub(super) approval: Option<Approval>,
    pub(super) window: Option<Span>,
    pub(super) quantities: Vec<Quantity>,
    pub(super) who: Who,
    pub(super) tools: Vec<String>,
    /// Whether the tools are those of the clause before.
    pub(super) inherited: bool,
}

impl Found {
    /// The place of words, in bytes.
    pub(super) fn place(&self, range: &Range<usize>) -> Range<usize> {
        self.look.span(range)
    }

    /// Whether it forbids.
    pub(super) fn negative(&self) -> bool {
        self.mood.bans.is_some()
    }

    /// Words as they are written.
    pub(super) fn words(&self, range: &Range<usize>) -> String {
        self.look.slice(range.clone()).iter().map(|word| word.written.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Whether words stand just before a place that turn what follows round.
    pub(super) fn inverted(&self, start: usize) -> bool {
        self.look.is_inverted(start)
    }
}

/// Reads a clause, and makes its rules. What is left over is noted in the context.
pub(super) fn read(context: &mut Context<'_>, clause: &Clause) {
    let mut look = Look::of(clause);
    if about_replies(context, &look, clause) || names::unnamed(context, &look) {
        return;
    }
    if defines(context, &look) {
        context.unmade.push(clause.span());
        return;
    }
    let hard_no = anchors::asides(&mut look, &context.tools);
    let timing = times::read(&mut look);
    let elliptic = is_elliptic(&look);
    let approval = approval::read(&mut look, &context.tools);
    let mut found = Found {
        sentence: clause.sentence.clone(),
        span: clause.span(),
        topic: clause.topic,
        mood: Mood::default(),
        timing,
        approval,
        window: None,
        quantities: Vec::new(),
        who: Who::default(),
        tools: Vec::new(),
        inherited: false,
        look,
    };
    let from = context.counts().0;
    if found.timing.times.is_none() && found.approval.is_none() && sequences::gap(context, &mut found) {
        left_over(context, &found, from);
        return;
    }
    amounts(context, &mut found, hard_no);
    if let Some(order) = ordered(context, &found) {
        let from = context.counts().0;
        sequences::order(context, &mut found, &order);
        left_over(context, &found, from);
        return;
    }
    found.who = people::read(&mut found.look, clause.topic, &context.tools);
    declared(context, &mut found.who);
    if found.who.about.is_empty() && found.who.only.is_empty() && clause.goes_on {
        found.who.about = context.last_about.clone();
    }
    if exemption(context, &found) {
        return;
    }
    if elliptic || is_permission(&found) {
        permission(context, found, clause);
        return;
    }
    if !is_statement(&found, clause) {
        aside(context, &found);
        return;
    }
    if restates(context, &found) {
        context.beside.push(found.span.clone());
        return;
    }
    frames::read_only(&mut found, &context.tools);
    if !find_tools(context, &mut found, clause) {
        return;
    }
    rules(context, &mut found);
}

/// Makes the rules of a clause whose tools are known.
fn rules(context: &mut Context<'_>, found: &mut Found) {
    let asked = vague(context, found);
    elsewhere(context, found);
    let from = context.counts().0;
    if !frames::build(context, found) && !asked {
        context.unmade.push(found.span.clone());
    }
    // What is said of calls that were spoken of before says more than that they are denied.
    // After rules with conditions, `only X can` may be an exception of them, or a rule of its own.
    let bare = |rule: &Rule| rule.past.is_none() && (rule.when.is_empty() || !found.who.only.is_empty());
    if found.inherited && context.rules_from(from).iter().any(bare) {
        context.drop_from(from);
        context.unmade.push(found.span.clone());
    }
    left_over(context, found, from);
    context.last_tools.clone_from(&found.tools);
    context.last_about.clone_from(&found.who.about);
}

/// `pending is not clear`: a value by another, and nothing of a call.
fn defines(context: &Context<'_>, look: &Look) -> bool {
    let Some(is) = look.find(&["is|are|does not mean?", "isn't|aren't|means|mean", "doesn't mean"]) else {
        return false;
    };
    let (mut values, mut others) = (0, 0);
    for at in (0..look.len()).filter(|at| !is.contains(at)) {
        let Some(word) = look.words.get(at) else { continue };
        values += usize::from(context.tools.is_value(word));
        others += usize::from(!context.tools.is_value(word) && !is_filler(&word.text));
    }
    values > 1 && others == 0
}

/// Reads how long, how many and how much, and then what kind of statement it is.
fn amounts(context: &mut Context<'_>, found: &mut Found, hard_no: bool) {
    found.window = quantity::window(&mut found.look);
    found.quantities = quantity::quantities(&mut found.look);
    carried_amount(context, &mut found.look, &mut found.quantities);
    found.mood = anchors::mood(&found.look);
    if hard_no && found.mood.bans.is_none() {
        found.mood.bans = Some(0..0);
    }
}

/// Roles that the request itself names as roles take the place of the nouns that stand for them.
fn declared(context: &Context<'_>, who: &mut Who) {
    let plain = |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    for names in [&mut who.only, &mut who.about, &mut who.except] {
        for name in names.iter_mut() {
            let own = plain(name);
            let known = context.roles.iter().find(|role| {
                let role = plain(role);
                role == own || own.contains(&role) || role.contains(&own)
            });
            if let Some(known) = known {
                name.clone_from(known);
            }
        }
        names.dedup();
    }
}

/// What no gate of calls can see.
fn about_replies(context: &mut Context<'_>, look: &Look, clause: &Clause) -> bool {
    let word = (0..look.len()).find(|at| {
        look.is_any(*at, ABOUT_REPLIES) && !look.words.get(*at).is_some_and(|word| context.tools.names(word))
    });
    let made_up = look.find(&["make|makes|made up", "hallucinate", "tone of"]);
    let Some(at) = word.or(made_up.map(|found| found.start)) else { return false };
    let text = format!(
        "`{}` is about what the agent says, which no rule about calls can see; should this sentence be left out?",
        look.text(at)
    );
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
    let short = "above|over|beyond need|needs|requires|require|has|must|is|are|:|=";
    if let Some(over) = look.find_left(&[
        "above|over|beyond|more|exceeding|higher|larger|bigger than? that|this|it",
        "anything|everything above|over|more|beyond|bigger|larger|higher|longer|greater|heavier|further",
        "larger|higher|bigger|greater amounts|sums|ones|refunds|payments",
        short,
    ]) {
        let end = if look.phrase_at(over.start, short).is_some() { over.start + 1 } else { over.end };
        look.take(over.start..end);
        quantities.push(Quantity { says: Says::Over, range: over.start..end, unit: end, ..last.clone() });
        context.take_back_tentative();
    }
}

fn ordered(context: &Context<'_>, found: &Found) -> Option<Order> {
    if found.timing.times.is_some() || found.approval.is_some() {
        return None;
    }
    let about = |range: &Range<usize>| sequences::about(context, found, range);
    let headed = found.topic > 0
        && (found.mood.must.is_some() || found.mood.only.is_some())
        && found
            .look
            .find(&["first|beforehand|before|prior|earlier|previously", "been done", "done"])
            .is_some()
        || found.topic > 0 && found.look.find(&["first"]).is_some();
    if headed {
        let (judged, other) = (0..found.topic, found.topic..found.look.len());
        let (judging, needed) = (about(&judged), about(&other));
        if !judging.is_empty() && !needed.is_empty() && judging != needed {
            return Some(Order { judged, other, by: 0..0, requires: true, oneself: false });
        }
    }
    order::order(&found.look, &found.mood, &|judged, other| {
        sequences::sides(context, found, judged, other).is_some()
    })
}

/// Whether a clause only says what is fine.
fn is_permission(found: &Found) -> bool {
    if found.approval.as_ref().is_some_and(|approval| approval.none) {
        return true;
    }
    let mood = &found.mood;
    if mood.free
        && mood.bans.is_none()
        && mood.only.is_none()
        && found.approval.is_none()
        && found.quantities.is_empty()
    {
        return true;
    }
    let plain = mood.bans.is_none() && mood.only.is_none() && mood.must.is_none();
    plain
        && mood.allows
        && found.quantities.is_empty()
        && found.who.only.is_empty()
        && found.approval.is_none()
}

/// Whether a clause says anything that a call could be stopped by.
fn is_statement(found: &Found, clause: &Clause) -> bool {
    let mood = &found.mood;
    mood.bans.is_some()
        || mood.only.is_some()
        || mood.must.is_some()
        || found.approval.is_some()
        || !found.quantities.is_empty()
        || !found.who.only.is_empty()
        || found.window.is_some()
        || found.timing.vague.is_some()
        || found.look.find_left(&["limit|limits|cap|caps|capped|once|twice|read-only|careful"]).is_some()
        || found.timing.times.is_some() && clause.topic > 0
}

/// `everyone else gets refused`, `otherwise deny`, `the fourth one is denied`: what the sentence before it said already.
fn restates(context: &Context<'_>, found: &Found) -> bool {
    const AGAIN: &[&str] = &[
        "otherwise",
        "else",
        "rest",
        "remaining",
        "others",
        "other",
        "fourth",
        "third",
        "second",
        "fifth",
        "sixth",
        "further",
        "another",
        "beyond",
        "then",
        "→",
        "->",
        "=",
        "that",
        "gets",
        "get",
        "until",
    ];
    let content = found.look.left_in(found.topic..found.look.len());
    let again = content.iter().any(|at| found.look.is_any(*at, AGAIN));
    let new = content.iter().filter(|at| {
        let text = found.look.text(**at);
        !AGAIN.contains(&text) && !is_filler(text) && !anchors::is_anchored(&found.look, **at)
    });
    again
        && found.mood.bans.is_some()
        && context.counts().0 > 0
        && new.count() == 0
        && found.quantities.is_empty()
        && found.timing.times.is_none()
        && found.approval.is_none()
}

/// A clause that stops nothing: left out, unless it speaks of what calls are about.
fn aside(context: &mut Context<'_>, found: &Found) {
    let left = found.look.left_in(0..found.look.len());
    let known = left.iter().any(|at| {
        found.look.words.get(*at).is_some_and(|word| {
            !is_filler(&word.text)
                && (word.quoted || context.tools.names(word) || context.tools.is_value(word))
        })
    });
    if (known || found.timing.times.is_some()) && !is_history(&found.look) {
        left_over(context, found, context.counts().0);
        context.unmade.push(found.span.clone());
    } else if left.iter().any(|at| !is_filler(found.look.text(*at))) {
        context.beside.push(found.span.clone());
    }
}

/// `people have complained`, `we had an outage`: what happened, and not what may.
fn is_history(look: &Look) -> bool {
    (0..look.len()).any(|at| {
        let participle =
            look.text(at + 1).ends_with("ed") || look.is_any(at + 1, &["been", "had", "got", "seen", "sent"]);
        look.is_any(at, &["have", "has", "had", "we've", "they've"]) && participle
    }) || look.find(&["we had|got|lost|were|found", "there was|were", "last week|month|year|night"]).is_some()
}

/// `admins are exempt from this`: the rules of the sentence before it are not for them. Whether it is one.
fn exemption(context: &mut Context<'_>, found: &Found) -> bool {
    let mut roles: Vec<String> =
        found.who.about.iter().chain(&found.who.except).chain(&found.who.only).cloned().collect();
    let verb = found.look.find(&["is|are exempt|exempted|excluded|excepted|unaffected"]);
    if let Some(verb) = verb.filter(|_| roles.is_empty()) {
        roles = super::names::roles(&found.look, found.topic..verb.start);
    }
    // A clause that narrows by itself, or names another tool, is a statement of its own.
    let own = !found.who.only.is_empty()
        || matches!(context.tools.about(&content(&found.look), |_| true), About::These(tools) if tools != context.last_tools);
    let says = found
        .look
        .find(&[
            "exempt|exempted|override|excluded|excepted|unaffected",
            "not|doesn't|don't apply|bound|affected|for",
        ])
        .is_some();
    says && !own && !roles.is_empty() && context.exempt(&roles)
}

/// Notes what is said to be allowed: it contradicts what forbids the same, and is no rule.
fn permission(context: &mut Context<'_>, mut found: Found, clause: &Clause) {
    let words = content(&found.look);
    let tools = match context.tools.about(&words, |_| true) {
        About::These(tools) | About::Either(tools) => tools,
        About::Nothing => context.last_tools.clone(),
    };
    let values = match tools.first().and_then(|tool| context.tools.spec.tool(tool)) {
        Some(tool) => super::values::read(&mut found.look, tool, false),
        None => Vec::new(),
    };
    context.last_tools.clone_from(&tools);
    let values: Vec<(String, Test)> = values.into_iter().map(|value| (value.argument, value.test)).collect();
    let unapproved = found.approval.is_some();
    context.permit(Permission {
        unapproved,
        tools,
        about: found.who.about,
        values,
        sentence: clause.sentence.clone(),
    });
}

/// The words that a tool can be told by.
fn content(look: &Look) -> Vec<&Word> {
    look.left_in(0..look.len()).into_iter().filter_map(|at| look.words.get(at)).collect()
}

fn find_tools(context: &mut Context<'_>, found: &mut Found, clause: &Clause) -> bool {
    if !found.tools.is_empty() {
        return true;
    }
    match told(context, found) {
        About::These(tools) => found.tools = tools,
        About::Either(tools) => found.tools = context.choose(&tools),
        About::Nothing if !by_value(context, found).is_empty() => found.tools = by_value(context, found),
        About::Nothing if !context.last_tools.is_empty() && (clause.goes_on || refers(&found.look)) => {
            found.tools.clone_from(&context.last_tools);
            found.inherited = true;
        }
        About::Nothing => {
            if !vague(context, found) {
                let names: Vec<&str> =
                    context.tools.spec.tools.iter().map(|tool| tool.name.as_str()).take(12).collect();
                let text = format!("which tool is this about? there are {}", names.join(", "));
                context.ask(Topic::Tool, clause.sentence.clone(), text, Put::Append);
            }
            return false;
        }
    }
    true
}

/// The tools that the words are about: those that have what is said of them, if any does.
fn told(context: &Context<'_>, found: &Found) -> About {
    let words = content(&found.look);
    let money = found.quantities.iter().any(|quantity| quantity.currency.is_some());
    let open = context.tools.about(&words, |_| true);
    if !money && !matches!(open, About::Either(_)) {
        return open;
    }
    let fits = |tool: &Tool| {
        let amount = !money || !super::tools::money_arguments(tool).is_empty();
        amount && words.iter().filter(|word| word.quoted).all(|word| takes(tool, word))
    };
    match context.tools.about(&words, fits) {
        About::Nothing => open,
        narrower => narrower,
    }
}

/// The tools that have an argument of which a value is named.
fn by_value(context: &Context<'_>, found: &Found) -> Vec<String> {
    let named = |tool: &&Tool| {
        let values: Vec<String> =
            tool.arguments.iter().flat_map(super::tools::values).map(|value| value.to_lowercase()).collect();
        content(&found.look).iter().any(|word| values.contains(&word.text))
    };
    context.tools.spec.tools.iter().filter(named).map(|tool| tool.name.clone()).collect()
}

/// Whether a quoted word can be a value of a tool.
fn takes(tool: &Tool, word: &Word) -> bool {
    let text = |argument: &crate::spec::Argument| argument.kind == "string" || argument.kind == "array";
    let listed: Vec<String> =
        tool.arguments.iter().flat_map(super::tools::values).map(|value| value.to_lowercase()).collect();
    tool.name.to_lowercase() == word.text || listed.contains(&word.text) || tool.arguments.iter().any(text)
}

/// Whether a clause without a tool speaks of what was spoken of.
fn refers(look: &Look) -> bool {
    look.find_left(&[
        "it|them|they|this|that|these|those|anything|everything|both|also|larger|smaller|ones|else",
    ])
    .is_some()
        || look.left_in(0..look.len()).len() <= 6
}

/// Asks about vague words. Whether there were any.
fn vague(context: &mut Context<'_>, found: &mut Found) -> bool {
    let mut asked = false;
    let bounded =
        !found.quantities.is_empty() || found.approval.as_ref().is_some_and(|approval| approval.none);
    for at in found.look.left_in(0..found.look.len()) {
        let text = found.look.text(at).to_owned();
        let named = found.look.words.get(at).is_some_and(|word| context.tools.names(word) || word.quoted);
        if named {
            continue;
        }
        if VAGUE_AMOUNTS.contains(&text.as_str()) && !bounded {
            let place = found.place(&(at..at + 1));
            let question = format!("how much is `{text}`? such as `more than 100 EUR`");
            context.ask(Topic::Amount, place, question, Put::Replace);
        } else if VAGUE.contains(&text.as_str()) {
            let next = found.look.words.get(at + 1).is_some_and(|word| context.tools.knows_anywhere(word));
            let range = at..at + 1 + usize::from(next);
            let text = format!(
                "what is `{}`? name what a call can be told by: an argument, an amount, a number of times",
                found.words(&range)
            );
            context.ask(Topic::Meaning, found.place(&range), text, Put::Replace);
        } else {
            continue;
        }
        asked = true;
        found.look.take(at..at + 1);
    }
    asked
}

/// Asks for what is written down elsewhere.
fn elsewhere(context: &mut Context<'_>, found: &Found) {
    let place = found.look.left_in(0..found.look.len()).into_iter().find(|at| {
        found.look.is_any(*at, ELSEWHERE)
            && !found.look.words.get(*at).is_some_and(|word| context.tools.knows_anywhere(word))
    });
    if let Some(at) = place {
        let text = format!("`{}` is not at hand; which are meant? list them", found.look.text(at));
        context.ask(Topic::List, found.place(&(at..at + 1)), text, Put::Replace);
    }
}

/// Notes the words that nothing was made of.
fn left_over(context: &mut Context<'_>, found: &Found, from: usize) {
    let used = context.arguments_from(from);
    let anchored = |at: usize| {
        let mood = &found.mood;
        [&mood.bans, &mood.only, &mood.must].into_iter().flatten().any(|range| range.contains(&at))
    };
    for at in found.look.left_in(0..found.look.len()) {
        let Some(word) = found.look.words.get(at) else { continue };
        // `only to these, nowhere else`
        let closes = found.mood.only.is_some()
            && word.text == "else"
            && found.look.is_any(at.wrapping_sub(1), &["nowhere", "nothing", "nobody", "none", "no-one"]);
        let turning = TURNING.contains(&word.text.as_str()) && !anchored(at) && !closes;
        // `anything longer` than what was not said.
        let compares = COMPARATIVES.contains(&word.text.as_str())
            && found.look.is_any(at.wrapping_sub(1), &["anything", "everything", "something", "whatever"])
            && (at + 1 >= found.look.len() || !found.look.is_used(at + 1));
        let empty = !word.quoted
            && !compares
            && !turning
            && (is_filler(&word.text) || anchors::is_anchored(&found.look, at))
            || context.roles.contains(&word.text);
        // A word for an argument is placed if a rule is about the argument.
        let known = found.tools.iter().any(|tool| context.tools.describes(tool, word, &used));
        // A heading may say more than the rule needs.
        let topic = at < found.topic && !word.quoted && !turning;
        if !empty && !known && !topic {
            context.unplaced.push((word.written.clone(), word.span.clone()));
        }
    }
}

/// Conditions of whom a clause is about.
pub(super) fn people_of(who: &Who) -> Vec<Condition> {
    let mut when = Vec::new();
    if !who.about.is_empty() {
        when.push(Condition::Role(who.about.clone()));
    }
    if !who.except.is_empty() {
        when.push(Condition::Not(Box::new(Condition::Role(who.except.clone()))));
    }
    when
}
