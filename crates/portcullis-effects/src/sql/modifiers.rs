//! Words that stand before a name and belong to the statement: `from only t`, `update low_priority ignore t`,
//! `select sql_no_cache c`.
//!
//! The parser knows few of them. Where it does not, it takes the modifier for the name and the name for its alias, so
//! that `only` would be read instead of `t`. The words are therefore taken out before the text is parsed. Where the
//! dialect leaves open whether they are modifiers or names, the text is read both ways.

use portcullis_core::bundle::SqlDialect;
use sqlparser::keywords::{Keyword, RESERVED_FOR_TABLE_ALIAS};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What a modifier stands before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The name of a table, wherever one stands.
    Table,
    /// The table of a statement that changes rows, or the `from` and `into` before it.
    Target,
    /// The list of what is selected.
    Projection,
    /// An expression: an operator that is written as a word.
    Expression,
}

/// A word that some database reads as a modifier.
struct Modifier {
    word: &'static str,
    place: Place,
    /// Dialects in which the word can be nothing else at that place.
    certain: &'static [SqlDialect],
}

const fn modifier(word: &'static str, place: Place, certain: &'static [SqlDialect]) -> Modifier {
    Modifier { word, place, certain }
}

const POSTGRES: &[SqlDialect] = &[SqlDialect::Postgres, SqlDialect::DuckDb];
const MYSQL: &[SqlDialect] = &[SqlDialect::MySql];

/// From the manuals of the dialects, and of Oracle, Informix, Firebird, Teradata, Spark and Flink, whose texts are read
/// where no dialect is named.
const MODIFIERS: [Modifier; 24] = [
    modifier("only", Place::Table, POSTGRES),
    modifier("ignore", Place::Target, MYSQL),
    modifier("low_priority", Place::Target, MYSQL),
    modifier("high_priority", Place::Target, MYSQL),
    modifier("delayed", Place::Target, MYSQL),
    modifier("quick", Place::Target, MYSQL),
    modifier("history", Place::Target, &[]),
    modifier("outer", Place::Table, &[]),
    modifier("stream", Place::Table, &[]),
    modifier("high_priority", Place::Projection, MYSQL),
    modifier("straight_join", Place::Projection, MYSQL),
    modifier("sql_small_result", Place::Projection, MYSQL),
    modifier("sql_big_result", Place::Projection, MYSQL),
    modifier("sql_buffer_result", Place::Projection, MYSQL),
    modifier("sql_cache", Place::Projection, MYSQL),
    modifier("sql_no_cache", Place::Projection, MYSQL),
    modifier("sql_calc_found_rows", Place::Projection, MYSQL),
    modifier("distinctrow", Place::Projection, MYSQL),
    modifier("unique", Place::Projection, &[]),
    modifier("normalize", Place::Projection, &[]),
    modifier("stream", Place::Projection, &[]),
    modifier("binary", Place::Expression, MYSQL),
    modifier("connect_by_root", Place::Expression, &[SqlDialect::Snowflake]),
    modifier("prior", Place::Expression, &[SqlDialect::Snowflake]),
];

/// A text without its modifiers.
#[derive(Debug)]
pub(super) struct Without {
    pub(super) tokens: Vec<TokenWithSpan>,
    /// Whether the dialect reads the words as modifiers and in no other way.
    pub(super) certain: bool,
}

/// The text without what may be modifiers, or `None` if it has none.
pub(super) fn without(tokens: &[TokenWithSpan], dialect: SqlDialect) -> Option<Without> {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut certain = true;
    // Set after a modifier: another may follow.
    let mut after: Option<Place> = None;
    for (at, token) in tokens.iter().enumerate() {
        let before = kept.last().map(|token| &token.token);
        let next = tokens.get(at + 1).map(|token| &token.token);
        let found = found(&token.token, before, next, after);
        match found {
            Some(modifier) => {
                certain &= modifier.certain.contains(&dialect);
                after = Some(modifier.place);
            }
            None => {
                after = None;
                kept.push(token.clone());
            }
        }
    }
    (kept.len() < tokens.len()).then_some(Without { tokens: kept, certain })
}

/// The modifier that a word is, by the words around it.
fn found(
    token: &Token,
    before: Option<&Token>,
    next: Option<&Token>,
    after: Option<Place>,
) -> Option<&'static Modifier> {
    let Token::Word(word) = token else { return None };
    if word.quote_style.is_some() {
        return None;
    }
    let stands = |place: Place| {
        (after == Some(place) || may_precede(place, before)) && may_follow(place, before, next)
    };
    MODIFIERS.iter().find(|modifier| word.value.eq_ignore_ascii_case(modifier.word) && stands(modifier.place))
}

/// Whether something of the kind may begin after this word.
fn may_precede(place: Place, before: Option<&Token>) -> bool {
    let keyword = match before {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        Some(Token::Comma | Token::LParen) => return matches!(place, Place::Table | Place::Expression),
        Some(Token::Period | Token::Word(_) | Token::RParen) | None => return false,
        Some(_) => return place == Place::Expression,
    };
    match place {
        Place::Table => matches!(
            keyword,
            Keyword::FROM
                | Keyword::JOIN
                | Keyword::STRAIGHT_JOIN
                | Keyword::APPLY
                | Keyword::UPDATE
                | Keyword::DELETE
                | Keyword::INTO
                | Keyword::USING
                | Keyword::TABLE
                | Keyword::MERGE
                | Keyword::TRUNCATE
                | Keyword::LOCK
                | Keyword::EXISTS
        ),
        Place::Target => {
            matches!(keyword, Keyword::UPDATE | Keyword::DELETE | Keyword::INSERT | Keyword::REPLACE)
        }
        Place::Projection => {
            matches!(keyword, Keyword::SELECT | Keyword::DISTINCT | Keyword::ALL)
        }
        Place::Expression => matches!(
            keyword,
            Keyword::SELECT
                | Keyword::DISTINCT
                | Keyword::ALL
                | Keyword::WHERE
                | Keyword::HAVING
                | Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::BY
                | Keyword::ON
                | Keyword::WITH
                | Keyword::WHEN
                | Keyword::THEN
                | Keyword::ELSE
                | Keyword::CASE
                | Keyword::BETWEEN
                | Keyword::LIKE
                | Keyword::RETURNING
        ),
    }
}

/// Whether what follows can be what the modifier stands before. Else the word is a name itself: `update ignore set`.
fn may_follow(place: Place, before: Option<&Token>, next: Option<&Token>) -> bool {
    let is = |token: Option<&Token>, keyword: Keyword| matches!(token, Some(Token::Word(word)) if word.quote_style.is_none() && word.keyword == keyword);
    match next {
        Some(Token::Word(word)) if word.quote_style.is_some() => true,
        // `delete quick from t`, `insert delayed into t`.
        Some(Token::Word(word)) if word.keyword == Keyword::FROM => {
            place == Place::Target && is(before, Keyword::DELETE)
        }
        Some(Token::Word(word)) if word.keyword == Keyword::INTO => {
            place == Place::Target && (is(before, Keyword::INSERT) || is(before, Keyword::REPLACE))
        }
        Some(Token::Word(word)) => {
            !matches!(word.keyword, Keyword::AS | Keyword::SET | Keyword::IS | Keyword::IN | Keyword::VALUES)
                && (!matches!(place, Place::Table | Place::Target)
                    || !RESERVED_FOR_TABLE_ALIAS.contains(&word.keyword)
                    || word.keyword == Keyword::OUTER)
        }
        Some(Token::LParen) => place != Place::Expression,
        Some(Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) | Token::Mul) => true,
        Some(_) | None => false,
    }
}
