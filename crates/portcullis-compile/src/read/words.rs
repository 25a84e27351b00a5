//! From a request to clauses of words, each with its place.

use std::ops::Range;

use super::lexicon;

/// A word, a number, or a sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// In lower case, without quotes.
    pub(super) text: String,
    /// As it was written.
    pub(super) written: String,
    /// What it means the same as.
    pub(super) sense: String,
    /// Whether it was in quotes or back-ticks.
    pub(super) quoted: bool,
    /// Where it is, in bytes.
    pub(super) span: Range<usize>,
}

/// A clause: words that say one thing.
#[derive(Debug, Clone, Default)]
pub(super) struct Clause {
    /// The words.
    pub(super) words: Vec<Word>,
    /// How many of the first words stand before a colon or are a heading, and say what the rest is about.
    pub(super) topic: usize,
    /// Whether it goes on from the clause before it, in the same sentence.
    pub(super) goes_on: bool,
    /// The sentence it stands in, in bytes.
    pub(super) sentence: Range<usize>,
}

impl Clause {
    /// The place of its words.
    pub(super) fn span(&self) -> Range<usize> {
        let start = self.words.get(self.topic).map_or(self.sentence.start, |word| word.span.start);
        let end = self.words.last().map_or(self.sentence.end, |word| word.span.end);
        start..end
    }
}

/// Roles that a request itself names as such: `(roles `a`, `b`)`.
pub(super) fn roles(clauses: &[Clause]) -> Vec<String> {
    let mut found = Vec::new();
    for clause in clauses {
        let named =
            clause.words.iter().skip_while(|word| !["role", "roles"].contains(&word.text.as_str())).skip(1);
        let named = named.take_while(|word| word.quoted || [",", "and", "or"].contains(&word.text.as_str()));
        found.extend(named.filter(|word| word.quoted).map(|word| word.text.clone()));
    }
    found
}

/// Words that say what may or must be: what stands before a colon with one of them is no topic.
const MODAL: &[&str] = &[
    "may",
    "can",
    "can't",
    "cannot",
    "must",
    "only",
    "never",
    "not",
    "no",
    "don't",
    "limit",
    "limits",
    "allowed",
    "need",
    "needs",
    "shall",
    "should",
    "required",
    "forbidden",
    "approval",
    "max",
    "maximum",
    "unless",
];
/// Words at which a sentence turns to something else.
const TURNS: &[&str] = &["but", "while", "whereas", "however", "although", "though"];
/// Abbreviations after which a sentence goes on.
const SHORT: &[&str] = &[
    "e.g", "i.e", "etc", "no", "approx", "incl", "max", "min", "vs", "dec", "jan", "feb", "aug", "sept",
    "oct", "nov",
];

/// Most words of an item of a list that goes on with the sentence before it.
const ITEM_WORDS_MAX: usize = 4;
/// Most words before a colon that say what the rest is about.
const TOPIC_WORDS_MAX: usize = 9;

/// The clauses of a request.
pub(super) fn clauses(request: &str) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = Vec::new();
    let mut heading: Vec<Word> = Vec::new();
    let all: Vec<(Range<usize>, Vec<Word>)> = sentences(request)
        .into_iter()
        .map(|range| (range.clone(), words(request, range)))
        .filter(|(_, words)| !words.is_empty())
        .collect();
    let mut rest = all.into_iter().peekable();
    while let Some((mut sentence, mut words)) = rest.next() {
        if words.last().is_some_and(|word| word.text == ":") {
            words.pop();
            // A list of values goes on with the sentence; a list of statements has it as heading.
            let mut is_list = false;
            while let Some((item, more)) =
                rest.next_if(|(_, more)| modal(&words) && more.len() <= ITEM_WORDS_MAX && !modal(more))
            {
                is_list = true;
                sentence.end = item.end;
                words.extend(sign(",", item.start));
                words.extend(more);
            }
            if !is_list {
                heading = words;
                continue;
            }
        }
        sentence_clauses(&mut clauses, &heading, words, &sentence);
    }
    if clauses.is_empty() && !heading.is_empty() {
        let sentence = 0..request.len();
        clauses.push(Clause { words: heading, topic: 0, goes_on: false, sentence });
    }
    clauses
}

fn modal(words: &[Word]) -> bool {
    words.iter().any(|word| MODAL.contains(&word.text.as_str()))
}

fn sign(text: &str, at: usize) -> Option<Word> {
    let text = text.to_owned();
    Some(Word { written: text.clone(), sense: text.clone(), text, quoted: false, span: at..at })
}

