//! Which tools and arguments words are about.

use super::lexicon::{is_action, is_filler, parts, sense, stem};
use super::words::Word;
use crate::spec::{Argument, Spec, Tool};

/// A match of all rare words of a name and nothing else has some three points a word.
const ENOUGH: f32 = 1.9;
/// Two tools as near as this are not told apart.
const NEAR: f32 = 0.45;
/// What a tool that only reads stands back where nothing speaks of reading.
const READS: f32 = 0.9;
/// Verbs that go with any noun: they are no reason against a tool.
const WEAK: &[&str] = &[
    "make",
    "made",
    "making",
    "give",
    "given",
    "giving",
    "get",
    "gets",
    "got",
    "take",
    "place",
    "placed",
    "run",
    "runs",
    "start",
    "started",
    "see",
    "hand",
    "issue",
    "issued",
    "issuing",
    "add",
    "show",
    "look",
    "looks",
    "find",
    "check",
    "checks",
    "list",
    "lists",
    "store",
    "stored",
    "book",
    "file",
    "files",
    "document",
    "documents",
    "order",
    "mail",
    "message",
    "sign",
    "test",
    "charge",
    "bill",
    "post",
    "answer",
    "open",
    "execute",
    "executed",
    "trigger",
    "approve",
    "approved",
    "approval",
    "stop",
    "move",
    "moved",
    "copy",
    "shipping",
    "save",
    "place",
    "query",
    "access",
    "create",
    "creating",
    "created",
    "granted",
    "transfer",
    "verify",
    "search",
    "searches",
    "release",
    "backup",
    "trigger",
    "submit",
    "ship",
    "ships",
    "install",
    "assign",
    "preview",
    "use",
    "given",
    "read",
];
/// Parts of names of arguments that say nothing about what they are.
const GENERIC: &[&str] = &[
    "id",
    "ids",
    "number",
    "nr",
    "no",
    "code",
    "name",
    "key",
    "ref",
    "uuid",
    "reference",
    "num",
    "of",
    "to",
    "the",
    "a",
    "for",
    "in",
    "is",
    "and",
    "or",
];
/// Words that name an argument with an amount of money.
const MONEYED: &[&str] = &[
    "amount", "price", "total", "sum", "cost", "fee", "budget", "credit", "eur", "usd", "gbp", "chf", "aud",
    "cad", "cents", "cent", "pence", "euro", "euros", "dollars", "pounds", "salary", "discount", "limit",
    "balance", "payment", "tip", "charge",
];

/// The tools with their words.
#[derive(Debug)]
pub(super) struct Tools<'s> {
    pub(super) spec: &'s Spec,
    known: Vec<Known>,
}

/// The words of a tool.
#[derive(Debug)]
struct Known {
    name: Vec<String>,
    name_stems: Vec<String>,
    description: Vec<String>,
    arguments: Vec<String>,
}

/// What words are about.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum About {
    /// These tools.
    These(Vec<String>),
    /// Nobody can tell which of these.
    Either(Vec<String>),
    /// No tool.
    Nothing,
}

fn words_of(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric() && c != '-')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

impl<'s> Tools<'s> {
    pub(super) fn new(spec: &'s Spec) -> Self {
        let known = spec.tools.iter().map(|tool| {
            let name = parts(&tool.name);
            let arguments = tool.arguments.iter();
            let described: Vec<String> = words_of(&tool.description)
                .filter(|word| {
                    !["a", "an", "the", "of", "to", "on", "in", "for", "and", "or"].contains(&word.as_str())
                })
                .collect();
            Known {
                name_stems: name.iter().map(|part| stem(part)).collect(),
                name: name.iter().map(|part| sense(part)).collect(),
                description: described.iter().map(|word| sense(word)).collect(),
                arguments: arguments
                    .flat_map(|argument| {
                        let described = words_of(&argument.description).map(|word| sense(&word));
                        parts(&argument.name)
                            .into_iter()
                            .map(|part| sense(&part))
                            .chain(described)
                            .collect::<Vec<_>>()
                    })
                    .collect(),
            }
        });
        Self { spec, known: known.collect() }
    }

