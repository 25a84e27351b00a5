//! Reads what a bundle says about effects and access.

use std::collections::BTreeMap;

use super::diagnostic::Diagnostic;
use super::placed::{VERDICTS, name_field};
use super::settings::{AccessSettings, EffectSettings, FunctionRole, SqlDialect, TableColumns};
use super::toml_table::{Field, File, Table};
use crate::effect::AttributeType;
use crate::limits::{COLUMNS_MAX, FUNCTIONS_MAX, TABLES_MAX};
use crate::verdict::Verdict;

const DIALECTS: [(&str, SqlDialect); 8] = [
    ("generic", SqlDialect::Generic),
    ("postgres", SqlDialect::Postgres),
    ("mysql", SqlDialect::MySql),
    ("sqlite", SqlDialect::Sqlite),
    ("mssql", SqlDialect::MsSql),
    ("bigquery", SqlDialect::BigQuery),
    ("snowflake", SqlDialect::Snowflake),
    ("duckdb", SqlDialect::DuckDb),
];

/// What becomes of text that cannot be read; `None` to run it contained, or review it where that cannot be.
const UNREAD: [(&str, Option<Verdict>); 4] = [
    ("allow", Some(Verdict::Allow)),
    ("review", Some(Verdict::Review)),
    ("deny", Some(Verdict::Deny)),
    ("contain", None),
];

const ATTRIBUTE_TYPES: [(&str, AttributeType); 4] = [
    ("boolean", AttributeType::Boolean),
    ("integer", AttributeType::Integer),
    ("decimal", AttributeType::Decimal),
    ("text", AttributeType::Text),
];

/// `[effects]` of the main file.
pub(super) fn effects(file: &File<'_>, mut table: Table<'_, '_>) -> EffectSettings {
    let mut settings = EffectSettings::default();
    let unread = |word: Option<Option<Verdict>>, default: Verdict| match word {
        None => (default, false),
        Some(Some(verdict)) => (verdict, false),
        Some(None) => (Verdict::Review, true),
    };
    (settings.unknown, settings.contain_unknown) = unread(table.word("unknown", &UNREAD), settings.unknown);
    (settings.unknown_code, settings.contain_unknown_code) =
        unread(table.word("unknown_code", &UNREAD), settings.unknown_code);
    settings.workspace = absolute(file, table.string("workspace"), "workspace");
    settings.home = absolute(file, table.string("home"), "home");
    settings.secrets =
        table.strings("secrets").unwrap_or_default().into_iter().map(|field| field.value).collect();
    settings.dialect = table.word("dialect", &DIALECTS).unwrap_or_default();
    table.finish();
    settings
}

fn absolute(file: &File<'_>, field: Option<Field<String>>, name: &str) -> Option<String> {
    let field = field?;
    if field.value.starts_with('/') {
        return Some(field.value);
    }
    file.report(file.at(field.span, format!("`{name}` must be an absolute path")));
    None
}

/// `[access]` of the main file.
pub(super) fn access(file: &File<'_>, mut table: Table<'_, '_>) -> AccessSettings {
    let mut settings = AccessSettings::default();
    settings.default = table.word("default", &VERDICTS).unwrap_or(settings.default);
    settings.role_aliases = role_aliases(file, table.entries("role_aliases").unwrap_or_default());
    for (name, Field { value: word, span }) in table.entries("attributes").unwrap_or_default() {
        match ATTRIBUTE_TYPES.iter().find(|(known, _)| *known == word) {
            Some((_, type_)) => {
                settings.attributes.insert(name.value, *type_);
            }
            None => {
                let message = format!("`{word}` is not an attribute type");
                let known = ATTRIBUTE_TYPES.iter().map(|(known, _)| *known);
                file.report(file.at(span, message).did_you_mean(&word, known));
            }
        }
    }
    table.finish();
    settings
}

