//! The little languages within strings: conditions of a filter, and what to get from a column.
//!
//! A condition is `column operator value`; several are separated by `||`. Operators are `>=`, `<=`, `!=`, `==`,
//! `<>`, `>`, `<`, `=` and words such as `in` and `like`; `max(column)` and `min(column)` select by the extreme
//! value. A column to get is `column`, or `column, aggregate`.
//!
//! Only the names of columns matter here. Values may be unknown and may hold anything; an unknown part where a
//! column's name should be makes the column unknown.

use std::borrow::Cow;

use super::text::{Part, Text, lowercase};

/// A column as a string names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Column {
    Named(String),
    Unknown,
}

/// Words that stand between a column and a value.
const WORD_OPERATORS: &[&str] = &[
    "in",
    "not",
    "like",
    "ilike",
    "between",
    "is",
    "contains",
    "startswith",
    "endswith",
    "matches",
    "eq",
    "ne",
    "gt",
    "ge",
    "lt",
    "le",
];

/// Words that say what to do with the values of a column.
const AGGREGATES: &[&str] = &[
    "list",
    "max",
    "min",
    "sum",
    "mean",
    "avg",
    "average",
    "count",
    "median",
    "mode",
    "std",
    "var",
    "unique",
    "nunique",
    "distinct",
    "first",
    "last",
    "set",
    "len",
    "length",
    "sorted",
    "all",
    "any",
    "total",
    "size",
    "asc",
    "desc",
    "ascending",
    "descending",
    "sort",
    "str",
    "int",
    "float",
];

/// A character that stands for an unknown part while a text is taken apart.
const HOLE: char = '\u{fffc}';

fn marked(text: &Text) -> Cow<'_, str> {
    if let Some(known) = text.known().filter(|known| !known.contains(HOLE)) {
        return Cow::Borrowed(known);
    }
    let mut out = String::new();
    for part in text.parts() {
        match part {
            Part::Literal(text) => out.extend(text.chars().filter(|character| *character != HOLE)),
            Part::Hole => out.push(HOLE),
        }
    }
    Cow::Owned(out)
}

/// The columns that the conditions in a text look at.
pub(super) fn conditions(text: &Text) -> Vec<Column> {
    let text = marked(text);
    let mut columns = Vec::new();
    for condition in text.split("||") {
        for (at, part) in condition.split("&&").enumerate() {
            // Behind `&&` stands a further condition, unless the sign is part of a value.
            if at == 0 || operator(part).is_some() {
                one_condition(part, &mut columns);
            }
        }
    }
    columns
}

fn one_condition(condition: &str, columns: &mut Vec<Column>) {
    let condition = condition.trim();
    if condition.is_empty() {
        return;
    }
    let Some((left, right)) = operator(condition) else {
        match call(condition) {
            Some(inner) => name(inner, columns),
            None => {
                // No operator: if it is anything, it begins with the column.
                name(condition.split_whitespace().next().unwrap_or(condition), columns);
            }
        }
        return;
    };
    name(call(left).unwrap_or(left), columns);
    if let Some((function, inner)) = right.trim().strip_suffix(')').and_then(|call| call.split_once('('))
        && AGGREGATES.contains(&&*lowercase(function))
    {
        // `time=max(time)`; other brackets are part of a value.
        name(inner, columns);
    }
    if !right.contains(' ') {
        return;
    }
    // A further condition that a word joins to this one.
    for word in [" and ", " or ", " AND ", " OR "] {
        for part in right.split(word).skip(1) {
            if let Some((left, _)) = operator(part)
                && is_identifier(left.trim())
            {
                name(left, columns);
            }
        }
    }
}

/// What stands before and behind the first operator.
fn operator(condition: &str) -> Option<(&str, &str)> {
    let sign = condition.find(['=', '<', '>', '!', '~']).map(|at| {
        let (left, rest) = condition.split_at(at);
        (left, rest.trim_start_matches(['=', '<', '>', '!', '~']))
    });
    let mut before = 0;
    for word in condition.split_inclusive(char::is_whitespace) {
        let is_operator = WORD_OPERATORS.contains(&&*lowercase(word.trim()));
        if before > 0
            && is_operator
            && sign.is_none_or(|(left, _)| before < left.len())
            && let (Some(left), Some(right)) = (condition.get(..before), condition.get(before + word.len()..))
            && !left.trim().is_empty()
        {
            return Some((left, right));
        }
        before += word.len();
    }
    sign
}

