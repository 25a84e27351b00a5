//! Money: amount, currency, payee.
//!
//! They stand beside each other in the arguments: the amount where the tool says, currency and payee by the
//! names of their neighbours. An amount that cannot be read (`12k`, `-5`, more than a policy can compare) leaves
//! the payment without one, and says so as an *unknown*, so that no limit is passed by spelling.
//!
//! Amounts have four decimal places; further ones round up. `1,234` is one thousand two hundred thirty-four, the
//! larger of its two readings; `1.234` is the number that JSON writes so. Signs that several currencies share
//! (`$`, `¥`, `kr`) name none.

use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};
use portcullis_core::infer::words_of;
use portcullis_core::principal::Decimal;
use serde_json::{Map, Value};

use crate::Sink;

/// Names of arguments that hold the amount, by their last word.
const AMOUNTS: [&str; 8] = ["amount", "value", "sum", "price", "total", "payment", "cost", "fee"];
/// Names of arguments that hold the payee, by their last word, the surest first.
const PAYEES: [&str; 15] = [
    "payee",
    "beneficiary",
    "recipient",
    "recipients",
    "receiver",
    "creditor",
    "iban",
    "merchant",
    "vendor",
    "supplier",
    "wallet",
    "account",
    "destination",
    "to",
    "address",
];
/// Longest text that is read as an amount, in bytes.
const AMOUNT_BYTES_MAX: usize = 64;
/// Longest name of a payee that is kept, in bytes.
const PAYEE_BYTES_MAX: usize = 256;
/// Most payees of one payment.
const PAYEES_MAX: usize = 64;
/// The payee of a payment whose arguments name no payee.
pub const UNSTATED: &str = "unstated";

/// Reads the payment whose amount is `amount`: a number, a text, or an object that has the amount in it.
/// `beside` are the arguments around it.
pub fn read(amount: &Value, beside: &Map<String, Value>, sink: &mut Sink<'_>) {
    let within = amount.as_object();
    let length = amount.as_str().map_or(0, str::len);
    let amount = match within {
        Some(object) => by_last_word(object, &AMOUNTS).map_or(&Value::Null, |(_, value)| value),
        None => amount,
    };
    let read = read_amount(amount);
    let stated = [within, Some(beside)].into_iter().flatten().find_map(|object| {
        let (_, value) = by_last_word(object, &["currency"])?;
        value.as_str().map(|text| text.trim().to_owned())
    });
    let mut payees = within.map(payees).unwrap_or_default();
    if payees.is_empty() {
        payees = self::payees(beside);
    }
    if payees.is_empty() {
        payees.push(UNSTATED.to_owned());
    }
    let (amount, currency, problem) = match (read, stated) {
        (Err(why), _) => (None, None, Some(why)),
        (Ok((amount, found)), stated) => match (found, stated.as_deref().map(currency_code)) {
            (Some(one), Some(Some(other))) if one != other => {
                (None, None, Some("two currencies are named".to_owned()))
            }
            (_, Some(None)) => {
                (Some(amount), None, Some("the currency is not a code of three letters".to_owned()))
            }
            (found, stated) => (Some(amount), stated.flatten().or(found), None),
        },
    };
    for payee in payees {
        let mut resource = Resource::new(ResourceKind::Payee, payee);
        if let Some(amount) = amount {
            resource = resource.with("amount", amount);
        }
        if let Some(currency) = &currency {
            resource = resource.with("currency", currency.as_str());
        }
        sink.add(Effect::new(Verb::Pay, resource), 0..length);
    }
    if let Some(why) = problem {
        sink.unknown("money", why, 0..length);
    }
}

/// The member whose name ends with one of the words; earlier words come first.
fn by_last_word<'v>(object: &'v Map<String, Value>, words: &[&str]) -> Option<(&'v String, &'v Value)> {
    let last = |name: &str| words_of(name).pop();
    let found = |word: &&str| {
        object.iter().find(|(name, value)| !value.is_null() && last(name).as_deref() == Some(*word))
    };
    words.iter().find_map(found)
}

