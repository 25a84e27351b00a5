//! From a table to a guard program.

use std::fmt::Write as _;

use super::{Grant, Need, Table};
use crate::spec::quoted;

/// The program.
pub fn program(table: &Table) -> String {
    match table {
        Table::Access(grants) => access(grants),
        Table::Needs { rules, levels } => needs(rules, *levels),
    }
}

fn access(grants: &[Grant]) -> String {
    let mut text =
        "\"\"\"Who may read which column, by the roles of the principal.\"\"\"\n\nROLES = {\n".to_owned();
    let mut roles: Vec<&str> = Vec::new();
    for grant in grants {
        if !roles.contains(&grant.role.as_str()) {
            roles.push(&grant.role);
        }
    }
    for role in roles {
        let _infallible = writeln!(text, "    {}: {{", quoted(role));
        for Grant { database, columns, .. } in grants.iter().filter(|grant| grant.role == role) {
            let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
            let _infallible = writeln!(text, "        {}: [{}],", quoted(database), columns.join(", "));
        }
        text.push_str("    },\n");
    }
    text.push_str(
        "}

def check(action, run, principal):
    allowed = {}
    for role in principal.roles:
        for table, names in ROLES.get(role, {}).items():
            allowed[table] = allowed.get(table, []) + names
    denied = check_access(allowed, columns(action))
    if denied:
        return deny(\"not for this role: \" + \", \".join(denied), denied)
    return None
",
    );
    text
}

fn needs(rules: &[Need], levels: bool) -> String {
    let mut text = "\"\"\"What actions need of the principal.\"\"\"\n\nRULES = [\n".to_owned();
    for Need { action, attribute, operator, value, message } in rules {
        let _infallible = writeln!(
            text,
            "    {{\"activity\": {}, \"attribute\": {}, \"operator\": {}, \"value\": {value}, \"message\": {}}},",
            quoted(action),
            quoted(attribute),
            quoted(operator),
            quoted(message)
        );
    }
    text.push_str("]\n");
    if levels {
        // By how many rules are broken: none is no risk, and says nothing.
        text.push_str("LEVELS = [\"no\", \"low\", \"medium\", \"high\", \"very high\"]\n");
    }
    text.push_str(
        "
def check(action, run, principal):
    names = [] if action.tool == None else [action.tool]
    names += [effect.name for effect in effects(action, kind = \"activity\")]
    broken = []
    for name in names:
        for message in check_rules(RULES, name, principal.attributes):
            if message not in broken:
                broken.append(message)
    if not broken:
        return None
",
    );
    text.push_str(match levels {
        true => "    return deny(broken + [\"risk: \" + LEVELS[min(len(broken), 4)]])\n",
        false => "    return deny(broken)\n",
    });
    text
}
