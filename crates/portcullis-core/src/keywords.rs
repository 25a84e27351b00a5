//! One automaton for the restricted keywords of all policies of a bundle.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::normalise::{self, Normalised};

/// Up to so many keywords the automaton is a table with an entry for each state and byte, which is the fastest
/// there is; beyond, where the table would take tens of megabytes, the library chooses.
const DFA_PATTERNS_MAX: usize = 1_000;

/// Finds the keywords of any policy in one pass over a text.
#[derive(Debug, Clone)]
pub struct KeywordIndex {
    automaton: AhoCorasick,
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
            .ascii_case_insensitive(true)
            .build(patterns.keys())?;
        Ok(Self { automaton, owners: patterns.into_values().collect() })
    }

    /// The first keyword of policy number `policy` in `text`: the one that ends first, then the one that is first in
    /// the policy. Linear in the text.
    pub fn find(&self, policy: usize, text: &str) -> Option<KeywordMatch> {
        if self.owners.is_empty() {
            return None;
        }
        // Nearly all texts are plain and hold no keyword of any policy: one cheap pass finds out.
        if normalise::is_plain(text) && !self.automaton.is_match(text) {
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
    fn no_keywords_match_nothing() {
        assert_eq!(index(&[&[]]).find(0, "anything"), None);
    }
}
