//! Reads `contracts/*.toml`.
//!
//! ```toml
//! [[contract]]
//! statement = "Answer with at most 120 words."
//! name = "brief"                # else made of the statement: `answer-with-at-most-120-words`
//! on_fail = "repair"            # or "annotate", "review" (the default), "deny"
//! surfaces = ["http"]           # else replies on every surface
//! tools = ["search"]            # about results of these tools instead of replies
//! judge = true                  # the model of `[contracts]` decides what code cannot
//! program = "/opt/house/judge"  # or a program does
//! repair = "retry"              # how that model rewrites what code cannot repair
//! ```
//!
//! The core carries statements and does not read them: a [`Compiler`](super::Compiler) does.

use super::diagnostic::Diagnostic;
use super::placed::{Placed, placed};
use super::toml_table::{Field, File, Table};
use crate::limits::{CONTRACT_NAME_BYTES_MAX, CONTRACT_SCOPE_MAX, CONTRACT_STATEMENT_BYTES_MAX};
use crate::verdict::Verdict;

/// A statement about replies or results of tools that the gate enforces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractSettings {
    /// Unique name, of `a-z`, `0-9` and `-`. Rules of findings end in it.
    pub name: String,
    /// The statement, in plain language.
    pub statement: String,
    /// What becomes of a text that breaks it, or of which nobody can tell.
    pub on_fail: OnFail,
    /// Surfaces of the runs that it is about; empty for all.
    pub surfaces: Vec<String>,
    /// Tools whose results it is about, by name or id; empty for replies.
    pub tools: Vec<String>,
    /// Who decides what code cannot.
    pub judge: ContractJudge,
    /// How a model rewrites what code cannot repair: one of [`REPAIR_STRATEGIES`]. `None`: nobody rewrites.
    pub strategy: Option<&'static str>,
}

/// What becomes of a text that breaks a contract, the mildest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnFail {
    /// It passes, and the record says what it breaks.
    Annotate,
    /// It passes repaired. What cannot be repaired is reviewed.
    Repair,
    /// A person decides.
    #[default]
    Review,
    /// It does not pass.
    Deny,
}

impl OnFail {
    /// The verdict on a text that breaks the contract and was not repaired.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Annotate => Verdict::Warn,
            Self::Repair | Self::Review => Verdict::Review,
            Self::Deny => Verdict::Deny,
        }
    }
}

/// Who decides whether a contract holds, where code cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ContractJudge {
    /// Nobody: such a contract fails.
    #[default]
    Nobody,
    /// The model of `[contracts]`.
    Model,
    /// The program at this absolute path.
    Program(String),
}

/// Ways in which a model can be asked for a rewrite.
pub const REPAIR_STRATEGIES: [&str; 6] =
    ["batch", "iterative", "retry", "best-of-n", "best-of-n-oracle", "map-reduce"];

/// Bytes of a name that is made of a statement.
const SHORT_NAME_BYTES: usize = 40;

/// A contract with the tools that it names, each with its place.
pub(super) type ContractParts = (Placed<ContractSettings>, Vec<Placed<String>>);

pub(super) fn read(file: &File<'_>, table: &mut Table<'_, '_>) -> Vec<ContractParts> {
    table.tables("contract").into_iter().filter_map(|table| read_contract(file, table)).collect()
}

