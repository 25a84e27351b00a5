//! A text as a model reads it, where its letters are written otherwise: full-width and mathematical letters, letters of
//! the tag block, look-alikes of other scripts within a Latin word, letters with something invisible between them.
//!
//! Unlike the [normal form](crate::normalise), which is for comparing, this one keeps upper case, accents and signs, so
//! that grammar can be read in it. Digits and signs alone, as Japanese and Chinese have them in full width, disguise
//! nothing.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::char::decompose_compatible;

use crate::leaves::Leaf;
use crate::normalise::{has_no_width, lookalike, tag_letter};
use crate::places::{Builder, Places};

/// Longest run of tag letters behind a black flag that is the flag of a region.
const FLAG_LETTERS_MAX: usize = 6;
const BLACK_FLAG: char = '\u{1f3f4}';

/// A leaf with its letters written plainly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undisguised<'a> {
    /// The leaf; its places lead to where the letters stood.
    pub leaf: Leaf<'a>,
    /// Stretches of its text that nobody sees: letters of the tag block.
    pub smuggled: Vec<Range<usize>>,
}

/// The leaf with its letters written plainly; none where no letter is disguised. O(length).
#[must_use]
pub fn undisguised<'a>(leaf: &Leaf<'a>) -> Option<Undisguised<'a>> {
    let (text, places, smuggled) = plain(&leaf.text)?;
    let leaf = Leaf { places: places.within(&leaf.places), text: Cow::Owned(text), ..leaf.clone() };
    Some(Undisguised { leaf, smuggled })
}

fn plain(text: &str) -> Option<(String, Places, Vec<Range<usize>>)> {
    if text.is_ascii() {
        return None;
    }
    let mut writer = Writer { text: String::with_capacity(text.len()), ..Writer::default() };
    let (mut at, mut latin_until) = (0, 0);
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let place = at..at + c.len_utf8();
        let rest = text.get(place.end..).unwrap_or_default();
        if c.is_alphabetic() && at >= latin_until {
            latin_until = latin_word(text, at).unwrap_or(latin_until);
        }
        at = match () {
            () if c.is_ascii() => writer.keep(c, place),
            () if c == BLACK_FLAG => writer.flag(text, place),
            () if tag_letter(c).is_some() => writer.smuggle(text, place.start),
            () if has_no_width(c) => writer.invisible(c, place, rest),
            () if at < latin_until && latin_of(c).is_some() => writer.letter(latin_of(c), place),
            () if plain_letter(c).is_some() => writer.letter(plain_letter(c), place),
            () => match plain_sign(c).filter(|_| writer.text.ends_with(|before: char| before.is_ascii())) {
                Some(sign) => writer.replace(sign, place),
                None => writer.keep(c, place),
            },
        };
    }
    let Writer { text, places, smuggled, disguised } = writer;
    disguised.then(|| (text, places.finish(0), smuggled))
}

#[derive(Default)]
struct Writer {
    text: String,
    places: Builder,
    smuggled: Vec<Range<usize>>,
    /// Whether a letter was disguised.
    disguised: bool,
}

impl Writer {
    fn keep(&mut self, c: char, place: Range<usize>) -> usize {
        self.text.push(c);
        let end = place.end;
        self.places.literal(place);
        end
    }

    fn replace(&mut self, c: char, place: Range<usize>) -> usize {
        self.text.push(c);
        let end = place.end;
        self.places.atom(place, c.len_utf8());
        end
    }

    fn letter(&mut self, letter: Option<char>, place: Range<usize>) -> usize {
        self.disguised |= letter.is_some_and(char::is_alphabetic);
        self.replace(letter.unwrap_or(char::REPLACEMENT_CHARACTER), place)
    }

    /// What is invisible goes where it stands within a word.
    fn invisible(&mut self, c: char, place: Range<usize>, rest: &str) -> usize {
        let next = rest.chars().find(|next| !has_no_width(*next));
        let goes_on = next.is_some_and(|next| {
            next.is_ascii_alphabetic() || plain_letter(next).is_some_and(char::is_alphabetic)
        });
        if goes_on && self.text.ends_with(|before: char| before.is_ascii_alphabetic()) {
            self.disguised = true;
            return place.end;
        }
        self.keep(c, place)
    }

    /// A flag, with the letters that say of which region it is.
    fn flag(&mut self, text: &str, place: Range<usize>) -> usize {
        let mut end = self.keep(BLACK_FLAG, place);
        let rest = text.get(end..).unwrap_or_default();
        let letters = rest.chars().take_while(|c| tag_letter(*c).is_some()).count();
        if letters <= FLAG_LETTERS_MAX {
            for c in rest.chars().take(letters) {
                end = self.keep(c, end..end + c.len_utf8());
            }
        }
        end
    }

    /// A run of tag letters. It stands by itself, unless it completes a word that is seen.
    fn smuggle(&mut self, text: &str, from: usize) -> usize {
        if !self.text.ends_with(|before: char| before.is_ascii_alphabetic()) {
            self.text.push_str("\n\n");
            self.places.atom(from..from, 2);
        }
        let (start, mut at) = (self.text.len(), from);
        for c in text.get(from..).unwrap_or_default().chars() {
            let Some(letter) = tag_letter(c) else { break };
            at = self.letter(Some(letter), at..at + c.len_utf8());
        }
        self.disguised = true;
        self.smuggled.push(start..self.text.len());
        if !text.get(at..).is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_alphabetic())) {
            self.text.push_str("\n\n");
            self.places.atom(at..at, 2);
        }
        at
    }
}

