//! What the learned score sees of a text: its words, pairs of words, and pieces of two to five letters within words.
//!
//! Each falls into a bucket by its hash, which also depends on the part that the text plays ([`Role`]). A bucket that is
//! met `c` times has the share 1 + ln c; the shares of words and pairs together have length 1, and so have those of the
//! pieces. No word is kept.

use portcullis_core::normalise::Normalised;

/// Buckets that pieces, words and pairs fall into.
pub const BUCKETS: usize = 1 << BUCKET_BITS;
/// Their number, as a power of two.
pub const BUCKET_BITS: u32 = 17;

/// Words of one text that are read.
pub const WORDS_MAX: usize = 2_048;
/// Letters of one word that are read.
const LETTERS_MAX: usize = 32;
/// Lengths of the pieces.
const PIECE_MIN: usize = 2;
const PIECE_MAX: usize = 5;

/// The part that a text plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The turn that is scored.
    Turn,
    /// A turn before it.
    Before,
}

/// The buckets of a text with their shares; a bucket may occur once for its words and once for its pieces.
pub fn features(text: &str, role: Role) -> Vec<(usize, f32)> {
    let normalised = Normalised::new(text);
    let text = normalised.texts().next().unwrap_or_default();
    let (mut words, mut pieces) = (Vec::new(), Vec::new());
    let mut before: Option<u64> = None;
    let mut letters = ['\0'; LETTERS_MAX + 2];
    for_each_word(text, |word| {
        let hash = word.iter().fold(seed(role, b'w'), |hash, letter| step(hash, *letter));
        words.push(bucket(hash));
        words.extend(before.map(|before| bucket(before.rotate_left(21) ^ hash)));
        before = Some(hash);
        let edged = edge(&mut letters, word);
        for start in 0..edged.len().saturating_sub(PIECE_MIN - 1) {
            let mut hash = seed(role, b'p');
            for (length, letter) in (1..=PIECE_MAX).zip(edged.iter().skip(start)) {
                hash = step(hash, *letter);
                if length >= PIECE_MIN {
                    pieces.push(bucket(hash));
                }
            }
        }
    });
    let mut found = shares(words);
    found.extend(shares(pieces));
    found
}

/// The word with a space at either end.
fn edge<'l>(letters: &'l mut [char; LETTERS_MAX + 2], word: &[char]) -> &'l [char] {
    let edged = std::iter::once(' ').chain(word.iter().copied()).chain(std::iter::once(' '));
    letters.iter_mut().zip(edged).for_each(|(cell, letter)| *cell = letter);
    letters.get(..word.len() + 2).unwrap_or_default()
}

/// Runs of letters and apostrophes, runs of digits, and the signs that tell a question or an exclamation.
fn for_each_word(text: &str, mut take: impl FnMut(&[char])) {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Letters,
        Digits,
        Sign,
        Other,
    }
    let kind = |c: char| match c {
        '\'' => Kind::Letters,
        '?' | '!' => Kind::Sign,
        c if c.is_numeric() => Kind::Digits,
        c if c.is_alphabetic() => Kind::Letters,
        _ => Kind::Other,
    };
    let mut word: Vec<char> = Vec::with_capacity(LETTERS_MAX);
    let (mut within, mut count) = (Kind::Other, 0);
    for c in text.chars().chain(std::iter::once(' ')) {
        let c = if c == '\u{2019}' { '\'' } else { c };
        let next = kind(c);
        if next != within || next == Kind::Sign {
            if !word.is_empty() {
                take(&word);
                count += 1;
                word.clear();
            }
            if count == WORDS_MAX {
                return;
            }
            within = next;
        }
        if next != Kind::Other && word.len() < LETTERS_MAX {
            word.push(c.to_ascii_lowercase());
        }
    }
}

/// Buckets as often as they are met, as shares of length 1.
fn shares(mut buckets: Vec<u32>) -> Vec<(usize, f32)> {
    buckets.sort_unstable();
    let mut found: Vec<(usize, f32)> = Vec::new();
    for bucket in buckets {
        let bucket = usize::try_from(bucket).unwrap_or_default() % BUCKETS;
        match found.last_mut() {
            Some((last, count)) if *last == bucket => *count += 1.0,
            _ => found.push((bucket, 1.0)),
        }
    }
    found.iter_mut().for_each(|(_, count)| *count = 1.0 + count.ln());
    let length = found.iter().map(|(_, share)| share * share).sum::<f32>().sqrt().max(1.0);
    found.iter_mut().for_each(|(_, share)| *share /= length);
    found
}

fn seed(role: Role, kind: u8) -> u64 {
    let role = match role {
        Role::Turn => 't',
        Role::Before => 'b',
    };
    step(step(0xcbf2_9ce4_8422_2325, role), char::from(kind))
}

/// FNV-1a over letters.
fn step(hash: u64, letter: char) -> u64 {
    (hash ^ u64::from(u32::from(letter))).wrapping_mul(0x0000_0100_0000_01b3)
}

fn bucket(hash: u64) -> u32 {
    u32::try_from(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BUCKET_BITS)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_and_bounded() {
        let mut words: Vec<String> = Vec::new();
        for_each_word("Don't pay 12.50 TO him?! na\u{ef}ve", |word| words.push(word.iter().collect()));
        assert_eq!(words, ["don't", "pay", "12", "50", "to", "him", "?", "!", "na\u{ef}ve"]);
        let mut count = 0;
        for_each_word(&"a ".repeat(2 * WORDS_MAX), |_| count += 1);
        assert_eq!(count, WORDS_MAX);
        for_each_word(&"x".repeat(1_000), |word| assert_eq!(word.len(), LETTERS_MAX));
    }

    #[test]
    fn shares_have_length_one_and_depend_on_the_role() {
        let length = |found: &[(usize, f32)]| found.iter().map(|(_, share)| share * share).sum::<f32>();
        let turn = features("read the mail, then read it again", Role::Turn);
        assert!((length(&turn) - 2.0).abs() < 1e-4, "words and pieces");
        assert_ne!(turn, features("read the mail, then read it again", Role::Before));
        assert_eq!(
            turn,
            features("READ  the mail, then read it\nagain", Role::Turn),
            "case and space say nothing"
        );
        assert!(features("", Role::Turn).is_empty());
    }
}
