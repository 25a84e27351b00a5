//! A statement as tokens: words by their stems, literals in quotation marks, lists of them, runs of symbols.

use crate::limits::MAX_LITERALS;
use crate::text::{cut, from};

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word or number; its stem is beside it.
    Word,
    /// A text in quotation marks or backticks, without them.
    Literal(String),
    /// Several literals in brackets.
    List(Vec<String>),
    /// Marks: one mark, or a run of the same one.
    Mark,
}

/// A token of a statement.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// As it was written.
    pub(super) raw: String,
    /// Lower-case, without endings; the raw text for marks.
    pub(super) stem: String,
}

impl Token {
    pub(super) fn is(&self, words: &[&str]) -> bool {
        self.kind == Kind::Word && words.iter().any(|word| has_stem(word, &self.stem))
    }

    pub(super) fn is_mark(&self, mark: char) -> bool {
        self.kind == Kind::Mark && self.raw.starts_with(mark)
    }

    pub(super) fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }
}

/// The tokens of a statement.
pub(super) fn tokens(statement: &str) -> Vec<Token> {
    let text = statement.replace(['‘', '’'], "'");
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(c) = from(&text, at).chars().next() {
        let (token, length) = if c.is_whitespace() {
            (None, c.len_utf8())
        } else if let Some((items, length)) = list(from(&text, at)) {
            (Some(token(Kind::List(items), cut(&text, at..at + length))), length)
        } else if let Some((literal, length)) = literal(&text, at) {
            (Some(token(Kind::Literal(literal), cut(&text, at..at + length))), length)
        } else if is_word_char(c) {
            let length = word_length(from(&text, at));
            (Some(token(Kind::Word, cut(&text, at..at + length))), length)
        } else {
            let rest = from(&text, at);
            let length = rest.len() - rest.trim_start_matches(c).len();
            (Some(token(Kind::Mark, cut(&text, at..at + length))), length)
        };
        out.extend(token);
        at += length;
    }
    out
}

fn token(kind: Kind, raw: &str) -> Token {
    let stem = if kind == Kind::Word { stem(raw) } else { raw.to_owned() };
    Token { kind, raw: raw.to_owned(), stem }
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || !c.is_ascii() && !c.is_whitespace() && !matches!(c, '“' | '”' | '–' | '—' | '„' | '«' | '»')
}

/// A word; `P.S.` and `P.P.S` are words, and so are numbers with thousands parted by commas.
fn word_length(text: &str) -> usize {
    for abbreviation in ["p.p.s.", "p.p.s", "p.s.", "p.s"] {
        let head = crate::text::to(text, abbreviation.len());
        if head.eq_ignore_ascii_case(abbreviation)
            && !from(text, abbreviation.len()).starts_with(is_word_char)
        {
            return abbreviation.len();
        }
    }
    let mut chars = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |&(_, next)| next);
        let thousands = c == ',' && before.is_ascii_digit() && next.is_ascii_digit();
        let apostrophe = c == '\'' && before.is_alphanumeric() && next.is_alphanumeric();
        if !is_word_char(c) && !thousands && !apostrophe {
            return at;
        }
        before = c;
    }
    text.len()
}

/// A text in quotation marks that starts here, and its length with them.
fn literal(text: &str, at: usize) -> Option<(String, usize)> {
    let rest = from(text, at);
    let open = rest.chars().next()?;
    let close = match open {
        '`' | '"' | '\'' => open,
        '“' | '„' => '”',
        '«' => '»',
        _ => return None,
    };
    let body = from(rest, open.len_utf8());
    let length = match close {
        // An apostrophe closes only before white space or a mark.
        '\'' => body
            .match_indices('\'')
            .map(|(at, _)| at)
            .find(|&at| at > 0 && from(body, at + 1).chars().next().is_none_or(|c| !c.is_alphanumeric()))?,
        _ => body.find(close)?,
    };
    let inside = crate::text::to(body, length);
    (!inside.is_empty() && (close != '"' || !inside.contains('\n')))
        .then(|| (inside.to_owned(), open.len_utf8() + length + close.len_utf8()))
}

