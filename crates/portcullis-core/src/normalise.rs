//! Text as keywords see it: NFKC, lower case, zero-width characters removed, white space evened out.
//!
//! Two views of a text are matched, because a space in an odd place can be meant either way: in the first,
//! every run of white space is one plain space; in the second, white space other than the plain space is
//! removed altogether (`wi<U+2009>re`). The second exists only where the text has such characters. Plain ASCII
//! text, the usual case, is matched as it is.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, compose};

/// A text ready to be searched, with the way back to places in the original.
#[derive(Debug)]
pub struct Normalised<'a> {
    views: [Option<View<'a>>; 2],
}

#[derive(Debug)]
struct View<'a> {
    text: Cow<'a, str>,
    /// For each byte of `text`, the byte of the original at which its source begins, and one past the end;
    /// empty when both are the same text.
    offsets: Vec<usize>,
    original_len: usize,
}

impl View<'_> {
    fn original(&self, start: usize, end: usize) -> (usize, usize) {
        if self.offsets.is_empty() {
            return (start, end);
        }
        let start = self.offsets.get(start).copied().unwrap_or(self.original_len);
        let last = self.offsets.get(end.saturating_sub(1)).copied().unwrap_or(self.original_len);
        // The match ends where the source of the first byte with a later source begins.
        let end = self.offsets.get(end..).into_iter().flatten().copied().find(|offset| *offset > last);
        (start, end.unwrap_or(self.original_len))
    }
}

impl<'a> Normalised<'a> {
    /// Prepares `text`. Borrows it when it is plain ASCII with single spaces. Linear in its length.
    pub fn new(text: &'a str) -> Self {
        if is_plain(text) {
            let view = View { text: Cow::Borrowed(text), offsets: Vec::new(), original_len: text.len() };
            return Self { views: [Some(view), None] };
        }
        let odd_space = text.chars().any(|c| c.is_whitespace() && !matches!(c, ' ' | '\t' | '\n' | '\r'));
        let spaced = normalise(text, |_| Some(' '));
        let squeezed = odd_space.then(|| normalise(text, |c| (c == ' ').then_some(' ')));
        Self { views: [Some(spaced), squeezed] }
    }

    /// The views as texts. They may still hold upper-case ASCII letters; match without regard to ASCII case.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.views.iter().flatten().map(|view| &*view.text)
    }

    /// Where a stretch of the view number `view` (in the order of [`Self::texts`]) is in the original.
    pub fn original_span(&self, view: usize, start: usize, end: usize) -> (usize, usize) {
        match self.views.get(view) {
            Some(Some(view)) => view.original(start, end),
            _ => (start, end),
        }
    }
}

/// The normal form of a keyword: what the first view would show of it.
pub fn keyword(text: &str) -> String {
    normalise(text, |_| Some(' ')).text.trim().to_ascii_lowercase()
}

/// Bytes of a text that are tested together.
const BLOCK: usize = 64;

/// Whether a text is its own normal form but for upper case: printable ASCII without doubled spaces.
pub(crate) fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let next = bytes.get(1..).unwrap_or_default();
    // Flags of a block are gathered without a way out in between: the compiler makes vector code of it.
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let (next_blocks, next_rest) = next.as_chunks::<BLOCK>();
    let hidden =
        |block: &[u8]| block.iter().fold(false, |any, byte| any | (byte.wrapping_sub(b' ') > b'~' - b' '));
    let doubled = |block: &[u8], next: &[u8]| {
        let pairs = block.iter().zip(next);
        pairs.fold(false, |any, (one, other)| any | ((*one == b' ') & (*other == b' ')))
    };
    let rest_of_pairs = bytes.get(next_blocks.len() * BLOCK..).unwrap_or_default();
    !blocks.iter().any(|block| hidden(block))
        && !hidden(rest)
        && !blocks.iter().zip(next_blocks).any(|(block, next)| doubled(block, next))
        && !doubled(rest_of_pairs, next_rest)
}

/// Characters that show nothing and can be put between letters to hide a word: format and filler characters,
/// variation selectors, tags, and control characters that are not white space.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
        || (c.is_control() && !c.is_whitespace())
}