fn sentence_clauses(
    clauses: &mut Vec<Clause>,
    heading: &[Word],
    mut rest: Vec<Word>,
    sentence: &Range<usize>,
) {
    let mut topic = heading.to_vec();
    if let Some(colon) = rest.iter().position(|word| word.text == ":") {
        let after: Vec<Word> = rest.split_off(colon).into_iter().skip(1).collect();
        let limits = rest.iter().any(|word| ["limit", "limits"].contains(&word.text.as_str()));
        if rest.len() <= TOPIC_WORDS_MAX && !modal(&rest) {
            topic.append(&mut rest);
            rest = after;
        } else if modal(&after) && modal(&rest) && !limits {
            push_turns(clauses, &topic, rest, false, sentence);
            push_turns(clauses, &topic, after, true, sentence);
            return;
        } else {
            rest.extend(after);
        }
    }
    push_turns(clauses, &topic, rest, false, sentence);
}

/// Splits where a sentence turns.
fn push_turns(
    clauses: &mut Vec<Clause>,
    topic: &[Word],
    words: Vec<Word>,
    goes_on: bool,
    sentence: &Range<usize>,
) {
    let empty = |goes_on: bool| {
        let mut words = topic.to_vec();
        if !words.is_empty() {
            words.extend(sign(":", sentence.start));
        }
        Clause { topic: words.len(), words, goes_on, sentence: sentence.clone() }
    };
    let mut current = empty(goes_on);
    let rests: Vec<bool> = (0..words.len()).map(|at| turns_at(&words, at)).collect();
    for (word, turns) in words.into_iter().zip(rests) {
        let is_sign = [";", ",", "and", "but", "so"].contains(&word.text.as_str());
        if turns && current.words.len() > current.topic {
            clauses.push(std::mem::replace(&mut current, empty(true)));
        }
        if !(current.words.len() == current.topic && (is_sign || turns)) {
            current.words.push(word);
        }
    }
    if current.words.len() > current.topic {
        clauses.push(current);
    }
}

fn turns_at(words: &[Word], at: usize) -> bool {
    let text = |place: usize| words.get(place).map_or("", |word| word.text.as_str());
    if text(at) == ";"
        || TURNS.contains(&text(at))
            && at > 0
            && !(text(at) == "but"
                && ["nobody", "anyone", "anything", "none", "all", "no-one", "one", "everyone"]
                    .contains(&text(at - 1)))
    {
        return true;
    }
    // `above 2 a human signs off, above 20 never`
    let amount = |from: usize| {
        (from..words.len().min(from + 4)).any(|place| text(place).starts_with(|c: char| c.is_ascii_digit()))
    };
    let tier = ["above", "over", "below", "under", "beyond", "anything", "everything", "from"];
    if text(at) == ","
        && tier.contains(&text(at + 1))
        && amount(at + 2)
        && words.iter().take(at).any(|word| word.text.starts_with(|c: char| c.is_ascii_digit()))
    {
        return true;
    }
    // `…, small ones don't`
    let ends = ["don't", "doesn't", "isn't", "aren't", "not", "can", "may"];
    let last = words
        .iter()
        .rev()
        .find(|word| word.text != "." && word.text != ",")
        .map_or("", |word| word.text.as_str());
    let commas_after = (at + 1..words.len()).filter(|place| text(*place) == ",").count();
    text(at) == "," && commas_after == 0 && ends.contains(&last) && words.len() - at <= 7
}

/// The sentences, list items and lines, in bytes.
fn sentences(request: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut push = |start: usize, end: usize| {
        let text = request.get(start..end).unwrap_or_default();
        let mut rest = text.trim_start();
        while let Some(item) = rest
            .strip_prefix(['-', '*', '•', '>', '#', '+'])
            .filter(|item| item.starts_with([' ', '\t', '#']))
        {
            rest = item.trim_start();
        }
        let before = text.len() - rest.len();
        let text = rest.trim_end();
        let numbered = text.split_once(['.', ')']).is_some_and(|(number, rest)| {
            !number.is_empty()
                && number.len() <= 2
                && number.chars().all(|c| c.is_ascii_digit())
                && rest.starts_with(' ')
        });
        let skip = if numbered { text.find(' ').unwrap_or(0) } else { 0 };
        if !text.is_empty() && start + before + skip < end {
            found.push(start + before + skip..end);
        }
    };
    let mut signs = request.char_indices().peekable();
    let mut quoted = false;
    while let Some((at, c)) = signs.next() {
        let next = signs.peek().map(|(_, next)| *next);
        quoted ^= c == '`';
        let ends = match c {
            '\n' => {
                let rest = request.get(at + 1..).unwrap_or_default();
                quoted = false;
                rest.starts_with(['-', '*', '\n', '•', '#'])
                    || rest.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '*')
            }
            '.' | '!' | '?' if !quoted => {
                let before = request.get(start..at).unwrap_or_default();
                let last = before
                    .rsplit(|c: char| c.is_whitespace() || c == '(')
                    .next()
                    .unwrap_or_default()
                    .to_lowercase();
                let is_number =
                    !last.is_empty() && last.chars().all(|c| c.is_ascii_digit()) && before.trim().len() <= 2;
                next.is_none_or(char::is_whitespace) && !SHORT.contains(&last.as_str()) && !is_number
            }
            _ => false,
        };
        if ends {
            push(start, at);
            start = at + c.len_utf8();
        }
    }
    push(start, request.len());
    found
}

