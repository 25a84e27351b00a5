//! What holds of reading SQL whatever the text: it ends, within the stack of a small thread, and says what it could
//! not read.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use portcullis_core::bundle::{EffectSettings, SqlDialect, TableColumns};
use portcullis_core::effect::{Effects, ResourceKind, Verb};
use portcullis_effects::{Sink, Surroundings, sql};
use proptest::prelude::*;

use crate::cpu_time;

fn settings(dialect: SqlDialect) -> EffectSettings {
    let columns = ["id", "name", "ssn"].map(str::to_owned).into();
    EffectSettings {
        dialect,
        tables: [("patients".to_owned(), TableColumns { columns })].into(),
        ..EffectSettings::default()
    }
}

fn effects(text: &str, dialect: SqlDialect) -> Effects {
    let settings = settings(dialect);
    let surroundings = Surroundings { settings: &settings, workspace: None, home: None, directory: None };
    let mut effects = Effects::none();
    sql::read(text, &surroundings, &mut Sink::new(&mut effects, "/arguments/text"));
    for effect in effects.iter() {
        let span = effect.span.as_ref().unwrap();
        assert!(text.get(span.start..span.end).is_some(), "{text:?}: {effect} lies outside of the text");
    }
    effects
}

fn is_unknown(effects: &Effects) -> bool {
    effects.iter().any(|effect| effect.resource.kind == ResourceKind::Unknown)
}

/// On a thread with the two megabytes that servers give theirs.
fn on_small_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap()
}

/// Texts that nest or chain as deep as `n` says.
fn deep(n: usize) -> Vec<(&'static str, String)> {
    let wrap = |open: &str, inner: &str, close: &str| format!("{}{inner}{}", open.repeat(n), close.repeat(n));
    vec![
        ("brackets", format!("select {}", wrap("(", "1", ")"))),
        ("brackets around a condition", format!("select 1 from t where {}", wrap("(", "a = 1", ")"))),
        ("brackets around a table", format!("select * from {}", wrap("(", "t", ")"))),
        ("brackets around a query", wrap("(", "select 1", ")")),
        ("derived tables", format!("{}t{}", "select * from (".repeat(n), ") d".repeat(n))),
        ("scalar queries", wrap("select (", "1", ")")),
        ("calls", format!("select {}", wrap("f(", "1", ")"))),
        ("arrays", format!("select {}", wrap("[", "1", "]"))),
        ("cases", format!("select {}", wrap("case when ", "1", " then 1 end"))),
        ("not", format!("select {}1", "not ".repeat(n))),
        ("minus", format!("select {}1", "- ".repeat(n))),
        ("and", format!("select 1{}", " and 1".repeat(n))),
        ("or with brackets at the left", format!("delete from t where {}", wrap("(", "1", " or a = 1)"))),
        ("sums with brackets at the left", format!("select {}", wrap("(", "1", "+1+1+1+1+1+1)"))),
        ("union", format!("select 1{}", " union select 1".repeat(n))),
        ("union of lists", format!("select 1, 2{}", " union select 1, 2".repeat(n))),
        ("joins", format!("select * from t{}", " join t on true".repeat(n))),
        ("casts", format!("select 1{}", "::int".repeat(n))),
        ("types", format!("select cast(1 as {}int{})", "array<".repeat(n), ">".repeat(n))),
        ("fields", format!("select a{}", ".a".repeat(n))),
        ("subscripts", format!("select a{}", "[1]".repeat(n))),
        ("arrows", format!("select a{}", "->'a'".repeat(n))),
        ("blocks", format!("{}select 1;{}", "begin ".repeat(n), " end;".repeat(n))),
        ("ifs", format!("{}select 1;{}", "if 1 = 1 then ".repeat(n), " end if;".repeat(n))),
        ("explain", format!("{}select 1", "explain ".repeat(n))),
        ("with", format!("{}1{}", "with a as (select ".repeat(n), ") select 1".repeat(n))),
        ("pivots", format!("select * from t{}", " pivot (sum(a) for b in (1))".repeat(n))),
        ("lambdas", format!("select f({}1)", "x -> ".repeat(n))),
        ("comments", wrap("/*", " ", "*/")),
        ("executable comments", wrap("/*! select 1 ", " ", "*/")),
        ("strings run", format!("execute immediate '{}", "execute immediate ''".repeat(n))),
        ("statements", "select 1;".repeat(n)),
        ("between", format!("select 1{}", " between 1 and 1".repeat(n))),
        ("prior", format!("select 1 from t connect by {}a = 1", "prior ".repeat(n))),
        ("intervals", format!("select {}1", "interval ".repeat(n))),
        ("collations", format!("select a{}", " collate b".repeat(n))),
        ("lists", format!("select 1 in {}", wrap("(1, ", "1", ")"))),
        ("braces", format!("select {}", wrap("{'a': ", "1", "}"))),
    ]
}

