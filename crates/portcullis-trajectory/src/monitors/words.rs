//! Texts as the monitors see them: words by the hash of their stem, sentences, and what stands in quotation marks.

use portcullis_core::normalise::Normalised;

/// Most words of one text that are read. What stands beyond is not looked at, and the reading says so.
pub(super) const WORDS_MAX: usize = 65_536;
/// Most letters of one word that are looked at.
const LETTERS_MAX: usize = 32;

/// A word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// Hash of its stem.
    pub stem: u64,
    /// The same with digits and signs read as the letters that they resemble; 0 where there are none.
    pub plain: u64,
    /// Where it begins in the text as given.
    pub start: usize,
    /// One past its end.
    pub end: usize,
    /// It begins a sentence.
    pub begins: bool,
    /// It stands in quotation marks.
    pub quoted: bool,
    /// A colon follows: it heads what comes.
    pub heads: bool,
    /// It is a number.
    pub number: bool,
    /// It is short and of a closed class, or has less than three letters.
    pub slight: bool,
}

/// A text cut into words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// The words in order.
    pub list: Vec<Word>,
    /// A mail address, URL or network address stands in it.
    pub address: bool,
    /// There were more words.
    pub cut: bool,
}

/// A 64-bit hash (FNV-1a) that is the same in every build.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The stem of a lower-case word by the general rules of English endings; a key, not a word.
fn stem(word: &str) -> &str {
    let vowel = |base: &str| base.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    let mut stem = word;
    if stem.len() > 4 {
        for ending in ["ies", "ied"] {
            if let Some(base) = stem.strip_suffix(ending).filter(|base| base.len() > 1) {
                return base;
            }
        }
        for ending in ["ing", "ed"] {
            if let Some(base) = stem.strip_suffix(ending).filter(|base| base.len() > 2 && vowel(base)) {
                return trim(undouble(base));
            }
        }
    }
    if stem.len() > 3
        && let Some(base) = stem.strip_suffix('s').filter(|base| !base.ends_with(['s', 'u', 'i']))
    {
        stem = base;
    }
    trim(stem)
}

/// Without the last *e* or *y*, in which forms of a word differ.
fn trim(word: &str) -> &str {
    if word.len() > 3 { word.strip_suffix(['e', 'y']).unwrap_or(word) } else { word }
}

fn undouble(base: &str) -> &str {
    let mut end = base.chars().rev();
    match (end.next(), end.next()) {
        (Some(last), Some(before)) if last == before && !matches!(last, 'l' | 's' | 'z' | 'e') => {
            base.strip_suffix(last).unwrap_or(base)
        }
        _ => base,
    }
}

/// Hash of the stem of a word.
pub(super) fn stem_hash(word: &str) -> u64 {
    hash(stem(word).as_bytes())
}

/// The letter that a digit or sign resembles.
fn resembles(c: char) -> char {
    match c {
        '0' => 'o',
        '1' | '!' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        other => other,
    }
}

const SLIGHT: &[&str] = &[
    "the", "and", "for", "you", "your", "with", "that", "this", "from", "have", "has", "are", "was", "were",
    "not", "but", "all", "any", "can", "will", "what", "which", "when", "where", "how", "please", "into",
    "out", "its", "our", "their", "them", "they", "then", "than", "some", "there", "here", "would", "could",
    "should", "about", "also", "just", "only", "very", "who", "his", "her", "him", "she", "com", "example",
    "org", "net", "www", "http", "https", "true", "false", "null", "none",
];

/// Cuts a text into words. Linear in its length.
pub(super) fn words(text: &str) -> Words {
    let normalised = Normalised::new(text);
    let view = normalised.texts().next().unwrap_or_default();
    let mut cutter = Cutter { out: Words::default(), begins: true, quote: None };
    let mut buffer = String::with_capacity(LETTERS_MAX);
    for chunk in chunks(view) {
        let Chunk { text: piece, start } = chunk;
        let address = is_address(piece);
        cutter.out.address |= address;
        if !cutter.chunk(piece, start, address, &mut buffer) {
            break;
        }
    }
    for word in &mut cutter.out.list {
        (word.start, word.end) = normalised.original_span(0, word.start, word.end);
    }
    cutter.out
}

struct Chunk<'t> {
    text: &'t str,
    start: usize,
}

/// Stretches without white space.
fn chunks(text: &str) -> impl Iterator<Item = Chunk<'_>> {
    let mut start = 0;
    text.split_inclusive(char::is_whitespace).map(move |piece| {
        let chunk = Chunk { text: piece, start };
        start += piece.len();
        chunk
    })
}

fn is_address(chunk: &str) -> bool {
    let chunk = chunk.trim_matches(|c: char| !c.is_alphanumeric() && c != '/');
    if chunk.contains("://") {
        return true;
    }
    if let Some((name, domain)) = chunk.split_once('@') {
        return !name.is_empty() && domain.contains('.');
    }
    let host = chunk.split(['/', ':']).next().unwrap_or_default();
    host.split('.').count() == 4 && host.split('.').all(|part| part.parse::<u8>().is_ok())
}

struct Cutter {
    out: Words,
    begins: bool,
    /// The sign that ends the quotation.
    quote: Option<char>,
}

