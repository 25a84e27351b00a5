//! Tests of cutting texts into words.

use super::*;

#[test]
fn forms_of_a_word_have_one_stem() {
    for forms in [["send", "sends", "sending"], ["copy", "copied", "copies"], ["wipe", "wiped", "wiping"]] {
        assert!(forms.iter().all(|form| stem_hash(form) == stem_hash(forms[0])), "{forms:?}");
    }
    for (one, other) in [("they", "the"), ("here", "her")] {
        assert_ne!(stem_hash(one), stem_hash(other));
    }
}

#[test]
fn words_keep_their_place_and_know_their_quotation() {
    let text = "Don't l0ok: \"burn  it\" now. He said 'go away' twice";
    let words = words(text);
    let shown: Vec<&str> = words.list.iter().filter_map(|word| text.get(word.start..word.end)).collect();
    assert_eq!(shown, ["Don't", "l0ok", "burn", "it", "now", "He", "said", "go", "away", "twice"]);
    let quoted: Vec<bool> = words.list.iter().map(|word| word.quoted).collect();
    assert_eq!(quoted, [false, false, true, true, false, false, false, true, true, false]);
    assert_eq!(words.list[1].plain, stem_hash("look"));
    assert!(words.list[5].begins && !words.list[4].begins);
    assert!(!words.address);
}

#[test]
fn typed_short_forms_are_read_as_the_long_ones() {
    let words = words("ur msg: w/o her");
    let stems: Vec<u64> = words.list.iter().map(|word| word.stem).collect();
    assert_eq!(stems, ["your", "message", "without", "her"].map(stem_hash));
    assert!(words.list[1].heads && !words.list[0].heads);
}

#[test]
fn addresses_are_seen() {
    for text in ["to a@b.example", "http://x", "my box 203.0.113.9."] {
        assert!(words(text).address, "{text}");
    }
    for text in ["me @ home", "1.2.3", "a/b.c"] {
        assert!(!words(text).address, "{text}");
    }
}

#[test]
fn slight_words_are_found() {
    assert!(SLIGHT.iter().all(|word| is_slight(packed(word.as_bytes()))));
    let others: [&[u8]; 3] = [b"", b"thee", b"instructions"];
    assert!(!others.iter().any(|word| is_slight(packed(word))));
}

/// A stem by the rules one after the other.
fn by_the_rules(word: &[u8]) -> &[u8] {
    if ["they", "here", "were", "mine"].iter().any(|whole| whole.as_bytes() == word) {
        return word;
    }
    let vowel = |base: &[u8]| base.iter().any(|byte| b"aeiouy".contains(byte));
    for ending in ["ies", "ied"] {
        if let Some(base) = word.strip_suffix(ending.as_bytes()).filter(|base| base.len() > 1) {
            return base;
        }
    }
    for ending in ["ing", "ed"] {
        let base = word.strip_suffix(ending.as_bytes());
        if let Some(base) = base.filter(|base| base.len() > 2 && vowel(base)) {
            return trim(undouble(base));
        }
    }
    let plural = word.strip_suffix(b"s").filter(|base| base.len() > 2);
    trim(plural.filter(|base| !matches!(base.last(), Some(b's' | b'u' | b'i'))).unwrap_or(word))
}

/// The words without the short way for small letters between blanks.
fn chunk_by_chunk(text: &str) -> Words {
    let (mut cutter, mut buffer, mut at) = (Cutter::default(), String::new(), 0);
    while let Some(chunk) = next_chunk(text, at).filter(|chunk| cutter.take(chunk, &mut buffer)) {
        at = chunk.start + chunk.text.len();
    }
    cutter.out
}

proptest::proptest! {
    #[test]
    fn stems_are_those_of_the_rules(word in "[a-z]{0,5}(tt|dd|ll)?(ies|ied|ing|ed|s|us|es|e|y)?|they|here|were|mine") {
        proptest::prop_assert_eq!(stem(word.as_bytes()), by_the_rules(word.as_bytes()));
    }

    #[test]
    fn the_short_way_for_small_letters_is_the_long_one(
        parts in proptest::collection::vec("[a-z]{1,9}|[a-z]{30,34}|[ \t\n]| |ppl|w/o|[A-Z]?[a-z'.,:\"0-9@$-]{0,6}", 0..30),
    ) {
        let text = parts.concat();
        let mut cutter = Cutter::default();
        cutter.read(&text);
        proptest::prop_assert_eq!(cutter.out, chunk_by_chunk(&text));
    }

    #[test]
    fn the_short_way_for_ascii_is_the_long_one(text in "[ -~\\t\\n]{0,60}", more in "[wW/oO'\". a]{0,20}") {
        let text = format!("{text}{more}{text}");
        proptest::prop_assert_eq!(words(&text), of_normal_form(&text, Cutter::default()));
    }

    #[test]
    fn any_text_is_cut(text in "\\PC{0,80}") {
        for word in words(&text).list {
            proptest::prop_assert!(text.get(word.start..word.end).is_some());
        }
    }
}
