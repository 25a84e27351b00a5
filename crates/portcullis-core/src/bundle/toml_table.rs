//! Reads TOML tables field by field, keeping the place of everything, so that each error is reported at its place and
//! several errors at once. Serde would stop at the first and lose the place of nested ones.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostic::Diagnostic;
use crate::limits::JSON_DEPTH_MAX;
use crate::principal::Attribute;

/// A file being read, collecting what is wrong with it.
#[derive(Debug)]
pub(super) struct File<'s> {
    name: &'s str,
    source: &'s str,
    diagnostics: RefCell<Vec<Diagnostic>>,
}

impl<'s> File<'s> {
    pub(super) fn new(name: &'s str, source: &'s str) -> Self {
        Self { name, source, diagnostics: RefCell::default() }
    }

    /// Parses the file. Syntax errors are reported and give no table.
    pub(super) fn parse(&self) -> Option<Spanned<DeTable<'s>>> {
        let (table, errors) = DeTable::parse_recoverable(self.source);
        for error in &errors {
            self.report(self.at(error.span().unwrap_or(0..0), error.message()));
        }
        errors.is_empty().then_some(table)
    }

    pub(super) fn at(&self, span: Range<usize>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.name, self.source, span, message)
    }

    pub(super) fn report(&self, diagnostic: Diagnostic) {
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    pub(super) fn finish(self) -> Vec<Diagnostic> {
        self.diagnostics.into_inner()
    }
}

/// One table: takes fields out by name and complains about what is left.
#[derive(Debug)]
pub(super) struct Table<'f, 's> {
    file: &'f File<'s>,
    /// What the table is, for messages: `tool`, `policy`, ...
    what: &'f str,
    pub(super) span: Range<usize>,
    fields: BTreeMap<String, (Range<usize>, &'f Spanned<DeValue<'s>>)>,
    known: Vec<&'static str>,
    /// Fields present in the file, valid or not.
    present: Vec<&'static str>,
}

/// A value with its place.
#[derive(Debug, Clone)]
pub(super) struct Field<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

impl<'f, 's> Table<'f, 's> {
    pub(super) fn new(file: &'f File<'s>, what: &'f str, span: Range<usize>, table: &'f DeTable<'s>) -> Self {
        let fields = table
            .iter()
            .map(|(key, value)| (key.get_ref().clone().into_owned(), (key.span(), value)))
            .collect();
        Self { file, what, span, fields, known: Vec::new(), present: Vec::new() }
    }

    fn take(&mut self, name: &'static str) -> Option<&'f Spanned<DeValue<'s>>> {
        self.known.push(name);
        let (_, value) = self.fields.remove(name)?;
        self.present.push(name);
        Some(value)
    }

    fn wrong_type(&self, name: &str, want: &str, value: &Spanned<DeValue<'s>>) {
        let got = match value.get_ref() {
            DeValue::Integer(integer) => integer.to_string(),
            DeValue::Float(float) => float.as_str().to_owned(),
            other => other.type_str().to_owned(),
        };
        let message = format!("`{name}` must be {want}, found {got}");
        self.file.report(self.file.at(value.span(), message));
    }

    /// Reports a missing required field. A field that is present but invalid was already reported.
    pub(super) fn missing(&self, name: &str) {
        if self.present.contains(&name) {
            return;
        }
        let message = format!("the {} has no `{name}`", self.what);
        self.file.report(self.file.at(self.span.clone(), message));
    }

