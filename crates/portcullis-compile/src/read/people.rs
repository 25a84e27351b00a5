//! Who: roles of principals, and what of a clause names them.

use std::ops::Range;

use super::lexicon::{VAGUE_WHO, is_action};
use super::look::Look;
use super::names::roles;
use super::tools::Tools;

/// Words before which the subject of a clause ends.
const MODALS: &[&str] = &[
    "may",
    "can",
    "could",
    "should",
    "shall",
    "must",
    "will",
    "are",
    "is",
    "aren't",
    "isn't",
    "can't",
    "cannot",
    "mustn't",
    "shouldn't",
    "won't",
    "don't",
    "doesn't",
    "never",
    "get",
    "gets",
    "have",
    "has",
    "need",
    "needs",
    "mayn't",
    "not",
    "might",
    "only",
    "do",
    "does",
    "require",
    "requires",
    "who",
    "whose",
];
/// Verbs whose subject is a thing that is acted upon.
const OF_THINGS: &[&str] = &[
    "be", "go", "goes", "need", "needs", "require", "requires", "contain", "exceed", "include", "cost",
    "come", "happen", "take", "leave", "start", "end", "say", "have", "reach", "carry", "got", "get",
];
/// Subjects that are anybody, or the agent itself.
pub(super) const ANYBODY: &[&str] = &[
    "agent",
    "agents",
    "bot",
    "bots",
    "assistant",
    "it",
    "we",
    "i",
    "you",
    "they",
    "he",
    "she",
    "user",
    "users",
    "people",
    "person",
    "persons",
    "anyone",
    "anybody",
    "everyone",
    "everybody",
    "nobody",
    "none",
    "customer",
    "customers",
    "client",
    "clients",
    "caller",
    "callers",
    "system",
    "tool",
    "ai",
    "model",
    "copilot",
    "llm",
    "that",
    "this",
    "these",
    "those",
    "which",
    "who",
    "whoever",
    "no-one",
    "somebody",
    "someone",
    "account",
    "accounts",
    "operator",
    "else",
    "other",
    "others",
    "all",
    "colleagues",
];
pub(super) const ARTICLES: &[&str] = &[
    "a",
    "an",
    "the",
    "our",
    "your",
    "their",
    "any",
    "all",
    "every",
    "each",
    "some",
    "other",
    "one",
    "of",
    "with",
    "in",
    "from",
    "having",
    "role",
    "roles",
    "team",
    "group",
    "user",
    "users",
    "people",
    "members",
    "member",
    "person",
    "persons",
    "anyone",
    "everyone",
    "someone",
    "somebody",
    "staff",
    "employees",
    "who",
    "are",
    "is",
    "has",
    "have",
    "holding",
    "being",
    "also",
    "as",
    "at",
    "least",
];

/// Whom a clause is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Who {
    /// Only these may.
    pub(super) only: Vec<String>,
    /// It is about these.
    pub(super) about: Vec<String>,
    /// It is not about these.
    pub(super) except: Vec<String>,
    /// Words that do not say who.
    pub(super) vague: Option<Range<usize>>,
    /// The place of the words.
    pub(super) at: Option<Range<usize>>,
    /// Whether a subject is named at all, if it is anybody.
    pub(super) anybody: bool,
}

/// Reads who a clause is about, and takes the words.
pub(super) fn read(look: &mut Look, start: usize, tools: &Tools<'_>) -> Who {
    let mut who = Who::default();
    exceptions(look, tools, &mut who);
    let excluded = look.find(&["not for", "but not for?"]).is_some();
    only(look, start, tools, &mut who);
    // `only for nurses, not for porters`: who is not among the first is excluded, and not exempt.
    if excluded && !who.only.is_empty() {
        who.except.clear();
    }
    if who.only.is_empty() && who.vague.is_none() {
        subject(look, start, tools, &mut who);
    }
    who
}

