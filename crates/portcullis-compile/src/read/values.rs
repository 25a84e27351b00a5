//! Values of arguments that a request names: words of a list, domains, folders, names of files, channels.

use super::lexicon::parts;
use super::look::Look;
use super::tools;
use super::words::Word;
use crate::rule::Test;
use crate::spec::{Argument, Tool};

/// An argument, what is said of it, and which words say it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    pub(super) argument: String,
    pub(super) test: Test,
    pub(super) words: Vec<usize>,
}

const FILE_ENDS: &[&str] = &[
    "env", "pem", "key", "json", "yaml", "yml", "toml", "txt", "csv", "md", "py", "rs", "js", "ts", "sh",
    "sql", "log", "conf", "cfg", "ini", "xml", "html", "pdf", "docx", "xlsx", "lock", "tf", "tfstate",
    "tfvars", "pfx", "p12", "crt", "zip", "gz", "exe", "bak", "db", "sqlite", "secret", "secrets",
];

fn has(argument: &Argument, words: &[&str]) -> bool {
    let described = argument.description.to_lowercase();
    let mut described = described.split(|c: char| !c.is_alphanumeric());
    parts(&argument.name).iter().any(|part| words.contains(&part.as_str()))
        || described.any(|word| words.contains(&word))
}

fn addressed(argument: &Argument) -> bool {
    has(
        argument,
        &[
            "to",
            "recipient",
            "recipients",
            "address",
            "addresses",
            "email",
            "cc",
            "bcc",
            "url",
            "uri",
            "host",
            "domain",
            "website",
            "site",
            "link",
            "invitee",
            "attendees",
            "endpoint",
        ],
    ) && ["string", "array"].contains(&argument.kind.as_str())
        && !has(argument, &["subject", "body", "folder", "path"])
}

fn pathed(argument: &Argument) -> bool {
    has(argument, &["path", "file", "filename", "folder", "directory", "dir", "filepath"])
        && argument.kind == "string"
        && !has(argument, &["content", "contents"])
}

/// Whether a word is written as a domain, and the domain.
pub(super) fn domain(word: &str) -> Option<&str> {
    let name = word.trim_start_matches("*.").trim_start_matches('@');
    let labels: Vec<&str> = name.split('.').collect();
    let plain =
        |label: &&str| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let last = labels.last()?;
    let top = last.len() >= 2 && last.chars().all(|c| c.is_ascii_alphabetic());
    (labels.len() >= 2 && labels.iter().all(plain) && top && !name.contains('/')).then_some(name)
}

/// The values that are left in a clause, of this tool's arguments. Their words are taken.
pub(super) fn read(look: &mut Look, tool: &Tool, negative: bool) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for at in 0..look.len() {
        if look.is_used(at) {
            continue;
        }
        let word = look.text(at).to_owned();
        for (argument, test) in literal(tool, &word, negative) {
            add(&mut found, &argument, test, at);
        }
        for argument in &tool.arguments {
            for value in tools::values(argument) {
                let pieces: Vec<String> =
                    value.to_lowercase().split_whitespace().map(str::to_owned).collect();
                let fits = !pieces.is_empty()
                    && pieces.iter().enumerate().all(|(step, piece)| {
                        let own = look.text(at + step);
                        own == piece
                            || own.trim_end_matches('s') == piece.trim_end_matches('s') && own.len() > 3
                            || super::lexicon::sense(own) == super::lexicon::sense(piece)
                                && ["production", "staging"].contains(&super::lexicon::sense(piece).as_str())
                            || super::quantity::currency(own)
                                .is_some_and(|code| code.eq_ignore_ascii_case(piece))
                    });
                if fits {
                    for step in 0..pieces.len() {
                        add(&mut found, &argument.name, Test::OneOf(vec![value.clone()]), at + step);
                    }
                }
            }
        }
    }
    named_rest(look, tool, &mut found);
    for value in &found {
        for at in &value.words {
            look.take(*at..at + 1);
        }
    }
    found
}

/// How far from a value the word may stand that names its argument.
const NEAR: usize = 4;
/// Names of arguments that say where: `in prod` is one of them.
const PLACES: &[&str] = &[
    "env",
    "environment",
    "namespace",
    "ns",
    "cluster",
    "account",
    "stage",
    "region",
    "target",
    "tenant",
    "project",
];

/// Values in quotes and codes, of the argument that is named nearest to them.
fn named_rest(look: &Look, tool: &Tool, found: &mut Vec<Value>) {
    let mut last: Option<String> = None;
    for at in 0..look.len() {
        let taken = found.iter().find(|value| value.words.contains(&at)).map(|value| value.argument.clone());
        if taken.is_some() {
            last = taken;
            continue;
        }
        let Some(word) = look.words.get(at).filter(|word| !look.is_used(at) && is_value(word, tool)) else {
            continue;
        };
        let joined = look.is_any(at.wrapping_sub(1), &[",", "or", "and", "/", "nor", "any"]);
        let near = nearest(look, tool, at);
        let own = if joined { last.clone().or(near) } else { near };
        let texts: Vec<&Argument> =
            tool.arguments.iter().filter(|argument| argument.kind == "string").collect();
        let place = texts
            .iter()
            .find(|argument| parts(&argument.name).iter().any(|part| PLACES.contains(&part.as_str())))
            .filter(|_| look.is_any(at.wrapping_sub(1), &["in", "on", "of", "against", "to"]) || !joined);
        let only = match texts.as_slice() {
            [one] => Some(one.name.clone()),
            _ => place.map(|argument| argument.name.clone()),
        };
        if let Some(argument) = own.or(only) {
            add(found, &argument, test(look, at, &word.written), at);
            last = Some(argument);
        }
    }
}

