//! Quantities: a number with what is said about it. `at least 300`, `no more than five`, `between 3 and 5`, `twice`.

use super::token::Token;
use crate::bound::Bound;

/// A number in a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quantity {
    pub(super) bound: Bound,
    /// The number itself, the lower one of a range.
    pub(super) number: u32,
    /// Whether the statement says how the number binds; otherwise it is read as *exactly*.
    pub(super) is_explicit: bool,
    /// *About* so many: nothing that can be counted exactly.
    pub(super) is_rough: bool,
    /// `once`, `twice`: the unit is said.
    pub(super) is_times: bool,
    /// Tokens from the relation on.
    pub(super) start: usize,
    /// The token after the number and what follows it, such as `or more`.
    pub(super) end: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Relation {
    AtLeast,
    MoreThan,
    LessThan,
    AtMost,
    Exactly,
    About,
}

/// How far before a comparison a negation is looked for.
const NEGATION_WINDOW: usize = 7;

/// Every quantity of a statement, in order.
pub(super) fn quantities(tokens: &[Token]) -> Vec<Quantity> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some((number, is_times, mut end)) = number(tokens, at) else {
            at += 1;
            continue;
        };
        let mut high = None;
        if tokens
            .get(end)
            .is_some_and(|t| t.is(&["and", "to"]) || ['-', '–', '—'].iter().any(|&m| t.is_mark(m)))
            && let Some((upper, _, after)) = self::number(tokens, end + 1)
            && upper >= number
        {
            high = Some((upper, after));
        }
        let (mut relation, mut start) = before(tokens, at);
        let ranged = high.filter(|_| {
            tokens.get(end).is_some_and(|t| !t.is(&["and"]))
                || preceded_by(tokens, at, &["between"]).is_some()
        });
        if let Some((upper, after)) = ranged {
            let start = preceded_by(tokens, at, &["between", "from"]).unwrap_or(start);
            out.push(Quantity {
                bound: Bound::between(number, upper),
                number,
                is_explicit: true,
                is_rough: false,
                is_times,
                start,
                end: after,
            });
            at = after;
            continue;
        }
        if let Some((after, length)) = behind(tokens, end) {
            relation = Some(after);
            end += length;
            start = start.min(at);
        }
        out.push(Quantity {
            bound: bound(relation, number),
            number,
            is_explicit: relation.is_some(),
            is_rough: relation == Some(Relation::About),
            is_times,
            start,
            end,
        });
        at = end;
    }
    out
}

fn bound(relation: Option<Relation>, n: u32) -> Bound {
    match relation {
        Some(Relation::AtLeast) => Bound::at_least(n),
        Some(Relation::MoreThan) => Bound::at_least(n.saturating_add(1)),
        Some(Relation::LessThan) => Bound::less_than(n),
        Some(Relation::AtMost) => Bound::at_most(n),
        Some(Relation::Exactly | Relation::About) | None => Bound::exactly(n),
    }
}

fn preceded_by(tokens: &[Token], at: usize, words: &[&str]) -> Option<usize> {
    let before = at.checked_sub(1)?;
    tokens.get(before).filter(|token| token.is(words)).map(|_| before)
}

