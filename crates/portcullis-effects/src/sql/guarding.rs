//! What is looked at before the parser: limits, words in which dialects differ, statements that it does not know.
//!
//! The parser builds trees that are as deep as a text nests and as its chains of operators are long (`a and b and
//! c` leans to the left), and anyone who drops such a tree recurses as deep. So both are measured on the words first.

use std::borrow::Cow;
use std::collections::BTreeSet;

use portcullis_core::bundle::SqlDialect;
use portcullis_core::effect::Verb;
use sqlparser::dialect::{Dialect, MsSqlDialect, MySqlDialect, SQLiteDialect};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer, TokenizerError};

use super::names;
use super::output::{How, Output};
use crate::limits::{NESTING_MAX, TEXT_BYTES_MAX};

/// Longest chain of words without a comma, measured down to the innermost bracket.
const CHAIN_MAX: usize = 3_000;
/// Deepest nesting of statements in statements.
const BLOCKS_MAX: usize = 12;
/// Most operations on sets and pivots in one statement at one level of brackets: these chain across commas.
const OPERATIONS_MAX: usize = 256;

/// Checks what needs no words.
pub(super) fn check_text(text: &str) -> Result<(), String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("the text is longer than {TEXT_BYTES_MAX} bytes"));
    }
    if text.contains('\0') {
        // Databases stop reading there, parsers do not.
        return Err("the text contains a null character".to_owned());
    }
    Ok(())
}

/// Whether dialects may split the text into different words.
pub(super) fn is_contested(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'\\' | b'"' | b'`' | b'#' | b'$' | b'['))
        || ["--", "/*", "//", "'''", "@"].iter().any(|mark| text.contains(mark))
}

/// Why names of the text may be others than they look, whatever the parser makes of them.
pub(super) fn doubtful(text: &str, dialect: SqlDialect) -> Option<&'static str> {
    let escaped = |pair: &[u8]| matches!(pair, [b'u' | b'U', b'&', b'"']);
    if text.as_bytes().windows(3).any(escaped) {
        return Some("a name is spelt with escapes");
    }
    // A name in brackets to one database, to another a list that is computed: `[x for x in list(ssn)]`.
    let computed = |inner: &str| {
        let inner = inner.to_ascii_lowercase();
        inner.split_once(" for ").is_some_and(|(_, rest)| rest.contains(" in "))
    };
    let contested = matches!(dialect, SqlDialect::Generic) && text.split('[').skip(1).any(computed);
    contested.then_some("what stands in brackets is a name to some databases and computed by others")
}

/// The text, and for dialects that run the content of `/*! … */` the text with it as a comment: whether it runs
/// depends on the version of the server.
pub(super) fn variants(text: &str, dialect: SqlDialect) -> Vec<Cow<'_, str>> {
    let runs = matches!(dialect, SqlDialect::Generic | SqlDialect::MySql);
    if !runs || !(text.contains("/*!") || text.contains("/*M!")) {
        return vec![Cow::Borrowed(text)];
    }
    // Same lengths, so that places stay what they are.
    vec![
        Cow::Owned(text.replace("/*M!", " /*!")),
        Cow::Owned(text.replace("/*M!", "/*  ").replace("/*!", "/* ")),
    ]
}

/// The words of a text, without white space and comments.
pub(super) fn tokens(text: &str, dialect: &dyn Dialect) -> Result<Vec<TokenWithSpan>, TokenizerError> {
    let mut tokens = Tokenizer::new(dialect, text).tokenize_with_location()?;
    let lacks_dollar_quotes =
        dialect.is::<MySqlDialect>() || dialect.is::<SQLiteDialect>() || dialect.is::<MsSqlDialect>();
    let is_dollar_quoted = |token: &TokenWithSpan| matches!(token.token, Token::DollarQuotedString(_));
    if lacks_dollar_quotes && tokens.iter().any(is_dollar_quoted) {
        // The parser knows dollar quotes in every dialect; these databases do not, and take the signs for letters.
        tokens = Tokenizer::new(dialect, &text.replace('$', "_")).tokenize_with_location()?;
    }
    // Hints to the optimiser are comments that the parser reads; they touch nothing.
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    Ok(tokens)
}

/// Whether two lists of words are the same, regardless of their places.
pub(super) fn same_words(one: &[TokenWithSpan], other: &[TokenWithSpan]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.token == other.token)
}

/// One level of brackets, while it is open.
#[derive(Default)]
struct Level {
    /// Words since the last comma.
    chain: usize,
    operations: usize,
    /// The deepest that was closed within.
    within: usize,
    deepest: usize,
}

impl Level {
    fn end_item(&mut self) {
        self.deepest = self.deepest.max(self.chain + self.within);
        self.chain = 0;
        self.within = 0;
    }
}

