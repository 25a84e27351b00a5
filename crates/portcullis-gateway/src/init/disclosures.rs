//! Tools that only read, but say that they hand out what opens doors: environment variables, secrets, configuration.
//! Their draft waits for a person as if they had side effects, until a person says otherwise.

use portcullis_core::infer::{Inferred, UNKNOWN_RISK, words_of};
use portcullis_wire::mcp::list::ListedTool;

/// Words that say that something is handed over.
const GIVES: [&str; 18] = [
    "return", "give", "get", "list", "read", "show", "print", "fetch", "retrieve", "dump", "display",
    "expose", "reveal", "view", "output", "include", "contain", "describe",
];
/// Words after which a thing is not what is handed over: it is what is needed for that, or is left out.
const TURNS: [&str; 16] = [
    "with",
    "without",
    "using",
    "use",
    "requires",
    "require",
    "needs",
    "need",
    "via",
    "no",
    "not",
    "never",
    "except",
    "excluding",
    "redacted",
    "if",
];
/// Words shortly before a verb that say that the tool does not do that.
const DENIES: [&str; 5] = ["not", "never", "cannot", "doesn", "don"];
/// What opens doors, by one word.
const THINGS: [&str; 13] = [
    "secret",
    "secrets",
    "credential",
    "credentials",
    "password",
    "passwords",
    "passphrase",
    "passphrases",
    "configuration",
    "configurations",
    "config",
    "dotenv",
    "keychain",
];
/// The same by two words.
const PAIRS: [(&str, &[&str]); 11] = [
    ("environment", &["variable", "variables"]),
    ("env", &["var", "vars", "variable", "variables"]),
    ("api", &["key", "keys", "token", "tokens"]),
    ("access", &["key", "keys", "token", "tokens"]),
    ("auth", &["token", "tokens"]),
    ("bearer", &["token", "tokens"]),
    ("refresh", &["token", "tokens"]),
    ("private", &["key", "keys"]),
    ("ssh", &["key", "keys"]),
    ("signing", &["key", "keys"]),
    ("encryption", &["key", "keys"]),
];
/// Words that say it in a name, where a sentence would say more.
const IN_NAMES: [&str; 5] = ["env", "environ", "creds", "settings", "configs"];

/// Makes the draft of such a tool wait for a person. What to warn of.
pub(super) fn raise(tool: &ListedTool, inferred: &mut Inferred) -> Option<String> {
    if inferred.side_effecting {
        return None;
    }
    let (place, what) = match thing(&words_of(&tool.name), &IN_NAMES) {
        Some(what) => ("its name", what),
        None => ("its description", said(&tool.description)?),
    };
    inferred.tool_type = "OTHER".to_owned();
    inferred.side_effecting = true;
    inferred.risk = inferred.risk.max(UNKNOWN_RISK);
    Some(format!(
        "it only reads, but {place} says that it returns `{what}`: drafted as side-effecting, so that a person is asked; \
         change it if that is wrong"
    ))
}

/// What a sentence of a description says that the tool hands over.
fn said(description: &str) -> Option<String> {
    let sentences = description.split(". ").flat_map(|part| part.split(['\n', ';', '!', '?']));
    sentences.map(words).find_map(|words| {
        let denied = |at: usize| {
            let before = words.get(at.saturating_sub(2)..at).unwrap_or_default();
            before.iter().any(|word| DENIES.contains(&word.as_str()))
        };
        let gives = |(at, word): (usize, &String)| GIVES.contains(&stem(word)) && !denied(at);
        let from = words.iter().enumerate().position(gives)?;
        let rest = words.get(from + 1..)?;
        let until = rest.iter().position(|word| TURNS.contains(&word.as_str())).unwrap_or(rest.len());
        thing(rest.get(..until)?, &[])
    })
}

fn words(sentence: &str) -> Vec<String> {
    let words = sentence.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// The verb without the ending of the third person.
fn stem(word: &str) -> &str {
    word.strip_suffix("es")
        .filter(|stem| GIVES.contains(stem))
        .or_else(|| word.strip_suffix('s'))
        .unwrap_or(word)
}

/// The first of these things among the words.
fn thing(words: &[String], more: &[&str]) -> Option<String> {
    words.iter().enumerate().find_map(|(at, word)| {
        if THINGS.contains(&word.as_str()) || more.contains(&word.as_str()) {
            return Some(word.clone());
        }
        let next = words.get(at + 1)?;
        let (_, seconds) = PAIRS.iter().find(|(first, _)| first == word)?;
        seconds.contains(&next.as_str()).then(|| format!("{word} {next}"))
    })
}