/// What the words before a number say about it, and where they start.
fn before(tokens: &[Token], number: usize) -> (Option<Relation>, usize) {
    let mut at = number;
    // What may stand between: `a minimum of 3`, `at least some 3`, `limited to a total of 3`.
    while let Some(before) = preceded_by(tokens, at, &["a", "an", "the", "of", "total", "its", "full"]) {
        at = before;
    }
    let two = |second: &[&str], first: &[&str]| {
        let last = preceded_by(tokens, at, second)?;
        preceded_by(tokens, last, first)
    };
    let one = |words: &[&str]| preceded_by(tokens, at, words);
    let found = [
        (two(&["than"], &["more", "greater", "longer", "higher", "larger", "further"]), Relation::MoreThan),
        (
            two(&["than"], &["less", "fewer", "shorter", "lower", "smaller", "under", "few"]),
            Relation::LessThan,
        ),
        (two(&["least"], &["at"]), Relation::AtLeast),
        (two(&["most"], &["at"]).or_else(|| one(&["most"])), Relation::AtMost),
        (two(&["to"], &["up"]), Relation::AtMost),
        (two(&["to", "at"], &["limit", "cap", "restrict", "confine", "keep"]), Relation::AtMost),
        (limited_to(tokens, at), Relation::AtMost),
        (two(&["of"], &["upwards"]).or_else(|| two(&["to"], &["equal"])), Relation::AtLeast),
        (one(&["minimum", "min", "minimally"]), Relation::AtLeast),
        (one(&["maximum", "max", "within", "maximally"]), Relation::AtMost),
        (one(&["over", "above", "exceed", "exceeding", "beyond", "past", "surpass"]), Relation::MoreThan),
        (one(&["under", "below", "beneath"]), Relation::LessThan),
        (one(&["exactly", "precisely", "just", "only", "exact", "precise"]), Relation::Exactly),
        (
            one(&["about", "around", "approximately", "roughly", "nearly", "almost", "some", "circa"]),
            Relation::About,
        ),
    ];
    let Some((start, relation)) = found.into_iter().find_map(|(start, relation)| Some((start?, relation)))
    else {
        return (None, at);
    };
    if let Some(negation) = negation_before(tokens, start) {
        let turned = match relation {
            Relation::MoreThan => Some(Relation::AtMost),
            Relation::LessThan => Some(Relation::AtLeast),
            _ => None,
        };
        if let Some(turned) = turned {
            return (Some(turned), negation);
        }
    }
    (Some(relation), start)
}

/// `limit your reply to`, with the number right behind.
fn limited_to(tokens: &[Token], at: usize) -> Option<usize> {
    let to = preceded_by(tokens, at, &["to", "at"])?;
    (to.saturating_sub(NEGATION_WINDOW)..to).rev().find(|&before| {
        tokens.get(before).is_some_and(|token| token.is(&["limit", "cap", "restrict", "confine"]))
    })
}

/// A negation shortly before, in the same clause.
fn negation_before(tokens: &[Token], at: usize) -> Option<usize> {
    (at.saturating_sub(NEGATION_WINDOW)..at)
        .rev()
        .take_while(|&before| tokens.get(before).is_some_and(|t| !t.is_mark('.') && !t.is_mark(';')))
        .find(|&before| tokens.get(before).is_some_and(is_negation))
}

/// Whether a word denies.
pub(super) fn is_negation(token: &Token) -> bool {
    const NEGATIONS: &[&str] = &[
        "no",
        "not",
        "never",
        "don't",
        "dont",
        "doesn't",
        "mustn't",
        "shouldn't",
        "can't",
        "cannot",
        "won't",
        "isn't",
        "aren't",
        "without",
        "avoid",
        "avoiding",
        "refrain",
        "exclude",
        "excluding",
        "omit",
        "forbidden",
        "prohibited",
        "nothing",
        "none",
        "neither",
        "nor",
        "zero",
        "free",
        "disallowed",
        "banned",
        "abstain",
        "eschew",
        "skip",
        "devoid",
        "nowhere",
        "absent",
        "forgo",
        "ban",
        "prohibit",
        "forbid",
    ];
    token.is(NEGATIONS)
}

/// What the words after a number say about it, and how many they are.
fn behind(tokens: &[Token], at: usize) -> Option<(Relation, usize)> {
    let word = |offset: usize, words: &[&str]| tokens.get(at + offset).is_some_and(|token| token.is(words));
    if tokens.get(at).is_some_and(|token| token.is_mark('+')) {
        return Some((Relation::AtLeast, 1));
    }
    // The unit may stand between: `300 words or more`, `5 sentences at most`.
    for offset in 0..3 {
        let found =
            if word(offset, &["or"]) && word(offset + 1, &["more", "above", "greater", "longer", "higher"]) {
                Relation::AtLeast
            } else if word(offset, &["or"])
                && word(offset + 1, &["fewer", "less", "below", "under", "shorter", "few"])
            {
                Relation::AtMost
            } else if word(offset, &["at"]) && word(offset + 1, &["least", "minimum"]) {
                Relation::AtLeast
            } else if word(offset, &["at"]) && word(offset + 1, &["most", "maximum"]) {
                Relation::AtMost
            } else if word(offset, &["minimum"]) {
                return (offset == 0).then_some((Relation::AtLeast, 1));
            } else if word(offset, &["maximum"]) {
                return (offset == 0).then_some((Relation::AtMost, 1));
            } else {
                continue;
            };
        return Some((found, if offset == 0 { 2 } else { 0 }));
    }
    None
}

