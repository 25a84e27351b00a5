//! `query_internal_database`: one SQL query on the internal database.
//!
//! The statement comes from an agent, so the connection is built to survive any text. It opens the
//! file read-only; an authorizer lets a statement read, call functions and recurse, and refuses all
//! else at the time it is prepared: writing, `ATTACH` (which would open other files), `PRAGMA`,
//! transactions. One statement a call. Time, rows, columns and bytes are limited: running out of time
//! is an error, more rows than fit are cut off and the result says so. Each call has a connection of
//! its own, so that nothing is carried over to the next.
//!
//! Result: `{"columns", "rows", "truncated"}`; a row is an array, a blob stands as
//! `{"blob_bytes": n}`.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};
use serde_json::{Value, json};

use super::{ArgumentSpec, Arguments, Tool, ToolError, ToolOutput, Workspace};

/// Longest statement, in bytes.
const MAX_QUERY_BYTES: usize = 8 * 1024;
/// Longest time a query runs.
const MAX_QUERY_TIME: Duration = Duration::from_secs(1);
/// Instructions of SQLite's virtual machine between two looks at the clock.
const INSTRUCTIONS_PER_LOOK: i32 = 1000;
/// Most rows of a result.
const MAX_ROWS: usize = 200;
/// Most columns of a result, and of what is worked with on the way.
const MAX_COLUMNS: i32 = 64;
/// Longest value, in bytes, also on the way.
const MAX_VALUE_BYTES: i32 = 64 * 1024;
/// Most bytes of all values of a result.
const MAX_RESULT_BYTES: usize = 256 * 1024;
/// Deepest expression.
const MAX_EXPRESSION_DEPTH: i32 = 100;

pub(super) static TOOL: Tool = Tool {
    id: "query_internal_database",
    name: "Query Internal Database",
    description: "Run one SQL SELECT on the internal database: tables customers, transactions and \
                  access_requests.",
    read_only: true,
    destructive: false,
    idempotent: true,
    arguments: &[ArgumentSpec {
        name: "query",
        description: "One SELECT statement in SQLite's SQL.",
        max_bytes: MAX_QUERY_BYTES,
    }],
    run,
};

/// Writes the sample data into a new database file.
pub(super) fn fill(path: &Path) -> Result<(), ToolError> {
    let filled = Connection::open(path).and_then(|connection| {
        connection.execute_batch(include_str!("sample_data.sql"))?;
        connection.close().map_err(|(_, error)| error)
    });
    filled.map_err(|error| {
        let _ = std::fs::remove_file(path);
        ToolError::Query { problem: format!("the sample data could not be stored: {error}") }
    })
}

fn run(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<ToolOutput, ToolError> {
    let sql = arguments.text("query")?;
    let connection = open(&workspace.database()).map_err(explain)?;
    let answer = read(&connection, sql)?;
    let mut lines = vec![answer.columns.join(" | ")];
    lines.extend(answer.rows.iter().map(|row| row.iter().map(shown).collect::<Vec<_>>().join(" | ")));
    lines.push(match (answer.rows.len(), answer.truncated) {
        (rows, true) => format!("({rows} rows, cut off: the result is larger; narrow the query)"),
        (1, false) => "(1 row)".to_owned(),
        (rows, false) => format!("({rows} rows)"),
    });
    Ok(ToolOutput {
        text: lines.join("\n"),
        structured: json!({"columns": answer.columns, "rows": answer.rows, "truncated": answer.truncated}),
    })
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    // NOFOLLOW: whoever can put a link in the database's place should not choose what is read.
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::ZERO)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
    connection.set_limit(Limit::SQLITE_LIMIT_COLUMN, MAX_COLUMNS)?;
    connection.set_limit(Limit::SQLITE_LIMIT_EXPR_DEPTH, MAX_EXPRESSION_DEPTH)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_WORKER_THREADS, 0)?;
    connection.authorizer(Some(authorize))?;
    let started = Instant::now();
    connection.progress_handler(INSTRUCTIONS_PER_LOOK, Some(move || started.elapsed() > MAX_QUERY_TIME))?;
    Ok(connection)
}

