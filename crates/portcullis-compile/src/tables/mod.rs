//! Requests that are a table: who may read which columns, and which activities need what of a user. These are the shapes of
//! the requests that GuardAgent was published with (seed 004). A table says in one way what it means, so that it is read
//! as a whole or refused with the line that cannot be.
//!
//! ```text
//! | role | database | columns |          | action | attribute | operator | value | message |
//! ```
//!
//! What stands around the table is for people, except for the words *risk level*: with them, the reasons end with a level
//! by the number of broken rules.

mod emit;
mod read;
mod tests_of;

use crate::draft::Refusal;

pub use emit::program;
pub use read::read;
pub use tests_of::{sentences, tests};

/// Most rows of a table.
pub const ROWS_MAX: usize = 1_000;

/// What a table says.
#[derive(Debug, Clone, PartialEq)]
pub enum Table {
    /// Who may read what; nobody else reads anything.
    Access(Vec<Grant>),
    /// What is needed for what.
    Needs {
        /// The rules, in order.
        rules: Vec<Need>,
        /// Whether the reasons end with a level of risk.
        levels: bool,
    },
}

/// A role may read these columns of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The role.
    pub role: String,
    /// The database, or table.
    pub database: String,
    /// The columns.
    pub columns: Vec<String>,
}

/// An action needs something of a user's attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// An activity of the bundle, or a tool.
    pub action: String,
    /// The attribute.
    pub attribute: String,
    /// How it compares: `==`, `>=` and so on.
    pub operator: String,
    /// The value, as Starlark writes it.
    pub value: String,
    /// What the agent is told.
    pub message: String,
}

/// What came of a request with a table.
pub type Read = Result<Table, Refusal>;

#[cfg(test)]
mod tests {
    use super::*;

    const ACCESS: &str = "Staff read what their role needs.\n\n\
        | Role | Database | Columns |\n|---|---|---|\n\
        | nursing | lab | labname, labresult |\n| nursing | patient | age |\n";
    const NEEDS: &str = "| action | attribute | operator | value | message |\n|--|--|:-:|--|--|\n\
        | shop | membership | = | yes | Members only |\n| book-hotel | age | >= | 18 | Adults only |\n";

    #[test]
    fn tables_are_read_and_written_as_programs() {
        let Some(Ok(Table::Access(grants))) = read(ACCESS) else { panic!() };
        assert_eq!(grants.len(), 2);
        assert_eq!(grants[0].columns, ["labname", "labresult"]);
        let text = program(&Table::Access(grants));
        assert!(
            text.contains("\"lab\": [\"labname\", \"labresult\"]") && text.contains("check_access("),
            "{text}"
        );

        let Some(Ok(table)) = read(NEEDS) else { panic!() };
        let Table::Needs { rules, levels } = &table else { panic!() };
        assert_eq!((rules[0].operator.as_str(), rules[0].value.as_str(), *levels), ("==", "True", false));
        assert!(!program(&table).contains("risk"));
        let levelled = format!("Say the risk level.\n\n{NEEDS}");
        let Some(Ok(table)) = read(&levelled) else { panic!() };
        assert!(program(&table).contains("very high"));
    }

    #[test]
    fn what_is_no_table_of_these_is_left_to_the_reader_or_refused_at_its_line() {
        assert!(read("Only support leads may issue refunds.").is_none());
        assert!(read("| a | b |\n|--|--|\n| 1 | 2 |\n").is_none());
        for (wrong, why) in [
            (ACCESS.replace("| age |", "| |"), "no columns"),
            (ACCESS.replace("| nursing | patient | age |", "| nursing | patient |"), "has 2 cells"),
            (ACCESS.replace("patient", "lab"), "twice"),
            (ACCESS.replace("|---|---|---|\n", ""), "below the heading"),
            (NEEDS.replace(">=", "about"), "is no operator"),
            (NEEDS.replace("| 18 |", "| adult |"), "compare numbers"),
            (NEEDS.replace("Adults only", ""), "no message"),
            (format!("{ACCESS}\n{NEEDS}"), "one table"),
        ] {
            let Some(Err(refusal)) = read(&wrong) else { panic!("{wrong}") };
            assert!(refusal.message.contains(why), "{why}: {}", refusal.message);
            assert!(wrong.get(refusal.span.clone()).is_some());
        }
    }
}
