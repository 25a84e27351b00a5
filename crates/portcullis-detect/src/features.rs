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

/// Calls `see` with the hash of every feature of a sentence in normal form, in a fixed order, repetitions included.
pub(crate) fn features(normal: &str, mut see: impl FnMut(u32)) {
    let bytes = normal.as_bytes();
    let mut at = 0;
    let mut before: Option<u32> = None;
    let mut words = 0_u32;
    while let Some(byte) = bytes.get(at).copied() {
        if byte == b' ' {
            at += 1;
            continue;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        let letters = is_letter(byte);
        let length = if letters {
            rest.iter().position(|byte| !is_letter(*byte)).unwrap_or(rest.len())
        } else {
            let signs = rest.iter().take(SIGN_BYTES);
            signs.take_while(|byte| !is_letter(**byte) && **byte != b' ').count()
        };
        let word = rest.get(..length).unwrap_or_default();
        let hash = word.iter().fold(WORD, |hash, byte| grow(hash, *byte));
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
            grams(word, &mut see);
        }
        before = Some(hash);
        at += length.max(1);
    }
}

/// The 3-, 4- and 5-grams of a word with a sign before and behind it.
fn grams(word: &[u8], see: &mut impl FnMut(u32)) {
    let word = word.get(..WORD_BYTES.min(word.len())).unwrap_or_default();
    let mut start = 0;
    while start < word.len() {
        let mut hash = GRAM;
        // The grams that begin at `start`; the first begins with the sign before the word.
        let lead = start.checked_sub(1);
        let first = lead.and_then(|lead| word.get(lead)).copied().unwrap_or(b'<');
        hash = grow(hash, first);
        let mut length = 1;
        for byte in word.get(start..).unwrap_or_default().iter().copied().chain(std::iter::once(b'>')).take(4)
        {
            hash = grow(hash, byte);
            length += 1;
            if length >= 3 {
                see(mix(hash));
            }
        }
        start += 1;
    }
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || byte == b'\''
}

fn grow(hash: u32, byte: u8) -> u32 {
    let byte = if byte.is_ascii_digit() { b'0' } else { byte };
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

    #[test]
    fn order_counts_and_digits_do_not() {
        assert_ne!(all("pay bob"), all("bob pay"));
        assert_eq!(all("pay 123 to a7"), all("pay 456 to a9"));
        assert_eq!(all(""), []);
    }
}