fn read_contract(file: &File<'_>, mut table: Table<'_, '_>) -> Option<ContractParts> {
    let on_fail = [
        ("annotate", OnFail::Annotate),
        ("repair", OnFail::Repair),
        ("review", OnFail::Review),
        ("deny", OnFail::Deny),
    ];
    let span = table.span.clone();
    let statement = statement(file, &mut table);
    let name = table.string("name");
    let on_fail = table.word("on_fail", &on_fail).unwrap_or_default();
    let surfaces = scope(file, &mut table, "surfaces");
    let tools = scope(file, &mut table, "tools");
    let judged = table.boolean("judge").unwrap_or(false);
    let program = table.string("program");
    let strategy = table.word("repair", &REPAIR_STRATEGIES.map(|name| (name, name)));
    table.finish();
    let judge = match program {
        Some(program) if judged => {
            let message = "a contract has one judge: keep `judge` or `program`";
            file.report(file.at(program.span, message));
            ContractJudge::Nobody
        }
        Some(program) if !program.value.starts_with('/') => {
            let message = "`program` must be an absolute path: it runs wherever the daemon does";
            file.report(file.at(program.span, message));
            ContractJudge::Nobody
        }
        Some(program) => ContractJudge::Program(program.value),
        None if judged => ContractJudge::Model,
        None => ContractJudge::Nobody,
    };
    if strategy.is_some() && on_fail != OnFail::Repair {
        let message = "`repair` says how a text is rewritten, and `on_fail` wants none rewritten";
        file.report(file.at(span, message).help("set `on_fail = \"repair\"`, or remove `repair`"));
    }
    let statement = statement?;
    let name = name_of(file, name, &statement)?;
    let place = file.at(statement.span, "");
    let value = ContractSettings {
        name,
        statement: statement.value,
        on_fail,
        surfaces: surfaces.into_iter().map(|surface| surface.value).collect(),
        tools: tools.iter().map(|tool| tool.value.clone()).collect(),
        judge,
        strategy,
    };
    Some((Placed { value, place }, tools.into_iter().map(|tool| placed(file, tool)).collect()))
}

fn statement(file: &File<'_>, table: &mut Table<'_, '_>) -> Option<Field<String>> {
    let Some(statement) = table.string("statement") else {
        table.missing("statement");
        return None;
    };
    if statement.value.trim().is_empty() || statement.value.len() > CONTRACT_STATEMENT_BYTES_MAX {
        let message = format!("`statement` must have 1 to {CONTRACT_STATEMENT_BYTES_MAX} bytes");
        file.report(file.at(statement.span, message));
        return None;
    }
    Some(statement)
}

/// A list of names. One that is empty would be about nothing, and nobody would notice.
fn scope(file: &File<'_>, table: &mut Table<'_, '_>, field: &'static str) -> Vec<Field<String>> {
    let span = table.span.clone();
    let Some(names) = table.strings(field) else { return Vec::new() };
    if names.is_empty() || names.len() > CONTRACT_SCOPE_MAX {
        let message = format!("`{field}` must name 1 to {CONTRACT_SCOPE_MAX}");
        file.report(file.at(span, message).help("without it, the contract is not limited"));
    }
    names
}

/// The name that is given, or one made of the statement.
fn name_of(file: &File<'_>, given: Option<Field<String>>, statement: &Field<String>) -> Option<String> {
    let Some(given) = given else {
        let name = short(&statement.value);
        if name.is_empty() {
            let message = "no name can be made of the statement";
            file.report(file.at(statement.span.clone(), message).help("add `name`, of a-z, 0-9 and -"));
            return None;
        }
        return Some(name);
    };
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = (1..=CONTRACT_NAME_BYTES_MAX).contains(&given.value.len());
    if fits && given.value.bytes().all(is_allowed) {
        return Some(given.value);
    }
    let message = format!("`name` must have 1 to {CONTRACT_NAME_BYTES_MAX} of a-z, 0-9 and -");
    file.report(file.at(given.span, message));
    None
}

/// The first words of a statement, as a name.
fn short(statement: &str) -> String {
    let mut name = String::new();
    let words = statement.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        if name.len() + word.len() >= SHORT_NAME_BYTES {
            break;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(&word.to_ascii_lowercase());
    }
    name
}

/// Contracts that ask a model where the bundle names none.
pub(super) fn check_model(contracts: &[Placed<ContractSettings>], diagnostics: &mut Vec<Diagnostic>) {
    let asks = |contract: &&Placed<ContractSettings>| {
        contract.value.judge == ContractJudge::Model || contract.value.strategy.is_some()
    };
    for contract in contracts.iter().filter(asks) {
        let mut diagnostic = contract.place.clone();
        diagnostic.message = format!("`{}` asks a model, and the bundle names none", contract.value.name);
        diagnostics.push(diagnostic.help("add `[contracts]` with `endpoint` and `model` to portcullis.toml"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_of_the_first_words() {
        assert_eq!(short("No commas."), "no-commas");
        assert_eq!(short("The reply's tone is *kind*, always."), "the-reply-s-tone-is-kind-always");
        assert_eq!(
            short("Every sentence should have less than 60 words."),
            "every-sentence-should-have-less-than-60"
        );
        assert_eq!(short("Без запятых."), "");
    }
}
