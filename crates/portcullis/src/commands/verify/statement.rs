//! A signed statement about verified work.

use std::path::Path;

use portcullis_proof::log::statement::ENVELOPE_BYTES_MAX;
use portcullis_proof::log::{Envelope, Statement, StatementError, VerifierKey};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line};
use crate::trust::Believed;

/// The member of a statement's envelope that no line of an export has.
const MEMBER: &str = "payloadType";

/// What is printed with `--json`.
#[derive(Serialize)]
struct Shown<'s> {
    record: &'static str,
    status: &'static str,
    key: Option<String>,
    why: Option<String>,
    statement: Option<&'s Statement>,
}

/// The bytes of a file that is a statement by its look.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    use std::io::Read as _;
    if path == Path::new("-") {
        return Ok(None);
    }
    let failed = |error| Failure::unreadable(format!("cannot verify `{}`: {error}", path.display()));
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Ok(None);
    }
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(ENVELOPE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    let first = serde_json::Deserializer::from_slice(&bytes).into_iter::<Map<String, Value>>().next();
    let is_one = matches!(first, Some(Ok(members)) if members.contains_key(MEMBER));
    Ok(is_one.then_some(bytes))
}

/// What is to be thought of a statement.
pub(super) fn verify(bytes: &[u8], believed: &Believed, global: &Global) -> Result<u8, Failure> {
    let found = judge(bytes, believed);
    let (code, status, style) = match &found {
        Ok((_, _, true)) => (exit::YES, "VALID", out::GOOD),
        Ok((_, _, false)) => (exit::INCOMPLETE, "INCOMPLETE", out::NOTICE),
        Err(_) => (exit::NO, "INVALID", out::BAD),
    };
    let mut out = Out::new();
    if global.json {
        let (key, statement, why) = match &found {
            Ok((key, statement, _)) => (Some(key.to_string()), Some(statement), None),
            Err(why) => (None, None, Some(why.to_string())),
        };
        out.json(&Shown { record: "statement", status, key, why, statement })?;
        out.finish()?;
        return Ok(code);
    }
    out.line(format_args!("{style}{status}{style:#}"))?;
    match &found {
        Ok((key, statement, believed)) => {
            let about = &statement.predicate;
            out.line(format_args!("  item        #{} {}", about.item, clean_line(&about.title)))?;
            out.line(format_args!("  run         {}, event {}", about.run, about.event))?;
            let (verified, by, at) =
                (clean_line(&about.verified), clean_line(&about.by), clean_line(&about.at));
            out.line(format_args!("  verified    {verified} by {by}, {at}"))?;
            if about.stale {
                out.line(format_args!("  evidence    was stale when this was stated"))?;
            }
            match believed {
                true => out.line(format_args!("  signature   pass         {key}"))?,
                false => out.line(format_args!(
                    "  signature   not checked  {key} is the key that it names itself; give --trust a policy that names it"
                ))?,
            }
        }
        Err(why) => out.line(format_args!("  {}", clean_line(&why.to_string())))?,
    }
    out.finish()?;
    Ok(code)
}

/// The statement, the key that signed it, and whether the reader believes that key.
fn judge(bytes: &[u8], believed: &Believed) -> Result<(VerifierKey, Statement, bool), StatementError> {
    let envelope = Envelope::parse(bytes)?;
    let signers = envelope.keys();
    let Some(first) = signers.first() else {
        return Err(StatementError::Form("it names no key that a log has".to_owned()));
    };
    let Some(policy) = &believed.policy else {
        return Ok((first.clone(), envelope.verified_by(first)?, false));
    };
    let known = policy.policy.logs().iter().map(|log| &log.key).find(|key| signers.contains(key));
    let Some(key) = known else {
        return Err(StatementError::NotSigned("a log of the trust policy".to_owned()));
    };
    Ok((key.clone(), envelope.verified_by(key)?, true))
}
