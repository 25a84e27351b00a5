//! Numbers, amounts of money, comparisons, and windows of time.

use std::ops::Range;

use super::look::Look;
use crate::rule::{Number, Unit, Window};

/// How a number is compared, in the words of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// At most, up to.
    AtMost,
    /// Over, more than.
    Over,
    /// Under, less than.
    Under,
    /// At least, or more.
    AtLeast,
    /// The number alone.
    Bare,
}

/// A number in a clause.
#[derive(Debug, Clone)]
pub(super) struct Quantity {
    pub(super) says: Says,
    pub(super) value: Number,
    /// The currency by its code; empty where money is meant and none is named.
    pub(super) currency: Option<String>,
    /// The words, with those of the comparison.
    pub(super) range: Range<usize>,
    /// Where what is counted may stand.
    pub(super) unit: usize,
}

const NUMBERS: [&str; 13] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];
const TENS: &[(&str, i64)] = &[
    ("fifteen", 15),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("hundred", 100),
    ("thousand", 1000),
    ("dozen", 12),
    ("ninety", 90),
    ("twenty-four", 24),
    ("seventy-two", 72),
    ("forty-eight", 48),
];
const CURRENCIES: &[(&str, &[&str])] = &[
    ("EUR", &["€", "eur", "euro", "euros"]),
    ("USD", &["$", "usd", "dollar", "dollars", "us$"]),
    ("GBP", &["£", "gbp", "pound", "pounds", "sterling"]),
    ("JPY", &["¥", "jpy", "yen"]),
    ("CHF", &["chf", "franc", "francs"]),
    ("AUD", &["aud"]),
    ("CAD", &["cad"]),
    ("SEK", &["sek"]),
    ("NOK", &["nok"]),
    ("DKK", &["dkk"]),
    ("INR", &["inr", "rupees"]),
    ("PLN", &["pln", "zloty"]),
];
const BEFORE: &[(&str, Says)] = &[
    ("no|not|never more|greater|higher|larger|longer|later than", Says::AtMost),
    ("no|not less|fewer|lower|smaller than", Says::AtLeast),
    ("at most", Says::AtMost),
    ("up to", Says::AtMost),
    ("maximum|max of?", Says::AtMost),
    ("a? maximum|max of", Says::AtMost),
    ("limit|limited|limits to|of|at", Says::AtMost),
    ("cap|capped|caps at|to|of", Says::AtMost),
    ("as many|much as", Says::AtMost),
    ("≤", Says::AtMost),
    ("< =", Says::AtMost),
    ("not exceed|exceeding", Says::AtMost),
    ("limit is", Says::AtMost),
    ("restricted to", Says::AtMost),
    ("in excess of", Says::Over),
    ("more|greater|higher|larger|bigger|older|longer than", Says::Over),
    ("over|above|beyond|exceeding|exceed|exceeds|past", Says::Over),
    (">", Says::Over),
    ("worth over|above", Says::Over),
    ("less|fewer|lower|smaller|younger than", Says::Under),
    ("under|below", Says::Under),
    ("<", Says::Under),
    ("at least", Says::AtLeast),
    ("minimum|min of?", Says::AtLeast),
    ("a? minimum of", Says::AtLeast),
    ("≥", Says::AtLeast),
];
const AFTER: &[(&str, Says)] = &[
    ("or|and more|above|over|older|higher|up|upwards|larger", Says::AtLeast),
    ("upwards", Says::AtLeast),
    ("or less|fewer|below|under|lower|younger|smaller", Says::AtMost),
    ("at the? most", Says::AtMost),
    ("max|maximum|tops", Says::AtMost),
];

/// A number at a place, and how many words it has.
pub(super) fn number(look: &Look, at: usize) -> Option<(Number, usize)> {
    let word = look.text(at);
    if let Some(place) = NUMBERS.iter().position(|name| *name == word) {
        return Some((Number::whole(i64::try_from(place).ok()?), 1));
    }
    if let Some((_, value)) = TENS.iter().find(|(name, _)| *name == word) {
        return Some((Number::whole(*value), 1));
    }
    let (digits, factor) = match word.strip_suffix('k') {
        Some(digits) => (digits, 1_000),
        None => (word.strip_suffix('+').unwrap_or(word), 1),
    };
    let digits = digits.replace([',', '_', '\''], "");
    let (whole, rest) = digits.split_once('.').unwrap_or((&digits, ""));
    let plain = |text: &str| text.len() <= 12 && text.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty() || !plain(whole) || !plain(rest) || rest.len() > 6 {
        return None;
    }
    let micros = format!("{whole}{rest:0<6}").parse::<i64>().ok()?;
    Some((Number(micros.checked_mul(factor)?), 1))
}

/// The code of a currency that a word names.
pub(super) fn currency(word: &str) -> Option<&'static str> {
    CURRENCIES.iter().find(|(_, names)| names.contains(&word)).map(|(code, _)| *code)
}

/// The numbers that are left in a clause. Their words are taken.
pub(super) fn quantities(look: &mut Look) -> Vec<Quantity> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < look.len() {
        match quantity(look, at) {
            Some(quantity) => {
                look.take(quantity.range.clone());
                at = quantity.range.end;
                found.push(quantity);
            }
            None => at += 1,
        }
    }
    found
}

