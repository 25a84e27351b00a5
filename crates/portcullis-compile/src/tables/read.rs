//! Reads a Markdown table.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Grant, Need, ROWS_MAX, Read, Table};
use crate::draft::Refusal;

const ACCESS: [&str; 3] = ["role", "database", "columns"];
const NEEDS: [&str; 5] = ["action", "attribute", "operator", "value", "message"];
/// Operators, and how else they are written.
const OPERATORS: [(&str, &[&str]); 6] = [
    ("==", &["==", "=", "is"]),
    ("!=", &["!=", "is not"]),
    (">=", &[">=", "at least"]),
    ("<=", &["<=", "at most"]),
    (">", &[">", "over", "more than"]),
    ("<", &["<", "under", "less than"]),
];

/// A line of the request with its place.
struct Line<'t> {
    span: Range<usize>,
    cells: Vec<&'t str>,
}

/// Reads the table of a request; none where it has no table of a known shape.
pub fn read(request: &str) -> Option<Read> {
    let lines = rows(request);
    let heads: Vec<usize> = (0..lines.len()).filter(|at| shape(lines.get(*at)).is_some()).collect();
    let (first, others) = heads.split_first()?;
    if let Some(line) = others.first().and_then(|at| lines.get(*at)) {
        return Some(Err(refused(line, "a request has one table of rules")));
    }
    let is_access = shape(lines.get(*first)) == Some(true);
    let head = lines.get(*first)?;
    let is_rule = |line: &&Line<'_>| {
        line.cells.iter().all(|cell| cell.contains('-') && cell.trim_matches([':', '-']).is_empty())
    };
    if lines.get(first + 1).filter(is_rule).is_none() {
        return Some(Err(refused(head, "there is no line of dashes below the heading of the table")));
    }
    let body: Vec<&Line<'_>> = lines.iter().skip(first + 2).collect();
    if body.is_empty() || body.len() > ROWS_MAX {
        let message = format!("the table has {} rows; it needs 1 to {ROWS_MAX}", body.len());
        return Some(Err(refused(head, &message)));
    }
    if let Some(line) = body.iter().find(|line| line.cells.len() != head.cells.len()) {
        let message =
            format!("this row has {} cells, and the heading {}", line.cells.len(), head.cells.len());
        return Some(Err(refused(line, &message)));
    }
    Some(if is_access {
        grants(&body)
    } else {
        let levels = request.to_lowercase().contains("risk level");
        needs(&body).map(|rules| Table::Needs { rules, levels })
    })
}

/// Whether a line is the heading of a table of grants, or of needs.
fn shape(line: Option<&Line<'_>>) -> Option<bool> {
    let cells: Vec<String> = line?.cells.iter().map(|cell| cell.to_lowercase()).collect();
    [(&ACCESS[..], true), (&NEEDS[..], false)]
        .into_iter()
        .find(|(names, _)| cells == *names)
        .map(|(_, is)| is)
}

fn rows(request: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut at = 0;
    for line in request.split_inclusive('\n') {
        let text = line.trim();
        if let Some(inner) = text.strip_prefix('|').and_then(|text| text.strip_suffix('|')) {
            let start = at + (line.len() - line.trim_start().len());
            let cells = inner.split('|').map(str::trim).collect();
            lines.push(Line { span: start..start + text.len(), cells });
        }
        at += line.len();
    }
    lines
}

fn refused(line: &Line<'_>, message: &str) -> Refusal {
    Refusal {
        span: line.span.clone(),
        message: message.to_owned(),
        help: "tables are `role | database | columns` and `action | attribute | operator | value | message`"
            .to_owned(),
    }
}

fn grants(rows: &[&Line<'_>]) -> Read {
    let mut grants = Vec::new();
    let mut known = BTreeSet::new();
    for line in rows {
        let [role, database, columns] = line.cells.as_slice() else { continue };
        let columns: Vec<String> = columns
            .split(',')
            .map(|column| column.trim().trim_matches('`').to_lowercase())
            .filter(|column| !column.is_empty())
            .collect();
        if role.is_empty() || database.is_empty() || columns.is_empty() {
            return Err(refused(line, "this row has no role, no database or no columns"));
        }
        let (role, database) = ((*role).to_owned(), database.trim_matches('`').to_lowercase());
        if !known.insert((role.clone(), database.clone())) {
            return Err(refused(line, "this role has a row for this database twice"));
        }
        grants.push(Grant { role, database, columns });
    }
    Ok(Table::Access(grants))
}

fn needs(rows: &[&Line<'_>]) -> Result<Vec<Need>, Refusal> {
    let mut rules = Vec::new();
    for line in rows {
        let [action, attribute, operator, value, message] = line.cells.as_slice() else { continue };
        let plain = |text: &str| text.trim_matches('`').to_owned();
        let (action, attribute) = (plain(action), plain(attribute));
        if action.is_empty() || attribute.is_empty() {
            return Err(refused(line, "this row has no action or no attribute"));
        }
        if message.is_empty() {
            return Err(refused(line, "this row has no message"));
        }
        let lower = plain(operator).to_lowercase();
        let found = OPERATORS.iter().find(|(_, words)| words.contains(&lower.as_str()));
        let Some((operator, _)) = found else {
            return Err(refused(line, &format!("`{lower}` is no operator")));
        };
        let value = value_of(&plain(value));
        let is_number = value.parse::<i64>().is_ok();
        if !matches!(*operator, "==" | "!=") && !is_number {
            return Err(refused(line, &format!("`{operator}` can only compare numbers")));
        }
        rules.push(Need {
            action,
            attribute,
            operator: (*operator).to_owned(),
            value,
            message: (*message).to_owned(),
        });
    }
    Ok(rules)
}

/// A value as Starlark writes it.
fn value_of(text: &str) -> String {
    match text.to_lowercase().as_str() {
        "true" | "yes" => "True".to_owned(),
        "false" | "no" => "False".to_owned(),
        _ if text.parse::<i64>().is_ok() => text.to_owned(),
        _ => crate::spec::quoted(text),
    }
}
