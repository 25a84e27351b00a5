//! Whether a text may say that something is done.
//!
//! What it says is neither believed nor disbelieved. The answer only decides whether somebody looks, so that it errs on the
//! side of looking.

/// Beginnings of words that say that something is done, in the languages that agents are mostly used in.
const WORDS: [&str; 7] = [
    "achiev|added|addressed|all set|applied|closed|committed|complete|corrected|created|deliver|deploy|done|finaliz|finish\
     |fixed|fixes|fulfil|green|handled|implement|in place|landed|merged|migrat|pass|patched|pushed|ready|refactor|released\
     |repaired|resolv|shipped|solved|succe|taken care|updated|verified|working|works|wrapped up|written",
    // German, French.
    "abgeschlossen|behoben|erledigt|fertig|funktioniert|umgesetzt",
    "achevé|corrigé|fait|fini|réussi|terminé",
    // Spanish, Portuguese and Italian.
    "completad|concluíd|corregid|fatto|hecho|listo|pronto|terminad",
    // Russian, Chinese, Japanese.
    "готов|исправлен|сделан",
    "完成|修复",
    "完了|修正|済み",
];
/// Signs that say the same.
const SIGNS: [char; 5] = ['✅', '✓', '✔', '☑', '🎉'];

/// Whether a text may say so.
#[must_use]
pub fn may_say_done(text: &str) -> bool {
    let lower = text.to_lowercase();
    let begins_word = |at: usize| {
        let before = lower.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|c| !c.is_alphanumeric() || !c.is_ascii())
    };
    let is_said = |word: &str| lower.match_indices(word).any(|(at, _)| begins_word(at));
    lower.contains(SIGNS) || WORDS.iter().flat_map(|words| words.split('|')).any(is_said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_say_done_is_looked_at_and_plain_talk_is_not() {
        for said in [
            "All done.",
            "I fixed the parser and all tests pass.",
            "The feature is **complete** ✅",
            "It should be working now",
            "Everything's in place",
            "Ich bin fertig",
            "C'est terminé",
            "已完成",
            "修正しました",
            "I have NOT finished",
        ] {
            assert!(may_say_done(said), "{said}");
        }
        for said in
            ["I will look at the parser next.", "Which file do you mean?", "The test fails on line 3.", ""]
        {
            assert!(!may_say_done(said), "{said}");
        }
    }
}
