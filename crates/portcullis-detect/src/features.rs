//! What the model sees of a sentence: hashed word 1-2-grams and, inside words, byte 3-5-grams.
//!
//! A sentence in normal form is read once. Hashes grow byte by byte, so that an n-gram costs one multiplication and no
//! allocation. Digits are all one digit. Runs of signs are words of their own: delimiters tell a lot. The first word
//! and the first two are features again, with a seed of their own, because orders begin with verbs.

/// Bytes of a word whose n-grams are read; a longer word keeps its hash, which is of all its bytes.
const WORD_BYTES: usize = 48;
/// Bytes of a run of signs that make one word.
const SIGN_BYTES: usize = 8;

const PRIME: u32 = 0x0100_0193;
const WORD: u32 = 0x811c_9dc5;
const PAIR: u32 = 0x3c6e_f372;
const GRAM: u32 = 0xa54f_f53a;
const FIRST: u32 = 0x510e_527f;
const FIRST_PAIR: u32 = 0x9b05_688c;

/// What a byte of a normal form is to the model: a blank separates, a sign or a letter belongs to a word of its kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Blank,
    Sign,
    Letter,
}

#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "worked out by the compiler, which refuses what is wrong"
)]
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Sign; 256];
    let mut byte = 0;
    while byte < 256 {
        let known = byte as u8;
        if known == b' ' {
            classes[byte] = Class::Blank;
        } else if known.is_ascii_alphanumeric() || known >= 0x80 || known == b'\'' {
            classes[byte] = Class::Letter;
        }
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> Class {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(Class::Sign)
}

/// Calls `see` with the hash of every feature of a sentence in normal form, in a fixed order, repetitions included.
pub(crate) fn features(normal: &str, mut see: impl FnMut(u32)) {
    let mut rest = normal.as_bytes();
    let mut before: Option<u32> = None;
    let mut words = 0_u32;
    let mut frame = Frame::default();
    while let Some((&byte, after)) = rest.split_first() {
        let kind = class(byte);
        if kind == Class::Blank {
            rest = after;
            continue;
        }
        let letters = kind == Class::Letter;
        let limit = if letters { usize::MAX } else { SIGN_BYTES };
        let mut hash = WORD;
        let mut length = 0;
        for byte in rest.iter().take(limit).take_while(|byte| class(**byte) == kind) {
            let byte = folded(*byte);
            hash = grow(hash, byte);
            frame.put(length, byte);
            length += 1;
        }
        see(mix(hash));
        if let Some(before) = before {
            see(mix(join(PAIR, before, hash)));
        }
        if words == 0 && letters {
            see(mix(join(FIRST, 0, hash)));
        } else if let Some(before) = before.filter(|_| words == 1 && letters) {
            see(mix(join(FIRST_PAIR, before, hash)));
        }
        if letters {
            words = words.saturating_add(1);
            grams(frame.of(length), &mut see);
        }
        before = Some(hash);
        rest = rest.get(length..).unwrap_or_default();
    }
}

/// A word between the signs that stand before and behind it, cut to [`WORD_BYTES`].
struct Frame([u8; WORD_BYTES + 2]);

impl Default for Frame {
    fn default() -> Self {
        Self([b'<'; WORD_BYTES + 2])
    }
}

impl Frame {
    /// Puts one more byte of the word in, if there is room.
    fn put(&mut self, at: usize, byte: u8) {
        if let Some(place) = self.0.get_mut(at + 1) {
            *place = byte;
        }
    }

    /// The frame around the first `length` bytes that were put in.
    fn of(&mut self, length: usize) -> &[u8] {
        let end = length.min(WORD_BYTES) + 1;
        if let Some(place) = self.0.get_mut(end) {
            *place = b'>';
        }
        self.0.get(..=end).unwrap_or_default()
    }
}

/// The 3-, 4- and 5-grams of a framed word: all that begin at its first byte, then at its second, and so on. No hash
/// waits for one that began elsewhere.
fn grams(frame: &[u8], see: &mut impl FnMut(u32)) {
    let three = |[a, b, c]: [u8; 3]| grow(grow(grow(GRAM, a), b), c);
    for window in frame.windows(5) {
        if let [a, b, c, d, e] = *window {
            let short = three([a, b, c]);
            let middle = grow(short, d);
            see(mix(short));
            see(mix(middle));
            see(mix(grow(middle, e)));
        }
    }
    if let [.., a, b, c, d] = *frame {
        let short = three([a, b, c]);
        see(mix(short));
        see(mix(grow(short, d)));
    }
    if let [.., a, b, c] = *frame {
        see(mix(three([a, b, c])));
    }
}

/// All digits are one.
fn folded(byte: u8) -> u8 {
    if byte.is_ascii_digit() { b'0' } else { byte }
}

fn grow(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(PRIME)
}

fn join(seed: u32, before: u32, hash: u32) -> u32 {
    (seed ^ before.rotate_left(13)).wrapping_mul(PRIME) ^ hash
}

/// Spreads a hash over all its bits, so that its highest ones can name a bucket.
fn mix(hash: u32) -> u32 {
    let hash = (hash ^ (hash >> 16)).wrapping_mul(0x7feb_352d);
    let hash = (hash ^ (hash >> 15)).wrapping_mul(0x846c_a68b);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str) -> Vec<u32> {
        let mut seen = Vec::new();
        features(text, |hash| seen.push(hash));
        seen
    }

    #[test]
    fn a_word_has_its_grams_a_pair_and_a_beginning() {
        // `pay`: word, first; <pa <pay <pay> pay pay> ay>
        assert_eq!(all("pay").len(), 2 + 6);
        let two = all("pay bob");
        assert_eq!(two.len(), 8 + 1 + 1 + 1 + 6);
        assert_eq!(two.get(..8), Some(all("pay").as_slice()));
    }

    /// The same by the definition: every part of a text is written out.
    fn by_definition(normal: &str) -> Vec<u32> {
        let hashed = |seed, text: &[u8]| text.iter().fold(seed, |hash, byte| grow(hash, folded(*byte)));
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte >= 0x80 || byte == b'\'';
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let mut before = b' ';
        for byte in normal.bytes() {
            match parts.last_mut() {
                Some(part)
                    if before != b' '
                        && byte != b' '
                        && is_letter(before) == is_letter(byte)
                        && (is_letter(byte) || part.len() < SIGN_BYTES) =>
                {
                    part.push(byte);
                }
                _ => parts.push(vec![byte]),
            }
            before = byte;
        }
        let mut seen = Vec::new();
        let (mut before, mut words) = (None, 0);
        for part in parts.iter().filter(|part| part.as_slice() != b" ") {
            let hash = hashed(WORD, part);
            seen.push(mix(hash));
            seen.extend(before.map(|before| mix(join(PAIR, before, hash))));
            if is_letter(part[0]) {
                match (words, before) {
                    (0, _) => seen.push(mix(join(FIRST, 0, hash))),
                    (1, Some(before)) => seen.push(mix(join(FIRST_PAIR, before, hash))),
                    _ => {}
                }
                words += 1;
                let cut = &part[..part.len().min(WORD_BYTES)];
                let framed = [b"<", cut, b">"].concat();
                for start in 0..framed.len() {
                    let grams = (3..=5).filter_map(|length| framed.get(start..start + length));
                    seen.extend(grams.map(|gram| mix(hashed(GRAM, gram))));
                }
            }
            before = Some(hash);
        }
        seen
    }

    proptest! {
        #[test]
        fn features_are_those_of_the_definition(
            text in "[a-z0-9 .,'!@$éа-]{0,80}", long in "[a-z]{40,60}", other in "\\PC{0,30}"
        ) {
            let text = format!("{text}{long} {other}");
            prop_assert_eq!(all(&text), by_definition(&text));
        }
    }

    #[test]
    fn order_counts_and_digits_do_not() {
        assert_ne!(all("pay bob"), all("bob pay"));
        assert_eq!(all("pay 123 to a7"), all("pay 456 to a9"));
        assert_eq!(all(""), []);
    }
}