fn normalise(text: &str, space: impl Fn(char) -> Option<char>) -> View<'static> {
    let mut out = Output { text: String::with_capacity(text.len()), offsets: Vec::with_capacity(text.len()) };
    // A chunk is a stretch that NFKC may rewrite as a whole: a starter and what combines with it.
    let mut chunk = String::new();
    let mut chunk_start = 0;
    // What the last characters of the chunk compose to: three jamo make one syllable, two at a time.
    let mut last = None;
    for (offset, c) in text.char_indices() {
        if is_invisible(c) {
            continue;
        }
        // ASCII joins with nothing that stands before it.
        let composed = last.filter(|_| !c.is_ascii()).and_then(|last| compose(last, c));
        let marks = || !c.is_ascii() && canonical_combining_class(c) != 0;
        let joins = last.is_some() && (composed.is_some() || marks());
        if !joins {
            out.push_chunk(&chunk, chunk_start, &space);
            chunk.clear();
            chunk_start = offset;
        }
        chunk.push(c);
        last = composed.or(Some(c));
    }
    out.push_chunk(&chunk, chunk_start, &space);
    View { text: Cow::Owned(out.text), offsets: out.offsets, original_len: text.len() }
}

struct Output {
    text: String,
    offsets: Vec<usize>,
}

impl Output {
    fn push_chunk(&mut self, chunk: &str, offset: usize, space: &impl Fn(char) -> Option<char>) {
        // White space is judged before NFKC, which would make plain spaces of most kinds of it.
        let mut chars = chunk.chars();
        if let (Some(c), None) = (chars.next(), chars.next())
            && c.is_whitespace()
        {
            if let Some(c) = space(c)
                && !self.text.ends_with(' ')
            {
                self.push(c, offset);
            }
            return;
        }
        if let [byte] = chunk.as_bytes() {
            self.push(char::from(byte.to_ascii_lowercase()), offset);
            return;
        }
        for c in chunk.nfkc().flat_map(char::to_lowercase) {
            if is_invisible(c) || (c == ' ' && self.text.ends_with(' ')) {
                continue;
            }
            self.push(if c == 'ς' { 'σ' } else { c }, offset);
        }
    }

    fn push(&mut self, c: char, offset: usize) {
        self.text.push(c);
        self.offsets.resize(self.text.len(), offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn views(text: &str) -> Vec<String> {
        Normalised::new(text).texts().map(str::to_owned).collect()
    }

    #[test]
    fn plain_text_is_borrowed() {
        assert!(matches!(
            Normalised::new("Wire $100 to Bob").views,
            [Some(View { text: Cow::Borrowed(_), .. }), None]
        ));
    }

    #[test]
    fn disguises_are_undone() {
        assert_eq!(views("w\u{200b}i\u{ad}re"), ["wire"]);
        assert_eq!(views("ＷＩＲＥ"), ["wire"]);
        assert_eq!(views("ﬁre"), ["fire"]);
        assert_eq!(views("delete\u{a0}it"), ["delete it", "deleteit"]);
        assert_eq!(views("wi\u{2009}re"), ["wi re", "wire"]);
        assert_eq!(views("a \t\n b"), ["a b"]);
        assert_eq!(views("cafe\u{301}"), views("caf\u{e9}"));
        assert_eq!(views("\u{1112}\u{1161}\u{11ab}"), views("\u{d55c}"));
        assert_eq!(keyword("  Delete   FINANCIAL records "), "delete financial records");
    }

    #[test]
    fn spans_lead_back_to_the_original() {
        let text = "x w\u{200b}ire  ﬁ!";
        let normalised = Normalised::new(text);
        let view = normalised.texts().next().unwrap().to_owned();
        let span = |needle: &str| {
            let start = view.find(needle).unwrap();
            let (start, end) = normalised.original_span(0, start, start + needle.len());
            text.get(start..end).unwrap()
        };
        assert_eq!(span("wire"), "w\u{200b}ire");
        assert_eq!(span("fi"), "ﬁ");
        assert_eq!(span("!"), "!");
    }

    #[test]
    fn plain_is_told_wherever_it_ends() {
        for before in [0, 1, 62, 63, 64, 65, 127, 200] {
            let text = |odd: &str| format!("{}{odd}{}", "ab ".repeat(before), "c");
            assert!(is_plain(&text("x")), "{before}");
            for odd in ["  ", "x  ", "\n", "x\u{7f}", "\u{e9}", "\t"] {
                assert!(!is_plain(&text(odd)), "{before} {odd:?}");
            }
        }
        assert!(
            is_plain("") && is_plain(" ") && !is_plain("  ") && !is_plain(&format!("{}  ", "x".repeat(63)))
        );
    }

    proptest::proptest! {
        #[test]
        fn normal_forms_are_stable(text in ".{0,40}") {
            let once = keyword(&text);
            proptest::prop_assert_eq!(keyword(&once), once);
        }

        #[test]
        fn spans_are_on_character_boundaries(text in "(?s).{0,40}") {
            let normalised = Normalised::new(&text);
            for (number, view) in normalised.texts().enumerate() {
                for (start, c) in view.char_indices() {
                    let (start, end) = normalised.original_span(number, start, start + c.len_utf8());
                    proptest::prop_assert!(text.get(start..end).is_some_and(|t| !t.is_empty()));
                }
            }
        }
    }
}