/// Signs that are words of their own.
const SIGNS: &[char] =
    &[',', ';', ':', '(', ')', '–', '—', '!', '?', '"', '“', '”', '…', '[', ']', '=', '<', '>', '≤', '≥'];
const MONEY: &[char] = &['€', '$', '£', '¥'];

fn words(request: &str, sentence: Range<usize>) -> Vec<Word> {
    let text = request.get(sentence.clone()).unwrap_or_default();
    let mut found = Vec::new();
    let mut start: Option<usize> = None;
    let mut tick: Option<usize> = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        if let Some(from) = tick {
            if c == '`' {
                push(&mut found, text, from..at, true, sentence.start);
                tick = None;
            }
            continue;
        }
        let inside = text.get(at + c.len_utf8()..).and_then(|rest| rest.chars().next());
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let digits = before.is_some_and(|c| c.is_ascii_digit()) && inside.is_some_and(|c| c.is_ascii_digit());
        let splits = c.is_whitespace()
            || MONEY.contains(&c)
            || (SIGNS.contains(&c)
                && !(digits && [',', ':'].contains(&c))
                && !(c == ':' && inside == Some('/')))
            || c == '`';
        if splits {
            if let Some(from) = start.take() {
                push(&mut found, text, from..at, false, sentence.start);
            }
            if c == '`' {
                tick = Some(at + 1);
            } else if MONEY.contains(&c) || SIGNS.contains(&c) && !['"', '“', '”', '…'].contains(&c) {
                push(&mut found, text, at..at + c.len_utf8(), false, sentence.start);
            }
        } else if start.is_none() {
            start = Some(at);
        }
    }
    found
}

fn push(found: &mut Vec<Word>, text: &str, range: Range<usize>, quoted: bool, offset: usize) {
    let written = text.get(range.clone()).unwrap_or_default();
    let mut written = written.trim_matches(['*', '_'].as_slice()).trim_end_matches(['.', '\'', '’']);
    if !quoted && written.starts_with('\'') {
        written = written.trim_matches('\'');
    }
    if written.is_empty() && quoted || range.is_empty() {
        return;
    }
    if written.is_empty() {
        return;
    }
    // `*.pem` keeps its star.
    let raw = text.get(range.clone()).unwrap_or_default();
    let written = if raw.starts_with("*.") { raw.trim_end_matches('.') } else { written };
    let start = offset + range.start + raw.find(written).unwrap_or(0);
    if !quoted && let Some(pieces) = ranged(written) {
        let mut from = start;
        for piece in pieces {
            add(found, &piece, false, from..from + piece.len());
            from += piece.len();
        }
        return;
    }
    add(found, written, quoted, start..start + written.len());
}

fn add(found: &mut Vec<Word>, written: &str, quoted: bool, span: Range<usize>) {
    let text = written.to_lowercase().replace('’', "'");
    let sense = lexicon::sense(&text);
    found.push(Word { text, written: written.to_owned(), sense, quoted, span });
}

/// `Mon-Fri`, `08:00-16:00`, `9-5`: from one to the other, unless it is a date.
fn ranged(written: &str) -> Option<[String; 3]> {
    let (one, other) = written.split_once('-')?;
    let is_time = |text: &str| {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        !digits.is_empty() && digits.len() <= 5 && digits.chars().all(|c| c.is_ascii_digit() || c == ':')
    };
    let is_day = |text: &str| super::times::weekday(&text.to_lowercase()).is_some();
    let fits = (is_time(one) && is_time(other)) || (is_day(one) && is_day(other));
    fits.then(|| [one.to_owned(), "-".to_owned(), other.to_owned()])
}
