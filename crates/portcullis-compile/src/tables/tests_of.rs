//! Tests of a table, in the format of `policy test`. The tools that they call are of the tests alone: what agents call to
//! read a database, or to do something, is the bundle's matter.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::json;

use super::{Grant, Need, Table};
use crate::spec::{Spec, quoted};

/// Most runs.
const RUNS_MAX: usize = 256;
/// The tool of the tests that reads databases.
const QUERY: &str = "query_of_generated_tests";

/// The tests.
pub fn tests(table: &Table, spec: &Spec) -> String {
    let mut text = String::from(
        "# Tests\n\nGenerated from the table.\n\n```toml policies/for-generated-tests.toml\n[[policy]]\nname = \"for generated tests\"\nallowed_types = [\"OTHER\"]\nmax_steps = 1000000\nmax_side_effects = 1000000\n```\n\n```toml tools/for-generated-tests.toml\n",
    );
    let mut tool = |name: &str, effects: &str| {
        let name = quoted(name);
        let _infallible = write!(
            text,
            "[[tool]]\nname = {name}\ntype = \"OTHER\"\nside_effecting = false\neffects = {effects}\n\n"
        );
    };
    match table {
        Table::Access(_) => tool(QUERY, "{ statement = \"sql\" }"),
        Table::Needs { rules, .. } => {
            let names: BTreeSet<&str> = rules.iter().map(|rule| rule.action.as_str()).collect();
            names.into_iter().filter(|name| spec.tool(name).is_none()).for_each(|name| tool(name, "{}"));
            tool(QUERY, "{}");
        }
    }
    text.push_str("```\n");
    let runs = match table {
        Table::Access(grants) => of_grants(grants),
        Table::Needs { rules, .. } => of_needs(rules),
    };
    for (number, (title, roles, call, verdict)) in runs.into_iter().take(RUNS_MAX).enumerate() {
        let caller = json!({"id": "tester", "roles": roles});
        let _infallible = write!(
            text,
            "\n## {}: {}\n\n```run\npolicy \"for generated tests\"\nprincipal {caller}\ncall {call} => {verdict}\n```\n",
            number + 1,
            title.replace('`', "'")
        );
    }
    text
}

/// Title, roles, call, verdict.
type Run = (String, Vec<String>, String, &'static str);

fn of_grants(grants: &[Grant]) -> Vec<Run> {
    // A column that is named like its table would be the whole row.
    let named = |database: &str, columns: &[&str]| {
        columns.iter().map(|column| format!("{database}.{column}")).collect::<Vec<_>>().join(", ")
    };
    let call = |database: &str, columns: &[&str]| {
        let statement = format!("select {} from {database}", named(database, columns));
        format!("{QUERY} {}", json!({"statement": statement}))
    };
    let mut runs = Vec::new();
    let databases: BTreeSet<&str> = grants.iter().map(|grant| grant.database.as_str()).collect();
    for Grant { role, database, columns } in grants {
        let mut all: Vec<&str> = columns.iter().map(String::as_str).collect();
        runs.push((format!("{role} reads {database}"), vec![role.clone()], call(database, &all), "allow"));
        all.push("not_granted");
        let title = format!("{role} reads more of {database}");
        runs.push((title, vec![role.clone()], call(database, &all), "deny"));
    }
    let roles: BTreeSet<&str> = grants.iter().map(|grant| grant.role.as_str()).collect();
    for role in roles.into_iter().chain([""]) {
        for database in &databases {
            let granted = grants.iter().any(|grant| grant.role == role && grant.database == *database);
            if granted {
                continue;
            }
            let columns = grants.iter().find(|grant| grant.database == *database);
            let column = columns.and_then(|grant| grant.columns.first()).map_or("*", String::as_str);
            let (who, roles) = match role {
                "" => ("somebody without a role", Vec::new()),
                role => (role, vec![role.to_owned()]),
            };
            runs.push((format!("{who} does not read {database}"), roles, call(database, &[column]), "deny"));
        }
    }
    runs
}

fn of_needs(rules: &[Need]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for Need { action, attribute, .. } in rules {
        // Attributes have to be declared in the bundle, which generated tests cannot know.
        let title = format!("{action}, and {attribute} is not known");
        runs.push((title, Vec::new(), format!("{} {{}}", quoted(action)), "deny"));
    }
    runs.push(("something else".to_owned(), Vec::new(), format!("{QUERY} {{}}"), "allow"));
    runs
}

/// What each row says.
pub fn sentences(table: &Table) -> Vec<String> {
    match table {
        Table::Access(grants) => {
            let grant = |Grant { role, database, columns }: &Grant| {
                format!(
                    "A principal with the role `{role}` may read of `{database}`: {}.",
                    columns.join(", ")
                )
            };
            let rest = "Of all that is read, what is not granted so is denied.".to_owned();
            grants.iter().map(grant).chain([rest]).collect()
        }
        Table::Needs { rules, .. } => {
            let need = |Need { action, attribute, operator, value, message }: &Need| {
                format!(
                    "`{action}` is denied unless `{attribute}` of the principal is known and {operator} {value}: {message}"
                )
            };
            rules.iter().map(need).collect()
        }
    }
}