    /// Whether a word belongs to a tool: to its name, description or arguments.
    pub(super) fn knows(&self, tool: &str, word: &Word) -> bool {
        let place = self.spec.tools.iter().position(|known| known.name == tool);
        let Some(known) = place.and_then(|place| self.known.get(place)) else { return false };
        let mut pieces = parts(&word.text).into_iter().map(|part| sense(&part)).chain([word.sense.clone()]);
        pieces.any(|sense| {
            known.name.contains(&sense)
                || known.description.contains(&sense)
                || known.arguments.contains(&sense)
        }) || self.spec.tool(tool).is_some_and(|tool| tool.name.to_lowercase() == word.text)
    }

    /// Whether a word belongs to the name or description of a tool, or to one of these of its arguments.
    pub(super) fn describes(&self, tool: &str, word: &Word, arguments: &[String]) -> bool {
        let place = self.spec.tools.iter().position(|known| known.name == tool);
        let Some(known) = place.and_then(|place| self.known.get(place)) else { return false };
        let own = |argument: &&Argument| arguments.contains(&argument.name);
        let used: Vec<&Argument> =
            self.spec.tool(tool).map(|tool| tool.arguments.iter().filter(own).collect()).unwrap_or_default();
        let in_arguments = |sense: &String| {
            used.iter().any(|argument| {
                parts(&argument.name)
                    .into_iter()
                    .chain(words_of(&argument.description))
                    .any(|part| super::lexicon::sense(&part) == *sense)
            })
        };
        let mut pieces = pieces(word).into_iter();
        pieces.any(|sense| {
            known.name.contains(&sense) || known.description.contains(&sense) || in_arguments(&sense)
        }) || tool.to_lowercase() == word.text
            || used.iter().any(|argument| argument.name.to_lowercase() == word.text)
    }

    /// Whether a word is a value of an argument.
    pub(super) fn is_value(&self, word: &Word) -> bool {
        let arguments = self.spec.tools.iter().flat_map(|tool| &tool.arguments);
        arguments
            .flat_map(values)
            .any(|value| value.to_lowercase() == word.text || sense(&value.to_lowercase()) == word.sense)
    }

    /// Whether a word is in the name of any tool.
    pub(super) fn names(&self, word: &Word) -> bool {
        self.known.iter().any(|known| known.name.contains(&word.sense))
    }

    /// Whether a word belongs to any tool.
    pub(super) fn knows_anywhere(&self, word: &Word) -> bool {
        self.spec.tools.iter().any(|tool| self.knows(&tool.name, word))
    }

    /// The tools that words are about, among those that fit.
    pub(super) fn about(&self, words: &[&Word], fits: impl Fn(&Tool) -> bool) -> About {
        let exact: Vec<String> = self
            .spec
            .tools
            .iter()
            .filter(|tool| words.iter().any(|word| word.text == tool.name.to_lowercase()))
            .map(|tool| tool.name.clone())
            .collect();
        if !exact.is_empty() {
            return About::These(exact);
        }
        let actions: Vec<&&Word> = words
            .iter()
            .filter(|word| is_action(&word.sense) && !WEAK.contains(&word.text.as_str()))
            .collect();
        let several = self.several(words, &actions, &fits);
        if let Some(several) = several {
            return About::These(several);
        }
        match self.nearest(words, &fits) {
            About::These(tools) => About::These(self.with_joined(tools, words, &fits)),
            other => other,
        }
    }

    /// `flag toggles and targeting changes`: tools that are named by words which the first one leaves over, in a list.
    fn with_joined(
        &self,
        mut tools: Vec<String>,
        words: &[&Word],
        fits: &impl Fn(&Tool) -> bool,
    ) -> Vec<String> {
        if !words.iter().any(|word| [",", "and", "or", "/", "nor", "both"].contains(&word.text.as_str())) {
            return tools;
        }
        for (tool, known) in self.spec.tools.iter().zip(&self.known) {
            if tools.contains(&tool.name) || !fits(tool) || reads(tool) {
                continue;
            }
            let left = words
                .iter()
                .filter(|word| !is_filler(&word.text) && !tools.iter().any(|own| self.knows(own, word)));
            let named = left.filter(|word| known.name.contains(&word.sense)).count();
            let rare = self.known.iter().filter(|other| {
                words.iter().any(|word| {
                    known.name.contains(&word.sense)
                        && other.name.contains(&word.sense)
                        && !tools.iter().any(|own| self.knows(own, word))
                })
            });
            if named > 0 && rare.count() == 1 {
                tools.push(tool.name.clone());
            }
        }
        tools
    }

