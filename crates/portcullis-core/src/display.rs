//! Makes text written by others safe to show to a person.
//!
//! An approver must see the text as it is: characters that move the cursor, reverse the direction of writing, are
//! invisible or look like a space become escapes, and so do letters of other scripts that pass for Latin ones; a newline
//! never starts a line of the display itself.

mod json;

use std::borrow::Cow;
use std::fmt::Write as _;

pub use self::json::write_json;

/// Begins each further line of a text of several lines, so that it cannot pass for a line of the display.
const GUTTER: &str = "| ";
/// Fewest columns of a text, however narrow the terminal.
const WIDTH_MIN: usize = 20;

/// The text with escapes for what cannot be seen. New lines stay: see [`line`] and [`block`].
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && is_unseen(c))
}

/// The text on one line: new lines become escapes too.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unseen)
}

/// The text on lines of at most `width` columns behind `indent` ones, of which each but the first begins with a bar: a
/// line that the terminal breaks by itself could go on as a line of the display.
pub fn block(text: &str, indent: usize, width: usize) -> String {
    let width = width.saturating_sub(indent + GUTTER.len()).max(WIDTH_MIN);
    let mut shown = String::with_capacity(text.len());
    let begin = |shown: &mut String, first: bool| {
        if !first {
            shown.push('\n');
            shown.extend(std::iter::repeat_n(' ', indent));
            shown.push_str(GUTTER);
        }
    };
    for (number, line) in visible(text).split('\n').enumerate() {
        begin(&mut shown, number == 0);
        let mut used = 0;
        for c in line.chars() {
            // A non-ASCII character takes up to two columns.
            let columns = if c.is_ascii() { 1 } else { 2 };
            if used + columns > width {
                begin(&mut shown, false);
                used = 0;
            }
            used += columns;
            shown.push(c);
        }
    }
    shown
}

/// The start of a text on one line, at most `chars` characters: a longer one ends in `…`.
pub fn start_of(text: &str, chars: usize) -> String {
    let shown = line(text);
    match shown.char_indices().nth(chars) {
        None => shown.into_owned(),
        Some(_) => shown.chars().take(chars.saturating_sub(1)).chain(['…']).collect(),
    }
}

fn escaped(text: &str, hidden: impl Fn(char) -> bool + Copy) -> Cow<'_, str> {
    if text.is_ascii() && !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    walk(text, hidden, |c, escaped| match c {
        '\n' if escaped => shown.push_str("\\n"),
        c if escaped => {
            let _infallible = write!(shown, "{}", c.escape_unicode());
        }
        c => shown.push(c),
    });
    if shown == text { Cow::Borrowed(text) } else { Cow::Owned(shown) }
}

/// Hands on each character of a text with whether it has to be escaped, by the rule of [`line`]. For displays that mark such
/// characters in a way of their own.
pub fn each(text: &str, each: impl FnMut(char, bool)) {
    walk(text, is_unseen, each);
}

/// Hands on each character of a text with whether it has to be escaped: it is `hidden`, or passes for a Latin letter.
fn walk(text: &str, hidden: impl Fn(char) -> bool, mut each: impl FnMut(char, bool)) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match first.is_alphabetic() {
            true => rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (before, _) = text.split_at(text.len() - rest.len());
        let (word, after) = rest.split_at(end);
        let posing = poses_as_latin(word, before, after);
        word.chars().for_each(|c| each(c, hidden(c) || (posing && !c.is_ascii())));
        rest = after;
    }
}

/// Whether a word could be read as one in Latin letters and is not. It mixes ASCII letters with others that look like
/// them, or has only such and is part of a name in ASCII letters: a path, a host, an address. In prose, a short word of
/// another script is that word.
fn poses_as_latin(word: &str, before: &str, after: &str) -> bool {
    if !word.chars().any(looks_latin) || !word.chars().all(|c| c.is_ascii() || looks_latin(c)) {
        return false;
    }
    word.contains(|c: char| c.is_ascii_alphabetic())
        || word.chars().any(is_styled)
        || joined(before.chars().rev())
        || joined(after.chars())
}

/// Whether a word goes on, outward from it, with a part of a name in ASCII letters.
fn joined(outward: impl Iterator<Item = char>) -> bool {
    let mut outward = outward.peekable();
    outward.peek().copied().is_some_and(joins_names)
        && outward.find(|c| !joins_names(*c)).is_some_and(|c| c.is_ascii_alphanumeric())
}

/// Whether a character stands between the parts of a path, a host or an address.
fn joins_names(c: char) -> bool {
    matches!(c, '/' | '\\' | '.' | '@' | '_' | '-' | ':')
}