/// The inside of `max(…)`, `lower(…)` and similar.
fn call(text: &str) -> Option<&str> {
    let (function, rest) = text.trim().split_once('(')?;
    let inner = rest.trim_end().strip_suffix(')').or_else(|| rest.split_once(')').map(|(inner, _)| inner))?;
    is_identifier(function.trim()).then_some(inner)
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|character| character.is_alphanumeric() || matches!(character, '_' | '.'))
}

/// Adds the column that a text names, or several that commas separate.
fn name(text: &str, columns: &mut Vec<Column>) {
    for part in text.split(',') {
        let part = part.trim_matches(|edge: char| edge.is_whitespace() || "\"'`[](){}".contains(edge));
        if part.is_empty() {
            continue;
        }
        let column = if part.contains(HOLE) { Column::Unknown } else { Column::Named(part.to_lowercase()) };
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
}

/// The columns that a text such as `column, aggregate` gets values of. `known` says what is a column.
pub(super) fn value_columns(text: &Text, known: impl Fn(&str) -> bool) -> Vec<Column> {
    let text = marked(text);
    let mut columns = Vec::new();
    for (at, part) in text.split(',').enumerate() {
        let part = part.trim_matches(|edge: char| edge.is_whitespace() || "\"'`[]{}".contains(edge));
        let inner = call(part).unwrap_or(part);
        let lower = lowercase(inner.trim());
        if at == 0 && !known(&lower) {
            // `max cost`, `cost max`: the words that are columns.
            let words: Vec<&str> = lower.split_whitespace().collect();
            if words.len() > 1 && words.iter().any(|word| known(word)) {
                words.iter().filter(|word| known(word)).for_each(|word| name(word, &mut columns));
                continue;
            }
        }
        if at == 0 || known(&lower) || !AGGREGATES.contains(&&*lower) {
            name(inner, &mut columns);
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::{Column, conditions, value_columns};
    use crate::code::text::Text;

    fn of(condition: &str) -> Vec<String> {
        let mut text = Text::literal("", 0..0);
        for (at, part) in condition.split("{}").enumerate() {
            if at > 0 {
                text = text.then(&Text::hole(0..0));
            }
            text = text.then(&Text::literal(part, 0..0));
        }
        let show = |column: Column| match column {
            Column::Named(name) => name,
            Column::Unknown => "?".to_owned(),
        };
        conditions(&text).into_iter().map(show).collect()
    }

    #[test]
    fn columns_of_conditions() {
        for (condition, expected) in [
            ("a=1", "a"),
            ("a=1||b>=2||max(c)", "a b c"),
            ("A = x||b<>y", "a b"),
            ("name=bleeding in brain - <5%", "name"),
            ("id in {}", "id"),
            ("id not in [1, 2]||t like %x", "id t"),
            ("note is null", "note"),
            ("t>=1 && u<=2", "t u"),
            ("name=salt && pepper", "name"),
            ("t=max(t)", "t"),
            ("a=1 and b=2", "a b"),
            ("drug=this and that", "drug"),
            ("{}=3", "?"),
            ("{}", "?"),
            ("a={}||{}>2", "a ?"),
            ("pre{}=1", "?"),
            ("table, a=1", "table a"),
            ("", ""),
            ("||a", "a"),
            ("lower(a)=x", "a"),
            ("'a'=3", "a"),
            ("in=3", "in"),
            ("drug=some (other) tab 5 mg", "drug"),
            ("drug=some (other)", "drug"),
        ] {
            assert_eq!(of(condition).join(" "), expected, "{condition}");
        }
    }

    #[test]
    fn columns_of_values() {
        for (text, expected) in [
            ("a", "a"),
            ("a, list", "a"),
            ("a,b", "a b"),
            ("a, b, max", "a b"),
            ("max(a)", "a"),
            ("a max", "a"),
            ("list", "list"),
            ("['a']", "a"),
        ] {
            let known = |name: &str| matches!(name, "a" | "b");
            let found: Vec<_> = value_columns(&Text::literal(text, 0..0), known)
                .into_iter()
                .map(|column| if let Column::Named(name) = column { name } else { "?".to_owned() })
                .collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }
}
