//! SQL: which tables and columns a text reads, writes and deletes, and what else it reaches.
//!
//! A text is split into tokens and checked against the limits ([`guarding`]), parsed by `sqlparser` in the
//! dialect of the bundle, and walked ([`reading`]) with the scopes ([`scopes`]) that say to which table a column
//! belongs.
//!
//! | effect | of |
//! |---|---|
//! | read table, read column | every table that a query touches and every column that it mentions anywhere: a column that only filters tells its content as well |
//! | write table, write column | `insert`, `update`, `merge`, `create`, `copy … from` |
//! | delete table | `delete`, `truncate`, `drop`; *unbounded* without a condition that limits it, *force* with `cascade` |
//! | configure table, configure setting | `alter`, `grant`, `set`, `pragma`, accounts, functions, triggers |
//! | read path, write path | `copy`, `load data`, `into outfile`, `attach`, functions that open files |
//! | execute unknown | what cannot be read: other languages, procedures, functions that are not known |
//!
//! Names are lower case whatever their quotes say: databases disagree about which case they keep, and two
//! spellings of one table must not be two tables. The schemas `public`, `dbo` and `main` are left out of names.
//! Where a column could belong to several tables it counts for each of them.
//!
//! **Dialects.** One text can mean different things to two databases: `'a\' or 1=1 -- '` is one string to MySQL
//! and an open condition to PostgreSQL. Where the bundle names no dialect, the text is read by every dialect that
//! splits it into other words, and what any of them finds counts.

mod aliases;
mod conditions;
mod ddl;
mod functions;
mod guarding;
mod modifiers;
mod names;
mod output;
mod pure;
mod reading;
mod scopes;
mod statements;

use std::collections::BTreeSet;

use portcullis_core::bundle::SqlDialect;
use sqlparser::ast::Statement;
use sqlparser::dialect::{
    BigQueryDialect, Dialect, DuckDbDialect, GenericDialect, MsSqlDialect, MySqlDialect, PostgreSqlDialect,
    SQLiteDialect, SnowflakeDialect,
};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use self::output::{Output, Places};
use crate::{Sink, Surroundings};

/// Deepest recursion of the parser: statements in statements, queries and expressions together.
pub const RECURSION_MAX: usize = 200;

/// Reads `text` in the dialect of the bundle and adds what it would touch to `sink`.
pub fn read(text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    read_dialect(text, surroundings.settings.dialect, surroundings, sink);
}

/// Reads `text` in a dialect and adds what it would touch to `sink`.
pub fn read_dialect(text: &str, dialect: SqlDialect, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    if let Err(why) = guarding::check_text(text) {
        sink.unknown("sql", why, 0..text.len());
        return;
    }
    let places = Places::of(text);
    let mut output = Output::new(sink, surroundings, &places);
    let readings = readings(text, dialect);
    for (dialect, statements) in readings.parsed.iter().chain(&readings.begun) {
        for statement in statements {
            reading::read(statement, *dialect, &mut output);
        }
    }
    if let Some((dialect, tokens)) = readings.unparsed {
        read_pieces(dialect, tokens, &mut output);
    }
    for why in readings.beyond {
        output.unknown("sql", why, 0..text.len());
    }
}

/// What the dialects make of a text.
#[derive(Default)]
struct Readings {
    /// Those that read it to the end.
    parsed: Vec<(SqlDialect, Vec<Statement>)>,
    /// The first statements, to databases that run one before they look at the next, where a later one is an error.
    begun: Vec<(SqlDialect, Vec<Statement>)>,
    /// The words of the first dialect, when none reads the text to the end.
    unparsed: Option<(SqlDialect, Vec<TokenWithSpan>)>,
    /// Why it cannot be read at all, or not in some dialect.
    beyond: BTreeSet<String>,
}

const DIALECTS: [SqlDialect; 8] = [
    SqlDialect::Generic,
    SqlDialect::Postgres,
    SqlDialect::MySql,
    SqlDialect::Sqlite,
    SqlDialect::MsSql,
    SqlDialect::BigQuery,
    SqlDialect::Snowflake,
    SqlDialect::DuckDb,
];

fn grammar(dialect: SqlDialect) -> &'static dyn Dialect {
    match dialect {
        SqlDialect::Generic => &GenericDialect {},
        SqlDialect::Postgres => &PostgreSqlDialect {},
        SqlDialect::MySql => &MySqlDialect {},
        SqlDialect::Sqlite => &SQLiteDialect {},
        SqlDialect::MsSql => &MsSqlDialect {},
        SqlDialect::BigQuery => &BigQueryDialect,
        SqlDialect::Snowflake => &SnowflakeDialect,
        SqlDialect::DuckDb => &DuckDbDialect {},
    }
}