fn exceptions(look: &mut Look, tools: &Tools<'_>, who: &mut Who) {
    let leads = [
        "unless they|he|she|it|you|the? user|caller|requester|person|principal? are|is|has|have a|an|the?",
        "unless they're|you're|he's|she's|it's a|an|the?",
        "except|excluding|besides for? the|a|an?",
        "other than the|a|an?",
        "apart|aside from the|a|an?",
        "with the? exception of",
        "unless a|an|the",
        "does not|doesn't|don't apply to",
        "not for",
        "unless done|performed|requested|made by a|an|the?",
        "unless by|you're",
        "but not for? the?",
        "exempt|exempted is|are",
        "who|that are|is not a|an?",
        "who|that aren't|isn't a|an?",
        "without the?",
    ];
    let Some(lead) = look.find(&leads) else { return };
    if look.find_in(0..lead.start.min(3), &["nobody|none|no-one|noone", "no one"]).is_some() {
        return;
    }
    let negative = look.is_any(lead.start, &["who", "that", "without"]);
    if negative
        && look.text(lead.start) == "without"
        && !look.slice(lead.end..look.len()).iter().any(|word| word.text == "role")
    {
        return;
    }
    let end = noun_end(look, tools, lead.end, true);
    let names = roles(look, lead.end..end);
    let known =
        look.slice(lead.end..end).iter().any(|word| tools.knows_anywhere(word) && !is_person(&word.text));
    // An exception of a thing, such as a value or an event, is somebody else's.
    if names.is_empty()
        || (known
            && !look.slice(lead.clone()).iter().any(|word| {
                ["they", "they're", "user", "you", "caller", "role", "he", "she"]
                    .contains(&word.text.as_str())
            }))
    {
        return;
    }
    if look
        .find_in(lead.end..look.len(), &["before|first|beforehand|earlier|previously", "was|were|been"])
        .is_some()
    {
        return;
    }
    look.take(lead.start..end);
    who.except = names;
}

/// Whether a word ends as those do that name people.
fn is_person(word: &str) -> bool {
    if [
        "order",
        "orders",
        "transfer",
        "transfers",
        "number",
        "offer",
        "offers",
        "folder",
        "letter",
        "server",
        "servers",
        "parameter",
        "voucher",
        "vouchers",
        "alter",
        "enter",
        "register",
        "deliver",
        "error",
        "color",
        "trigger",
        "paper",
        "door",
        "filter",
        "newsletter",
        "container",
        "order's",
        "computer",
        "printer",
        "calendar",
        "list",
        "grant",
        "grants",
        "refer",
        "render",
        "answer",
        "answers",
        "tender",
        "router",
        "cluster",
        "monitor",
        "reorder",
    ]
    .contains(&word)
    {
        return false;
    }
    [
        "er", "ers", "or", "ors", "ist", "ists", "ian", "ians", "ant", "ants", "ee", "ees", "lead", "leads",
        "admin", "admins", "staff", "doctor", "nurse", "nurses", "doctors", "rep", "reps", "agent", "agents",
        "chief", "head", "director", "intern", "interns", "dba", "dbas", "steward", "stewards",
    ]
    .iter()
    .any(|end| word.ends_with(end))
}

/// `only by storage admins`, `by storage admins only`, `reserved for managers`. Whether it is one of these.
fn only_by(look: &mut Look, tools: &Tools<'_>, who: &mut Who) -> bool {
    let only_somewhere = look.find(&["only|solely|exclusively|reserved|restricted|nobody", "no one"]);
    let by = look.find(&[
        "reserved for",
        "restricted|limited to",
        "only by",
        "solely|exclusively by",
        "only for",
        "exclusively|only to be? done? by",
        "by",
        "for",
    ]);
    if let (Some(_), Some(by)) = (&only_somewhere, by) {
        let end = noun_end(look, tools, by.end, true);
        let strict = !look.is_any(by.start, &["by", "for"]) || by.len() > 1;
        let passive = look.text(by.start) == "by" || strict || look.is_any(end, &["only"]);
        let names = roles(look, by.end..end);
        let is_number = super::quantity::number(look, by.end).is_some();
        let thing =
            look.slice(by.end..end).iter().any(|word| tools.knows_anywhere(word) && !is_person(&word.text));
        if passive
            && !is_number
            && !thing
            && end > by.end
            && (!names.is_empty() || vague_in(look, by.end..end).is_some())
            && !by_is_how(look, by.end)
        {
            who.vague = vague_in(look, by.end..end);
            who.only = if who.vague.is_some() { Vec::new() } else { names };
            who.at = Some(by.start..end);
            look.take(by.start..end + usize::from(look.is_any(end, &["only"])));
            return true;
        }
    }
    false
}

