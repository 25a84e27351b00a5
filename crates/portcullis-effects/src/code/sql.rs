//! SQL that code puts together.

use super::text::{Part, Text};
use crate::{Sink, Surroundings};

/// Words behind which a value stands, and no name.
const BEFORE_VALUES: &[&str] =
    &["in", "like", "ilike", "limit", "offset", "between", "and", "values", "interval"];

/// Reads SQL with unknown parts. Where a part can only be a value, any value does; a part that may be a name or
/// more makes the statement unknown.
pub(super) fn run(text: &Text, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    let range = text.range();
    let mut understood = true;
    let sql = text.filled(|before| {
        let filling = filling(before);
        understood &= filling.is_some();
        filling.unwrap_or_default().to_owned()
    });
    if !understood || text.parts() == [Part::Hole] {
        sink.unknown("sql", "a part of the statement that is not a value is not known", range);
        return;
    }
    if let Some(mut nested) = sink.nested(range) {
        crate::sql::read(&sql, surroundings, &mut nested);
    }
}

/// What may stand for a value behind the text so far, or `None` if a value cannot stand.
fn filling(before: &str) -> Option<&'static str> {
    let mut quote = None;
    for character in before.chars() {
        match quote {
            None if matches!(character, '\'' | '"' | '`') => quote = Some(character),
            Some(open) if open == character => quote = None,
            _ => {}
        }
    }
    match quote {
        Some('\'') => return Some("0"),
        // A quoted name.
        Some(_) => return None,
        None => {}
    }
    let trimmed = before.trim_end();
    let last = trimmed.chars().next_back()?;
    if matches!(last, '=' | '<' | '>' | '+' | '-' | '*' | '/' | '%' | '|') {
        // `select * {}` is no product.
        return (last != '*' || !trimmed.to_lowercase().ends_with("select *")).then_some("0");
    }
    let mut words = trimmed.rsplit(|character: char| !character.is_alphanumeric() && character != '_');
    if last == '(' || last == ',' {
        // Only the brackets of `in (…)` and `values (…)` hold nothing but values.
        let open = trimmed.rfind('(')?;
        let head = trimmed.get(..open)?.trim_end().to_lowercase();
        let inside = trimmed.get(open + 1..)?;
        let only_values = !inside.chars().any(char::is_alphabetic) || inside.contains('\'');
        return (only_values && (head.ends_with(" in") || head.ends_with("values"))).then_some("0");
    }
    let word = words.next()?.to_lowercase();
    match word.as_str() {
        "in" => Some("(0)"),
        word if BEFORE_VALUES.contains(&word) => Some("0"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::filling;

    #[test]
    fn values_and_names_are_told_apart() {
        for (before, expected) in [
            ("select a from t where b = ", Some("0")),
            ("select a from t where b = '", Some("0")),
            ("select a from t where b in ", Some("(0)")),
            ("select a from t where b in (", Some("0")),
            ("select a from t where b in (1, ", Some("0")),
            ("select a from t limit ", Some("0")),
            ("select a, ", None),
            ("select ", None),
            ("select * ", None),
            ("select a from ", None),
            ("select max(", None),
            ("select a from t where ", None),
            ("select \"", None),
            ("", None),
        ] {
            assert_eq!(filling(before), expected, "{before}");
        }
    }
}