fn authorize(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name } if !function_name.eq_ignore_ascii_case("load_extension") => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }
}

struct Answer {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    truncated: bool,
}

fn read(connection: &Connection, sql: &str) -> Result<Answer, ToolError> {
    let mut statement = connection.prepare(sql).map_err(explain)?;
    // The authorizer saw to it already; SQLite's own opinion costs nothing. An empty statement has
    // no columns.
    if !statement.readonly() || statement.column_count() == 0 {
        return Err(ToolError::Query { problem: "it is not a SELECT statement".to_owned() });
    }
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([]).map_err(explain)?;
    let mut answer = Answer { columns, rows: Vec::new(), truncated: false };
    let mut bytes = 0;
    while let Some(row) = rows.next().map_err(explain)? {
        let (values, size) = values(row, answer.columns.len()).map_err(explain)?;
        bytes += size;
        if answer.rows.len() == MAX_ROWS || bytes > MAX_RESULT_BYTES {
            answer.truncated = true;
            break;
        }
        answer.rows.push(values);
    }
    Ok(answer)
}

/// The values of a row and their size in bytes.
fn values(row: &Row<'_>, columns: usize) -> rusqlite::Result<(Vec<Value>, usize)> {
    let mut values = Vec::with_capacity(columns);
    let mut bytes = 0;
    for column in 0..columns {
        let (value, size) = match row.get_ref(column)? {
            ValueRef::Null => (Value::Null, 4),
            ValueRef::Integer(integer) => (Value::from(integer), 8),
            // An infinity is no JSON number and becomes null.
            ValueRef::Real(real) => (Value::from(real), 8),
            ValueRef::Text(text) => (Value::from(String::from_utf8_lossy(text).into_owned()), text.len()),
            ValueRef::Blob(blob) => (json!({"blob_bytes": blob.len()}), 16),
        };
        values.push(value);
        bytes += size;
    }
    Ok((values, bytes))
}

/// A value in the text of a result: a string without its quotes, others as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace(['\n', '\r'], " "),
        other => other.to_string(),
    }
}

