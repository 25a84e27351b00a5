//! Statements about files and replies. Only what code decides is decided here.

use portcullis_contracts::{Context, Verdict, check, compile};

use super::{Found, error, fail};

pub(super) fn holds(statement: &str, text: &str) -> Found {
    let compiled = compile(&[statement]).map(|mut contracts| contracts.pop());
    let contract = match compiled {
        Ok(Some(contract)) => contract,
        Ok(None) => return error("the statement is empty"),
        Err(why) => return error(format!("the statement cannot be read: {why}")),
    };
    let found = check(&contract, text, Context::default());
    match found.verdict {
        Verdict::Pass => Ok(found.explanation),
        Verdict::Fail => fail(found.explanation),
        Verdict::NotApplicable => error(format!(
            "code cannot tell whether this holds: {}; `portcullis contract explain` says how a statement is read",
            found.explanation
        )),
    }
}
