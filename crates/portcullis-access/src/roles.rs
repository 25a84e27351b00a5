//! Which roles there are.

use std::collections::BTreeSet;

use portcullis_core::bundle::Bundle;

/// The roles that credentials give.
pub(crate) fn roles(bundle: &Bundle) -> BTreeSet<&str> {
    let given = bundle.credentials.iter().flat_map(|credential| &credential.principal.roles);
    given.map(|role| bundle.access.role_aliases.get(role).unwrap_or(role).as_str()).collect()
}
