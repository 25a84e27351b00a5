//! One automaton for the restricted keywords of all policies of a bundle.

use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored, Input, MatchKind, StartKind};

use crate::normalise::{self, Normalised};

/// Up to so many keywords the automaton is a table with an entry for each state and byte, which is the fastest
/// there is; beyond, where the table would take tens of megabytes, the library chooses.
const DFA_PATTERNS_MAX: usize = 1_000;

/// Finds the keywords of any policy in one pass over a text.
#[derive(Debug, Clone)]
pub struct KeywordIndex {
    automaton: AhoCorasick,
    /// `None` if a keyword is too short for it.
    beginnings: Option<Beginnings>,
    /// Bytes of the shortest keyword.
    shortest: usize,
    /// For each pattern, the policies that restrict it and the number of the keyword there.
    owners: Vec<Vec<(usize, usize)>>,
}

/// A restricted keyword in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeywordMatch {
    /// Number of the keyword in its policy's list.
    pub keyword: usize,
    /// First byte in the original text.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl KeywordIndex {
    /// Builds the index from the keyword lists of all policies, in policy order.
    pub fn new<'a>(policies: impl Iterator<Item = &'a [String]>) -> Result<Self, aho_corasick::BuildError> {
        let mut patterns = std::collections::BTreeMap::<String, Vec<(usize, usize)>>::new();
        for (policy, keywords) in policies.enumerate() {
            for (number, keyword) in keywords.iter().enumerate() {
                let normal = normalise::keyword(keyword);
                if !normal.is_empty() {
                    patterns.entry(normal).or_default().push((policy, number));
                }
            }
        }
        let kind = (patterns.len() <= DFA_PATTERNS_MAX).then_some(AhoCorasickKind::DFA);
        let automaton = AhoCorasick::builder()
            .kind(kind)
            .match_kind(MatchKind::Standard)
            .start_kind(StartKind::Both)
            .ascii_case_insensitive(true)
            .build(patterns.keys())?;
        let shortest = patterns.keys().map(String::len).min().unwrap_or(0);
        let beginnings = Beginnings::of(patterns.keys().map(String::as_bytes), shortest);
        Ok(Self { automaton, beginnings, shortest, owners: patterns.into_values().collect() })
    }

    /// The first keyword of policy number `policy` in `text`: the one that ends first, then the one that is first in
    /// the policy. Linear in the text.
    pub fn find(&self, policy: usize, text: &str) -> Option<KeywordMatch> {
        if self.owners.is_empty() {
            return None;
        }
        // Nearly all texts are plain and hold no keyword of any policy: one cheap pass finds out.
        if normalise::is_plain(text) && !self.is_in_plain(text) {
            return None;
        }
        let normalised = Normalised::new(text);
        for (view, shown) in normalised.texts().enumerate() {
            for found in self.automaton.find_overlapping_iter(shown) {
                let owners = self.owners.get(found.pattern().as_usize()).into_iter().flatten();
                let keyword = owners.filter(|(owner, _)| *owner == policy).map(|(_, number)| *number).min();
                if let Some(keyword) = keyword {
                    let (start, end) = normalised.original_span(view, found.start(), found.end());
                    return Some(KeywordMatch { keyword, start, end });
                }
            }
        }
        None
    }

    /// Whether all keywords are longer than a number, so that it need not be written out.
    pub fn are_longer_than(&self, number: u64) -> bool {
        let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1);
        digits < self.shortest
    }

    /// Whether any keyword of any policy is in a plain text.
    fn is_in_plain(&self, text: &str) -> bool {
        if text.len() < self.shortest {
            return false;
        }
        let Some(beginnings) = &self.beginnings else { return self.automaton.is_match(text) };
        let begins = |at: usize| {
            let input = Input::new(text).range(at..).anchored(Anchored::Yes).earliest(true);
            self.automaton.find(input).is_some()
        };
        beginnings.any_place(text.as_bytes(), begins)
    }
}

/// Bytes of a keyword's beginning that are looked at.
const WINDOW: usize = 4;
/// Bits of the table, as a power of two: 16 KiB, which stay in the first cache.
const TABLE_BITS: u32 = 17;
/// Words of the table.
const TABLE: usize = 1 << (TABLE_BITS - u64::BITS.ilog2());
/// Places that are looked at together.
const BLOCK: usize = 16;

/// Tells where in a text a keyword may begin: a bit for each hash of the first bytes of any keyword.
///
/// An automaton has to know the state at one byte before it can look at the next. This looks at each place by itself,
/// which a processor does for several at once.
#[derive(Debug, Clone)]
struct Beginnings(Box<[u64; TABLE]>);

