//! Which of what was found is judged, and of which nothing but totals is told.

use crate::suite::EvalError;

/// Names of sources and folders. A folder is known by its path and by each part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// These and no others; all where it is empty.
    pub only: Vec<String>,
    /// Not these.
    pub leave_out: Vec<String>,
    /// Of these only totals: no predictions, and no rules.
    pub totals_only: Vec<String>,
}

fn names(list: &[String], name: &str) -> bool {
    list.iter().any(|one| is(one, name))
}

fn is(one: &str, name: &str) -> bool {
    one == name || name.split('/').any(|part| part == one)
}

impl Choice {
    /// Whether something of that name is judged.
    pub fn wants(&self, name: &str) -> bool {
        (self.only.is_empty() || names(&self.only, name)) && !names(&self.leave_out, name)
    }

    /// Whether only totals are told of it.
    pub fn seals(&self, name: &str) -> bool {
        names(&self.totals_only, name)
    }

    /// That all names are known. A seal with a slip in its name would seal nothing, so that is an error.
    pub(super) fn check(&self, found: &[&str]) -> Result<(), EvalError> {
        let given = self.only.iter().chain(&self.leave_out).chain(&self.totals_only);
        for one in given {
            if !found.iter().any(|name| is(one, name)) {
                let mut known: Vec<&str> = found.to_vec();
                known.sort_unstable();
                known.dedup();
                return Err(EvalError::UnknownName { name: one.clone(), known: known.join(", ") });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_folder_is_known_by_each_part_of_its_path() {
        let choice = Choice { leave_out: list(&["mail"]), ..Choice::default() };
        assert!(choice.wants("sets/mails") && !choice.wants("sets/mail") && !choice.wants("mail"));
        let choice = Choice { only: list(&["a", "b"]), leave_out: list(&["b"]), totals_only: list(&["a"]) };
        assert!(choice.wants("a") && !choice.wants("b") && !choice.wants("c"));
        assert!(choice.seals("a") && !choice.seals("b"));
    }

    #[test]
    fn a_name_that_nothing_has_is_an_error() {
        let choice = Choice { totals_only: list(&["libary"]), ..Choice::default() };
        let error = choice.check(&["library", "kitchen"]).unwrap_err();
        assert_eq!(error.to_string(), "nothing in the data is called `libary`; there are kitchen, library");
        choice.check(&["libary"]).unwrap();
    }
}