/// `this one`, `any one card`: no number.
fn is_pronoun(look: &Look, at: usize) -> bool {
    const DETERMINED: &[&str] = &[
        "any", "each", "every", "this", "that", "the", "which", "quick", "another", "last", "next", "no",
        "other",
    ];
    look.text(at) == "one" && at > 0 && look.is_any(at - 1, DETERMINED)
}

/// Where words before a number begin that do not matter.
fn skip_back(look: &Look, start: usize) -> usize {
    let mut start = start;
    while start > 0
        && look.is_any(
            start - 1,
            &["of", "a", "an", "the", "total", "just", "only", "exactly", "amount", "is", "are"],
        )
        && !look.is_used(start - 1)
    {
        start -= 1;
    }
    start
}

fn quantity(look: &Look, at: usize) -> Option<Quantity> {
    if look.is_used(at) || look.words.get(at)?.quoted {
        return None;
    }
    if is_pronoun(look, at) {
        return None;
    }
    let before = at.checked_sub(1).and_then(|at| currency(look.text(at)));
    let (value, length) = number(look, at)?;
    let mut end = at + length;
    let mut value = value;
    if let ("thousand" | "million", Some(_)) =
        (look.text(end), before.or_else(|| currency(look.text(end + 1))))
    {
        value = Number(value.0.saturating_mul(if look.text(end) == "million" { 1_000_000 } else { 1_000 }));
        end += 1;
    }
    let mut start = if before.is_some() { at - 1 } else { at };
    let mut code = before.map(str::to_owned);
    if code.is_none() {
        let skip = usize::from(look.is_any(end, &["us", "u.s", "swiss", "british"]));
        if let Some(found) = currency(look.text(end + skip)) {
            code = Some(found.to_owned());
            end += skip + 1;
        } else if look.is_any(end, &["cents", "cent", "pence"]) {
            value = Number(value.0 / 100);
            code = Some(String::new());
            end += 1;
        }
    }
    // `in euros up to 2,000`
    if code.is_none() && before.is_none() {
        let lead = (0..start).rev().take(6).find(|place| currency(look.text(*place)).is_some());
        let joined =
            lead.filter(|lead| !(*lead..start).any(|place| look.text(place) == "and" || look.is_used(place)));
        if let Some(lead) = joined {
            code = currency(look.text(lead)).map(str::to_owned);
        }
    }
    let mut says = Says::Bare;
    'found: for from in [start, skip_back(look, start)] {
        for back in (1..=4).rev() {
            let Some(first) = from.checked_sub(back) else { continue };
            let fits = BEFORE.iter().find(|(phrase, _)| look.phrase_at(first, phrase) == Some(from));
            if let Some((_, meant)) = fits {
                says = *meant;
                start = first;
                break 'found;
            }
        }
    }
    // `cap the exports at 3`
    let capped = start > 0
        && look.is_any(start - 1, &["at", "to"])
        && look.find_in(0..start.min(3), &["cap|limit|restrict|throttle"]).is_some();
    if says == Says::Bare && capped {
        says = Says::AtMost;
        start -= 1;
    }
    if look.text(at).ends_with('+') {
        says = Says::AtLeast;
    }
    for (phrase, meant) in AFTER {
        if let Some(after) = look.phrase_at(end, phrase) {
            says = *meant;
            end = after;
            break;
        }
    }
    Some(Quantity { says, value, currency: code, range: start..end, unit: end })
}

/// How far back something counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    /// The window; none is all of the run.
    pub(super) window: Option<Window>,
    /// Whether it could be one of the calendar or of so many hours, which the words do not say.
    pub(super) either: Option<Unit>,
    pub(super) range: Range<usize>,
}

const UNITS: &[(&str, u64, Option<Unit>)] = &[
    ("second", 1, None),
    ("sec", 1, None),
    ("s", 1, None),
    ("minute", 60, None),
    ("min", 60, None),
    ("hour", 3_600, Some(Unit::Hour)),
    ("hr", 3_600, Some(Unit::Hour)),
    ("h", 3_600, Some(Unit::Hour)),
    ("day", 86_400, Some(Unit::Day)),
    ("d", 86_400, Some(Unit::Day)),
    ("week", 604_800, Some(Unit::Week)),
    ("month", 2_592_000, Some(Unit::Month)),
    ("year", 31_536_000, Some(Unit::Year)),
];
const LY: &[(&str, &str)] = &[
    ("hourly", "hour"),
    ("daily", "day"),
    ("weekly", "week"),
    ("monthly", "month"),
    ("yearly", "year"),
    ("annually", "year"),
    ("annual", "year"),
];

fn unit(word: &str) -> Option<(u64, Option<Unit>)> {
    let single = if word.len() > 2 { word.strip_suffix('s').unwrap_or(word) } else { word };
    UNITS.iter().find(|(name, ..)| *name == single).map(|(_, seconds, unit)| (*seconds, *unit))
}