/// Statements in statements: the parser goes deeper with each, and its stack grows a lot.
#[derive(Default)]
struct Blocks {
    statements: usize,
    /// Words that make a statement out of the next: `explain`. They end with it.
    leading: usize,
    cases: usize,
    /// Whether a statement may begin here.
    at_start: bool,
}

impl Blocks {
    fn count(&mut self, token: &Token, next: Option<&Token>) -> Result<(), String> {
        let at_start = std::mem::replace(&mut self.at_start, *token == Token::SemiColon);
        let Token::Word(word) = token else {
            if *token == Token::SemiColon {
                self.leading = 0;
            }
            return Ok(());
        };
        let next = match next {
            Some(Token::Word(word)) => Some(word.keyword),
            _ => None,
        };
        match word.keyword {
            Keyword::CASE if at_start => self.statements += 1,
            Keyword::CASE => self.cases += 1,
            Keyword::BEGIN | Keyword::WHILE => self.statements += 1,
            // `if exists` asks nothing of what follows.
            // `drop table if exists` and `if(a, b, c)` hold no statement; only what stands where one may begin does.
            Keyword::IF | Keyword::ELSEIF if at_start => self.statements += 1,
            Keyword::EXPLAIN | Keyword::DESCRIBE | Keyword::PREPARE => self.leading += 1,
            Keyword::DESC if matches!(next, Some(Keyword::EXPLAIN | Keyword::DESC | Keyword::DESCRIBE)) => {
                self.leading += 1;
            }
            Keyword::END if self.cases > 0 => self.cases -= 1,
            Keyword::END | Keyword::COMMIT | Keyword::ROLLBACK => {
                self.statements = self.statements.saturating_sub(1);
            }
            _ => {}
        }
        self.at_start = matches!(word.keyword, Keyword::BEGIN | Keyword::THEN | Keyword::ELSE);
        if self.statements + self.leading > BLOCKS_MAX {
            return Err(format!("statements are nested deeper than {BLOCKS_MAX} levels"));
        }
        if self.cases > NESTING_MAX {
            return Err(format!("`case` is nested deeper than {NESTING_MAX} levels"));
        }
        Ok(())
    }
}

/// Checks how deep the words nest and how long they chain.
pub(super) fn check_tokens(tokens: &[TokenWithSpan]) -> Result<(), String> {
    let mut levels = vec![Level::default()];
    let mut blocks = Blocks { at_start: true, ..Blocks::default() };
    let mut words = tokens.iter().map(|token| &token.token).peekable();
    while let Some(word) = words.next() {
        match word {
            Token::LParen | Token::LBracket | Token::LBrace => {
                levels.push(Level::default());
                if levels.len() > NESTING_MAX {
                    return Err(format!("brackets are nested deeper than {NESTING_MAX} levels"));
                }
            }
            Token::RParen | Token::RBracket | Token::RBrace if levels.len() > 1 => {
                if let (Some(mut closed), Some(level)) = (levels.pop(), levels.last_mut()) {
                    closed.end_item();
                    level.within = level.within.max(closed.deepest + closed.operations);
                    count(level, word)?;
                }
            }
            other => {
                blocks.count(other, words.peek().copied())?;
                if let Some(level) = levels.last_mut() {
                    count(level, other)?;
                }
            }
        }
    }
    Ok(())
}

fn count(level: &mut Level, word: &Token) -> Result<(), String> {
    match word {
        Token::Comma => level.end_item(),
        Token::SemiColon => {
            level.end_item();
            level.operations = 0;
        }
        Token::Word(word)
            if matches!(
                word.keyword,
                Keyword::UNION
                    | Keyword::EXCEPT
                    | Keyword::INTERSECT
                    | Keyword::MINUS
                    | Keyword::PIVOT
                    | Keyword::UNPIVOT
                    | Keyword::MATCH_RECOGNIZE
            ) =>
        {
            level.operations += 1;
            level.chain += 1;
        }
        _ => level.chain += 1,
    }
    if level.operations > OPERATIONS_MAX {
        return Err(format!("more than {OPERATIONS_MAX} operations on sets follow one another"));
    }
    if level.chain + level.within > CHAIN_MAX {
        return Err(format!("more than {CHAIN_MAX} words follow one another without a comma"));
    }
    Ok(())
}

/// The statements of a text that does not parse as a whole: the parts between semicolons outside of brackets.
pub(super) fn pieces(tokens: Vec<TokenWithSpan>) -> Vec<Vec<TokenWithSpan>> {
    let mut pieces = vec![Vec::new()];
    let mut depth = 0_usize;
    for token in tokens {
        match token.token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
            Token::SemiColon if depth == 0 => {
                pieces.push(Vec::new());
                continue;
            }
            Token::EOF => continue,
            _ => {}
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(token);
        }
    }
    pieces
}