fn payees(object: &Map<String, Value>) -> Vec<String> {
    let Some((_, value)) = by_last_word(object, &PAYEES) else {
        let number = object.iter().find(|(name, _)| {
            let words = words_of(name);
            words.iter().any(|word| matches!(word.as_str(), "account" | "iban" | "payee" | "recipient"))
        });
        return number.map(|(_, value)| names(value)).unwrap_or_default();
    };
    names(value)
}

fn names(value: &Value) -> Vec<String> {
    let all = match value {
        Value::Array(items) => items.as_slice(),
        single => std::slice::from_ref(single),
    };
    let name = |value: &Value| match value {
        Value::String(text) => payee(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Object(object) => {
            let inner = by_last_word(object, &["iban", "account", "number", "id", "email", "name"])?;
            inner.1.as_str().and_then(payee)
        }
        _ => None,
    };
    all.iter().take(PAYEES_MAX).filter_map(name).collect()
}

/// One spelling for one payee: account numbers without spaces and in upper case, addresses in lower case.
fn payee(text: &str) -> Option<String> {
    let text = text.get(..text.floor_char_boundary(PAYEE_BYTES_MAX))?.trim();
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let letters = compact.as_bytes();
    let iban = (15..=34).contains(&letters.len())
        && letters.iter().all(u8::is_ascii_alphanumeric)
        && letters.iter().take(2).all(u8::is_ascii_alphabetic)
        && letters.iter().skip(2).take(2).all(u8::is_ascii_digit);
    let name = match iban {
        true => compact.to_ascii_uppercase(),
        false if text.contains('@') => text.to_lowercase(),
        false => text.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    (!name.is_empty()).then_some(name)
}

fn currency_code(text: &str) -> Option<String> {
    let letters = text.len() == 3 && text.bytes().all(|b| b.is_ascii_alphabetic());
    letters.then(|| text.to_ascii_uppercase()).or_else(|| sign(text).flatten())
}

/// What a currency's sign stands for: nothing certain if several share it. `None` if it is no sign.
fn sign(text: &str) -> Option<Option<String>> {
    let code = match text {
        "€" => "EUR",
        "£" => "GBP",
        "₹" => "INR",
        "₩" => "KRW",
        "₽" => "RUB",
        "₺" => "TRY",
        "₴" => "UAH",
        "₪" => "ILS",
        "US$" => "USD",
        "$" | "¥" | "kr" => return Some(None),
        _ => return None,
    };
    Some(Some(code.to_owned()))
}

/// The amount and the currency written with it.
fn read_amount(value: &Value) -> Result<(Decimal, Option<String>), String> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.len() <= AMOUNT_BYTES_MAX => text.trim().to_owned(),
        Value::String(_) => return Err(format!("the amount is longer than {AMOUNT_BYTES_MAX} bytes")),
        Value::Null => return Err("there is no amount".to_owned()),
        _ => return Err("the amount is neither a number nor a text".to_owned()),
    };
    let digit = |c: char| c.is_ascii_digit();
    let unreadable = || "the amount is not a number".to_owned();
    let start = text.find(digit).ok_or_else(unreadable)?;
    let end = text.rfind(digit).ok_or_else(unreadable)? + 1;
    let (before, number, after) = (
        text.get(..start).unwrap_or_default(),
        text.get(start..end).unwrap_or_default(),
        text.get(end..).unwrap_or_default(),
    );
    let mut currency = None;
    for around in [before.trim(), after.trim()].into_iter().filter(|around| !around.is_empty()) {
        if around.starts_with(['-', '\u{2212}']) || around.ends_with(['-', '\u{2212}']) {
            return Err("the amount is negative".to_owned());
        }
        let code = match (sign(around), currency_code(around)) {
            (Some(code), _) => code,
            (None, Some(code)) => Some(code),
            (None, None) => return Err(unreadable()),
        };
        if currency.is_some() && code.is_some() && currency != code {
            return Err("two currencies are named".to_owned());
        }
        currency = currency.or(code);
    }
    let plain = plain_number(number).ok_or_else(unreadable)?;
    let amount = decimal(&plain).ok_or_else(|| "the amount is too large".to_owned())?;
    Ok((amount, currency))
}