#[test]
fn no_depth_overflows_the_stack_or_takes_long() {
    for n in [11, 62, 2_900, 20_000] {
        for (what, text) in deep(n) {
            for dialect in [SqlDialect::Generic, SqlDialect::MsSql, SqlDialect::BigQuery] {
                let text = text.clone();
                let (_, took) = on_small_stack(move || cpu_time::of(|| effects(&text, dialect)));
                assert!(took < Duration::from_secs(20), "{n} {what} in {dialect:?}: {took:?}");
            }
        }
    }
}

#[test]
fn what_is_beyond_a_limit_is_unknown() {
    let long = format!("select '{}'", "x".repeat(300 << 10));
    let texts = [long, format!("select {}1{}", "(".repeat(80), ")".repeat(80)), "select 1\0".to_owned()];
    for text in texts {
        let effects = effects(&text, SqlDialect::Generic);
        assert_eq!(effects.len(), 1, "{text:.40}");
        assert!(is_unknown(&effects), "{text:.40}");
    }
    let mut wide = "select 1 from t0".to_owned();
    (1..400).for_each(|n| write!(wide, ", t{n}").unwrap());
    assert!(is_unknown(&effects(&wide, SqlDialect::Generic)));
}

#[test]
fn effects_lie_where_their_names_stand() {
    let text = "select 'äöü',\n  \"Näme\", ssn\nfrom patients";
    let settings = settings(SqlDialect::Postgres);
    let surroundings = Surroundings { settings: &settings, workspace: None, home: None, directory: None };
    let mut effects = Effects::none();
    sql::read(text, &surroundings, &mut Sink::new(&mut effects, ""));
    let place = |name: &str| {
        let effect = effects.iter().find(|effect| effect.resource.name == name).unwrap();
        let span = effect.span.as_ref().unwrap();
        text.get(span.start..span.end).unwrap()
    };
    assert_eq!(place("patients.ssn"), "ssn");
}

/// Whatever word stands before a name of the catalogue, the name is not lost: either it is read, or the text is unknown.
#[test]
fn no_word_before_a_name_hides_it() {
    let forms = [
        ("select ssn from WORD patients", "patients"),
        ("select ssn from a, WORD patients", "patients"),
        ("select 1 from a join WORD patients on true", "patients"),
        ("select ssn from (WORD patients)", "patients"),
        ("select * from x left WORD join patients on true", "patients"),
        ("update WORD patients set ssn = 1", "patients"),
        ("delete from WORD patients", "patients"),
        ("delete WORD from patients", "patients"),
        ("insert into WORD patients values (1)", "patients"),
        ("insert WORD into patients values (1)", "patients"),
        ("insert WORD patients values (1)", "patients"),
        ("replace WORD into patients values (1)", "patients"),
        ("truncate WORD patients", "patients"),
        ("alter table WORD patients drop column ssn", "patients"),
        ("merge into WORD patients using b on true when matched then delete", "patients"),
        ("copy WORD patients to 'x'", "patients"),
        ("select WORD ssn from patients", "patients.ssn"),
        ("select id, WORD ssn from patients", "patients.ssn"),
        ("select id from patients where WORD ssn = 1", "patients.ssn"),
        ("select patients.ssn from patients WORD", "patients.ssn"),
    ];
    // Values, a column of the table itself, and words that end the list: what follows is an alias and nothing else.
    let values = [
        "CURRENT_CATALOG",
        "CURRENT_DATE",
        "CURRENT_TIME",
        "CURRENT_TIMESTAMP",
        "CURRENT_USER",
        "END-EXEC",
        "FALSE",
        "ID",
        "INTO",
        "NAME",
        "NULL",
        "SESSION_USER",
        "TRUE",
        "USER",
        "SELECT",
    ];
    for (form, name) in forms {
        for word in sqlparser::keywords::ALL_KEYWORDS.iter().filter(|word| !values.contains(word)) {
            let text = form.replace("WORD", word);
            let found = effects(&text, SqlDialect::Generic);
            let reached = found.iter().any(|effect| effect.resource.name == name);
            assert!(reached || is_unknown(&found), "{text}: {name} is lost");
        }
    }
}