/// A stretch of time such as `10 minutes`, `30d`, `an hour`: its seconds and how many words it has.
pub(super) fn stretch(look: &Look, at: usize) -> Option<(u64, usize)> {
    let word = look.text(at);
    let split = word.find(|c: char| c.is_ascii_alphabetic());
    if let Some((digits, letters)) = split.and_then(|place| word.split_at_checked(place))
        && let (Ok(count), Some((seconds, _))) = (digits.parse::<u64>(), unit(letters))
    {
        return Some((count.checked_mul(seconds)?, 1));
    }
    let (count, length) = match number(look, at) {
        Some((number, length)) if number.0 % Number::ONE == 0 => {
            (u64::try_from(number.0 / Number::ONE).ok()?, length)
        }
        Some(_) => return None,
        None if look.is_any(at, &["a", "an"]) => (1, 1),
        None => return None,
    };
    let skip = usize::from(look.is_any(at + length, &["rolling", "consecutive", "full", "calendar"]));
    let (seconds, _) = unit(look.text(at + length + skip))?;
    Some((count.checked_mul(seconds)?, length + skip + 1))
}

/// The window that a clause names. Its words are taken.
pub(super) fn window(look: &mut Look) -> Option<Span> {
    let found = session(look).or_else(|| ever(look)).or_else(|| calendar(look)).or_else(|| lasting(look))?;
    look.take(found.range.clone());
    Some(found)
}

fn session(look: &Look) -> Option<Span> {
    let range = look.find(&[
        "for|in|during|within the rest|remainder of the|that|this|a|its session|conversation|run|chat|interaction|task",
        "in|per|during|within|for|each|every|a|one|single the|that|this|a|any|each|same|one? same|single|given? session|conversation|run|chat|interaction|thread",
        "in|per|within|for|during|a|each the|that|this|a|any|each|same|one? task",
    ])?;
    Some(Span { window: None, either: None, range })
}

fn ever(look: &Look) -> Option<Span> {
    let range = look.find(&[
        "in|over its|their|his|her|the? lifetime",
        "for ever",
        "forever",
        "in total ever",
        "per lifetime",
        "ever again",
        "lifetime",
    ])?;
    Some(Span { window: None, either: None, range })
}

fn calendar(look: &Look) -> Option<Span> {
    (0..look.len()).find_map(|at| {
        if let Some((_, name)) = LY.iter().find(|(word, _)| *word == look.text(at)) {
            let (seconds, either) = unit(name)?;
            return Some(Span { window: Some(Window::Seconds(seconds)), either, range: at..at + 1 });
        }
        let lead = look.phrase_at(at, "per|a|an|each|every|in|within|over|any|and|of|the|one|same|during|/ a|any|each|one|the|same|given|single|this|? rolling|single|given?").or_else(|| look.phrase_at(at, "per|a|an|each|every|in|within|over|any|and|the|same|one|during a|any|each|one|the|same|single?"))?;
        let calendar = look.is_any(lead, &["calendar"]);
        let place = lead + usize::from(calendar);
        let (seconds, either) = unit(look.text(place))?;
        if look.is_used(place) || (look.is_any(at, &["and", "the", "of"]) && !calendar && !look.is_any(at, &["the"]) && at + 1 == place && look.text(at) == "of") {
            return None;
        }
        let window = match either {
            Some(unit) if calendar => Window::Calendar(unit),
            _ => Window::Seconds(seconds),
        };
        let either = if calendar || look.phrase_at(at, "any|per a? rolling").is_some() { None } else { either };
        Some(Span { window: Some(window), either, range: at..place + 1 })
    })
}

fn lasting(look: &Look) -> Option<Span> {
    (0..look.len()).find_map(|at| {
        let lead = look.phrase_at(
            at,
            "in|within|every|per|over|during|any|for|last|past the|a|any|each|every? last|past|previous|preceding|same|rolling|next|period?",
        )?;
        let (seconds, length) = stretch(look, lead)?;
        let mut end = lead + length;
        if look.is_any(end, &["before", "ago", "beforehand", "prior"]) && look.is_any(end, &["ago", "beforehand"]) {
            end += 1;
        }
        Some(Span { window: Some(Window::Seconds(seconds)), either: None, range: at..end })
    })
    .or_else(|| {
        // `not more than 15 minutes earlier`
        let found = look.find(&["not|no more|longer than", "at most", "up to", "less than", "within"])?;
        let (_, length) = stretch(look, found.end)?;
        let end = found.end + length;
        let (seconds, _) = stretch(look, found.end)?;
        look.is_any(end, &["earlier", "ago", "before", "beforehand", "previously", "old", "prior"])
            .then_some(Span { window: Some(Window::Seconds(seconds)), either: None, range: found.start..end + 1 })
    })
    .or_else(|| {
        // `not older than 2 hours`
        let found = look.find(&["not|no older than", "younger|newer than", "less than", "fresher than"])?;
        let (seconds, length) = stretch(look, found.end)?;
        let mut end = found.end + length;
        end += usize::from(look.is_any(end, &["old", "ago"]));
        Some(Span { window: Some(Window::Seconds(seconds)), either: None, range: found.start..end })
    })
}
