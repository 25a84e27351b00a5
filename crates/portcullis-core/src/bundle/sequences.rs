//! Reads `sequences/*.toml`.
//!
//! ```toml
//! [[mark]]
//! name = "payment"              # what calls of these tools do
//! tools = ["pay", "transfer_*"] # `*` at the end stands for any rest
//! where = { "/kind" = "out" }   # only calls whose arguments are so
//! key = "/to"                   # calls with the same value here belong together
//! amount = "/amount"            # what is summed up
//!
//! [[sequence]]
//! id = "payments-an-hour"
//! tools = ["pay", "transfer_*"] # calls that are judged
//! where = { "/amount" = { over = 10 } }
//! unless_roles = ["treasurer"]  # calls on behalf of these are not judged
//! sum = "payment"               # or `after`, `before`, `count`: exactly one of them
//! at_most = 500                 # with `count` and `sum`
//! within = "1h"                 # only what happened within this counts
//! since = "review"              # only what happened since this succeeded counts
//! same = "/to"                  # only marks whose key equals this argument count
//! over = "principal"            # else "run": whose past it is about
//! verdict = "review"            # else "deny"; or "warn"
//! message = "…"                 # what it is about
//! instead = "…"                 # what the agent may do instead
//! ```

mod arguments;

use std::collections::{BTreeMap, BTreeSet};

use super::diagnostic::Diagnostic;
use super::load::{check_sources, duplicate, unknown};
use super::placed::{Placed, placed};
use super::toml_table::{Field, File, Table};
use crate::limits::{
    CONTRACT_NAME_BYTES_MAX, MARK_RULES_MAX, PRINCIPAL_WINDOW_MAX_MICROS, SEQUENCE_TOOLS_MAX, SEQUENCES_MAX,
};
use crate::sequence::{Asks, MarkRule, Over, Sequence, Sequences, Window};
use crate::tool::Tool;
use crate::verdict::Verdict;

/// What files said, with the places of it.
#[derive(Default)]
pub(super) struct Parts {
    marks: Vec<Placed<MarkRule>>,
    rules: Vec<Placed<Sequence>>,
    /// Marks that rules name.
    named: Vec<Placed<String>>,
    tools: Vec<Placed<String>>,
}

impl Parts {
    /// Reads one file more.
    pub(super) fn read(&mut self, file: &File<'_>, table: &mut Table<'_, '_>) {
        for table in table.tables("mark") {
            self.mark(file, table);
        }
        for table in table.tables("sequence") {
            self.sequence(file, table);
        }
    }

    fn mark(&mut self, file: &File<'_>, mut table: Table<'_, '_>) {
        let name = name(file, &mut table, "name");
        let tools = self.tools(file, &mut table);
        let only = arguments::only(file, &mut table);
        let key = pointer(file, table.string("key"));
        let amount = pointer(file, table.string("amount"));
        table.finish();
        let Some(name) = name else { return };
        let place = file.at(name.span, "");
        self.marks.push(Placed { value: MarkRule { name: name.value, tools, only, key, amount }, place });
    }

    fn sequence(&mut self, file: &File<'_>, mut table: Table<'_, '_>) {
        let span = table.span.clone();
        let id = name(file, &mut table, "id");
        let tools = self.tools(file, &mut table);
        let only = arguments::only(file, &mut table);
        let unless_roles = table.strings("unless_roles").unwrap_or_default();
        let unless_roles = unless_roles.into_iter().map(|role| role.value).collect();
        let asks = self.asks(file, &mut table);
        let since = table.string("since").map(|since| self.named(file, since));
        let within = table.string("within").and_then(|text| match text.value.parse() {
            Ok(window) => Some(window),
            Err(message) => {
                file.report(file.at(text.span, message));
                None
            }
        });
        let same = pointer(file, table.string("same"));
        let over = [("run", Over::Run), ("principal", Over::Principal)];
        let over = table.word("over", &over).unwrap_or_default();
        let words = [("warn", Verdict::Warn), ("review", Verdict::Review), ("deny", Verdict::Deny)];
        let verdict = table.word("verdict", &words).unwrap_or(Verdict::Deny);
        let message = table.string("message").map(|text| text.value);
        let instead = table.string("instead").map(|text| text.value);
        table.finish();
        let (Some(id), Some(asks)) = (id, asks) else { return };
        let id = id.value;
        let value = Sequence {
            id,
            tools,
            only,
            unless_roles,
            same,
            over,
            asks,
            since,
            within,
            verdict,
            message,
            instead,
        };
        self.rules.push(Placed { value, place: file.at(span, "") });
    }

    /// The one question that a rule asks.
    fn asks(&mut self, file: &File<'_>, table: &mut Table<'_, '_>) -> Option<Asks> {
        let span = table.span.clone();
        let given = ["after", "before", "count", "sum"].map(|word| (word, table.string(word)));
        let mut given = given.into_iter().filter_map(|(word, field)| Some((word, field?)));
        let (one, other) = (given.next(), given.next());
        let Some((word, of)) = one else {
            let message = "a sequence asks one question: `after`, `before`, `count` or `sum`";
            file.report(file.at(span, message));
            return None;
        };
        if let Some((_, other)) = other {
            let message = format!("a sequence asks one question, and this one asks `{word}` already");
            file.report(file.at(other.span, message).help("make two sequences of it"));
            return None;
        }
        let of = self.named(file, of);
        match word {
            "after" => Some(Asks::After(of)),
            "before" => Some(Asks::Before(of)),
            "count" => {
                let at_most = table.integer("at_most", 0);
                if at_most.is_none() {
                    table.missing("at_most");
                }
                Some(Asks::Count { of, at_most: at_most? })
            }
            _ => {
                let at_most = table.millionths("at_most");
                if at_most.is_none() {
                    table.missing("at_most");
                }
                Some(Asks::Sum { of, at_most_micros: at_most? })
            }
        }
    }