    pub(super) fn string(&mut self, name: &'static str) -> Option<Field<String>> {
        let value = self.take(name)?;
        match value.get_ref().as_str() {
            Some(text) => Some(Field { value: text.to_owned(), span: value.span() }),
            None => {
                self.wrong_type(name, "a string", value);
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        let value = self.take(name)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.wrong_type(name, "true or false", value);
        }
        flag
    }

    /// An integer of at least `min` that fits 32 bits.
    pub(super) fn integer(&mut self, name: &'static str, min: u32) -> Option<u32> {
        let value = self.take(name)?;
        let integer = value.get_ref().as_integer();
        let number = integer.and_then(|i| u32::from_str_radix(i.as_str(), i.radix()).ok());
        match number {
            Some(number) if number >= min => Some(number),
            _ => {
                self.wrong_type(name, &format!("a whole number from {min} to {}", u32::MAX), value);
                None
            }
        }
    }

    /// An integer of at least 1 that fits 63 bits.
    pub(super) fn large(&mut self, name: &'static str) -> Option<u64> {
        let value = self.take(name)?;
        let integer = value.get_ref().as_integer();
        let number = integer.and_then(|i| i64::from_str_radix(i.as_str(), i.radix()).ok());
        let number = number.and_then(|number| u64::try_from(number).ok()).filter(|number| *number > 0);
        if number.is_none() {
            self.wrong_type(name, &format!("a whole number from 1 to {}", i64::MAX), value);
        }
        number
    }

    /// A number of units, from 0, as whole millionths of the unit; more digits are an error, not rounded away.
    pub(super) fn millionths(&mut self, name: &'static str) -> Option<u64> {
        let value = self.take(name)?;
        let text = match value.get_ref() {
            DeValue::Float(float) => Some(float.as_str()),
            DeValue::Integer(integer) => Some(integer.as_str()),
            _ => None,
        };
        let number = text.and_then(millionths);
        if number.is_none() {
            self.wrong_type(name, "a number from 0 with at most six decimals", value);
        }
        number
    }

    /// A number from 0 to 1.
    pub(super) fn fraction(&mut self, name: &'static str) -> Option<f64> {
        let value = self.take(name)?;
        let text = match value.get_ref() {
            DeValue::Float(float) => Some(float.as_str()),
            DeValue::Integer(integer) => Some(integer.as_str()),
            _ => None,
        };
        let number = text.and_then(|text| text.parse::<f64>().ok()).filter(|n| (0.0..=1.0).contains(n));
        if number.is_none() {
            self.wrong_type(name, "a number from 0 to 1", value);
        }
        number
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&mut self, name: &'static str, words: &[(&'static str, T)]) -> Option<T> {
        let field = self.string(name)?;
        let found = words.iter().find(|(word, _)| *word == field.value).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let message = format!("`{}` is not a value of `{name}`", field.value);
            let valid = words.iter().map(|(word, _)| *word);
            self.file.report(self.file.at(field.span, message).did_you_mean(&field.value, valid));
        }
        found
    }

    /// A list of strings; a single string is split at commas, trimmed, and empty parts are dropped, as in the
    /// form of seed 000.
    pub(super) fn strings(&mut self, name: &'static str) -> Option<Vec<Field<String>>> {
        let value = self.take(name)?;
        if let Some(text) = value.get_ref().as_str() {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            return Some(parts.map(|part| Field { value: part.to_owned(), span: value.span() }).collect());
        }
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_type(name, "a list of strings", value);
            return None;
        };
        let mut strings = Vec::with_capacity(array.len());
        for item in array.iter() {
            match item.get_ref().as_str() {
                Some(text) => strings.push(Field { value: text.to_owned(), span: item.span() }),
                None => self.wrong_type(name, "a list of strings", item),
            }
        }
        Some(strings)
    }

    /// A table of strings, its entries in the order of their names.
    pub(super) fn entries(&mut self, name: &'static str) -> Option<Vec<(Field<String>, Field<String>)>> {
        let value = self.take(name)?;
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(name, "a table of strings", value);
            return None;
        };
        let mut entries = Vec::with_capacity(table.len());
        for (key, value) in table.iter() {
            match value.get_ref().as_str() {
                Some(text) => {
                    entries.push((key_of(key), Field { value: text.to_owned(), span: value.span() }))
                }
                None => self.wrong_type(key.get_ref(), "a string", value),
            }
        }
        entries.sort_by(|a, b| a.0.value.cmp(&b.0.value));
        Some(entries)
    }

    /// A table of truth values, whole numbers and strings.
    pub(super) fn attributes(&mut self, name: &'static str) -> Option<Vec<(Field<String>, Attribute)>> {
        let value = self.take(name)?;
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(name, "a table", value);
            return None;
        };
        let mut entries = Vec::with_capacity(table.len());
        for (key, value) in table.iter() {
            let attribute = match value.get_ref() {
                DeValue::String(text) => Some(Attribute::Text(text.clone().into_owned())),
                DeValue::Boolean(flag) => Some(Attribute::Boolean(*flag)),
                DeValue::Integer(integer) => {
                    i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(Attribute::Integer)
                }
                _ => None,
            };
            match attribute {
                Some(attribute) => entries.push((key_of(key), attribute)),
                None => self.wrong_type(key.get_ref(), "a string, a whole number, true or false", value),
            }
        }
        Some(entries)
    }

    /// One table (`[name]`).
    pub(super) fn table(&mut self, name: &'static str) -> Option<Table<'f, 's>> {
        let value = self.take(name)?;
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(name, &format!("a table, written [{name}]"), value);
        }
        table.map(|table| Table::new(self.file, name, value.span(), table))
    }

    /// The tables of a table, by their names in the order of these: `[name.ONE]`, `[name.OTHER]`.
    pub(super) fn named_tables(&mut self, name: &'static str) -> Vec<(Field<String>, Table<'f, 's>)> {
        let Some(value) = self.take(name) else { return Vec::new() };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(name, &format!("tables, written [{name}.NAME]"), value);
            return Vec::new();
        };
        let mut tables = Vec::with_capacity(table.len());
        for (key, item) in table.iter() {
            match item.get_ref().as_table() {
                Some(inner) => tables.push((key_of(key), Table::new(self.file, name, item.span(), inner))),
                None => self.wrong_type(
                    key.get_ref(),
                    &format!("a table, written [{name}.{}]", key.get_ref()),
                    item,
                ),
            }
        }
        tables.sort_by(|a, b| a.0.value.cmp(&b.0.value));
        tables
    }

    /// Whether the field is a table, not a text or anything else.
    pub(super) fn is_table(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(|(_, value)| value.get_ref().as_table().is_some())
    }

    /// Any value, as JSON.
    pub(super) fn json(&mut self, name: &'static str) -> Option<Field<Value>> {
        let value = self.take(name)?;
        match to_json(value.get_ref(), 0) {
            Ok(json) => Some(Field { value: json, span: value.span() }),
            Err(message) => {
                self.file.report(self.file.at(value.span(), format!("`{name}` {message}")));
                None
            }
        }
    }

    /// The tables of an array of tables (`[[name]]`), or none when the field is absent.
    pub(super) fn tables(&mut self, name: &'static str) -> Vec<Table<'f, 's>> {
        let Some(value) = self.take(name) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_type(name, &format!("an array of tables, written [[{name}]]"), value);
            return Vec::new();
        };
        let mut tables = Vec::with_capacity(array.len());
        for item in array.iter() {
            match item.get_ref().as_table() {
                Some(table) => tables.push(Table::new(self.file, name, item.span(), table)),
                None => self.wrong_type(name, "a table", item),
            }
        }
        tables
    }

    /// Reports every field that was not read.
    pub(super) fn finish(self) {
        for (name, (span, _)) in &self.fields {
            let message = format!("unknown field `{name}` in the {}", self.what);
            self.file
                .report(self.file.at(span.clone(), message).did_you_mean(name, self.known.iter().copied()));
        }
    }
}

fn key_of(key: &Spanned<Cow<'_, str>>) -> Field<String> {
    Field { value: key.get_ref().clone().into_owned(), span: key.span() }
}

fn to_json(value: &DeValue<'_>, depth: usize) -> Result<Value, String> {
    if depth > JSON_DEPTH_MAX {
        return Err(format!("is nested deeper than {JSON_DEPTH_MAX} levels"));
    }
    Ok(match value {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map(Value::from)
            .map_err(|_| format!("holds the integer {integer}, which does not fit 64 bits"))?,
        DeValue::Float(float) => float
            .as_str()
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| format!("holds {}, which JSON cannot express", float.as_str()))?,
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(items) => Value::Array(
            items.iter().map(|item| to_json(item.get_ref(), depth + 1)).collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => {
            let mut map = Map::new();
            for (key, item) in table.iter() {
                map.insert(key.get_ref().clone().into_owned(), to_json(item.get_ref(), depth + 1)?);
            }
            Value::Object(map)
        }
    })
}
/// `1.25` as 1,250,000.
pub(super) fn millionths(text: &str) -> Option<u64> {
    const DIGITS: usize = 6;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > DIGITS || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = format!("{fraction:0<DIGITS$}").parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(fraction)
}