/// SQLite's error in the words of this tool.
fn explain(error: rusqlite::Error) -> ToolError {
    let problem = match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => {
            format!("it ran longer than {} s; narrow it", MAX_QUERY_TIME.as_secs())
        }
        Some(ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly) => {
            "only SELECT statements that read the tables are answered".to_owned()
        }
        Some(ErrorCode::TooBig) => format!("a value is longer than {MAX_VALUE_BYTES} bytes"),
        _ if matches!(error, rusqlite::Error::MultipleStatement) => {
            "it holds more than one statement; send one a call".to_owned()
        }
        _ => error.to_string(),
    };
    ToolError::Query { problem }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(dir.path(), &BTreeMap::new()).unwrap();
        (dir, workspace)
    }

    fn query(workspace: &Workspace, sql: &str) -> Result<ToolOutput, ToolError> {
        workspace.call(TOOL.id, &json!({"query": sql}))
    }

    #[test]
    fn answers_with_columns_and_rows() {
        let (_dir, workspace) = workspace();
        let output = query(&workspace, "SELECT id, name FROM customers WHERE country = 'SE'").unwrap();
        assert_eq!(
            output.structured,
            json!({"columns": ["id", "name"], "rows": [[1, "Maria Lindqvist"]], "truncated": false})
        );
        assert_eq!(output.text, "id | name\n1 | Maria Lindqvist\n(1 row)");
        let kinds = query(&workspace, "SELECT NULL, 1.5, x'00ff', 'a'; -- and a comment").unwrap();
        assert_eq!(kinds.structured["rows"], json!([[null, 1.5, {"blob_bytes": 2}, "a"]]));
        let recursive = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n";
        assert_eq!(query(&workspace, recursive).unwrap().structured["rows"], json!([[15]]));
    }

    #[test]
    fn nothing_but_reading_is_possible() {
        let (dir, workspace) = workspace();
        let before = std::fs::read(workspace.database()).unwrap();
        let attach = format!("ATTACH DATABASE '{}' AS other", dir.path().join("other.sqlite").display());
        for sql in [
            "DELETE FROM customers",
            "INSERT INTO customers VALUES (9, 'x', 'x', 'x', 'email', 'x')",
            "UPDATE customers SET name = 'x' RETURNING id",
            "DROP TABLE customers",
            "CREATE TEMP TABLE t (x)",
            "PRAGMA writable_schema = 1",
            "PRAGMA table_info(customers)",
            "SELECT * FROM pragma_database_list",
            "BEGIN",
            "VACUUM INTO '/tmp/portcullis-should-not-exist.sqlite'",
            "SELECT load_extension('evil')",
            "WITH d AS (SELECT 1) DELETE FROM customers",
            "EXPLAIN DELETE FROM customers",
            "",
            "-- nothing",
            attach.as_str(),
        ] {
            let error = query(&workspace, sql).unwrap_err();
            assert!(matches!(error, ToolError::Query { .. }), "{sql}: {error}");
        }
        assert_eq!(std::fs::read(workspace.database()).unwrap(), before);
        assert!(!dir.path().join("other.sqlite").exists());
        assert!(!Path::new("/tmp/portcullis-should-not-exist.sqlite").exists());
    }

    #[test]
    fn one_statement_a_call() {
        let (_dir, workspace) = workspace();
        for sql in ["SELECT 1; SELECT 2", "SELECT 1; DELETE FROM customers"] {
            assert!(query(&workspace, sql).is_err(), "{sql}");
        }
        let error = query(&workspace, "SELECT 1; SELECT 2").unwrap_err().to_string();
        assert!(error.contains("more than one statement"), "{error}");
    }

    #[test]
    fn endless_queries_end() {
        let (_dir, workspace) = workspace();
        let started = Instant::now();
        let endless =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let error = query(&workspace, endless).unwrap_err().to_string();
        assert!(error.contains("longer than 1 s"), "{error}");
        assert!(started.elapsed() < MAX_QUERY_TIME * 10);
    }

    #[test]
    fn large_results_are_cut_and_say_so() {
        let (_dir, workspace) = workspace();
        let numbers = |n: usize, value: &str| {
            format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) SELECT {value} FROM n"
            )
        };
        let most = query(&workspace, &numbers(MAX_ROWS, "i")).unwrap().structured;
        assert_eq!((most["rows"].as_array().unwrap().len(), &most["truncated"]), (MAX_ROWS, &json!(false)));
        let more = query(&workspace, &numbers(MAX_ROWS + 1, "i")).unwrap();
        assert_eq!(more.structured["rows"].as_array().unwrap().len(), MAX_ROWS);
        assert_eq!(more.structured["truncated"], json!(true));
        assert!(more.text.ends_with("narrow the query)"));
        let wide = query(&workspace, &numbers(100, "hex(zeroblob(30000))")).unwrap().structured;
        assert_eq!((wide["rows"].as_array().unwrap().len(), &wide["truncated"]), (4, &json!(true)));
        let error = query(&workspace, "SELECT hex(zeroblob(60000))").unwrap_err().to_string();
        assert!(error.contains("a value is longer than 65536 bytes"), "{error}");
    }

    #[test]
    fn the_databases_own_words_reach_the_caller() {
        let (_dir, workspace) = workspace();
        let error = query(&workspace, "SELECT salary FROM customers").unwrap_err().to_string();
        assert!(error.contains("no such column: salary"), "{error}");
        assert!(query(&workspace, "SELECT ?1").is_err());
    }
}