/// Reads the text in the dialect; in all that split it into other words where none is named, or where the named
/// one does not understand it.
fn readings(text: &str, dialect: SqlDialect) -> Readings {
    let mut readings = Readings::default();
    let mut split = Vec::new();
    let main = [dialect];
    let others = DIALECTS.into_iter().filter(|other| *other != dialect).collect::<Vec<_>>();
    let contested = dialect == SqlDialect::Generic && guarding::is_contested(text);
    try_dialects(text, &main, &mut split, &mut readings);
    if contested || (readings.parsed.is_empty() && readings.beyond.is_empty()) {
        let others = if dialect == SqlDialect::Generic { others.as_slice() } else { &[SqlDialect::Generic] };
        try_dialects(text, others, &mut split, &mut readings);
    }
    readings.beyond.extend(guarding::doubtful(text, dialect).map(str::to_owned));
    if readings.parsed.is_empty() && readings.beyond.is_empty() {
        readings.unparsed = split.into_iter().next();
        if readings.unparsed.is_none() {
            readings.beyond.insert("a quote or comment is not closed".to_owned());
        }
    }
    readings
}

fn try_dialects(
    text: &str,
    dialects: &[SqlDialect],
    split: &mut Vec<(SqlDialect, Vec<TokenWithSpan>)>,
    readings: &mut Readings,
) {
    for &dialect in dialects {
        for variant in guarding::variants(text, dialect) {
            // Text that does not even split into words is an error to a database of that dialect.
            let Ok(tokens) = guarding::tokens(&variant, grammar(dialect)) else { continue };
            let same = |(other, words): &(SqlDialect, Vec<TokenWithSpan>)| {
                let parsed = readings.parsed.iter().any(|(parsed, _)| parsed == other);
                parsed && guarding::same_words(words, &tokens)
            };
            if split.iter().any(same) {
                continue;
            }
            if let Err(why) = guarding::check_tokens(&tokens) {
                readings.beyond.insert(why);
                continue;
            }
            match parse(dialect, tokens.clone()) {
                Some(statements) => readings.parsed.push((dialect, statements)),
                None if matches!(dialect, SqlDialect::MySql | SqlDialect::Sqlite) => {
                    let pieces = guarding::pieces(tokens.clone());
                    let begun = pieces.into_iter().map_while(|piece| parse(dialect, piece)).flatten();
                    readings.begun.push((dialect, begun.collect()));
                }
                None => {}
            }
            split.push((dialect, tokens));
        }
    }
}

/// The statements of a text; of one with modifiers before its names ([`modifiers`]), as they are without them, and as
/// they stand there where the dialect leaves both open.
fn parse(dialect: SqlDialect, tokens: Vec<TokenWithSpan>) -> Option<Vec<Statement>> {
    let Some(without) = modifiers::without(&tokens, dialect) else { return parse_words(dialect, tokens) };
    let modified = parse_words(dialect, without.tokens);
    if modified.is_some() && without.certain {
        return modified;
    }
    let written = parse_words(dialect, tokens);
    match (modified, written) {
        (Some(mut modified), Some(written)) => {
            modified.extend(written);
            Some(modified)
        }
        (modified, written) => modified.or(written),
    }
}

fn parse_words(dialect: SqlDialect, tokens: Vec<TokenWithSpan>) -> Option<Vec<Statement>> {
    let mut parser =
        Parser::new(grammar(dialect)).with_recursion_limit(RECURSION_MAX).with_tokens_with_locations(tokens);
    let statements = parser.parse_statements().ok()?;
    // A stray `end` stops the parser without an error.
    (parser.peek_token_ref().token == Token::EOF).then_some(statements)
}

/// Reads what it can of a text that no dialect reads as a whole, statement by statement.
fn read_pieces(dialect: SqlDialect, tokens: Vec<TokenWithSpan>, output: &mut Output<'_, '_, '_>) {
    for piece in guarding::pieces(tokens) {
        let piece = guarding::read_by_hand(piece, output);
        if piece.iter().all(|token| matches!(token.token, Token::Whitespace(_) | Token::EOF)) {
            continue;
        }
        let found = std::iter::once(dialect)
            .chain(DIALECTS)
            .find_map(|dialect| Some((dialect, parse(dialect, piece.clone())?)));
        match found {
            Some((dialect, statements)) => {
                for statement in &statements {
                    reading::read(statement, dialect, output);
                }
            }
            None => {
                let range = output.range_of(&piece);
                output.unknown("sql", "the statement does not parse", range);
            }
        }
    }
}