impl Beginnings {
    /// Of keywords of at least `shortest` bytes, in lower case.
    fn of<'k>(keywords: impl Iterator<Item = &'k [u8]>, shortest: usize) -> Option<Self> {
        if shortest < WINDOW {
            return None;
        }
        let mut bits = Box::new([0; TABLE]);
        for window in keywords.filter_map(|keyword| keyword.first_chunk()) {
            let (word, bit) = place(*window);
            *bits.get_mut(word)? |= 1 << bit;
        }
        Some(Self(bits))
    }

    /// 1 if a keyword may begin with this window, in letters of any case.
    #[inline]
    fn may_begin(&self, window: [u8; WINDOW]) -> u64 {
        let (word, bit) = place(window);
        self.0.get(word).map_or(0, |word| word >> bit & 1)
    }

    /// Whether any place of a text where a keyword may begin is one that is looked for.
    fn any_place(&self, text: &[u8], is_sought: impl Fn(usize) -> bool) -> bool {
        let is_sought_among = |from: usize, count: usize| {
            let windows = text.get(from..).unwrap_or_default().array_windows().take(count);
            windows.enumerate().any(|(at, window)| self.may_begin(*window) != 0 && is_sought(from + at))
        };
        let mut from = 0;
        // A block with the bytes that windows reach behind it; what is left at the end is looked at one by one.
        while let Some(block) = text.get(from..).and_then(|rest| rest.first_chunk::<{ BLOCK + WINDOW - 1 }>())
        {
            let any = block.array_windows().fold(0, |any, window| any | self.may_begin(*window));
            if any != 0 && is_sought_among(from, BLOCK) {
                return true;
            }
            from += BLOCK;
        }
        is_sought_among(from, BLOCK)
    }
}

/// The number of the table's word, and that of the bit in it, for a window in letters of any case.
#[inline]
fn place(window: [u8; WINDOW]) -> (usize, u32) {
    /// The bit that tells small letters from capitals. Other signs lose it as well: the table says *may*.
    const SMALL: u32 = 0x2020_2020;
    let hash = (u32::from_le_bytes(window) | SMALL).wrapping_mul(0x9e37_79b1) >> (u32::BITS - TABLE_BITS);
    ((hash >> u64::BITS.ilog2()) as usize, hash % u64::BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(policies: &[&[&str]]) -> KeywordIndex {
        let owned: Vec<Vec<String>> =
            policies.iter().map(|list| list.iter().map(|k| (*k).to_owned()).collect()).collect();
        KeywordIndex::new(owned.iter().map(Vec::as_slice)).unwrap()
    }

    #[test]
    fn policies_do_not_see_each_others_keywords() {
        let index = index(&[&["wire", "override"], &["wireless"]]);
        assert_eq!(index.find(0, "a WIRELESS network").map(|m| m.keyword), Some(0), "substring");
        assert_eq!(index.find(1, "a WIRELESS network").map(|m| m.keyword), Some(0));
        assert_eq!(index.find(1, "wire it"), None);
        assert_eq!(index.find(2, "wire it"), None);
    }

    #[test]
    fn disguised_keywords_are_found_where_they_stand() {
        let index = index(&[&["delete financial records"]]);
        let text = "please DELETE\u{a0}fin\u{200b}ancial \n records!";
        let found = index.find(0, text).unwrap();
        assert_eq!(text.get(found.start..found.end), Some("DELETE\u{a0}fin\u{200b}ancial \n records"));
        assert_eq!(index.find(0, "delete the records"), None);
    }

    #[test]
    fn numbers_are_long_enough_or_not() {
        let index = index(&[&["1000", "override"]]);
        assert!(index.are_longer_than(0) && index.are_longer_than(999) && !index.are_longer_than(1_000));
    }

    proptest::proptest! {
        /// What is looked at first changes no answer.
        #[test]
        fn beginnings_hide_no_keyword(
            keywords in proptest::collection::vec("[a-c 0]{1,6}", 1..4),
            text in "[a-dA-C 0@`]{0,40}",
        ) {
            let lists: Vec<Vec<String>> = vec![keywords];
            let index = KeywordIndex::new(lists.iter().map(Vec::as_slice)).unwrap();
            proptest::prop_assert_eq!(index.is_in_plain(&text), index.automaton.is_match(&text));
        }
    }

    #[test]
    fn no_keywords_match_nothing() {
        assert_eq!(index(&[&[]]).find(0, "anything"), None);
    }
}