/// Whether a word is written as values are: in quotes, or with capitals and digits.
fn is_value(word: &Word, tool: &Tool) -> bool {
    let names = word.text == tool.name.to_lowercase()
        || tool.arguments.iter().any(|argument| argument.name.to_lowercase() == word.text);
    let digits = word.written.chars().filter(char::is_ascii_digit).count();
    let capitals = word.written.chars().filter(char::is_ascii_uppercase).count();
    let plain = word.written.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let code = plain && capitals >= 2 && digits >= 2 && word.written.len() >= 4;
    !names && (word.quoted || code)
}

/// What is said of a value: that the argument is it, begins with it, or has it.
fn test(look: &Look, at: usize, written: &str) -> Test {
    let from = at.saturating_sub(8);
    let begins = look.find_in(
        from..at,
        &["start|starts|starting|begin|begins|beginning|prefixed with", "prefix|prefixes"],
    );
    let has = look.find_in(
        from..at,
        &["contain|contains|containing|mention|mentions|mentioning|include|includes|including"],
    );
    let value = written.trim_end_matches(['…', '*']).to_owned();
    if begins.is_some() || value.len() < written.len() && !value.is_empty() {
        Test::Starts(vec![value])
    } else if has.is_some() {
        Test::Contains(vec![value])
    } else {
        Test::OneOf(vec![written.to_owned()])
    }
}

/// The argument that is named nearest to a place: before it, or just after.
fn nearest(look: &Look, tool: &Tool, at: usize) -> Option<String> {
    let steps = (1..=NEAR).flat_map(|step| [at.checked_sub(step), Some(at + step).filter(|_| step <= 2)]);
    steps.flatten().find_map(|place| {
        let word = look.words.get(place)?;
        if super::lexicon::is_filler(&word.text) && !word.quoted {
            return None;
        }
        let named = tools::argument(tool, &[word])?;
        (named.kind == "string" || named.kind == "array").then(|| named.name.clone())
    })
}

fn literal(tool: &Tool, word: &str, negative: bool) -> Vec<(String, Test)> {
    let of = |fits: fn(&Argument) -> bool| {
        tool.arguments.iter().filter(move |argument| fits(argument)).map(|argument| argument.name.clone())
    };
    let end = word.rsplit('.').next().unwrap_or_default();
    if word.len() > 1
        && (word.starts_with('/') || word.starts_with("~/") || word.ends_with('/') && !word.contains(':'))
    {
        return of(pathed)
            .map(|argument| (argument, Test::Under(vec![word.trim_end_matches('/').to_owned()])))
            .collect();
    }
    let file = word.starts_with("*.")
        || word.starts_with('.') && word.len() > 2
        || word.contains('.') && FILE_ENDS.contains(&end)
        || word.starts_with("id_") && word.len() > 3;
    let paths: Vec<String> = of(pathed).collect();
    if file && !paths.is_empty() && word.chars().any(char::is_alphabetic) {
        return paths.into_iter().map(|argument| (argument, Test::Named(vec![word.to_owned()]))).collect();
    }
    if let Some(domain) = domain(word) {
        return of(addressed)
            .map(|argument| (argument, Test::InDomain(vec![domain.to_owned()], negative)))
            .collect();
    }
    if word.starts_with('#') && word.len() > 1 {
        let channel = tool
            .arguments
            .iter()
            .find(|argument| has(argument, &["channel", "room", "tag", "conversation", "hashtag"]));
        return channel
            .map(|argument| (argument.name.clone(), Test::OneOf(vec![word.to_owned()])))
            .into_iter()
            .collect();
    }
    if word.contains('@') {
        return of(addressed).map(|argument| (argument, Test::OneOf(vec![word.to_owned()]))).collect();
    }
    Vec::new()
}

fn add(found: &mut Vec<Value>, argument: &str, test: Test, at: usize) {
    let same = |value: &&mut Value| {
        value.argument == argument && std::mem::discriminant(&value.test) == std::mem::discriminant(&test)
    };
    let Some(value) = found.iter_mut().find(same) else {
        found.push(Value { argument: argument.to_owned(), test, words: vec![at] });
        return;
    };
    value.words.push(at);
    let (list, more) = match (&mut value.test, test) {
        (Test::OneOf(list), Test::OneOf(more))
        | (Test::Under(list), Test::Under(more))
        | (Test::Starts(list), Test::Starts(more))
        | (Test::Contains(list), Test::Contains(more))
        | (Test::Named(list), Test::Named(more)) => (list, more),
        (Test::InDomain(list, _), Test::InDomain(more, _)) => (list, more),
        _ => return,
    };
    for item in more {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}
