//! The language of the whole reply. It fails on positive evidence only.

use crate::contract::Check;
use crate::text::language::{evidence_against, name_of};

pub(super) fn language(reply: &str, code: &str) -> Check {
    let wanted = name_of(code).unwrap_or(code);
    match evidence_against(reply, code) {
        Some(other) => Check::new(false, format!("reads as {other}; demanded: {wanted}"), Vec::new()),
        None => Check::new(true, format!("nothing indicates a language other than {wanted}"), Vec::new()),
    }
}