/// Digits with one dot at most, from the ways in which people group digits.
fn plain_number(text: &str) -> Option<String> {
    let text: String =
        text.chars().map(|c| if c.is_whitespace() || c == '\u{2019}' { '\'' } else { c }).collect();
    if !text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '\'')) {
        return None;
    }
    let (last_comma, last_dot) = (text.rfind(','), text.rfind('.'));
    let commas = text.matches(',').count();
    let dots = text.matches('.').count();
    let point = match (last_comma, last_dot) {
        (Some(comma), Some(dot)) => Some(comma.max(dot)),
        (None, Some(dot)) => (dots == 1).then_some(dot),
        (Some(comma), None) => {
            // Three digits behind a comma are a group.
            let behind = text.len() - comma - 1;
            (commas == 1 && behind != 3).then_some(comma)
        }
        (None, None) => None,
    };
    let (whole, fraction) = match point {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?),
        None => (text.as_str(), ""),
    };
    if !fraction.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let mut separators = whole.chars().filter(|c| !c.is_ascii_digit());
    let separator = separators.next();
    if separators.any(|other| Some(other) != separator) {
        return None;
    }
    let groups: Vec<&str> =
        separator.map_or_else(|| vec![whole], |separator| whole.split(separator).collect());
    let well_grouped = groups.len() == 1
        || groups.iter().skip(1).all(|group| group.len() == 3)
            && groups.first().is_some_and(|group| (1..=3).contains(&group.len()));
    well_grouped.then(|| format!("{}.{fraction}", groups.concat()))
}

fn decimal(plain: &str) -> Option<Decimal> {
    let (whole, fraction) = plain.split_once('.')?;
    let places: String = fraction.chars().chain("0000".chars()).take(4).collect();
    let rest = fraction.get(4..).is_some_and(|rest| rest.bytes().any(|digit| digit != b'0'));
    let whole: i64 = whole.parse().ok()?;
    let places: i64 = places.parse().ok()?;
    let ten_thousandths = whole.checked_mul(10_000)?.checked_add(places)?.checked_add(i64::from(rest))?;
    Some(Decimal { ten_thousandths })
}

#[cfg(test)]
mod tests {
    use portcullis_core::effect::Effects;
    use serde_json::json;

    use super::*;

    fn paid(arguments: Value) -> Vec<String> {
        let object = arguments.as_object().unwrap();
        let mut effects = Effects::none();
        read(&object["amount"], object, &mut Sink::new(&mut effects, "/arguments/amount"));
        let attribute = |effect: &Effect, name: &str| match effect.resource.attributes.get(name) {
            Some(value) => serde_json::to_value(value).unwrap().to_string(),
            None => "-".into(),
        };
        let number = |effect: &Effect| match effect.resource.attributes.get("amount") {
            Some(portcullis_core::principal::Attribute::Decimal(amount)) => amount.to_string(),
            _ => "-".into(),
        };
        let line = |effect: &Effect| match effect.verb {
            Verb::Pay => {
                format!("{} {} {}", effect.resource.name, number(effect), attribute(effect, "currency"))
            }
            _ => effect.to_string(),
        };
        effects.iter().map(line).collect()
    }