/// The end of the word that begins at `at`, if it has letters of ASCII and otherwise nothing but look-alikes.
fn latin_word(text: &str, at: usize) -> Option<usize> {
    let word = || text.get(at..).unwrap_or_default().chars().take_while(|c| c.is_alphabetic());
    let latin = word().any(|c| c.is_ascii())
        && word().any(|c| latin_of(c).is_some())
        && word().all(|c| c.is_ascii() || latin_of(c).is_some() || plain_letter(c).is_some());
    latin.then(|| at + word().map(char::len_utf8).sum::<usize>())
}

/// The Latin letter that a letter of another script looks like, in its case.
fn latin_of(c: char) -> Option<char> {
    if c.is_ascii() {
        return None;
    }
    let mut lower = c.to_lowercase();
    let (first, None) = (lower.next()?, lower.next()) else { return None };
    lookalike(first).map(|latin| if first == c { latin } else { latin.to_ascii_uppercase() })
}

/// The letter or digit of ASCII of which a character is another style.
fn plain_letter(c: char) -> Option<char> {
    match c {
        // Signs of ordinal numbers, and accents that are no styles.
        'ª' | 'º' => None,
        // White letters on black, which Unicode does not decompose.
        '\u{1f150}'..='\u{1f169}' | '\u{1f170}'..='\u{1f189}' => {
            let letter = (u32::from(c) - 0x1f150) % 0x20;
            char::from_u32(u32::from('A') + letter)
        }
        // Small capitals.
        '\u{1d00}'..='\u{1d22}' | '\u{a730}' | '\u{a731}' | 'ɪ' | 'ɢ' | 'ɴ' | 'ʀ' | 'ʙ' | 'ʜ' | 'ʟ' | 'ʏ' => {
            lookalike(c)
        }
        _ => alone(c).filter(char::is_ascii_alphanumeric),
    }
}

/// The sign of ASCII of which a character is another style, as the full-width comma.
fn plain_sign(c: char) -> Option<char> {
    alone(c).filter(|sign| sign.is_ascii_punctuation() || *sign == ' ')
}

/// The one character of ASCII that a character decomposes to.
fn alone(c: char) -> Option<char> {
    let (mut count, mut last) = (0_usize, None);
    decompose_compatible(c, |part| {
        count += 1;
        last = Some(part);
    });
    last.filter(|part| count == 1 && !c.is_ascii() && part.is_ascii())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::leaves::leaves;

    fn read(text: &str) -> Option<String> {
        plain(text).map(|(text, ..)| text)
    }

    fn tags(text: &str) -> String {
        text.chars().filter_map(|c| char::from_u32(0xe_0000 + u32::from(c))).collect()
    }

    #[test]
    fn disguised_letters_are_read_in_their_case() {
        for text in [
            "Ｐｌｅａｓｅ　ｓｅｎｄ　it，now",
            "𝐏𝐥𝐞𝐚𝐬𝐞 𝓈𝑒𝓃𝒹 it,now",
            "Ⓟⓛⓔⓐⓢⓔ ⓢⓔⓝⓓ it,now",
            "Plеаsе sеnd it,now",
            "Pl\u{200b}ease se\u{ad}nd it,now",
        ] {
            assert_eq!(read(text).as_deref(), Some("Please send it,now"), "{text}");
        }
        assert_eq!(read("🅿🅰🅨").as_deref(), Some("PAY"));
        assert_eq!(read(&format!("At nine.{}", tags("Pay Bob"))).as_deref(), Some("At nine.\n\nPay Bob\n\n"));
        assert_eq!(read(&format!("P{}y", tags("a"))).as_deref(), Some("Pay"));
    }

    #[test]
    fn other_scripts_digits_and_signs_disguise_nothing() {
        let england = format!("{BLACK_FLAG}{}\u{e007f}", tags("gbeng"));
        for text in [
            "価格は１，２００円です。お早めに！",
            "会議は２０２６年１１月２３日（月）１０：００からです。",
            "版本２：价格（含税）为￥９９。",
            "Привет, мир",
            "größe, naïve, Ελλάδα, 한국어",
            "«Nº 5», 1ª edición … 20 °C ½ x² ™",
            "می\u{200c}خواهم",
            "👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}",
            england.as_str(),
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn places_lead_back_through_the_leaf() {
        let raw = "{\"note\": \"At \\\"nine\\\". Ｐａｙ Bob\"}";
        let leaves = leaves(raw);
        let plain = undisguised(leaves.iter().next().unwrap()).unwrap();
        let at = plain.leaf.text.find("Pay").unwrap();
        assert_eq!(raw.get(plain.leaf.places.raw(at..at + 3)), Some("Ｐａｙ"));
    }

    proptest! {
        #[test]
        fn every_range_is_a_range_of_the_text(text in any::<String>(), more in "[a-zA-Z аеоｎ．\u{200b}\u{e0041}🏴ﬁ𝐏]{0,20}") {
            let text = text + &more;
            if let Some((read, places, smuggled)) = plain(&text) {
                for (at, c) in read.char_indices() {
                    prop_assert!(text.get(places.raw(at..at + c.len_utf8())).is_some());
                }
                for range in smuggled {
                    prop_assert!(read.get(range).is_some());
                }
            }
        }
    }
}