/// A bracketed list of quoted items that starts here, and its length.
fn list(text: &str) -> Option<(Vec<String>, usize)> {
    let close = match text.chars().next()? {
        '[' => ']',
        '(' => ')',
        '{' => '}',
        _ => return None,
    };
    let mut rest = from(text, 1).trim_start();
    let mut items = Vec::new();
    loop {
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'))?;
        let body = from(rest, 1);
        let end = body.match_indices(quote).map(|(at, _)| at).find(|&at| {
            let after = from(body, at + 1).trim_start();
            after.starts_with(',') || after.starts_with(close)
        })?;
        items.push(crate::text::to(body, end).to_owned());
        if items.len() > MAX_LITERALS {
            return None;
        }
        rest = from(body, end + 1).trim_start();
        if let Some(after) = rest.strip_prefix(close) {
            return Some((items, text.len() - after.len()));
        }
        rest = rest.strip_prefix(',')?.trim_start();
        if let Some(after) = rest.strip_prefix(close) {
            return Some((items, text.len() - after.len()));
        }
    }
}

/// A word in lower case without the common endings: what is written with and without them is one word here.
pub(super) fn stem(word: &str) -> String {
    stem_of_lower(&word.to_lowercase()).to_owned()
}

/// Whether a word of the vocabulary has that stem. A stem is the beginning of its word, so that nearly all words are told
/// apart by their first letter.
fn has_stem(word: &str, stem: &str) -> bool {
    if word.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()) {
        return self::stem(word) == stem;
    }
    let may = stem.is_empty() || word.as_bytes().first() == stem.as_bytes().first();
    may && stem_of_lower(word) == stem
}

fn stem_of_lower(lower: &str) -> &str {
    let lower = lower.strip_suffix("'s").unwrap_or(lower);
    if !lower.is_ascii() || lower.len() < 4 {
        return lower;
    }
    let cut = |ending: &str, least: usize| lower.strip_suffix(ending).filter(|rest| rest.len() >= least);
    let base = cut("ing", 3)
        .or_else(|| cut("ed", 3))
        .map(|base| {
            let mut chars = base.chars().rev();
            match (chars.next(), chars.next()) {
                (Some(a), Some(b)) if a == b && !matches!(a, 'l' | 's') => {
                    crate::text::to(base, base.len() - 1)
                }
                _ => base,
            }
        })
        .or_else(|| cut("ss", 1).map(|_| lower))
        .or_else(|| cut("s", 3))
        .unwrap_or(lower);
    // `note` is no `not`.
    base.strip_suffix('e').filter(|rest| rest.len() >= 3 && *rest != "not").unwrap_or(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raws(text: &str) -> Vec<String> {
        tokens(text).into_iter().map(|token| token.raw).collect()
    }

    #[test]
    fn words_marks_literals_and_lists() {
        assert_eq!(raws("Don't use 1,000 words."), ["Don't", "use", "1,000", "words", "."]);
        assert_eq!(raws("a P.S. or P.P.S"), ["a", "P.S.", "or", "P.P.S"]);
        assert_eq!(tokens("say `\"it's` now")[1].kind, Kind::Literal("\"it's".to_owned()));
        assert_eq!(tokens("the word 'don't' here")[2].kind, Kind::Literal("don't".to_owned()));
        assert_eq!(
            tokens("['\"a', \"it's\", 'b,']")[0].kind,
            Kind::List(vec!["\"a".to_owned(), "it's".to_owned(), "b,".to_owned()])
        );
        assert_eq!(raws("by ******: \"x"), ["by", "******", ":", "\"", "x"]);
        assert_eq!(raws("word สเปรดชีต x"), ["word", "สเปรดชีต", "x"]);
    }

    #[test]
    fn endings_go() {
        for (a, b) in
            [("including", "include"), ("Wrapped", "wrap"), ("sentences", "sentence"), ("beginning", "begin")]
        {
            assert_eq!(stem(a), stem(b));
        }
        assert_ne!(stem("less"), stem("les"));
        for (word, has) in
            [("sentences", "sentenc"), ("Sentences", "sentenc"), ("x's", "x"), ("'s", ""), ("", "")]
        {
            assert!(has_stem(word, has) && stem(word) == has, "{word}");
        }
        assert!(!has_stem("words", "sentenc") && !has_stem("s", "") && !has_stem("", "s"));
    }
}
