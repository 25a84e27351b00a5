//! Names of tables, and what the bundle's catalogue knows about them.

use std::collections::BTreeSet;

use portcullis_core::bundle::EffectSettings;
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Value};

/// Schemas that databases search when none is named.
const DEFAULT_SCHEMAS: [&str; 3] = ["public", "dbo", "main"];

/// A table under its canonical name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableName<'c> {
    /// Lower case, without default schemas.
    pub(super) name: String,
    /// Its columns, where it is catalogued.
    pub(super) columns: Option<&'c BTreeSet<String>>,
}

/// A name as it is compared: lower case.
pub(super) fn folded(ident: &Ident) -> String {
    ident.value.to_lowercase()
}

/// The parts of a name, lower case, or `None` if one is computed. A quoted name may have its dots within.
pub(super) fn parts(name: &ObjectName) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    for part in &name.0 {
        match part {
            ObjectNamePart::Identifier(ident) => {
                parts.extend(folded(ident).split('.').map(str::to_owned));
            }
            ObjectNamePart::Function(function) => match function.args.as_slice() {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => {
                    parts.extend(literal(argument)?.to_lowercase().split('.').map(str::to_owned));
                }
                _ => return None,
            },
        }
    }
    Some(parts)
}

/// The text of a string constant.
pub(super) fn literal(expression: &Expr) -> Option<&str> {
    let Expr::Value(value) = expression else {
        return match expression {
            Expr::Nested(inner) => literal(inner),
            Expr::Prefixed { value, .. } => literal(value),
            _ => None,
        };
    };
    match &value.value {
        Value::SingleQuotedString(text)
        | Value::DoubleQuotedString(text)
        | Value::NationalStringLiteral(text)
        | Value::EscapedStringLiteral(text)
        | Value::UnicodeStringLiteral(text)
        | Value::SingleQuotedRawStringLiteral(text)
        | Value::DoubleQuotedRawStringLiteral(text)
        | Value::TripleSingleQuotedString(text)
        | Value::TripleDoubleQuotedString(text) => Some(text),
        Value::DollarQuotedString(text) => Some(&text.value),
        _ => None,
    }
}

/// The tables that a name may mean. Mostly one; a table of the catalogue that is written with a schema is both: it
/// may be the catalogued one or one of the same name elsewhere.
pub(super) fn tables<'c>(settings: &'c EffectSettings, parts: &[String]) -> Vec<TableName<'c>> {
    let catalogue = &settings.tables;
    let (table, qualifiers) = match parts.split_last() {
        Some((table, qualifiers)) => (table, qualifiers),
        None => return Vec::new(),
    };
    let qualifiers: Vec<&str> = qualifiers
        .iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty() && !DEFAULT_SCHEMAS.contains(part))
        .collect();
    let joined = |from: usize| {
        let mut name = qualifiers.get(from..).unwrap_or_default().join(".");
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(table);
        name
    };
    let mut found = Vec::new();
    for from in 0..=qualifiers.len() {
        let name = joined(from);
        if let Some(listed) = catalogue.get(&name) {
            if from > 0 {
                found.push(TableName { name: joined(0), columns: None });
            }
            found.push(TableName { name, columns: Some(&listed.columns) });
            return found;
        }
    }
    if qualifiers.is_empty() {
        let end = format!(".{table}");
        let listed = catalogue.iter().filter(|(name, _)| name.ends_with(&end));
        found.extend(
            listed.map(|(name, table)| TableName { name: name.clone(), columns: Some(&table.columns) }),
        );
    }
    if found.is_empty() {
        found.push(TableName { name: joined(0), columns: None });
    }
    found
}
