//! How far commands can be contained on this machine.

use portcullis_contain::{ContainError, Contained, Level, Probe, probe};

use super::{Check, Health};

/// Every step is run, on a command that does nothing.
pub(super) fn check() -> Check {
    let found = match Contained::new().and_then(|contained| probe(&contained)) {
        Ok(found) => found,
        Err(error @ ContainError::NotSupported) => return Check::new("containment", Health::Ok, error),
        // The message says what to do.
        Err(error) => return Check::new("containment", Health::Warn, error),
    };
    let Probe { reached, landlock, watched, failed } = found;
    let detail = match reached {
        Level::None => {
            "nothing can be contained: the hook judges command lines by their text alone".to_owned()
        }
        level if watched => format!("commands run at the level `{level}`, Landlock ABI {landlock}"),
        level => format!(
            "commands run at the level `{level}`, Landlock ABI {landlock}; the programs that they start cannot be \
             seen, since this system does not let processes be traced"
        ),
    };
    let Some(step) = failed else { return Check::new("containment", Health::Ok, detail) };
    let why = step.error.unwrap_or_else(|| "no reason given".to_owned());
    Check::new("containment", Health::Warn, format!("{detail}\nthe step `{}` failed: {why}", step.name))
        .remedy("docs/contain.md says what each step needs, and what the levels leave open")
}