    /// `insert, update or delete rows`: one tool for each verb.
    fn several(
        &self,
        words: &[&Word],
        actions: &[&&Word],
        fits: &impl Fn(&Tool) -> bool,
    ) -> Option<Vec<String>> {
        let mut senses: Vec<&str> = actions.iter().map(|word| word.sense.as_str()).collect();
        senses.dedup();
        if senses.len() < 2 {
            return None;
        }
        let nouns = words.iter().filter(|word| !senses.contains(&word.sense.as_str()));
        let nouns: Vec<&Word> = nouns.copied().collect();
        let mut found = Vec::new();
        for action in actions {
            let alone: Vec<&Word> = nouns.iter().copied().chain([**action]).collect();
            match self.nearest(&alone, fits) {
                About::These(tools) => found.extend(tools),
                // A tie between two tools, or no tool for this verb: all words together may say more.
                _ => return None,
            }
        }
        found.sort();
        found.dedup();
        (found.len() > 1).then_some(found)
    }

    fn nearest(&self, words: &[&Word], fits: &impl Fn(&Tool) -> bool) -> About {
        let scored = self.spec.tools.iter().zip(&self.known).filter(|(tool, _)| fits(tool));
        // `deployments` are what is deployed, and not what lists them.
        let asked_to_read = words.iter().any(|word| word.sense == sense("read"));
        let mut scored: Vec<(f32, &Tool)> = scored
            .map(|(tool, known)| {
                let aside = if !asked_to_read && reads(tool) { READS } else { 0.0 };
                (self.score(known, words) - aside, tool)
            })
            .collect();
        scored.sort_by(|one, other| other.0.total_cmp(&one.0));
        let Some((best, tool)) = scored.first().copied().filter(|(best, _)| *best >= ENOUGH) else {
            return About::Nothing;
        };
        let near: Vec<String> = scored
            .iter()
            .filter(|(score, _)| best - score < NEAR)
            .map(|(_, tool)| tool.name.clone())
            .collect();
        if near.len() < 2 {
            return About::These(vec![tool.name.clone()]);
        }
        About::Either(near)
    }

    fn score(&self, known: &Known, words: &[&Word]) -> f32 {
        let mut seen: Vec<String> = Vec::new();
        let mut sum = 0.0;
        for word in words {
            let mut best: f32 = 0.0;
            for piece in pieces(word) {
                if seen.contains(&piece) {
                    best = best.max(0.01);
                    continue;
                }
                best = best.max(self.weight(known, &piece, &stem(&word.text)));
                seen.push(piece);
            }
            // A verb that another tool is named by.
            let contradicts = best == 0.0
                && is_action(&word.sense)
                && !WEAK.contains(&word.text.as_str())
                && self.known.iter().any(|other| other.name.contains(&word.sense));
            sum += if contradicts { -4.0 } else { best };
        }
        sum
    }

    fn weight(&self, known: &Known, sense: &str, stem: &str) -> f32 {
        if is_filler(sense) && !known.name.iter().any(|part| part == sense) {
            return 0.0;
        }
        let exact = if known.name_stems.iter().any(|part| part == stem) { 0.8 } else { 0.0 };
        if known.name.iter().any(|part| part == sense) {
            let having =
                self.known.iter().filter(|other| other.name.iter().any(|part| part == sense)).count();
            let common = having > 1 && having * 2 > self.known.len();
            return if common { 1.5 } else { 3.0 } + exact;
        }
        if known.description.iter().any(|part| part == sense) {
            return 1.5;
        }
        if known.arguments.iter().any(|part| part == sense) { 0.5 } else { 0.0 }
    }
}

/// The senses of a word: of `sign-off-sheet` also those of its parts.
fn pieces(word: &Word) -> Vec<String> {
    let mut pieces = vec![word.sense.clone()];
    let all = parts(&word.text);
    if all.len() > 1 {
        pieces.extend(all.iter().map(|part| sense(part)));
    }
    pieces
}

/// Whether a tool only reads.
pub(super) fn reads(tool: &Tool) -> bool {
    let read = sense("read");
    let first = tool.description.split_whitespace().next().unwrap_or_default().to_lowercase();
    let more = [
        "query", "select", "status", "history", "describe", "explain", "search", "count", "top", "diff",
        "lag",
    ];
    let names = parts(&tool.name);
    names.iter().any(|part| sense(part) == read || more.contains(&part.as_str()))
        || sense(&first) == read
        || more.contains(&first.as_str())
}

