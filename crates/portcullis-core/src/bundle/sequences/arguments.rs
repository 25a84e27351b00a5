//! Reads `where` of marks and sequences.
//!
//! ```toml
//! where = { "/env" = "prod" }             # equal to this
//! where = { "/env" = ["prod", "live"] }   # to one of these
//! where = { "/env" = { not = "test" } }   # to none of these
//! where = { "/amount" = { over = 500 } }  # or `at_least`, `under`, `at_most`
//! ```

use serde_json::Value;

use super::super::toml_table::{File, Table, millionths};
use crate::limits::{SEQUENCE_CONDITIONS_MAX, SEQUENCE_VALUES_MAX};
use crate::sequence::{Bound, Condition, Only, Test};

const FORMS: &str = "write a value, a list of values, `{ not = … }`, or `{ over = … }`, `at_least`, `under`, `at_most` with a number";

/// The conditions of a mark or a sequence.
pub(super) fn only(file: &File<'_>, table: &mut Table<'_, '_>) -> Only {
    let Some(field) = table.json("where") else { return Only::default() };
    match conditions(field.value) {
        Ok(only) => only,
        Err(message) => {
            file.report(file.at(field.span, message).help(FORMS));
            Only::default()
        }
    }
}

fn conditions(stated: Value) -> Result<Only, String> {
    let Value::Object(stated) = stated else {
        return Err("`where` is no table of arguments".to_owned());
    };
    if stated.is_empty() {
        return Err("`where` names no argument".to_owned());
    }
    let mut all = Vec::new();
    for (at, is) in stated {
        if !at.starts_with('/') {
            return Err(format!("`{at}` is no JSON pointer: write `/{at}`"));
        }
        let tests = tests(is).map_err(|why| format!("`{at}` {why}"))?;
        all.extend(tests.into_iter().map(|is| Condition { at: at.clone(), is }));
    }
    if all.len() > SEQUENCE_CONDITIONS_MAX {
        return Err(format!("`where` has more than {SEQUENCE_CONDITIONS_MAX} conditions"));
    }
    Ok(Only(all))
}

/// What is said of one argument.
fn tests(stated: Value) -> Result<Vec<Test>, String> {
    let Value::Object(stated) = stated else { return Ok(vec![Test::OneOf(values(stated)?)]) };
    if stated.is_empty() {
        return Err("has no condition".to_owned());
    }
    let test = |(word, value): (String, Value)| {
        let bound = match word.as_str() {
            "not" => return Ok(Test::NoneOf(values(value)?)),
            "over" => Bound::Over,
            "at_least" => Bound::AtLeast,
            "under" => Bound::Under,
            "at_most" => Bound::AtMost,
            other => return Err(format!("has the unknown condition `{other}`")),
        };
        let number = value.as_number().and_then(|number| millionths(&number.to_string()));
        let number = number
            .ok_or_else(|| format!("has `{word}` without a number from 0 with at most six decimals"))?;
        Ok(Test::Compares(bound, number))
    };
    stated.into_iter().map(test).collect()
}

fn values(stated: Value) -> Result<Vec<Value>, String> {
    let values = match stated {
        Value::Array(values) => values,
        one => vec![one],
    };
    if values.is_empty() || values.len() > SEQUENCE_VALUES_MAX {
        return Err(format!("names {} values; name 1 to {SEQUENCE_VALUES_MAX}", values.len()));
    }
    if values.iter().any(|value| value.is_array() || value.is_object() || value.is_null()) {
        return Err("is compared with something that is no text, number or boolean".to_owned());
    }
    Ok(values)
}
