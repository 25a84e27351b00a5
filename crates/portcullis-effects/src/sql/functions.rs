//! What functions do beyond computing a value.
//!
//! A function that is not listed is *unknown*: anyone may define one, and what it does is not in the text.

use portcullis_core::bundle::SqlDialect;
use portcullis_core::effect::{ResourceKind, Verb};
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Spanned, Value};
use sqlparser::tokenizer::Span;

use super::names::{self, literal};
use super::output::How;
use super::pure;
use super::reading::Reading;

/// Schemas of functions that come with a database.
const BUILT_IN: [&str; 6] = ["pg_catalog", "sys", "information_schema", "safe", "net", "hll_count"];

/// What a function does to the file that it is given.
fn file_function(name: &str) -> Option<(&'static [Verb], usize)> {
    const READ: &[Verb] = &[Verb::Read];
    const WRITE: &[Verb] = &[Verb::Write];
    Some(match name {
        "pg_read_file"
        | "pg_read_binary_file"
        | "pg_ls_dir"
        | "pg_stat_file"
        | "lo_import"
        | "load_file"
        | "readfile"
        | "fsdir"
        | "lsdir"
        | "zipfile"
        | "read_csv"
        | "read_csv_auto"
        | "read_parquet"
        | "parquet_scan"
        | "parquet_metadata"
        | "parquet_schema"
        | "read_json"
        | "read_json_auto"
        | "read_ndjson"
        | "read_ndjson_auto"
        | "read_json_objects"
        | "read_ndjson_objects"
        | "read_text"
        | "read_blob"
        | "read_xlsx"
        | "sniff_csv"
        | "csv_scan"
        | "sqlite_scan"
        | "st_read"
        | "st_read_meta"
        | "st_readosm"
        | "st_readshp"
        | "delta_scan"
        | "iceberg_scan" => (READ, 0),
        "lo_export" => (WRITE, 1),
        "writefile" | "pg_file_write" => (WRITE, 0),
        "pg_file_rename" => (WRITE, 1),
        "pg_file_unlink" => (&[Verb::Delete], 0),
        _ => return None,
    })
}

impl Reading<'_, '_, '_, '_> {
    /// A function in an expression.
    pub(super) fn function_effects(&mut self, name: &ObjectName, arguments: &FunctionArguments) {
        let arguments = match arguments {
            FunctionArguments::List(list) => list.args.as_slice(),
            _ => &[],
        };
        self.call(name, arguments);
    }

    /// A function in a `from`.
    pub(super) fn table_function(&mut self, name: &ObjectName, arguments: &[FunctionArg]) {
        // The files whose names fit; to others the same name compares two texts.
        if let ([argument], Some("glob")) =
            (arguments, names::parts(name).unwrap_or_default().last().map(String::as_str))
        {
            return self.on_files(&[Verb::Read], expression(argument), name.span());
        }
        self.call(name, arguments);
    }

    fn call(&mut self, name: &ObjectName, arguments: &[FunctionArg]) {
        let parts = names::parts(name).unwrap_or_default();
        let Some((last, schema)) = parts.split_last() else { return };
        let expressions: Vec<&Expr> = arguments.iter().filter_map(expression).collect();
        let span = name.span();
        if let Some((verbs, at)) = file_function(last) {
            let file = expressions.get(at).copied();
            let span = file.map_or(span, Spanned::span);
            self.on_files(verbs, file, span);
            return;
        }
        let range = self.output.range(span);
        match last.as_str() {
            "load_extension" => {
                self.on_files(&[Verb::Read], expressions.first().copied(), span);
                self.output.unknown("sql extension", "loads a library into the database", range);
            }
            "query_to_xml"
            | "query_to_xmlschema"
            | "query_to_xml_and_xmlschema"
            | "ts_stat"
            | "cursor_to_xml" => match expressions.first().and_then(|expression| literal(expression)) {
                Some(text) => self.output.nested(text, range),
                None => self.output.unknown("sql", "runs SQL that is computed", range),
            },
            "table_to_xml" | "table_to_xmlschema" | "table_to_xml_and_xmlschema" => {
                self.table_in_text(expressions.first().copied(), span);
            }
            "set_config" => {
                let setting = expressions.first().and_then(|expression| literal(expression)).unwrap_or("*");
                self.output.setting(&setting.to_lowercase(), span);
            }
            // Computing the value changes the sequence; no rollback brings it back.
            "setval" | "nextval" => self.output.setting("sequence", span),
            "json_execute_serialized_sql" => {
                self.output.unknown("sql", "runs SQL that is computed", range);
            }
            "table" => {
                if let Some(argument) = expressions.first() {
                    self.table_of(argument);
                }
            }
            // Columns by a pattern: any of them may fit.
            "columns" => self.read_all(&[], None, span),
            "pg_reload_conf" | "pg_rotate_logfile" | "pg_promote" | "pg_switch_wal" => {
                self.output.setting(last, span);
            }
            "pg_terminate_backend" | "pg_cancel_backend" => {
                self.output.other(Verb::Delete, ResourceKind::Process, "sql session", How::default(), span);
            }
            "pg_sleep" | "benchmark" | "randomblob" => {}
            _ if is_pure(last, schema) => {}
            _ => {
                let called = parts.join(".");
                self.output.unknown(
                    "sql function",
                    format!("`{called}` is not a function that is known"),
                    range,
                );
            }
        }
    }