fn is_word(token: Option<&TokenWithSpan>, word: &str) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(found)) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

fn string(token: Option<&TokenWithSpan>) -> Option<(&str, Span)> {
    let token = token?;
    match &token.token {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Some((text, token.span)),
        // A dialect of other quotes.
        Token::Word(word) if word.quote_style == Some('"') => Some((&word.value, token.span)),
        _ => None,
    }
}

/// Reads statements and clauses that the parser does not know and returns what it may still read: `load data infile
/// … into table`, `select … into outfile`, `vacuum into`.
pub(super) fn read_by_hand(piece: Vec<TokenWithSpan>, output: &mut Output<'_, '_, '_>) -> Vec<TokenWithSpan> {
    if is_word(piece.first(), "load") && (is_word(piece.get(1), "data") || is_word(piece.get(1), "xml")) {
        return load_data(piece, output);
    }
    if is_word(piece.first(), "vacuum")
        && is_word(piece.get(piece.len().saturating_sub(2)), "into")
        && let Some((path, span)) = string(piece.last())
    {
        let range = output.range(span);
        output.path(Verb::Write, path, range);
        return Vec::new();
    }
    if is_word(piece.first(), "pragma") && piece.iter().all(|token| is_plain(&token.token)) {
        // `pragma name(word)`, which the parser takes with constants alone.
        if let Some(TokenWithSpan { token: Token::Word(name), span }) = piece.get(1) {
            let last = piece.iter().skip_while(|token| token.token != Token::Period).nth(1);
            let (name, span) = match last {
                Some(TokenWithSpan { token: Token::Word(last), span }) => (last, span),
                _ => (name, span),
            };
            super::ddl::pragma(&name.value.to_lowercase(), *span, output);
            return Vec::new();
        }
    }
    into_file(piece, output)
}

const fn is_plain(token: &Token) -> bool {
    matches!(token, Token::Word(_) | Token::Period | Token::LParen | Token::RParen | Token::Eq)
}

fn load_data(piece: Vec<TokenWithSpan>, output: &mut Output<'_, '_, '_>) -> Vec<TokenWithSpan> {
    let file = piece.iter().position(|token| is_word(Some(token), "infile"));
    let table =
        piece.windows(2).position(|pair| is_word(pair.first(), "into") && is_word(pair.last(), "table"));
    // A `set` clause computes values, from queries as well: left to be unknown.
    let computes = piece.iter().any(|token| is_word(Some(token), "select"));
    let (Some(file), Some(table), false) = (file, table, computes) else { return piece };
    let Some((path, span)) = string(piece.get(file + 1)) else { return piece };
    let mut parts = Vec::new();
    let mut span_of_table = span;
    for token in piece.get(table + 2..).unwrap_or_default() {
        match &token.token {
            Token::Word(word) if parts.is_empty() || span_of_table == Span::empty() => {
                parts.push(word.value.to_lowercase());
                span_of_table = token.span;
            }
            Token::Period => span_of_table = Span::empty(),
            _ => break,
        }
    }
    let range = output.range(span);
    output.path(Verb::Read, path, range);
    let replaces = piece.iter().any(|token| is_word(Some(token), "replace"));
    for table in names::tables(output.surroundings.settings, &parts) {
        output.table(Verb::Write, &table, How::default(), span_of_table);
        if replaces {
            output.table(Verb::Delete, &table, How::default(), span_of_table);
        }
        output.all_columns(Verb::Write, &table, span_of_table);
    }
    Vec::new()
}

/// Takes `into outfile 'x'` with its options out of a query.
fn into_file(piece: Vec<TokenWithSpan>, output: &mut Output<'_, '_, '_>) -> Vec<TokenWithSpan> {
    const OPTIONS: [&str; 14] = [
        "fields",
        "columns",
        "lines",
        "terminated",
        "enclosed",
        "escaped",
        "starting",
        "optionally",
        "by",
        "character",
        "set",
        "utf8",
        "utf8mb4",
        "latin1",
    ];
    let is_file = |token: Option<&TokenWithSpan>| is_word(token, "outfile") || is_word(token, "dumpfile");
    let Some(at) = piece.windows(2).position(|pair| is_word(pair.first(), "into") && is_file(pair.last()))
    else {
        return piece;
    };
    let Some((path, span)) = string(piece.get(at + 2)) else { return piece };
    let range = output.range(span);
    output.path(Verb::Write, path, range);
    let rest = piece.get(at + 3..).unwrap_or_default();
    let options = BTreeSet::from(OPTIONS);
    let skipped = rest
        .iter()
        .take_while(|token| match &token.token {
            Token::Word(word) => options.contains(word.value.to_lowercase().as_str()),
            Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) => true,
            _ => false,
        })
        .count();
    let before = piece.iter().take(at);
    before.chain(rest.iter().skip(skipped)).cloned().collect()
}
