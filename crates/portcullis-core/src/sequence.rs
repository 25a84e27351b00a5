//! Rules about what happened before in a run: `after`, `before`, `since`, `within`, `count`, `sum`.
//!
//! A [`MarkRule`] names something that calls do: *an export*, *a payment*. A call's [`Mark`]s are found when it is
//! judged and recorded with its verdict, so that the fold over a run's events needs neither arguments nor bundle
//! ([`Marks`](crate::state::Marks)). A [`Sequence`] judges a call by the marks of calls that went ahead before it. It
//! holds nothing itself and can only make a verdict stricter.
//!
//! The operators are the past ones of metric temporal logic over finite traces, as in Cedar's temporal relatives:
//! *once*, *historically not*, *since*, each within a window, and counts and sums over it. Each is answered from a
//! bounded record of the mark: cost does not grow with the length of the run.
//!
//! A sequence over a principal asks the same of all its runs. What of them counts is a fact ([`SOURCE`]), an array of
//! [`Tally`](crate::state::marks::Tally), one for each rule in the question.

mod index;
mod only;
mod rule;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::index::{Marked, Sequences};
pub use self::only::{Bound, Condition, Holds, Only, Test};
pub use self::rule::{Asks, Fired, Over, Sequence, Window};
use crate::id::{Digest, DigestBuilder, canonical_json};

/// The source of the fact that sequences over a principal are judged by.
pub const SOURCE: &str = "principal-sequences";

/// Names what calls of some tools do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkRule {
    /// Its name.
    pub name: String,
    /// Names of tools; `*` at the end stands for any rest.
    pub tools: Vec<String>,
    /// Which of their calls. One of which that cannot be told is marked, and counts as one that did not succeed.
    pub only: Only,
    /// JSON pointer (RFC 6901) to the argument by which calls belong together, if they do.
    pub key: Option<String>,
    /// JSON pointer to the argument that is summed up, if one is.
    pub amount: Option<String>,
}

/// What a call does, by a [`MarkRule`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Name of the rule.
    pub name: String,
    /// The value by which calls belong together. `None` where the rule names none, or the call has none there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<MarkKey>,
    /// The amount, in millionths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount_micros: Option<u64>,
    /// It cannot be told whether the call is one that the rule means.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
}

impl MarkRule {
    /// What a call with these arguments does, if the rule means it. Linear in the values of its arguments.
    pub fn mark(&self, arguments: &Value) -> Option<Mark> {
        let unsure = match self.only.holds(arguments) {
            Holds::Yes => false,
            Holds::Unknown => true,
            Holds::No => return None,
        };
        Some(Mark {
            unsure,
            name: self.name.clone(),
            key: self.key.as_deref().and_then(|pointer| MarkKey::at(arguments, pointer)),
            amount_micros: self.amount.as_deref().and_then(|pointer| amount(arguments.pointer(pointer)?)),
        })
    }
}

/// Stands for the value of an argument: values that are equal as JSON have the same. In events it is written as sixteen
/// hexadecimal digits, and is keyed with the run's key, so that nobody can test a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MarkKey(u64);

impl MarkKey {
    /// The value at a pointer; nothing where there is none, or it is `null`.
    pub(crate) fn at(arguments: &Value, pointer: &str) -> Option<Self> {
        let value = arguments.pointer(pointer).filter(|value| !value.is_null())?;
        Some(Self::of(DigestBuilder::new("portcullis/mark/v1").part(canonical_json(value).as_bytes())))
    }

    /// The same under a run's key.
    #[must_use]
    pub fn keyed(self, key: &Digest) -> Self {
        let in_run = DigestBuilder::new("portcullis/mark-in-run/v1");
        Self::of(in_run.part(key.as_bytes()).part(&self.0.to_be_bytes()))
    }

    fn of(digest: DigestBuilder) -> Self {
        let digest = digest.finish();
        let (first, _) = digest.as_bytes().split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        Self(u64::from_be_bytes(*first))
    }
}

impl fmt::Display for MarkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for MarkKey {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_lower = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_lower);
        number.map(Self).ok_or("a key of a mark is sixteen lower-case hexadecimal digits")
    }
}

impl Serialize for MarkKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MarkKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Digits before the point that an amount may have: more than any money has.
const AMOUNT_DIGITS_MAX: usize = 12;
const FRACTION_DIGITS: usize = 6;

/// An amount in millionths: a number, or a text that is one in plain decimal digits (`"12.50"`). What can be read in
/// two ways (`"1,000"`), is negative, or has more than twelve digits before the point or six behind it, is none.
fn amount(value: &Value) -> Option<u64> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return None,
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let is_plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let fraction = fraction.trim_end_matches('0');
    let fits = !whole.is_empty() && whole.len() <= AMOUNT_DIGITS_MAX && fraction.len() <= FRACTION_DIGITS;
    if !fits || !is_plain(whole) || !is_plain(fraction) {
        return None;
    }
    format!("{whole}{fraction:0<FRACTION_DIGITS$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_amount_is_read_in_one_way_or_not_at_all() {
        let read = |value| amount(&value);
        assert_eq!(read(json!(12)), Some(12_000_000));
        assert_eq!(read(json!(12.5)), Some(12_500_000));
        assert_eq!(read(json!(" 0.000001 ")), Some(1));
        assert_eq!(read(json!("7.10")), Some(7_100_000));
        for value in [json!(-1), json!("1,000"), json!("1e9"), json!(1e300), json!("0.0000001"), json!(null)]
        {
            assert_eq!(read(value.clone()), None, "{value}");
        }
        assert_eq!(read(json!("1234567890123")), None);
        assert_eq!(read(json!(true)), None);
    }

    #[test]
    fn equal_values_have_the_same_key_and_a_run_its_own() {
        let at = |value: Value| MarkKey::at(&json!({ "who": value }), "/who");
        assert_eq!(at(json!({"a": 1, "b": 2})), at(json!({"b": 2, "a": 1})));
        assert_ne!(at(json!("1")), at(json!(1)));
        assert_eq!(at(json!(null)), None);
        let key = at(json!("Ada")).unwrap();
        assert_ne!(key.keyed(&Digest::from_bytes([1; 32])), key.keyed(&Digest::from_bytes([2; 32])));
        assert_eq!(key.to_string().parse(), Ok(key));
        assert!("0123456789ABCDEF".parse::<MarkKey>().is_err());
    }
}