    fn named(&mut self, file: &File<'_>, field: Field<String>) -> String {
        let name = field.value.clone();
        self.named.push(placed(file, field));
        name
    }

    fn tools(&mut self, file: &File<'_>, table: &mut Table<'_, '_>) -> Vec<String> {
        let span = table.span.clone();
        let Some(tools) = table.strings("tools") else {
            table.missing("tools");
            return Vec::new();
        };
        if tools.is_empty() || tools.len() > SEQUENCE_TOOLS_MAX {
            file.report(file.at(span, format!("`tools` must name 1 to {SEQUENCE_TOOLS_MAX}")));
        }
        let names = tools.iter().map(|tool| tool.value.clone()).collect();
        let exact = tools.into_iter().filter(|tool| !tool.value.ends_with('*'));
        self.tools.extend(exact.map(|tool| placed(file, tool)));
        names
    }

    /// What they are together.
    pub(super) fn assemble(self, tools: &[Placed<Tool>], diagnostics: &mut Vec<Diagnostic>) -> Sequences {
        check_sources(&self.tools, tools, diagnostics);
        once(
            "mark",
            self.marks.iter().map(|mark| (&mark.value.name, &mark.place)),
            MARK_RULES_MAX,
            diagnostics,
        );
        once(
            "sequence",
            self.rules.iter().map(|rule| (&rule.value.id, &rule.place)),
            SEQUENCES_MAX,
            diagnostics,
        );
        let marks: BTreeMap<&str, &MarkRule> =
            self.marks.iter().map(|mark| (mark.value.name.as_str(), &mark.value)).collect();
        let names: Vec<&str> = marks.keys().copied().collect();
        let strangers = self.named.iter().filter(|name| !marks.contains_key(name.value.as_str()));
        diagnostics.extend(strangers.map(|name| unknown("mark", name, &names)));
        for rule in &self.rules {
            if let Some(message) = lacks(&rule.value, &marks) {
                diagnostics.push(Diagnostic { message, ..rule.place.clone() });
            }
        }
        let marks = self.marks.into_iter().map(|mark| mark.value).collect();
        let rules = self.rules.into_iter().map(|rule| rule.value).collect();
        let known = tools.iter().map(|tool| [tool.value.id.as_str(), tool.value.name.as_str()]);
        Sequences::new(marks, rules, known)
    }
}

/// What a rule or a mark lacks that is needed to judge by it.
fn lacks(rule: &Sequence, marks: &BTreeMap<&str, &MarkRule>) -> Option<String> {
    let is_bounded =
        matches!(rule.within, Some(Window::Micros(micros)) if micros <= PRINCIPAL_WINDOW_MAX_MICROS);
    if rule.over == Over::Principal && !is_bounded {
        return Some("`over = \"principal\"` needs `within`, a time of at most `7d`".to_owned());
    }
    let of = marks.get(rule.asks.of())?;
    if matches!(rule.asks, Asks::Sum { .. }) && of.amount.is_none() {
        return Some(format!("`sum` needs an amount, and the mark `{}` has no `amount`", of.name));
    }
    let since = rule.since.as_deref().and_then(|since| marks.get(since));
    let without_key = [Some(of), since].into_iter().flatten().find(|mark| mark.key.is_none());
    let mark = without_key.filter(|_| rule.same.is_some())?;
    Some(format!("`same` is compared with the key of marks, and the mark `{}` has no `key`", mark.name))
}

/// Names that are given once, and not too many of them.
fn once<'n>(
    what: &str,
    all: impl Iterator<Item = (&'n String, &'n Diagnostic)>,
    most: usize,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut names = BTreeSet::new();
    for (number, (name, place)) in all.enumerate() {
        if !names.insert(name) {
            diagnostics.push(duplicate(what, name, place));
        }
        if number == most {
            diagnostics
                .push(Diagnostic { message: format!("more than {most} of `{what}`"), ..place.clone() });
        }
    }
}

fn name(file: &File<'_>, table: &mut Table<'_, '_>, field: &'static str) -> Option<Field<String>> {
    let Some(name) = table.string(field) else {
        table.missing(field);
        return None;
    };
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits =
        (1..=CONTRACT_NAME_BYTES_MAX).contains(&name.value.len()) && name.value.bytes().all(is_allowed);
    if !fits {
        let message = format!("`{field}` must have 1 to {CONTRACT_NAME_BYTES_MAX} of a-z, 0-9 and -");
        file.report(file.at(name.span, message));
        return None;
    }
    Some(name)
}

/// A JSON pointer to something in the arguments.
fn pointer(file: &File<'_>, field: Option<Field<String>>) -> Option<String> {
    let field = field?;
    if field.value.starts_with('/') {
        return Some(field.value);
    }
    let message = format!("`{}` is no JSON pointer: write `/{}`", field.value, field.value);
    file.report(file.at(field.span, message));
    None
}
