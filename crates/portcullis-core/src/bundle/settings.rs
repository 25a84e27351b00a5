//! What a bundle says about effects and about access.

use std::collections::{BTreeMap, BTreeSet};

use super::activities::Activities;
use crate::effect::AttributeType;
use crate::verdict::Verdict;

/// How arguments are read for effects: `[effects]` of `portcullis.toml`, `tables/`, `functions/`, `activities/`.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectSettings {
    /// The verdict on SQL and shell text that cannot be read.
    pub unknown: Verdict,
    /// The verdict on agent code that cannot be read.
    pub unknown_code: Verdict,
    /// Command lines that cannot be read run contained, where they can; elsewhere the verdict is `unknown`.
    pub contain_unknown: bool,
    /// The same for command lines with agent code in them, and `unknown_code`.
    pub contain_unknown_code: bool,
    /// The workspace of runs whose surface names none: an absolute path.
    pub workspace: Option<String>,
    /// The home folder of runs whose surface names none: what `~` means.
    pub home: Option<String>,
    /// Patterns of paths that hold credentials, besides the built-in ones.
    pub secrets: Vec<String>,
    /// The dialect of SQL where no tool says otherwise.
    pub dialect: SqlDialect,
    /// Known tables by name, lower case.
    pub tables: BTreeMap<String, TableColumns>,
    /// Functions that agent code may call, by name.
    pub functions: BTreeMap<String, FunctionRole>,
    /// What people do, for arguments that hold a task in plain language.
    pub activities: Activities,
}

impl Default for EffectSettings {
    fn default() -> Self {
        Self {
            unknown: Verdict::Review,
            unknown_code: Verdict::Deny,
            contain_unknown: false,
            contain_unknown_code: false,
            workspace: None,
            home: None,
            secrets: Vec::new(),
            dialect: SqlDialect::default(),
            tables: BTreeMap::new(),
            functions: BTreeMap::new(),
            activities: Activities::default(),
        }
    }
}

/// A dialect of SQL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SqlDialect {
    /// What most databases understand.
    #[default]
    Generic,
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    MySql,
    /// SQLite.
    Sqlite,
    /// Microsoft SQL Server.
    MsSql,
    /// BigQuery.
    BigQuery,
    /// Snowflake.
    Snowflake,
    /// DuckDB.
    DuckDb,
}

/// The columns of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableColumns {
    /// Their names, lower case.
    pub columns: BTreeSet<String>,
}

/// What a function does that agent code calls: `functions/*.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionRole {
    /// Returns a table: the first argument is its name.
    LoadTable,
    /// Returns some rows of a table: the first argument is a table, the second a condition such as
    /// `column=value||other>3`.
    FilterTable,
    /// Returns values of a column: the first argument is a table, the second `column` or `column, aggregate`.
    GetValue,
    /// Runs SQL: the first argument is the text.
    RunSql,
    /// Calls the tool of that name; its arguments are the tool's in the order of the schema.
    CallTool(String),
    /// Touches nothing.
    Pure,
}

/// Who may do what: `access/*.cedar` and `[access]` of `portcullis.toml`. The text only: it is compiled by a
/// [`Compiler`](super::Compiler).
#[derive(Debug, Clone, PartialEq)]
pub struct AccessSettings {
    /// The verdict on what no policy permits or forbids. *Allow* means that policies only forbid.
    pub default: Verdict,
    /// Attributes of principals that policies may use.
    pub attributes: BTreeMap<String, AttributeType>,
    /// Other names of roles: from the other name to the one in policies.
    pub role_aliases: BTreeMap<String, String>,
    /// The policies by path.
    pub files: BTreeMap<String, String>,
}

impl Default for AccessSettings {
    fn default() -> Self {
        Self {
            default: Verdict::Allow,
            attributes: BTreeMap::new(),
            role_aliases: BTreeMap::new(),
            files: BTreeMap::new(),
        }
    }
}
