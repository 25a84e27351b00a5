//! Which language a text is in: by its script first, then by n-grams, and only as far as there is evidence.
//!
//! A checker that accuses has to be sure. A text is held to be in another language than the wanted one only where its
//! script excludes the wanted one, or where it is long enough to tell. Short texts and lists of names pass.

use std::sync::LazyLock;

use whatlang::{Lang, Script};

use super::words;

/// Words below which a text in a Latin script tells nothing.
const FEW_WORDS: usize = 6;
/// Words from which a text without English function words is not English.
const MANY_WORDS: usize = 300;
/// Share of function words in percent below which such a text is not English.
const FEW_FUNCTION_WORDS: usize = 5;
/// Share below which n-grams that speak for another language are believed.
const SOME_FUNCTION_WORDS: usize = 10;
/// Share of them from which a text is English, whatever else its n-grams look like.
const MANY_FUNCTION_WORDS: usize = 25;
/// Characters that are looked at; a text says what it is in long before that.
const MAX_CHARS: usize = 2_000;

/// Languages: ISO 639-1 code, English name, whatlang's code where it knows the language.
const LANGUAGES: &[(&str, &str, Option<Lang>)] = &[
    ("af", "Afrikaans", Some(Lang::Afr)),
    ("ar", "Arabic", Some(Lang::Ara)),
    ("bg", "Bulgarian", Some(Lang::Bul)),
    ("bn", "Bengali", Some(Lang::Ben)),
    ("ca", "Catalan", Some(Lang::Cat)),
    ("cs", "Czech", Some(Lang::Ces)),
    ("da", "Danish", Some(Lang::Dan)),
    ("de", "German", Some(Lang::Deu)),
    ("el", "Greek", Some(Lang::Ell)),
    ("en", "English", Some(Lang::Eng)),
    ("es", "Spanish", Some(Lang::Spa)),
    ("et", "Estonian", Some(Lang::Est)),
    ("fa", "Persian", Some(Lang::Pes)),
    ("fi", "Finnish", Some(Lang::Fin)),
    ("fr", "French", Some(Lang::Fra)),
    ("gu", "Gujarati", Some(Lang::Guj)),
    ("he", "Hebrew", Some(Lang::Heb)),
    ("hi", "Hindi", Some(Lang::Hin)),
    ("hr", "Croatian", Some(Lang::Hrv)),
    ("hu", "Hungarian", Some(Lang::Hun)),
    ("id", "Indonesian", Some(Lang::Ind)),
    ("it", "Italian", Some(Lang::Ita)),
    ("ja", "Japanese", Some(Lang::Jpn)),
    ("kn", "Kannada", Some(Lang::Kan)),
    ("ko", "Korean", Some(Lang::Kor)),
    ("lt", "Lithuanian", Some(Lang::Lit)),
    ("lv", "Latvian", Some(Lang::Lav)),
    ("mk", "Macedonian", Some(Lang::Mkd)),
    ("ml", "Malayalam", Some(Lang::Mal)),
    ("mr", "Marathi", Some(Lang::Mar)),
    ("ne", "Nepali", Some(Lang::Nep)),
    ("nl", "Dutch", Some(Lang::Nld)),
    ("no", "Norwegian", Some(Lang::Nob)),
    ("pa", "Punjabi", Some(Lang::Pan)),
    ("pl", "Polish", Some(Lang::Pol)),
    ("pt", "Portuguese", Some(Lang::Por)),
    ("ro", "Romanian", Some(Lang::Ron)),
    ("ru", "Russian", Some(Lang::Rus)),
    ("sk", "Slovak", Some(Lang::Slk)),
    ("sl", "Slovenian", Some(Lang::Slv)),
    ("sv", "Swedish", Some(Lang::Swe)),
    ("sw", "Swahili", None),
    ("ta", "Tamil", Some(Lang::Tam)),
    ("te", "Telugu", Some(Lang::Tel)),
    ("th", "Thai", Some(Lang::Tha)),
    ("tl", "Tagalog", Some(Lang::Tgl)),
    ("tr", "Turkish", Some(Lang::Tur)),
    ("uk", "Ukrainian", Some(Lang::Ukr)),
    ("ur", "Urdu", Some(Lang::Urd)),
    ("vi", "Vietnamese", Some(Lang::Vie)),
    ("zh", "Chinese", Some(Lang::Cmn)),
];

/// Common English words that carry little meaning.
const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "all", "an", "and", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from",
    "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "is", "it", "its", "me", "my", "no",
    "not", "of", "on", "or", "our", "she", "so", "some", "that", "the", "their", "them", "there", "they",
    "this", "to", "up", "was", "we", "were", "what", "when", "which", "who", "will", "with", "would", "you",
    "your",
];

/// The code of a language by its English name or its code, in either case.
#[must_use]
pub fn code_of(name: &str) -> Option<&'static str> {
    LANGUAGES
        .iter()
        .find(|(code, english, _)| code.eq_ignore_ascii_case(name) || english.eq_ignore_ascii_case(name))
        .map(|&(code, ..)| code)
}

/// The English name of a language by its code.
#[must_use]
pub fn name_of(code: &str) -> Option<&'static str> {
    LANGUAGES.iter().find(|(known, ..)| *known == code).map(|&(_, english, _)| english)
}

