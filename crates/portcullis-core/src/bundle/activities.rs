//! Activities: what people do, described by the words with which they ask for it.

use super::diagnostic::Diagnostic;
use super::toml_table::{File, Table};

/// Something that people do, recognised in a task in plain language: `activities/*.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Unique name: `book-hotel`.
    pub name: String,
    /// How far the activity reaches.
    pub scope: ActivityScope,
    /// Verbs that name the activity itself.
    pub verbs: Vec<String>,
    /// Things that it is done with or to.
    pub objects: Vec<String>,
}

/// Whether only the words of the activity count, or also what clearly leads to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ActivityScope {
    /// The verbs of the activity.
    Literal,
    /// Any step towards it: to look for a flight is part of booking one.
    #[default]
    Intent,
}

pub(super) fn read(file: &File<'_>, table: &mut Table<'_, '_>) -> Vec<(Activity, Diagnostic)> {
    table.tables("activity").into_iter().filter_map(|table| read_activity(file, table)).collect()
}

fn read_activity(file: &File<'_>, mut table: Table<'_, '_>) -> Option<(Activity, Diagnostic)> {
    let name = super::load::name_field(file, &mut table, "name");
    let scopes = [("literal", ActivityScope::Literal), ("intent", ActivityScope::Intent)];
    let scope = table.word("scope", &scopes).unwrap_or_default();
    let mut words = |field| -> Vec<String> {
        table.strings(field).unwrap_or_default().into_iter().map(|word| word.value.to_lowercase()).collect()
    };
    let (verbs, objects) = (words("verbs"), words("objects"));
    table.finish();
    let name = name?;
    let place = file.at(name.span, "");
    Some((Activity { name: name.value, scope, verbs, objects }, place))
}