/// The argument of a tool that words name, such as `employee account` for `employee_id`.
pub(super) fn argument<'t>(tool: &'t Tool, words: &[&Word]) -> Option<&'t Argument> {
    let initials: String = words.iter().filter_map(|word| word.text.chars().next()).collect();
    let score = |argument: &Argument| {
        let own: Vec<String> = parts(&argument.name);
        let own: Vec<&String> = own.iter().filter(|part| !GENERIC.contains(&part.as_str())).collect();
        let described: Vec<String> =
            words_of(&argument.description).filter(|word| !GENERIC.contains(&word.as_str())).collect();
        let mut score = 0.0;
        for word in
            words.iter().filter(|word| !["a", "an", "the", "same", "of", "any"].contains(&word.text.as_str()))
        {
            let fits = |part: &str| sense(part) == word.sense || part == word.text;
            if argument.name.to_lowercase() == word.text || parts(&argument.name) == parts(&word.text) {
                score += 4.0;
            } else if own.iter().any(|part| fits(part)) {
                score += 2.0;
            } else if described.iter().any(|part| fits(part)) {
                score += 1.0;
            }
        }
        if words.len() > 1 && own.iter().any(|part| part.as_str() == initials) {
            score += 2.0;
        }
        score
    };
    let mut scored: Vec<(f32, &Argument)> =
        tool.arguments.iter().map(|argument| (score(argument), argument)).collect();
    scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    match scored.as_slice() {
        [(best, argument), rest @ ..] if *best >= 1.0 && rest.first().is_none_or(|(next, _)| next < best) => {
            Some(argument)
        }
        _ => None,
    }
}

/// The number arguments that hold an amount of money, the likeliest ones.
pub(super) fn money_arguments(tool: &Tool) -> Vec<&Argument> {
    let numbers = tool.arguments.iter().filter(|argument| is_number(argument));
    let moneyed =
        |argument: &&Argument| parts(&argument.name).iter().any(|part| MONEYED.contains(&part.as_str()));
    let described =
        |argument: &&Argument| words_of(&argument.description).any(|word| MONEYED.contains(&word.as_str()));
    let named: Vec<&Argument> = numbers.clone().filter(moneyed).collect();
    if !named.is_empty() {
        return named;
    }
    let text = |argument: &&Argument| argument.kind == "string" && moneyed(argument);
    let found: Vec<&Argument> = numbers.filter(described).collect();
    if found.is_empty() { tool.arguments.iter().filter(text).collect() } else { found }
}

pub(super) fn is_number(argument: &Argument) -> bool {
    ["number", "integer"].contains(&argument.kind.as_str())
}

/// The currency of an amount, and whether it is in hundredths.
pub(super) fn unit_of(argument: &Argument) -> (Option<&'static str>, bool) {
    let words: Vec<String> =
        parts(&argument.name).into_iter().chain(words_of(&argument.description)).collect();
    let cents =
        words.iter().any(|word| ["cents", "cent", "pence", "pennies", "minor"].contains(&word.as_str()));
    let code = words.iter().find_map(|word| super::quantity::currency(word));
    let sign = argument.description.chars().find_map(|c| super::quantity::currency(c.to_string().as_str()));
    (code.or(sign), cents)
}

/// The values that an argument may have, by its schema or description.
pub(super) fn values(argument: &Argument) -> Vec<String> {
    if !argument.values.is_empty() {
        return argument.values.clone();
    }
    let text =
        argument.description.rsplit([':', '(']).next().unwrap_or_default().trim_end_matches([')', '.']);
    let text = text.rsplit("such as ").next().unwrap_or_default();
    let list = text.replace(" or ", ", ").replace(" and ", ", ").replace('/', ", ").replace(" | ", ", ");
    let pieces: Vec<&str> = list.split(',').map(str::trim).filter(|piece| !piece.is_empty()).collect();
    let plain = pieces.iter().all(|piece| piece.split_whitespace().count() <= 2 && !piece.contains('"'));
    if pieces.len() < 2 || !plain {
        return Vec::new();
    }
    pieces.into_iter().map(|piece| piece.trim_matches(['`', '\'']).to_owned()).collect()
}