/// The name of another language that a text is in, where there is positive evidence that it is not in the language
/// `code` says, or `None` if it is, may be, or the language is not known.
#[must_use]
pub fn evidence_against(text: &str, code: &str) -> Option<&'static str> {
    let wanted = LANGUAGES.iter().find(|(known, ..)| *known == code)?.2;
    if code == "en" && is_plainly_english(text) {
        return None;
    }
    let sample = sample(text);
    let info = whatlang::detect(&sample)?;
    if Some(info.lang()) == wanted {
        return None;
    }
    let wanted_script = script_of(code);
    if info.script() != wanted_script {
        return Some(name(info.lang()));
    }
    if info.script() != Script::Latin {
        // Related languages of one script are told apart by few letters: only a confident reading counts.
        return (info.is_reliable() && wanted.is_some()).then(|| name(info.lang()));
    }
    if words::count(&sample) < FEW_WORDS {
        return None;
    }
    let english = function_words(&sample);
    match (wanted, info.lang()) {
        (Some(Lang::Eng), other) => {
            (info.is_reliable() && english.0 * 100 < english.1 * SOME_FUNCTION_WORDS).then(|| name(other))
        }
        (_, _) if english.0 * 100 >= english.1 * MANY_FUNCTION_WORDS => Some("English"),
        (None, _) => None,
        (Some(_), other) => info.is_reliable().then(|| name(other)),
    }
}

/// The beginning of a text in lower case.
fn sample(text: &str) -> String {
    let mut sample = String::with_capacity(text.len().min(MAX_CHARS));
    for c in text.chars().take(MAX_CHARS) {
        if c.is_ascii() {
            sample.push(c.to_ascii_lowercase());
        } else {
            sample.extend(c.to_lowercase());
        }
    }
    sample
}

/// Whether the first words of a text have the function words of English.
fn is_plainly_english(text: &str) -> bool {
    let sample = sample(text);
    let (function, all) = function_words(&sample);
    all >= FEW_WORDS && function * 100 >= all * MANY_FUNCTION_WORDS
}

/// Whether a long text has too few English function words to be English, as a list of names in capitals has.
#[must_use]
pub fn is_long_and_not_english(text: &str) -> bool {
    let (function, all) = function_words(&text.to_lowercase());
    all >= MANY_WORDS && function * 100 < all * FEW_FUNCTION_WORDS
}

fn function_words(lower: &str) -> (usize, usize) {
    words::words(lower).fold((0, 0), |(function, all), span| {
        let is_function = is_function_word(super::cut(lower, span));
        (function + usize::from(is_function), all + 1)
    })
}

/// Words are compared as numbers: [`FUNCTION_WORDS`] has none that does not fit into one.
fn is_function_word(word: &str) -> bool {
    /// The words, in the same order.
    static KEYS: LazyLock<Vec<u64>> =
        LazyLock::new(|| FUNCTION_WORDS.iter().filter_map(|word| key(word)).collect());
    key(word).is_some_and(|key| KEYS.binary_search(&key).is_ok())
}

/// The bytes of a short word as a number that orders as they do, or `None` if it has more than eight.
fn key(word: &str) -> Option<u64> {
    let shift = 8_usize.checked_sub(word.len())? * 8;
    let bytes = word.bytes().fold(0, |key, byte| key << 8 | u64::from(byte));
    Some(bytes.checked_shl(u32::try_from(shift).ok()?).unwrap_or_default())
}

fn name(lang: Lang) -> &'static str {
    lang.eng_name()
}

fn script_of(code: &str) -> Script {
    match code {
        "ar" | "fa" | "ur" => Script::Arabic,
        "bg" | "mk" | "ru" | "uk" => Script::Cyrillic,
        "bn" => Script::Bengali,
        "el" => Script::Greek,
        "gu" => Script::Gujarati,
        "he" => Script::Hebrew,
        "hi" | "mr" | "ne" => Script::Devanagari,
        "ja" => Script::Hiragana,
        "kn" => Script::Kannada,
        "ko" => Script::Hangul,
        "ml" => Script::Malayalam,
        "pa" => Script::Gurmukhi,
        "ta" => Script::Tamil,
        "te" => Script::Telugu,
        "th" => Script::Thai,
        "zh" => Script::Mandarin,
        _ => Script::Latin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_words_are_known_as_numbers() {
        assert!(FUNCTION_WORDS.is_sorted());
        assert!(FUNCTION_WORDS.iter().all(|word| word.len() <= 8 && is_function_word(word)));
        for other in ["b", "ab", "abouts", "thee", "toto", "functional", "wéré"] {
            assert!(!is_function_word(other), "{other}");
        }
    }

    #[test]
    fn another_language_needs_evidence() {
        let english = "The quick brown fox jumps over the lazy dog and runs into the forest where it lives.";
        let german =
            "Der schnelle braune Fuchs springt über den faulen Hund und läuft in den Wald, wo er wohnt.";
        let hindi = "यह एक वाक्य है जो हिन्दी में लिखा गया है और यह काफी लंबा है।";
        for (text, code, against) in [
            (english, "en", false),
            (german, "en", true),
            (german, "de", false),
            (english, "de", true),
            (hindi, "hi", false),
            (hindi, "en", true),
            (english, "hi", true),
            ("YES", "en", false),
            ("", "en", false),
            (english, "sw", true),
        ] {
            assert_eq!(evidence_against(text, code).is_some(), against, "{code}: {text}");
        }
    }

    #[test]
    fn languages_have_names_and_codes() {
        assert_eq!(code_of("german"), Some("de"));
        assert_eq!(name_of("sw"), Some("Swahili"));
        assert_eq!(code_of("Klingon"), None);
        assert!(FUNCTION_WORDS.is_sorted());
    }
}
