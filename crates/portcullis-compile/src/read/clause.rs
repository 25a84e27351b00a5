//! One clause: its slots. Every reader takes the words of one kind of thing out of the clause, wherever they stand; which
//! rule they make is decided from the slots that are filled, in `frames`.

use std::ops::Range;

use super::anchors::{self, Mood};
use super::approval::{self, Approval};
use super::context::Context;
use super::lexicon::{VAGUE, VAGUE_AMOUNTS, is_filler};
use super::look::Look;
use super::order::{self, Order};
use super::people::{self, Who};
use super::quantity::{self, Quantity, Says, Span};
use super::times::{self, Timing};
use super::tools::About;
use super::words::{Clause, Word};
use super::{beside, frames, sequences};
use crate::draft::{Put, Topic};
use crate::rule::Condition;
use crate::spec::Tool;

/// What was found in a clause.
#[derive(Debug, Clone)]
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
    fn new(clause: &Clause, look: Look, timing: Timing, approval: Option<Approval>) -> Self {
        Self {
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
        }
    }

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

    /// Whether words stand just before a place that turn what follows round: `except`, `outside`.
    pub(super) fn inverted(&self, start: usize) -> bool {
        let from = start.saturating_sub(4);
        self.look
            .find_in(
                from..start,
                &[
                    "outside|outwith|except|unless|besides|excluding of?",
                    "other|apart|aside than|from",
                    "but",
                    "without",
                ],
            )
            .is_some()
    }
}

/// Reads a clause, and makes its rules. What is left over is noted in the context.
pub(super) fn read(context: &mut Context<'_>, clause: &Clause) {
    let mut look = Look::of(clause);
    if beside::about_replies(context, &look, clause) || people::unnamed(context, &look) {
        return;
    }
    let hard_no = anchors::asides(&mut look);
    let timing = times::read(&mut look);
    let elliptic = beside::is_elliptic(&look);
    let approval = approval::read(&mut look, &context.tools);
    let mut found = Found::new(clause, look, timing, approval);
    if of_the_past(context, &mut found, hard_no) {
        return;
    }
    found.who = people::read(&mut found.look, clause.topic, &context.tools);
    declared(context, &mut found.who);
    if found.who.about.is_empty() && found.who.only.is_empty() && clause.goes_on {
        found.who.about = context.last_about.clone();
    }
    if beside::read(context, &mut found, clause, elliptic) {
        return;
    }
    frames::read_only(&mut found, &context.tools);
    if !find_tools(context, &mut found, clause) {
        return;
    }
    let asked = vague(context, &mut found);
    elsewhere(context, &found);
    let from = context.counts().0;
    if !frames::build(context, &mut found) && !asked {
        context.unmade.push(found.span.clone());
    }
    // What is said of calls that were spoken of before says more than that they are denied.
    if found.inherited
        && context.rules_from(from).iter().any(|rule| rule.when.is_empty() && rule.past.is_none())
    {
        context.drop_from(from);
        context.unmade.push(found.span.clone());
    }
    left_over(context, &found, from);
    context.last_tools.clone_from(&found.tools);
    context.last_about.clone_from(&found.who.about);
}

/// Reads gaps between calls and orders of them, and the amounts of other clauses. Whether it was one of the former.
fn of_the_past(context: &mut Context<'_>, found: &mut Found, hard_no: bool) -> bool {
    let from = context.counts().0;
    if found.timing.times.is_none() && found.approval.is_none() && sequences::gap(context, found) {
        left_over(context, found, from);
        return true;
    }
    amounts(context, found, hard_no);
    let Some(order) = ordered(context, found) else { return false };
    let from = context.counts().0;
    sequences::order(context, found, &order);
    left_over(context, found, from);
    true
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

/// `anything above that`
fn carried_amount(context: &mut Context<'_>, look: &mut Look, quantities: &mut Vec<Quantity>) {
    let Some(last) = &context.last_amount else { return };
    let short = "above|over|beyond need|needs|requires|require|has|must|is|are|:|=";
    if let Some(over) = look.find_left(&[
        "above|over|beyond|more|exceeding|higher|larger|bigger than? that|this|it",
        "anything|everything above|over|more|beyond|bigger|larger|higher",
        "larger|higher|bigger|greater amounts|sums|ones|refunds|payments",
        short,
    ]) {
        let end = if look.phrase_at(over.start, short).is_some() { over.start + 1 } else { over.end };
        look.take(over.start..end);
        quantities.push(Quantity { says: Says::Over, range: over.start..end, ..last.clone() });
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
        let (judging, needed) = (about(judged), about(other));
        !judging.is_empty()
            && !needed.is_empty()
            && (judging != needed || sequences::differ(context, found, &judging, judged, other))
    })
}

/// Whether a clause says anything that a call could be stopped by.
pub(super) fn is_statement(found: &Found, clause: &Clause) -> bool {
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

/// The words that a tool can be told by.
pub(super) fn content(look: &Look) -> Vec<&Word> {
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

/// Words that turn a statement into half of one, where nothing was made of them.
const TURNING: &[&str] = &[
    "before",
    "after",
    "until",
    "till",
    "unless",
    "once",
    "without",
    "first",
    "while",
    "whilst",
    "when",
    "whenever",
    "if",
    "provided",
    "except",
    "otherwise",
    "since",
    "although",
    "then",
    "where",
    "whose",
    "afterwards",
    "beforehand",
    "else",
    "excluding",
    "besides",
    "instead",
    "neither",
    "nor",
];

/// Things that are written down elsewhere.
const ELSEWHERE: &[&str] = &[
    "annex",
    "appendix",
    "attachment",
    "attached",
    "register",
    "wiki",
    "sheet",
    "spreadsheet",
    "confluence",
    "handbook",
    "roster",
    "rota",
    "whitelist",
    "allowlist",
    "blacklist",
    "denylist",
    "blocklist",
    "list",
    "schedule",
    "catalogue",
];

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
pub(super) fn left_over(context: &mut Context<'_>, found: &Found, from: usize) {
    let used = context.arguments_from(from);
    let anchored = |at: usize| {
        let mood = &found.mood;
        [&mood.bans, &mood.only, &mood.must].into_iter().flatten().any(|range| range.contains(&at))
    };
    for at in found.look.left_in(0..found.look.len()) {
        let Some(word) = found.look.words.get(at) else { continue };
        let turning = TURNING.contains(&word.text.as_str()) && !anchored(at);
        let empty = !word.quoted && !turning && (is_filler(&word.text) || anchors::is_anchor(&word.text))
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