fn only(look: &mut Look, from: usize, tools: &Tools<'_>, who: &mut Who) {
    if only_by(look, tools, who) {
        return;
    }
    let leads = [
        "only|solely|just",
        "nobody|none|no-one|noone but|except|other|besides|outside for|than|of? the|a|an?",
        "no one but|except|other|besides for|than? the|a|an?",
        "nobody|no-one who|that isn't|is not? a|an?",
        "you must|have to be a|an",
        "must be a|an",
        "no one who is not a|an",
    ];
    let Some(lead) = look.find_in(from..look.len().min(from + 4), &leads) else { return };
    let start = lead.end;
    if lead.start > 0 && look.is_any(lead.start - 1, MODALS)
        || look.is_any(start, &["be", "been", "ever", "the"]) && look.is_any(start, &["be", "been"])
    {
        return;
    }
    if super::quantity::number(look, start).is_some()
        || look.is_any(
            start,
            &[
                "after", "if", "when", "once", "on", "between", "to", "from", "with", "in", "under", "at",
                "by", "use", "during",
            ],
        )
    {
        return;
    }
    let end = noun_end(look, tools, start, false);
    let followed = look.is_any(end, MODALS)
        || (end < look.len()
            && (is_action(look.sense(end)) || look.words.get(end).is_some_and(|word| tools.names(word))))
        || look.text(end).is_empty();
    if end == start || !followed {
        return;
    }
    // `Only refunds under 50 are allowed`: a thing, not a person.
    let last = look.words.get(end - 1);
    if last.is_some_and(|word| tools.names(word) && !is_person(&word.text)) && passive_after(look, end) {
        return;
    }
    who.vague = vague_in(look, start..end);
    if who.vague.is_none() {
        who.only = roles(look, start..end);
    }
    who.at = Some(lead.start..end);
    look.take(lead.start..end);
}

/// `by more than 10 %`, `by bank transfer`: how, and not who.
fn by_is_how(look: &Look, at: usize) -> bool {
    look.is_any(at, &["more", "at", "default", "mistake", "phone", "email", "mail", "hand", "that", "then"])
}

/// Whether a passive follows: what stands before it is acted upon.
fn passive_after(look: &Look, at: usize) -> bool {
    let mut place = at;
    while place < look.len()
        && (look.is_any(place, MODALS)
            || look.is_any(place, &["only", "ever", "also", "to", "just", "still", "then"]))
    {
        if look.is_any(place, &["need", "needs", "require", "requires", "has", "have"]) {
            return !look.is_any(place + 1, &["to"]) || look.is_any(place + 2, &["be"]);
        }
        let be = look.is_any(place, &["is", "are", "aren't", "isn't"])
            && !look.is_any(place + 1, &["allowed", "permitted", "able", "not", "only", "never"])
            && !look.is_any(place + 2, &["allowed", "permitted"]);
        if be {
            return true;
        }
        place += 1;
    }
    look.is_any(place, OF_THINGS)
        || look.is_any(place, &["allowed", "permitted"]) && !look.is_any(place + 1, &["to"])
}

fn subject(look: &mut Look, from: usize, tools: &Tools<'_>, who: &mut Who) {
    let start = from + usize::from(look.is_any(from, &["no", "the", "a", "an", "any"]));
    let Some(end) = (start..look.len())
        .find(|at| look.is_any(*at, MODALS))
        .filter(|end| *end > start && *end <= start + 7)
    else {
        return;
    };
    let words = look.slice(start..end);
    if words.iter().any(|word| {
        [
            "if", "when", "once", "after", "before", "between", "whoever", "don't", "limit", ",", "unless",
            "that", "which",
        ]
        .contains(&word.text.as_str())
    }) {
        return;
    }
    let left: Vec<usize> = look.left_in(start..end);
    // `the booking assistant` in the singular is the agent itself.
    if look.is_any(end - 1, &["agent", "bot", "chatbot", "assistant", "copilot"])
        && !words.iter().any(|word| word.quoted)
    {
        who.anybody = true;
        look.take(start..end);
        return;
    }
    let anybody = left.iter().all(|at| look.is_any(*at, ANYBODY) || look.is_any(*at, ARTICLES));
    if anybody {
        who.anybody = !left.is_empty();
        look.take(start..end);
        return;
    }
    let of_thing =
        passive_after(look, end) || words.iter().any(|word| OF_THINGS.contains(&word.text.as_str()));
    let first_acts = words.first().is_some_and(|word| is_action(&word.sense) && word.text.ends_with("ing"));
    let of_people = words.last().is_some_and(|word| is_person(&word.text));
    let named = !of_people && words.iter().any(|word| tools.knows_anywhere(word) || tools.is_value(word));
    if of_thing || first_acts || named || is_bare_verb(look, tools, start) {
        return;
    }
    let negative_no = look.is_any(from, &["no"]);
    let last = words.last().copied();
    if negative_no && last.is_some_and(|word| tools.names(word) && !is_person(&word.text)) {
        return;
    }
    who.vague = vague_in(look, start..end);
    if who.vague.is_none() {
        who.about = roles(look, start..end);
    }
    who.at = Some(start..end);
    look.take(from..end);
}