/// An ASCII letter in another width or style. No text needs it in place of the letter.
fn is_styled(c: char) -> bool {
    matches!(c, '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d6a3}')
}

/// Whether a letter of another script, or of another width or style, looks like an ASCII letter: the single letters for
/// which `confusables.txt` of Unicode (UTS #39) has one, without those that differ in most fonts.
fn looks_latin(c: char) -> bool {
    const CYRILLIC: &str = "АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԜԝѵѴӏԌԍ";
    const GREEK: &str = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο";
    const OTHER: &str = "ոսօցքհԼՕ\u{0251}\u{0261}\u{1d04}\u{1d0f}\u{1d1c}\u{1d20}\u{1d21}\u{1d22}";
    is_styled(c)
        || matches!(c, '\u{13a0}'..='\u{13f5}')
        || CYRILLIC.contains(c)
        || GREEK.contains(c)
        || OTHER.contains(c)
}

/// Whether a character shows as nothing or as a space that is none, or changes how others are shown: controls, spaces
/// other than the ASCII one, line and paragraph separators, the empty Braille pattern, and the code points with the property `Default_Ignorable_Code_Point` of Unicode 17 (`DerivedCoreProperties.txt`), among
/// them those of bidirectional writing, tags, joiners and variation selectors.
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{00ad}'
                | '\u{034f}'
                | '\u{061c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{a0}'
                | '\u{1680}'
                | '\u{2000}'..='\u{200a}'
                | '\u{202f}'
                | '\u{205f}'
                | '\u{2800}'
                | '\u{3000}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_said() {
        assert_eq!(visible("read_file"), "read_file");
        assert_eq!(visible("a\u{1b}[2Jb\u{202e}c\nd"), "a\\u{1b}[2Jb\\u{202e}c\nd");
        assert_eq!(visible("pay\u{200b}ee\u{e0041}\u{2028}x"), "pay\\u{200b}ee\\u{e0041}\\u{2028}x");
        assert_eq!(visible("größe 価格 مرحبا"), "größe 価格 مرحبا");
        assert_eq!(visible("a\u{a0}b\u{3000}\u{2800}"), "a\\u{a0}b\\u{3000}\\u{2800}");
    }

    #[test]
    fn a_letter_that_passes_for_a_latin_one_is_said() {
        assert_eq!(line("/srv/\u{430}pp"), "/srv/\\u{430}pp");
        assert_eq!(
            line("/srv/\u{430}\u{440}\u{440}"),
            "/srv/\\u{430}\\u{440}\\u{440}",
            "a whole word of them"
        );
        assert_eq!(line("ｒm x"), "\\u{ff52}m x");
        assert_eq!(line("mail \u{430}\u{435}@x.org"), "mail \\u{430}\\u{435}@x.org", "part of an address");
        for honest in [
            "/home/иван/Документы/отчёт.txt",
            "Привет мир",
            "Отправь отчёт в Slack с темой ее проекта, а не of Slack.",
            "ταξίδι to Athens",
            "the α-decay of U-238",
            "naïve café",
            "sınır kapısı x",
            "ос",
        ] {
            assert_eq!(line(honest), honest);
        }
    }

    #[test]
    fn a_display_of_its_own_marks_what_a_line_escapes() {
        for text in [
            "/srv/\u{430}pp",
            "a\u{1b}[2Jb\u{202e}c\nd",
            "größe 価格",
            "naïve \\u{1b}",
            "mail \u{430}\u{435}@x.org",
        ] {
            let mut shown = String::new();
            each(text, |c, escaped| match c {
                '\n' => shown.push_str("\\n"),
                c if escaped => shown.extend(c.escape_unicode()),
                c => shown.push(c),
            });
            assert_eq!(shown, line(text));
        }
    }

    #[test]
    fn a_new_line_begins_no_line_of_the_display() {
        assert_eq!(line("a\nrule  x\r\ty"), "a\\nrule  x\\u{d}\\u{9}y");
        assert_eq!(block("a\n  rule  x", 4, 80), "a\n    |   rule  x");
    }

    #[test]
    fn a_line_that_is_too_long_is_broken_here_and_not_by_the_terminal() {
        let padded = format!("{}rule  x", " ".repeat(34));
        assert_eq!(block(&padded, 4, 40), format!("{}\n    | rule  x", " ".repeat(34)));
        assert!(block(&"値".repeat(40), 4, 40).lines().all(|line| line.chars().count() <= 23));
        assert_eq!(
            (start_of("rotate_keys", 20), start_of(&"x".repeat(9), 4)),
            ("rotate_keys".into(), "xxx…".into())
        );
    }
}
