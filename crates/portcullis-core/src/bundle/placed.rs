//! What was read from a file, with its place: for mistakes that are found when all files are read.

use super::diagnostic::Diagnostic;
use super::toml_table::{Field, File, Table};
use crate::limits::NAME_BYTES_MAX;
use crate::principal::Attribute;
use crate::verdict::Verdict;

/// The verdicts that a bundle may choose for calls that no rule decides.
pub(super) const VERDICTS: [(&str, Verdict); 3] =
    [("allow", Verdict::Allow), ("review", Verdict::Review), ("deny", Verdict::Deny)];

/// Something read from a file, with what is needed to complain about it later.
pub(super) struct Placed<T> {
    pub(super) value: T,
    /// A diagnostic at its place, waiting for a message.
    pub(super) place: Diagnostic,
}

/// An attribute of a credential.
pub(super) struct GivenAttribute {
    pub(super) name: Placed<String>,
    pub(super) value: Attribute,
}

pub(super) fn placed<T>(file: &File<'_>, field: Field<T>) -> Placed<T> {
    Placed { place: file.at(field.span, ""), value: field.value }
}

pub(super) fn name_field(
    file: &File<'_>,
    table: &mut Table<'_, '_>,
    field: &'static str,
) -> Option<Field<String>> {
    let name = table.string(field);
    match name {
        None => {
            table.missing(field);
            None
        }
        Some(name) if name.value.trim().is_empty() || name.value.len() > NAME_BYTES_MAX => {
            let message = format!("`{field}` must have 1 to {NAME_BYTES_MAX} bytes");
            file.report(file.at(name.span, message));
            None
        }
        name => name,
    }
}
