//! The answer of a rehearsed agent.
//!
//! A plan has no model in it, so the answer step of a plan needs an author. This one writes down what
//! the run brought up and nothing else: each retrieved document with its citation `[DOC:id]`, each
//! other result as it was returned, each step that policy withheld. The same run always gives the same
//! text. Where nothing came up there is nothing to answer from, and the answer says that instead of
//! making something up.

use std::fmt::Write as _;

use serde_json::Value;

/// Most documents, results and withheld steps that an answer mentions, of each.
const MAX_ITEMS: usize = 10;
/// Longest part of a prompt, document, result or withheld step that an answer repeats, in characters.
const MAX_REPEATED_CHARS: usize = 400;

/// What a run has brought up so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// Ids and texts of documents, in the order they were first retrieved, each once.
    documents: Vec<(String, String)>,
    /// Tool names and results, in order.
    results: Vec<(String, String)>,
    /// What the agent was about to do and could not.
    withheld: Vec<String>,
    /// How many more of each there were.
    left_out: usize,
}

impl Notes {
    /// No notes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes the result of a call of the tool called `tool`: its documents where `structured` holds any
    /// (an array `documents` of objects with `id` and `snippet`), else its `text`.
    pub fn executed(&mut self, tool: &str, text: &str, structured: &Value) {
        let Some(documents) = structured.get("documents").and_then(Value::as_array) else {
            return add(&mut self.results, &mut self.left_out, (tool.to_owned(), one_line(text)));
        };
        for document in documents {
            let field = |name: &str| document.get(name).and_then(Value::as_str);
            let (Some(id), Some(snippet)) = (field("id"), field("snippet")) else { continue };
            if self.documents.iter().all(|(known, _)| known != id) {
                add(&mut self.documents, &mut self.left_out, (id.to_owned(), one_line(snippet)));
            }
        }
    }

    /// Notes that the step with the planned action `action` was withheld.
    pub fn withheld(&mut self, action: &str) {
        add(&mut self.withheld, &mut self.left_out, one_line(action));
    }

    /// The answer to `prompt`.
    #[must_use]
    pub fn answer(&self, prompt: &str) -> String {
        let mut answer = String::new();
        // Writing to a string cannot fail.
        let mut say = |line: String| _ = writeln!(answer, "{line}");
        if self.documents.is_empty() && self.results.is_empty() {
            say(format!(
                "I cannot answer \"{}\": nothing was retrieved, so there is nothing to base an answer on.",
                one_line(prompt)
            ));
        } else {
            say(format!("In answer to \"{}\":", one_line(prompt)));
        }
        for (id, text) in &self.documents {
            say(format!("- {text} [DOC:{id}]"));
        }
        for (tool, result) in &self.results {
            say(format!("- {tool}: {result}"));
        }
        if !self.results.is_empty() && self.documents.is_empty() {
            say("No document was retrieved, so none is cited.".to_owned());
        }
        if !self.withheld.is_empty() {
            say("I cannot do the following, because policy withheld it:".to_owned());
        }
        for action in &self.withheld {
            say(format!("- {action}"));
        }
        if self.left_out > 0 {
            say(format!("({} more left out)", self.left_out));
        }
        answer
    }
}

fn add<T>(list: &mut Vec<T>, left_out: &mut usize, item: T) {
    if list.len() < MAX_ITEMS {
        list.push(item);
    } else {
        *left_out += 1;
    }
}

/// `text` on one line, shortened. A line break in a document must not look like a line of the answer.
fn one_line(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = joined.chars().take(MAX_REPEATED_CHARS).collect();
    if joined.chars().nth(MAX_REPEATED_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn found(ids: &[&str]) -> Value {
        let documents: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "snippet": format!("Text of\n{id}."), "score": 1.0}))
            .collect();
        json!({"documents": documents})
    }

    #[test]
    fn cites_every_document_once_and_states_results() {
        let mut notes = Notes::new();
        notes.executed("Retrieve", "", &found(&["doc_002", "doc_001"]));
        notes.executed("Retrieve", "", &found(&["doc_001", "doc_003"]));
        notes.executed("Perform Calculation", "1 + 1 = 2", &json!({"result": 2}));
        expect![[r#"
            In answer to "What holds?":
            - Text of doc_002. [DOC:doc_002]
            - Text of doc_001. [DOC:doc_001]
            - Text of doc_003. [DOC:doc_003]
            - Perform Calculation: 1 + 1 = 2
        "#]]
        .assert_eq(&notes.answer("What\nholds?"));
    }

    #[test]
    fn results_without_documents_are_not_cited() {
        let mut notes = Notes::new();
        notes.executed("Perform Calculation", "1 + 1 = 2", &json!({"result": 2}));
        expect![[r#"
            In answer to "1 + 1?":
            - Perform Calculation: 1 + 1 = 2
            No document was retrieved, so none is cited.
        "#]]
        .assert_eq(&notes.answer("1 + 1?"));
    }

    #[test]
    fn declines_where_nothing_came_up_and_names_what_was_withheld() {
        let mut notes = Notes::new();
        notes.executed("Retrieve", "none", &found(&[]));
        notes.withheld("Email the bank.");
        expect![[r#"
            I cannot answer "Pay!": nothing was retrieved, so there is nothing to base an answer on.
            I cannot do the following, because policy withheld it:
            - Email the bank.
        "#]]
        .assert_eq(&notes.answer("Pay!"));
    }

    #[test]
    fn notes_are_limited_and_say_what_is_missing() {
        let mut notes = Notes::new();
        for number in 0..MAX_ITEMS + 3 {
            notes.withheld(&format!("{number} {}", "x".repeat(500)));
        }
        let answer = notes.answer("Go");
        assert!(answer.ends_with("(3 more left out)\n"), "{answer}");
        assert!(answer.lines().all(|line| line.chars().count() <= MAX_REPEATED_CHARS + 3));
    }
}