/// Without a catalogue, too, what a database reads as a modifier is not taken for the name.
#[test]
fn no_modifier_hides_a_name() {
    let tables = [
        ("select secret from only NAME", Verb::Read),
        ("select secret from a, only NAME", Verb::Read),
        ("select secret from a join only NAME on true", Verb::Read),
        ("update only NAME set secret = 1", Verb::Write),
        ("delete from only NAME where id = 1", Verb::Delete),
        ("update ignore NAME set secret = 1", Verb::Write),
        ("update low_priority NAME set secret = 1", Verb::Write),
        ("update low_priority ignore NAME set secret = 1", Verb::Write),
        ("delete ignore from NAME", Verb::Delete),
        ("delete quick from NAME", Verb::Delete),
        ("delete low_priority from NAME", Verb::Delete),
        ("delete low_priority quick ignore from NAME", Verb::Delete),
        ("insert delayed into NAME values (1)", Verb::Write),
        ("insert high_priority ignore into NAME values (1)", Verb::Write),
        ("insert ignore NAME values (1)", Verb::Write),
        ("replace delayed into NAME values (1)", Verb::Write),
        ("select sql_cache secret from NAME", Verb::Read),
    ];
    for dialect in [
        SqlDialect::Generic,
        SqlDialect::Postgres,
        SqlDialect::MySql,
        SqlDialect::Sqlite,
        SqlDialect::MsSql,
        SqlDialect::BigQuery,
        SqlDialect::Snowflake,
        SqlDialect::DuckDb,
    ] {
        for (form, verb) in tables {
            for name in ["vault", "\"vault\"", "public.vault"] {
                let text = form.replace("NAME", name);
                let found = effects(&text, dialect);
                let reached =
                    found.iter().any(|effect| effect.verb == verb && effect.resource.name == "vault");
                assert!(reached || is_unknown(&found), "{text} in {dialect:?}: {found:?}");
            }
        }
        let found =
            effects("select distinct sql_no_cache sql_cache secret, binary other from vault", dialect);
        for column in ["vault.secret", "vault.other"] {
            let reached = found.iter().any(|effect| effect.resource.name == column);
            assert!(reached || is_unknown(&found), "{column} in {dialect:?}: {found:?}");
        }
    }
}

/// The cases are told apart by their statements, not by names and constants.
#[test]
fn the_corpus_is_wide() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/sql");
    let mut shapes = BTreeSet::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        for case in text.split("```sql\n").skip(1) {
            count += 1;
            shapes.insert(shape(case.split("\n```").next().unwrap()));
        }
    }
    assert!(shapes.len() >= 300, "{} shapes of {count} cases", shapes.len());
}

/// A statement with every constant and every word that is no keyword made the same: two texts of one shape have
/// one syntax tree but for names.
fn shape(text: &str) -> String {
    use sqlparser::keywords::Keyword;
    use sqlparser::tokenizer::{Token, Tokenizer};
    let Ok(tokens) = Tokenizer::new(&sqlparser::dialect::GenericDialect {}, text).tokenize() else {
        return text.to_owned();
    };
    let word = |token: Token| match token {
        Token::Word(word) if word.keyword == Keyword::NoKeyword => "name".to_owned(),
        Token::Word(word) => word.value.to_lowercase(),
        Token::Number(..) | Token::SingleQuotedString(_) => "constant".to_owned(),
        other => other.to_string(),
    };
    let solid =
        |token: &Token| !matches!(token, Token::Whitespace(space) if space.to_string().trim().is_empty());
    tokens.into_iter().filter(solid).map(word).collect::<Vec<_>>().join(" ")
}

fn corpus() -> Vec<String> {
    let mut texts = Vec::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/sql");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let text = std::fs::read_to_string(path).unwrap();
            texts.extend(
                text.split("```sql\n").skip(1).map(|case| case.split("\n```").next().unwrap().to_owned()),
            );
        }
    }
    texts.sort();
    texts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read(text in any::<String>()) {
        effects(&text, SqlDialect::Generic);
    }

    #[test]
    fn any_words_are_read(words in prop::collection::vec(prop::sample::select(vec![
        "select", "from", "where", "t", "patients", "*", "(", ")", ",", "'", "\"", "`", "[", "]", "--", "/*", "*/", "/*!",
        ";", "1", "=", "or", "and", "not", "union", "join", "on", "as", "with", "recursive", "delete", "update", "set",
        "insert", "into", "values", "merge", "using", "when", "then", "case", "end", "begin", "$$", "\\", "#", "\n", "é",
        ".", "::", "->", "?", "@", "in", "exists", "lateral", "group", "by", "order", "pivot", "for", "create", "table",
        "drop", "alter", "copy", "to", "execute", "immediate", "explain", "analyze", "null", "default", "$1", "{", "}",
    ]), 0..40)) {
        effects(&words.join(" "), SqlDialect::Generic);
    }

    /// A statement that is cut, doubled or broken is read, and no reading loses a delete that stands before a break.
    #[test]
    fn broken_statements_are_read(
        at in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        insert in prop::sample::select(vec!["", "'", "(", ")", ";", "/*", "--", " or 1=1 ", "\\", "`", "é", "\0"]),
        dialect in prop::sample::select(vec![
            SqlDialect::Generic, SqlDialect::Postgres, SqlDialect::MySql, SqlDialect::Sqlite, SqlDialect::MsSql,
            SqlDialect::BigQuery, SqlDialect::Snowflake, SqlDialect::DuckDb,
        ]),
    ) {
        let corpus = corpus();
        let text = at.get(&corpus);
        let cut = cut.index(text.len() + 1);
        let cut = (0..=cut).rev().find(|cut| text.is_char_boundary(*cut)).unwrap();
        let (before, after) = text.split_at(cut);
        effects(&format!("{before}{insert}{after}"), dialect);
        effects(before, dialect);
        let stacked = effects(&format!("delete from patients; {before}"), dialect);
        let deleted = stacked.iter().any(|effect| effect.verb == Verb::Delete && effect.resource.name == "patients");
        prop_assert!(deleted || is_unknown(&stacked), "{before:?}");
    }
}
