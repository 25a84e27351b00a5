//! Numbers as people and programs write them: `5,000`, `5.000`, `5 000.00` and `5000` are one.

use std::ops::Range;

use crate::values::next;
use crate::words::{EMPTY, go_on};

/// Most digits of a number that is looked at; longer ones are accounts and ids, which are values.
const DIGITS_MAX: usize = 12;
/// Fewest digits: of single ones any two texts share some.
const DIGITS_MIN: usize = 2;

/// The numbers of a text with two digits or more, as hashes of their normal form, each with its place. Years are left
/// out: a date is shared by too many texts. Linear in the text.
pub fn numbers(text: &str) -> Vec<(u64, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = next(text, at, |byte| byte.is_ascii_digit()) {
        let end = end_of_number(bytes, start);
        at = end.max(start + 1);
        let joined = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
        if joined(start.checked_sub(1).and_then(|at| bytes.get(at))) || bytes.get(end) == Some(&b'_') {
            continue;
        }
        let written = text.get(start..end).unwrap_or_default();
        if let Some(hash) = normal(written) {
            found.push((hash, start..end));
        }
    }
    found
}

/// Digits, and separators that have digits on both sides.
fn end_of_number(bytes: &[u8], start: usize) -> usize {
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = start;
    while digit(end) || matches!(bytes.get(end), Some(b',' | b'.' | b'\'')) && digit(end + 1) {
        end += 1;
    }
    end
}

fn digits(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(u8::is_ascii_digit)
}

/// The hash of a number's normal form: without separators of thousands, and without zeros behind the point.
fn normal(written: &str) -> Option<u64> {
    let point =
        written.rfind([',', '.']).filter(|at| written.len() - at - 1 != 3 || written.starts_with("0."));
    let (whole, part) = point.map_or((written, ""), |at| written.split_at(at));
    let part = part.trim_end_matches(|sign: char| sign == '0' || !sign.is_ascii_digit());
    let (all, of_part) = (digits(whole).count(), digits(part).count());
    let mut first = digits(whole);
    let century = matches!((first.next(), first.next()), (Some(b'1'), Some(b'9')) | (Some(b'2'), Some(b'0')));
    let year = of_part == 0 && all == 4 && century;
    if !(DIGITS_MIN..=DIGITS_MAX).contains(&(all + of_part)) || year {
        return None;
    }
    let zeros = digits(whole).take_while(|digit| *digit == b'0').count().min(all.saturating_sub(1));
    let add = |hash, digit: u8| go_on(hash, &[digit]);
    let hash = digits(whole).skip(zeros).fold(go_on(EMPTY, b"number "), add);
    Some(if of_part == 0 { hash } else { digits(part).fold(go_on(hash, b"."), add) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(text: &str) -> Vec<u64> {
        numbers(text).into_iter().map(|(hash, _)| hash).collect()
    }

    #[test]
    fn one_number_has_one_hash_however_it_is_written() {
        let all = hashes("5,000 5.000 5000 5000.00 5'000");
        assert!(all.len() == 5 && all.iter().all(|hash| *hash == all[0]), "{all:?}");
        assert_ne!(hashes("50.00"), hashes("5000"));
        assert_eq!(hashes("12.50"), hashes("12,5"));
    }

    proptest::proptest! {
        /// The definition, with the digits written out.
        #[test]
        fn the_normal_form_is_that_of_its_digits(written in "[0-9][0-9.,']{0,14}[0-9]|[0-9]{2,14}") {
            let point = written.rfind([',', '.']);
            let point = point.filter(|at| written.len() - at - 1 != 3 || written.starts_with("0."));
            let (whole, part) = point.map_or((written.as_str(), ""), |at| written.split_at(at));
            let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
            let (whole, part) = (digits(whole), digits(part));
            let part = part.trim_end_matches('0');
            let count = whole.len() + part.len();
            let year = part.is_empty() && whole.len() == 4 && (whole.starts_with("19") || whole.starts_with("20"));
            let shown = whole.trim_start_matches('0');
            let shown = if shown.is_empty() { whole.get(whole.len().saturating_sub(1)..).unwrap() } else { shown };
            let text = if part.is_empty() { format!("number {shown}") } else { format!("number {shown}.{part}") };
            let expected = (DIGITS_MIN..=DIGITS_MAX).contains(&count) && !year;
            proptest::prop_assert_eq!(normal(&written), expected.then(|| crate::words::hash(text.as_bytes())));
        }
    }

    #[test]
    fn years_single_digits_and_parts_of_names_are_none() {
        assert_eq!(hashes("in 2026, 7 of them, C22, v_12"), Vec::<u64>::new());
    }
}
