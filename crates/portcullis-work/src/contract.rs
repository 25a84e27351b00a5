//! Statements about files and replies. Only what code decides is decided here.

use portcullis_contracts::{Checker, Context, Contract, Verdict, check, compile};

use super::{Found, error, fail};

/// Why no criterion can rest on a statement: nothing here could decide it.
#[must_use]
pub fn unreadable(statement: &str) -> Option<String> {
    match read(statement) {
        Err(why) => Some(why),
        Ok(contract) if contract.checker == Checker::Judged => Some(
            "it takes a reader to tell whether that holds; `portcullis contract explain` says which statements code decides"
                .to_owned(),
        ),
        Ok(_) => None,
    }
}

fn read(statement: &str) -> Result<Contract, String> {
    let mut contracts =
        compile(&[statement]).map_err(|why| format!("the statement cannot be read: {why}"))?;
    contracts.pop().ok_or_else(|| "the statement is empty".to_owned())
}

pub(super) fn holds(statement: &str, text: &str) -> Found {
    let contract = read(statement).or_else(error)?;
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
