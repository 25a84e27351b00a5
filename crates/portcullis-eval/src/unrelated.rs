//! Access policies that have nothing to do with a suite: what a bundle full of them adds to a decision.

use std::fmt::Write as _;

/// Where they stand in a bundle.
pub const FILE: &str = "access/unrelated.cedar";

/// So many policies about other roles, verbs and resources. A quarter each permits writing below a folder, forbids a
/// recipient, permits one column and forbids a table: the last two speak of the verb and the kinds that suites of
/// health records use.
#[must_use]
pub fn policies(count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        let _ = match n % 4 {
            0 => writeln!(
                text,
                "permit (principal in Role::\"team{n}\", action == Action::\"write\", resource == Path::\"/srv/p{n}\");"
            ),
            1 => writeln!(
                text,
                "forbid (principal, action == Action::\"send\", resource == Recipient::\"u{n}@example.org\");"
            ),
            2 => writeln!(
                text,
                "permit (principal in Role::\"team{n}\", action == Action::\"read\", resource == Column::\"t{n}.c\");"
            ),
            _ => writeln!(
                text,
                "forbid (principal in Role::\"team{n}\", action == Action::\"read\", resource is Table) \
                 when {{ resource == Table::\"t{n}\" }};"
            ),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{health_records, web_rules};
    use portcullis_session::policy;

    #[test]
    fn they_load_with_the_bundles_of_the_suites() {
        for mut files in [health_records::files(), web_rules::files()] {
            let alone = policy::load(&files).unwrap().digest();
            files.insert(FILE.to_owned(), policies(8).into_bytes());
            assert_ne!(policy::load(&files).unwrap().digest(), alone);
        }
        assert_eq!(policies(8).lines().count(), 8);
    }
}
