//! Reads `[[credential]]` of `portcullis.toml`.
//!
//! ```toml
//! [[credential]]
//! token_sha256 = "…"          # 64 lower-case hex digits; the token itself is never in a bundle
//! kind = "agent"              # or "approver"
//! principal = "NAME"
//! roles = ["analyst"]
//! attributes = { department = "compliance" }
//! policy = "NAME"
//! ```

use super::placed::{GivenAttribute, Placed, name_field, placed};
use super::snapshot::Credential;
use super::toml_table::{File, Table};
use crate::principal::{CredentialKind, Principal};

/// A credential, and its attributes with their places.
pub(super) fn read(
    file: &File<'_>,
    mut table: Table<'_, '_>,
) -> Option<(Placed<Credential>, Vec<GivenAttribute>)> {
    let span = table.span.clone();
    let token = table.string("token_sha256");
    let principal = name_field(file, &mut table, "principal");
    let kind = table
        .word("kind", &[("agent", CredentialKind::Agent), ("approver", CredentialKind::Approver)])
        .unwrap_or(CredentialKind::Agent);
    let roles = table.strings("roles").unwrap_or_default();
    let attributes = table.attributes("attributes").unwrap_or_default();
    let policy = table.string("policy");
    table.finish();
    let token = token?;
    if token.value.len() != 64 || !token.value.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        let message = "`token_sha256` must be 64 lower-case hex digits";
        file.report(file.at(token.span, message).help("printf %s \"$TOKEN\" | sha256sum"));
        return None;
    }
    let place = policy.as_ref().map_or_else(|| file.at(span, ""), |p| file.at(p.span.clone(), ""));
    let value = Credential {
        token_sha256: token.value,
        kind,
        principal: Principal {
            id: principal?.value,
            roles: roles.into_iter().map(|role| role.value).collect(),
            attributes: attributes.iter().map(|(name, value)| (name.value.clone(), value.clone())).collect(),
        },
        policy: policy.map(|policy| policy.value),
    };
    let attributes = attributes.into_iter();
    let given = attributes.map(|(name, value)| GivenAttribute { name: placed(file, name), value }).collect();
    Some((Placed { value, place }, given))
}