    /// Files that an argument names: one, or a list.
    fn on_files(&mut self, verbs: &[Verb], file: Option<&Expr>, span: Span) {
        match file {
            Some(Expr::Array(array)) if !array.elem.is_empty() => {
                for element in &array.elem {
                    self.on_file(verbs, literal(element), element.span());
                }
            }
            Some(file) => {
                // A name in double quotes is a string to some.
                let quoted = match file {
                    Expr::Identifier(ident) if ident.quote_style == Some('"') => Some(ident.value.as_str()),
                    other => literal(other),
                };
                self.on_file(verbs, quoted, span);
            }
            None => self.on_file(verbs, None, span),
        }
    }

    /// A table as a whole.
    pub(super) fn read_whole(&mut self, name: &ObjectName) {
        for table in self.tables_named(name) {
            self.output.table(Verb::Read, &table, How::default(), name.span());
            self.output.all_columns(Verb::Read, &table, name.span());
        }
    }

    /// `table(NAME)`: the table of that name, or what a function gives.
    pub(super) fn table_of(&mut self, expression: &Expr) {
        match expression {
            Expr::Function(_) => {}
            Expr::Identifier(name) => self.read_whole(&ObjectName::from(vec![name.clone()])),
            Expr::CompoundIdentifier(names) => self.read_whole(&ObjectName::from(names.clone())),
            other => self.table_in_text(Some(other), other.span()),
        }
    }

    /// `$3`, which is the third column to Snowflake, and elsewhere a value that is bound.
    pub(super) fn is_position(&self, value: &Value) -> bool {
        matches!(value, Value::Placeholder(text) if is_number(text)) && self.dialect == SqlDialect::Snowflake
    }

    fn table_in_text(&mut self, argument: Option<&Expr>, span: Span) {
        let range = self.output.range(span);
        let Some(text) = argument.and_then(literal) else {
            self.output.unknown("sql", "the name of a table is computed", range);
            return;
        };
        let parts: Vec<String> =
            text.split('.').map(|part| part.trim().trim_matches('"').to_lowercase()).collect();
        for table in names::tables(self.settings, &parts) {
            self.output.table(Verb::Read, &table, How::default(), span);
            self.output.all_columns(Verb::Read, &table, span);
        }
    }
}

/// `$3`.
pub(super) fn is_number(placeholder: &str) -> bool {
    placeholder.strip_prefix('$').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_pure(name: &str, schema: &[String]) -> bool {
    let built_in = match schema {
        [] => true,
        [.., last] => BUILT_IN.contains(&last.as_str()),
    };
    built_in && pure::is_listed(name)
}

fn expression(argument: &FunctionArg) -> Option<&Expr> {
    let (FunctionArg::Unnamed(value)
    | FunctionArg::Named { arg: value, .. }
    | FunctionArg::ExprNamed { arg: value, .. }) = argument;
    match value {
        FunctionArgExpr::Expr(expression) => Some(expression),
        _ => None,
    }
}