/// A number in digits or words: its value, whether it says *times*, and the token after it.
fn number(tokens: &[Token], at: usize) -> Option<(u32, bool, usize)> {
    let token = tokens.get(at).filter(|token| token.is_word())?;
    if token.is(&["once"]) {
        return Some((1, true, at + 1));
    }
    if token.is(&["twice"]) {
        return Some((2, true, at + 1));
    }
    if token.is(&["thrice"]) {
        return Some((3, true, at + 1));
    }
    let digits = token.raw.replace(',', "");
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits.parse().ok().map(|n| (n, false, at + 1));
    }
    let article = token.is(&["a"]);
    if article && !tokens.get(at + 1).is_some_and(|t| t.is(&["hundred", "thousand", "dozen", "couple"])) {
        return None;
    }
    let mut end = if article { at + 1 } else { at };
    let (mut whole, mut part, mut any) = (0_u32, u32::from(article), article);
    while let Some(token) = tokens.get(end).filter(|token| token.is_word()) {
        if token.is(&["hundred"]) && any {
            part = part.max(1).saturating_mul(100);
        } else if token.is(&["thousand"]) && any {
            whole = whole.saturating_add(part.max(1).saturating_mul(1_000));
            part = 0;
        } else if token.is(&["dozen"]) {
            part = part.max(1).saturating_mul(12);
        } else if token.is(&["couple"]) && any {
            part = 2;
        } else if let Some(n) = cardinal(&token.raw) {
            part = part.saturating_add(n);
        } else if token.is(&["and"])
            && any
            && part >= 100
            && tokens.get(end + 1).is_some_and(|t| cardinal(&t.raw).is_some())
        {
            end += 1;
            continue;
        } else {
            break;
        }
        any = true;
        end += 1;
        if tokens.get(end).is_some_and(|t| t.is_mark('-'))
            && tokens.get(end + 1).is_some_and(|t| cardinal(&t.raw).is_some_and(|n| n < 10))
        {
            end += 1;
        }
    }
    any.then_some((whole.saturating_add(part), false, end))
}

fn cardinal(word: &str) -> Option<u32> {
    const SMALL: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    let lower = word.to_lowercase();
    let position =
        |list: &[&str]| list.iter().position(|known| *known == lower).and_then(|at| u32::try_from(at).ok());
    position(&SMALL).or_else(|| position(&TENS).map(|at| (at + 2) * 10))
}

/// The number an ordinal names: `third`, `3rd`.
pub(super) fn ordinal(word: &str) -> Option<u32> {
    const ORDINALS: [&str; 12] = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
        "eleventh", "twelfth",
    ];
    let lower = word.to_lowercase();
    if let Some(at) = ORDINALS.iter().position(|known| *known == lower) {
        return u32::try_from(at + 1).ok();
    }
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|ending| lower.strip_suffix(ending))?;
    digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::token::tokens;
    use super::*;

    #[test]
    fn numbers_with_what_is_said_about_them() {
        for (text, bound) in [
            ("at least 300 words", Bound::at_least(300)),
            ("no fewer than three hundred and fifty words", Bound::at_least(350)),
            ("must not be more than 20 words", Bound::at_most(20)),
            ("do not write fewer than 5 sentences", Bound::at_least(5)),
            ("fewer than twenty-five", Bound::less_than(25)),
            ("a maximum of 10", Bound::at_most(10)),
            ("between 3 and 5 items", Bound::between(3, 5)),
            ("3-5 items", Bound::between(3, 5)),
            ("1,000 words or more", Bound::at_least(1000)),
            ("300+ words", Bound::at_least(300)),
            ("more than twice", Bound::at_least(3)),
            ("should not exceed 100 words", Bound::at_most(100)),
            ("a dozen items", Bound::exactly(12)),
            ("limited to 100 words", Bound::at_most(100)),
            ("5 sentences at most", Bound::at_most(5)),
        ] {
            let found = quantities(&tokens(text));
            assert_eq!(found.iter().map(|q| q.bound).collect::<Vec<_>>(), [bound], "{text}");
        }
        assert!(quantities(&tokens("about 300 words"))[0].is_rough);
        assert_eq!((ordinal("3rd"), ordinal("third"), ordinal("words")), (Some(3), Some(3), None));
    }
}