/// Aliases of roles. An alias of another alias, or of itself, is an error.
fn role_aliases(file: &File<'_>, entries: Vec<(Field<String>, Field<String>)>) -> BTreeMap<String, String> {
    let aliases: BTreeMap<String, String> =
        entries.iter().map(|(alias, role)| (alias.value.clone(), role.value.clone())).collect();
    for (alias, Field { value: role, span }) in entries {
        let mut meant = &role;
        // As many steps as there are names lead to a role, or round in a circle.
        for _ in 0..aliases.len() {
            meant = aliases.get(meant).unwrap_or(meant);
        }
        if aliases.contains_key(meant) {
            let message = format!("the alias `{}` leads back to itself, not to a role", alias.value);
            file.report(file.at(span, message).help("name a role that policies use"));
        } else if *meant != role {
            let message = format!("`{role}` is itself an alias");
            file.report(file.at(span, message).help(format!("did you mean `{meant}`?")));
        }
    }
    aliases
}

/// A file of `tables/`.
pub(super) fn tables(file: &File<'_>, table: &mut Table<'_, '_>) -> BTreeMap<String, TableColumns> {
    let mut all = BTreeMap::new();
    for mut table in table.tables("table") {
        let name = name_field(file, &mut table, "name");
        let columns = table.strings("columns");
        if columns.is_none() {
            table.missing("columns");
        }
        table.finish();
        let (Some(name), Some(columns)) = (name, columns) else { continue };
        if columns.len() > COLUMNS_MAX {
            file.report(file.at(name.span.clone(), format!("more than {COLUMNS_MAX} columns")));
        }
        let columns = columns.into_iter().map(|column| column.value.to_lowercase()).collect();
        let key = name.value.to_lowercase();
        if all.insert(key, TableColumns { columns }).is_some() {
            file.report(file.at(name.span, format!("the table `{}` is listed twice", name.value)));
        }
    }
    if all.len() > TABLES_MAX {
        file.report(file.at(0..0, format!("more than {TABLES_MAX} tables")));
    }
    all
}

/// A file of `functions/`.
pub(super) fn functions(file: &File<'_>, table: &mut Table<'_, '_>) -> BTreeMap<String, FunctionRole> {
    let roles = [
        ("load-table", FunctionRole::LoadTable),
        ("filter-table", FunctionRole::FilterTable),
        ("get-value", FunctionRole::GetValue),
        ("run-sql", FunctionRole::RunSql),
        ("nothing", FunctionRole::Pure),
    ];
    let mut all = BTreeMap::new();
    for mut table in table.tables("function") {
        let name = name_field(file, &mut table, "name");
        let does = table.string("does");
        let tool = table.string("tool");
        if does.is_none() && tool.is_none() {
            table.missing("does");
        }
        table.finish();
        let role = match (does, tool) {
            (Some(does), None) => {
                let found = roles.iter().find(|(word, _)| *word == does.value);
                if found.is_none() {
                    let message = format!("`{}` is not a value of `does`", does.value);
                    let known = roles.iter().map(|(word, _)| *word);
                    file.report(file.at(does.span, message).did_you_mean(&does.value, known));
                }
                found.map(|(_, role)| role.clone())
            }
            (None, Some(tool)) => Some(FunctionRole::CallTool(tool.value)),
            (Some(does), Some(_)) => {
                file.report(file.at(does.span, "a function has either `does` or `tool`, not both"));
                None
            }
            (None, None) => None,
        };
        let (Some(name), Some(role)) = (name, role) else { continue };
        if all.insert(name.value, role).is_some() {
            file.report(file.at(name.span, "the function is listed twice"));
        }
    }
    if all.len() > FUNCTIONS_MAX {
        file.report(file.at(0..0, format!("more than {FUNCTIONS_MAX} functions")));
    }
    all
}

/// Merges what several files say, reporting names that are in two of them.
pub(super) fn merge<T>(
    into: &mut BTreeMap<String, T>,
    from: BTreeMap<String, T>,
    path: &str,
    what: &str,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for (name, value) in from {
        if into.contains_key(&name) {
            let message = format!("the {what} `{name}` is also listed in another file");
            diagnostics.push(Diagnostic::new(path, "", 0..0, message));
        }
        into.insert(name, value);
    }
}
