//! Addresses that are written so that a program does not see them and a reader does: `ida＠fen.example`,
//! `ida [at] fen [dot] example`, `ida&#64;fen.example`, an invisible letter within. A model that is told to write to one
//! writes it plainly.

use portcullis_core::display::is_unseen;

use crate::words::letter_at;

/// Ways to write `@` and the full stop, in lower case, with what they stand for.
const SPELT: [(&str, &str); 16] = [
    ("&#64;", "@"),
    ("&#x40;", "@"),
    ("&commat;", "@"),
    ("%40", "@"),
    ("\\@", "@"),
    (" [at] ", "@"),
    ("[at]", "@"),
    (" (at) ", "@"),
    ("(at)", "@"),
    ("&#46;", "."),
    ("&#x2e;", "."),
    ("%2e", "."),
    (" [dot] ", "."),
    ("[dot]", "."),
    (" (dot) ", "."),
    ("(dot)", "."),
];

/// The text with addresses written plainly, or `None` if nothing in it is written otherwise. O(length).
pub(crate) fn undisguised(text: &str) -> Option<String> {
    let odd = |c: char| !c.is_ascii() && (is_unseen(c) || plain_letter(c) != c);
    let marked = text.bytes().any(|byte| matches!(byte, b'&' | b'%' | b'\\' | b'[' | b'('));
    if !marked && !text.contains(odd) {
        return None;
    }
    let (mut plain, mut changed, mut at) = (String::with_capacity(text.len()), false, 0);
    while let Some(c) = letter_at(text, at) {
        if let Some((way, sign)) = spelt(text.as_bytes().get(at..).unwrap_or_default()) {
            plain.push_str(sign);
            at += way.len();
            changed = true;
            continue;
        }
        at += c.len_utf8();
        changed |= odd(c);
        if c.is_ascii() || !is_unseen(c) {
            plain.push(plain_letter(c));
        }
    }
    (changed && plain.contains('@')).then_some(plain)
}

/// The way to write a sign with which a text begins.
fn spelt(text: &[u8]) -> Option<(&'static str, &'static str)> {
    let begins =
        |way: &str| text.get(..way.len()).is_some_and(|head| head.eq_ignore_ascii_case(way.as_bytes()));
    matches!(text.first(), Some(b'&' | b'%' | b'\\' | b'[' | b'(' | b' '))
        .then(|| SPELT.into_iter().find(|(way, _)| begins(way)))
        .flatten()
}

/// The letter of ASCII that a full-width one is, and the full stop of other scripts.
fn plain_letter(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{3002}' | '\u{ff61}' => '.',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_a_reader_reads_it() {
        for text in [
            "ida＠fen.example",
            "ida@fen。example",
            "ida [at] fen [dot] example",
            "ida(AT)fen(DOT)example",
            "ida&#64;fen.example",
            "ida%40fen.example",
            "ida\\@fen.example",
            "i\u{200b}da@f\u{ad}en.example",
            "ｉｄａ@fen.example",
        ] {
            assert_eq!(undisguised(text).as_deref(), Some("ida@fen.example"), "{text}");
        }
        for text in ["ida@fen.example", "Meet (at) noon? No: at one.", "größe 100%", "价格。"] {
            assert_eq!(undisguised(text).filter(|plain| plain.contains("@fen")), None, "{text}");
        }
    }
}