    #[test]
    fn amounts_are_read_as_people_write_them() {
        for (amount, expected) in [
            (json!(12), "12.0000"),
            (json!(12.5), "12.5000"),
            (json!("12.50"), "12.5000"),
            (json!("1,234.50"), "1234.5000"),
            (json!("1.234,50"), "1234.5000"),
            (json!("1 234,5"), "1234.5000"),
            (json!("1'234'567"), "1234567.0000"),
            (json!("1,234"), "1234.0000"),
            (json!("1,23"), "1.2300"),
            (json!("1.234"), "1.2340"),
            (json!("1.234.567"), "1234567.0000"),
            (json!("0.00001"), "0.0001"),
            (json!("922337203685477.5807"), "922337203685477.5807"),
        ] {
            assert_eq!(paid(json!({"amount": amount, "to": "x"})), [format!("x {expected} -")], "{amount}");
        }
    }

    #[test]
    fn an_amount_that_cannot_be_read_is_none_and_says_so() {
        for amount in [
            json!("-5"),
            json!(-5),
            json!("5-"),
            json!("(5)"),
            json!("12k"),
            json!("1e5"),
            json!(1e30),
            json!("922337203685477.5808"),
            json!("99999999999999999999"),
            json!("12,34.5"),
            json!("1,2345,678"),
            json!("1.2,3.4"),
            json!("٣"),
            json!("all"),
            json!(""),
            json!(true),
            json!([1]),
            json!(null),
            json!("5 EUR USD"),
            json!("0x10"),
            json!("1 2"),
            json!("9".repeat(65)),
        ] {
            let expected = ["x - -".to_owned(), "execute unknown money".to_owned()];
            assert_eq!(paid(json!({"amount": amount, "to": "x"})), expected, "{amount}");
        }
    }

    #[test]
    fn currencies_stand_with_the_amount_or_beside_it() {
        for (arguments, expected) in [
            (json!({"amount": "€12", "to": "x"}), vec!["x 12.0000 \"EUR\""]),
            (json!({"amount": "12.50 eur", "to": "x"}), vec!["x 12.5000 \"EUR\""]),
            (json!({"amount": "CHF 12", "to": "x"}), vec!["x 12.0000 \"CHF\""]),
            (json!({"amount": "$12", "to": "x"}), vec!["x 12.0000 -"]),
            (json!({"amount": "$12", "currency": "cad", "to": "x"}), vec!["x 12.0000 \"CAD\""]),
            (
                json!({"amount": 12, "currency": "euros", "to": "x"}),
                vec!["x 12.0000 -", "execute unknown money"],
            ),
            (json!({"amount": "€12", "currency": "USD", "to": "x"}), vec!["x - -", "execute unknown money"]),
            (json!({"amount": {"value": 3, "currency": "EUR"}, "to": "x"}), vec!["x 3.0000 \"EUR\""]),
        ] {
            assert_eq!(paid(arguments.clone()), expected, "{arguments}");
        }
    }

    #[test]
    fn payees_have_one_spelling() {
        for (arguments, expected) in [
            (
                json!({"amount": 1, "iban": "de89 3704 0044 0532 0130 00"}),
                vec!["DE89370400440532013000 1.0000 -"],
            ),
            (json!({"amount": 1, "to": "Ann@Corp.example"}), vec!["ann@corp.example 1.0000 -"]),
            (json!({"amount": 1, "recipient": " Ann   Lee "}), vec!["Ann Lee 1.0000 -"]),
            (json!({"amount": 1, "account_number": 4711}), vec!["4711 1.0000 -"]),
            (json!({"amount": 1, "recipients": ["a", "b"]}), vec!["a 1.0000 -", "b 1.0000 -"]),
            (
                json!({"amount": 1, "payee": {"name": "Ann", "iban": "DE89370400440532013000"}}),
                vec!["DE89370400440532013000 1.0000 -"],
            ),
            (json!({"amount": 1}), vec!["unstated 1.0000 -"]),
        ] {
            assert_eq!(paid(arguments.clone()), expected, "{arguments}");
        }
    }
}
