//! Which sentences of a reply may say that something was done.
//!
//! The words are of English grammar alone: perfect and passive forms, what stands for a refusal, what is not real. They
//! find what is worth a check; whether it is true is for the check to say.

use portcullis_detect::sentences;

/// Participles that do not end in `-ed`, of verbs that change something: what was found or read was not done.
const IRREGULAR: [&str; 25] = [
    "begun",
    "bought",
    "broken",
    "brought",
    "built",
    "chosen",
    "cut",
    "done",
    "drawn",
    "given",
    "made",
    "paid",
    "put",
    "reset",
    "rewritten",
    "run",
    "sent",
    "set",
    "shut",
    "sold",
    "split",
    "taken",
    "undone",
    "withdrawn",
    "written",
];
/// Words that say of a short line, as the last one, that what it names is over.
const OVER: [&str; 6] = ["complete", "completed", "done", "finished", "fixed", "resolved"];
/// Most words of such a line.
const SHORT_LINE_WORDS: usize = 6;
/// With one of these, nothing is said to be done.
const DENIED: [&str; 12] = [
    "cannot", "fail", "failed", "fails", "neither", "never", "no", "none", "nor", "not", "unable", "without",
];
/// With one of these, it is not said to have happened.
const UNREAL: [&str; 18] = [
    "can", "could", "if", "may", "might", "must", "need", "once", "please", "shall", "should", "unless",
    "until", "want", "wants", "will", "would", "you'd",
];
/// What may stand between a verb and its participle.
const BETWEEN: [&str; 6] = ["all", "also", "already", "both", "just", "now"];

/// Whether it may be a participle, or a past.
fn is_past(word: &str) -> bool {
    (word.len() > 4 && word.ends_with("ed")) || IRREGULAR.contains(&word)
}

/// Whether a sentence may say that the agent has done something.
pub(super) fn may_claim(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| word.chars().any(char::is_alphabetic))
        .collect();
    let says_not = |word: &&str| DENIED.contains(word) || UNREAL.contains(word) || word.ends_with("n't");
    if words.iter().any(says_not) {
        return false;
    }
    if words.contains(&"successfully") {
        return true;
    }
    if words.len() <= SHORT_LINE_WORDS && words.last().is_some_and(|last| OVER.contains(last)) {
        return true;
    }
    words.iter().enumerate().any(|(at, word)| is_past(word) && is_own(&words, at))
}

/// Whether the past at `at` is in the perfect passive, or the agent's own.
fn is_own(words: &[&str], at: usize) -> bool {
    let mut before = words.get(..at).unwrap_or_default().iter().rev().copied();
    let mut skip = || before.find(|word| !word.ends_with("ly") && !BETWEEN.contains(word));
    match skip() {
        Some("been" | "i" | "we" | "i've" | "we've") => true,
        Some("have") => matches!(skip(), Some("i" | "we")),
        _ => false,
    }
}

/// The sentences of a reply that may say that something was done, without marks of emphasis.
pub(super) fn claims(reply: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in reply.lines() {
        // Underscores stand in names.
        let line: String = line.chars().filter(|c| !matches!(c, '*' | '`' | '#' | '>')).collect();
        let said = sentences(&line).filter_map(|range| line.get(range)).filter(|said| may_claim(said));
        found.extend(said.map(|said| said.trim().to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_form() {
        assert_eq!(claims("**I have paid with `card_55555`.**"), ["I have paid with card_55555."]);
    }

    #[test]
    fn what_was_done_is_told_from_what_was_not_or_may_be() {
        for done in [
            "I have pushed the fix to the branch.",
            "I've now also updated the docs.",
            "The tests have been repaired.",
            "We merged it this morning.",
            "The upload finished successfully.",
            "## Migration completed",
        ] {
            assert_eq!(claims(done).len(), 1, "{done}");
        }
        for not in [
            "I have not pushed the fix.",
            "The tests couldn't be repaired.",
            "Once I have pushed it, you can merge.",
            "I will have merged it by noon.",
            "The file is located in the folder `src`.",
            "They have merged it.",
            "Shall I push the fix?",
            "Here is what I have found.",
        ] {
            assert_eq!(claims(not), Vec::<String>::new(), "{not}");
        }
    }
}