fn vague_in(look: &Look, range: Range<usize>) -> Option<Range<usize>> {
    let place = range.clone().find(|at| look.is_any(*at, VAGUE_WHO));
    place.map(|_| range)
}

/// Words at which a noun phrase ends.
const STOPS: &[&str] = &[
    ",",
    ";",
    ".",
    "(",
    "unless",
    "if",
    "when",
    "after",
    "before",
    "to",
    "during",
    "per",
    "on",
    "between",
    "within",
    "only",
    "for",
    "without",
    "using",
    "because",
    "–",
    "—",
    "that",
    "except",
    "at",
    "under",
    "over",
    "and/or",
    "first",
    "beforehand",
    "via",
    "whenever",
    "while",
    "where",
    "as",
    "until",
    "once",
    "→",
    "=",
    ":",
    "$",
];

/// Where a noun phrase that names people ends.
fn noun_end(look: &Look, tools: &Tools<'_>, start: usize, to_end: bool) -> usize {
    let mut at = start;
    while at < look.len() {
        let joined = look.is_any(at, &[","])
            && look.is_any(at + 2, &[",", "and", "or"])
            && !look.is_any(at + 1, MODALS);
        let stop = look.is_any(at, STOPS) && !joined;
        let verb = !to_end
            && at > start
            && look.words.get(at).is_some_and(|word| {
                !is_person(&word.text)
                    && is_action(&word.sense)
                    && !word.text.ends_with("ing")
                    && tools.knows_anywhere(word)
                    || (tools.names(word) && !is_person(&word.text) && is_verb_place(look, at))
            });
        let of_role = look.is_any(at, &["with", "in", "who", "holding", "whose", "from"]);
        let modal = look.is_any(at, MODALS) && !look.is_any(at, &["have", "has", "are", "is", "who"]);
        if stop
            || modal && !of_role
            || verb
            || look.is_any(at, &["are", "is", "have", "has"]) && !look.is_any(at.wrapping_sub(1), &["who"])
            || (of_role && !names_role(look, at))
            || (!to_end && at == start && is_bare_verb(look, tools, at))
        {
            break;
        }
        at += 1;
    }
    at
}

/// `Only restore a database if …`: a verb, where somebody would stand.
fn is_bare_verb(look: &Look, tools: &Tools<'_>, at: usize) -> bool {
    let Some(word) = look.words.get(at) else { return true };
    if VAGUE_WHO.contains(&word.text.as_str()) || word.text.ends_with("ed") && !tools.names(word) {
        return false;
    }
    let verb =
        is_action(&word.sense) && !word.text.ends_with('s') || tools.names(word) && is_action(&word.sense);
    verb && !is_person(&word.text) && !look.is_any(at + 1, MODALS)
}

/// Whether what follows reads as an object: `doctors order new labs`.
fn is_verb_place(look: &Look, at: usize) -> bool {
    !look.text(at).ends_with('s')
        && at + 1 < look.len()
        && !look.is_any(at + 1, MODALS)
        && !look.is_any(at + 1, &["and", "or", ","])
}

fn names_role(look: &Look, at: usize) -> bool {
    look.find_in(at..look.len().min(at + 7), &["role|roles|team|group|department"]).is_some()
}

/// Roles in these words.
pub(super) fn named_in(look: &Look, range: Range<usize>) -> (Vec<String>, Option<Range<usize>>) {
    (roles(look, range.clone()), vague_in(look, range))
}

/// Roles in words that are given as an answer or follow `by`.
pub(super) fn named(
    look: &Look,
    tools: &Tools<'_>,
    start: usize,
) -> (Vec<String>, usize, Option<Range<usize>>) {
    let end = noun_end(look, tools, start, true);
    (roles(look, start..end), end, vague_in(look, start..end))
}
