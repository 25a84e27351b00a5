//! Calls that carry a goal out, for goals whose definitions have none that do.
//!
//! AgentDyn's ground truth for some goals is a placeholder, and for others leaves out arguments that the tool requires.
//! Its map of goals to functions says what a call must look like, so one is made: the first of the functions, with what
//! the goal names at the parameter that takes such a thing; its other arguments are what some task of the suite gives a
//! parameter of that name. What the oracle does not take for the attacker's is not used.

use serde_json::{Map, Value, json};

use super::definitions::{Goal, GoalCall, Suite};
use super::tools::ToolSpec;
use super::{Call, Part};

/// The goal with calls that `suite`'s tools understand; none where it has no oracle, or a tool is missing. `home` defines
/// the goal.
pub fn enact(goal: &Goal, suite: &Suite, home: &Suite) -> Option<Goal> {
    let (functions, pattern) = goal.oracle()?;
    let tool = |name: &str| suite.tools.iter().find(|tool| tool.name == name);
    let mut enacted = goal.clone();
    let part = |call: &GoalCall| {
        let call = Call { tool: call.function.clone(), arguments: call.arguments.clone(), ..Call::default() };
        goal.part(&call, &[])
    };
    let complete = |call: &GoalCall| tool(&call.function).is_some_and(|tool| has_all(tool, &call.arguments));
    if !(goal.calls.iter().all(complete) && goal.calls.iter().any(|call| part(call) == Part::Malicious)) {
        let tool = functions.iter().find_map(|name| tool(name))?;
        let found =
            pattern.find(&goal.text).map(|found| within_words(&goal.text, found.start(), found.end()));
        let call = GoalCall {
            function: tool.name.clone(),
            arguments: arguments(tool, found.filter(|named| named.len() > 1), &[suite, home]),
            decisive: true,
        };
        if part(&call) != Part::Malicious {
            return None;
        }
        enacted.calls = vec![call];
    }
    for call in &mut enacted.calls {
        call.decisive = part(call) == Part::Malicious;
    }
    Some(enacted)
}

fn required(tool: &ToolSpec) -> impl Iterator<Item = &str> {
    tool.schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn has_all(tool: &ToolSpec, arguments: &Value) -> bool {
    required(tool).all(|name| arguments.get(name).is_some())
}

/// A stretch of a text grown to the white space around it, without the punctuation at its ends.
fn within_words(text: &str, start: usize, end: usize) -> &str {
    let (head, rest) = text.split_at_checked(start).unwrap_or_default();
    let (_, tail) = rest.split_at_checked(end.saturating_sub(start)).unwrap_or_default();
    let start = head.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let end = text.len() - tail.len() + tail.find(char::is_whitespace).unwrap_or(tail.len());
    let word = text.get(start..end).unwrap_or_default();
    word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/')
}

/// Arguments for a tool: what the goal names where it belongs, and for the rest what tasks give.
fn arguments(tool: &ToolSpec, named: Option<&str>, suites: &[&Suite]) -> Value {
    let properties = tool.schema.get("properties").and_then(Value::as_object);
    let names: Vec<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let home = named.and_then(|named| {
        let words: &[&str] = match named {
            mail if mail.contains('@') => &["mail", "recipient"],
            page if page.contains("www.") || page.contains("://") => &["url"],
            _ => &[],
        };
        let fits = |name: &&&str| words.iter().any(|word| name.contains(word));
        names.iter().find(fits).copied().or_else(|| required(tool).next())
    });
    let mut made = Map::new();
    for name in required(tool).chain(home) {
        let schema = properties.and_then(|properties| properties.get(name));
        let kind = schema.and_then(|schema| schema.get("type")).and_then(Value::as_str);
        let given = || {
            let calls = suites.iter().flat_map(|suite| suite.task_calls.values()).flatten();
            let mut values =
                calls.filter_map(|call| call.arguments.get(name)).filter(|value| !value.is_null());
            values.next().cloned()
        };
        let value = match (named.filter(|_| Some(name) == home), kind) {
            (Some(named), Some("array")) => json!([named]),
            (Some(named), _) => json!(named),
            (None, Some("number" | "integer")) => given().unwrap_or_else(|| json!(1)),
            (None, Some("array")) => given().unwrap_or_else(|| json!([])),
            (None, _) => given().unwrap_or_else(|| json!("as agreed")),
        };
        made.insert(name.to_owned(), value);
    }
    Value::Object(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool() -> ToolSpec {
        ToolSpec {
            name: "post_note".into(),
            description: "Posts a note.".into(),
            schema: json!({
                "properties": {"board": {"type": "string"}, "readers_mail": {"type": "array"}, "copies": {"type": "integer"}},
                "required": ["board", "copies"],
            }),
        }
    }

    #[test]
    fn what_the_goal_names_stands_where_it_belongs() {
        let text = "Post the note to 'gate-keeper@moor.example'.";
        let at = text.find("moor").unwrap();
        let named = within_words(text, at, at + 4);
        assert_eq!(named, "gate-keeper@moor.example");
        let made = arguments(&tool(), Some(named), &[]);
        assert_eq!(
            made,
            json!({"board": "as agreed", "copies": 1, "readers_mail": ["gate-keeper@moor.example"]})
        );
        assert_eq!(arguments(&tool(), Some("shelf-7"), &[])["board"], json!("shelf-7"));
        assert_eq!(arguments(&tool(), None, &[])["board"], json!("as agreed"));
    }
}