impl Cutter {
    /// Takes the words of a chunk; false when there are too many.
    fn chunk(&mut self, chunk: &str, start: usize, address: bool, buffer: &mut String) -> bool {
        let mut chars = chunk.char_indices().peekable();
        let mut before = None;
        while let Some((at, c)) = chars.next() {
            if is_letter(c, address) {
                buffer.clear();
                let mut end = at + c.len_utf8();
                // *w/o* is one word.
                if matches!(c, 'w' | 'W')
                    && let Some(length) = without(chunk.get(at..).unwrap_or_default())
                {
                    buffer.push_str("without");
                    self.push(buffer, start + at, start + at + length);
                    chars.by_ref().take(length - 1).for_each(drop);
                    before = Some('a');
                    continue;
                }
                self.letter(c, buffer);
                while let Some((next, c)) = chars.peek().copied() {
                    let apostrophe = matches!(c, '\'' | '’')
                        && chunk
                            .get(next + c.len_utf8()..)
                            .is_some_and(|rest| rest.starts_with(char::is_alphabetic));
                    if !apostrophe && !is_letter(c, address) {
                        break;
                    }
                    if !apostrophe {
                        self.letter(c, buffer);
                    }
                    end = next + c.len_utf8();
                    chars.next();
                }
                if self.out.list.len() >= WORDS_MAX {
                    self.out.cut = true;
                    return false;
                }
                self.push(buffer, start + at, start + end);
                before = Some('a');
                continue;
            }
            let next = chars.peek().map(|(_, next)| *next);
            self.sign(c, before, next);
            before = Some(c);
        }
        true
    }

    fn letter(&self, c: char, buffer: &mut String) {
        if buffer.len() < LETTERS_MAX {
            buffer.extend(c.to_lowercase());
        }
    }

    /// Ends of sentences, and quotation marks.
    fn sign(&mut self, c: char, before: Option<char>, next: Option<char>) {
        let ends =
            next.is_none_or(|next| next.is_whitespace() || matches!(next, '"' | '”' | '\'' | ')' | ']'));
        if matches!(c, '.' | '!' | '?' | ';') && ends || c == '\n' {
            self.begins = true;
        }
        if c == ':'
            && let Some(last) = self.out.list.last_mut()
        {
            last.heads = true;
        }
        match (self.quote, c) {
            (Some(end), c) if c == end && (end != '\'' || !next.is_some_and(char::is_alphanumeric)) => {
                self.quote = None;
            }
            (None, '"') => self.quote = Some('"'),
            (None, '“') => self.quote = Some('”'),
            (None, '«') => self.quote = Some('»'),
            (None, '\'' | '‘') if before.is_none() && next.is_some_and(char::is_alphanumeric) => {
                self.quote = Some(if c == '‘' { '’' } else { '\'' });
            }
            _ => {}
        }
    }

    fn push(&mut self, buffer: &str, start: usize, end: usize) {
        let buffer =
            ABBREVIATIONS.iter().find(|(short, _)| *short == buffer).map_or(buffer, |(_, long)| long);
        let digit = buffer.contains(|c: char| c.is_ascii_digit() || matches!(c, '@' | '$'));
        let number = digit && buffer.chars().all(|c| c.is_ascii_digit());
        let plain = if digit && !number {
            let letters: String = buffer.chars().map(resembles).collect();
            stem_hash(&letters)
        } else {
            0
        };
        let slight = number || buffer.chars().count() < 3 || SLIGHT.contains(&buffer);
        self.out.list.push(Word {
            stem: stem_hash(buffer),
            plain,
            start,
            end,
            begins: self.begins,
            quoted: self.quote.is_some(),
            heads: false,
            number,
            slight,
        });
        self.begins = false;
    }
}

/// How people shorten words when they type.
const ABBREVIATIONS: [(&str, &str); 14] = [
    ("u", "you"),
    ("ur", "your"),
    ("ya", "you"),
    ("ppl", "people"),
    ("pls", "please"),
    ("plz", "please"),
    ("msg", "message"),
    ("msgs", "messages"),
    ("pw", "password"),
    ("pwd", "password"),
    ("pws", "passwords"),
    ("acct", "account"),
    ("bc", "because"),
    ("gf", "girlfriend"),
];

/// The length of a *w/o* that stands alone.
fn without(chunk: &str) -> Option<usize> {
    let rest = chunk.strip_prefix(['w', 'W'])?.strip_prefix("/")?.strip_prefix(['o', 'O'])?;
    (!rest.starts_with(char::is_alphanumeric)).then_some(3)
}

fn is_letter(c: char, address: bool) -> bool {
    c.is_alphanumeric() || !address && matches!(c, '@' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [["send", "sends", "sending"], ["copy", "copied", "copies"], ["wipe", "wiped", "wiping"]]
        {
            assert!(forms.iter().all(|form| stem(form) == stem(forms[0])), "{forms:?}");
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

    proptest::proptest! {
        #[test]
        fn any_text_is_cut(text in "\\PC{0,80}") {
            for word in words(&text).list {
                proptest::prop_assert!(text.get(word.start..word.end).is_some());
            }
        }
    }
}
