//! `retrieve_compliance_documents`: the documents of the knowledge base that fit a query best.
//!
//! Ranking is by term overlap: a document scores, for every distinct term of the query that it
//! contains, the term's inverse document frequency `ln(1 + N / n)`, where `N` documents exist and
//! `n` of them contain the term. A rare term so weighs more than one that stands everywhere. Equal
//! scores are ordered by id; the same query on the same documents always gives the same answer.
//!
//! Terms are runs of letters and digits in lower case; words of grammar are left out, and a plural
//! `s` is dropped, so that "reports" finds "report". That is all the language it knows.
//!
//! Result: `{"documents": [{"id", "snippet", "score"}]}`, best first.

use std::collections::BTreeSet;

use serde_json::json;

use super::{ArgumentSpec, Arguments, Tool, ToolError, ToolOutput, Workspace, quoted};

/// Most documents returned by a call.
const MAX_HITS: usize = 3;
/// Longest snippet, in characters.
const MAX_SNIPPET_CHARS: usize = 400;
/// Longest query, in bytes.
const MAX_QUERY_BYTES: usize = 1000;

/// Words that say nothing about the subject.
const STOP_WORDS: [&str; 36] = [
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from",
    "how", "i", "in", "is", "it", "may", "of", "on", "or", "our", "that", "the", "this", "to", "was", "we",
    "what", "when", "which", "who", "with",
];

pub(super) static TOOL: Tool = Tool {
    id: "retrieve_compliance_documents",
    name: "Retrieve Compliance Documents",
    description: "Find the documents of the knowledge base that fit a query best; returns their ids and a \
                  snippet of each.",
    read_only: true,
    destructive: false,
    idempotent: true,
    arguments: &[ArgumentSpec {
        name: "query",
        description: "What to look for, in plain words.",
        max_bytes: MAX_QUERY_BYTES,
    }],
    run,
};

fn run(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<ToolOutput, ToolError> {
    let query = arguments.text("query")?;
    let wanted = terms(query);
    if wanted.is_empty() {
        return Err(arguments.refuse("query", "holds no word to look for; name a subject".to_owned()));
    }
    let documents: Vec<(&String, &String, BTreeSet<String>)> =
        workspace.knowledge().iter().map(|(id, text)| (id, text, terms(text))).collect();
    let weigh = |term: &String| {
        let containing = documents.iter().filter(|(_, _, terms)| terms.contains(term)).count();
        // Both counts are at most MAX_DOCUMENTS, far below the precision of the division.
        (1.0 + documents.len() as f64 / containing.max(1) as f64).ln()
    };
    let weights: Vec<(&String, f64)> = wanted.iter().map(|term| (term, weigh(term))).collect();
    let mut hits: Vec<(f64, &String, String)> = documents
        .iter()
        .filter_map(|(id, text, terms)| {
            let score: f64 = weights.iter().filter(|(term, _)| terms.contains(*term)).map(|(_, w)| w).sum();
            (score > 0.0).then(|| (score, *id, snippet(text, &wanted)))
        })
        .collect();
    hits.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(right.1)));
    hits.truncate(MAX_HITS);

    let text = if hits.is_empty() {
        format!("no document of the knowledge base fits `{}`", quoted(query))
    } else {
        let lines: Vec<String> = hits.iter().map(|(_, id, snippet)| format!("{id}: {snippet}")).collect();
        lines.join("\n")
    };
    let documents: Vec<_> = hits
        .into_iter()
        .map(|(score, id, snippet)| {
            json!({"id": id, "snippet": snippet, "score": (score * 1000.0).round() / 1000.0})
        })
        .collect();
    Ok(ToolOutput { text, structured: json!({"documents": documents}) })
}

/// The distinct terms of `text`.
fn terms(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .filter(|word| !STOP_WORDS.contains(&word.as_str()))
        .map(singular)
        .collect()
}

/// `word` without a plural `s`. "access" and "gas" keep theirs.
fn singular(word: String) -> String {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with('s') => stem.to_owned(),
        _ => word,
    }
}

/// The part of `text` to show: all of it if short, else from the first sentence with a wanted term.
fn snippet(text: &str, wanted: &BTreeSet<String>) -> String {
    let text = text.trim();
    let from = if text.chars().count() <= MAX_SNIPPET_CHARS {
        text
    } else {
        let mut rest = text;
        loop {
            match rest.split_once(". ") {
                Some((sentence, after)) if terms(sentence).is_disjoint(wanted) => rest = after,
                _ => break rest,
            }
        }
    };
    let mut shown: String = from.chars().take(MAX_SNIPPET_CHARS).collect();
    if from.chars().nth(MAX_SNIPPET_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    fn shipped() -> BTreeMap<String, String> {
        serde_json::from_str(include_str!("../../../../examples/bundle/knowledge.json")).unwrap()
    }

    fn retrieve(query: &str) -> Result<ToolOutput, ToolError> {
        let dir = tempfile::tempdir().unwrap();
        Workspace::create(dir.path(), &shipped()).unwrap().call(TOOL.id, &json!({"query": query}))
    }

    fn ids(query: &str) -> Vec<String> {
        let structured = retrieve(query).unwrap().structured;
        let documents = structured["documents"].as_array().unwrap();
        documents.iter().map(|d| d["id"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn each_shipped_document_is_found_by_its_subject() {
        assert_eq!(ids("How do external reports get anonymized?")[0], "doc_001");
        assert_eq!(ids("raw financial data")[0], "doc_002");
        assert_eq!(ids("which channels for customers: SMS?")[0], "doc_003");
        assert_eq!(ids("incident response team")[0], "doc_004");
    }

    #[test]
    fn the_answer_carries_id_and_text() {
        let output = retrieve("incident response").unwrap();
        assert!(output.text.starts_with("doc_004: Critical security vulnerabilities"), "{}", output.text);
        assert!(output.structured["documents"][0]["score"].as_f64().unwrap() > 0.0);
    }

    #[test]
    fn nothing_found_is_an_answer_and_an_empty_query_is_not_a_question() {
        let output = retrieve("zeppelin").unwrap();
        assert_eq!(output.structured["documents"], Value::Array(vec![]));
        assert_eq!(output.text, "no document of the knowledge base fits `zeppelin`");
        assert!(retrieve("what is the").unwrap_err().to_string().contains("no word to look for"));
    }

    #[test]
    fn rare_terms_outweigh_common_ones_and_ties_go_by_id() {
        let dir = tempfile::tempdir().unwrap();
        let knowledge = BTreeMap::from(
            [("b", "data data data"), ("a", "data"), ("c", "data quasar")]
                .map(|(k, v)| (k.to_owned(), v.to_owned())),
        );
        let workspace = Workspace::create(dir.path(), &knowledge).unwrap();
        let found = workspace.call(TOOL.id, &json!({"query": "data quasars"})).unwrap().structured;
        let order: Vec<&str> =
            found["documents"].as_array().unwrap().iter().map(|d| d["id"].as_str().unwrap()).collect();
        assert_eq!(order, ["c", "a", "b"]);
    }

    #[test]
    fn a_long_document_is_shown_from_the_sentence_that_fits() {
        let text = format!("{}The quasar is far. End.", "Filler words here. ".repeat(40));
        assert_eq!(snippet(&text, &terms("quasar")), "The quasar is far. End.");
        assert_eq!(snippet(&"x".repeat(500), &terms("quasar")).chars().count(), MAX_SNIPPET_CHARS + 1);
    }
}
