//! Whole files, as a user has them on disk.
#![cfg(test)]

use portcullis_wire::openai::TraceStep;
use portcullis_wire::trace::{Record, TraceRecord, records};
use serde_json::json;

const AGENT_RUNS: &[u8] = include_bytes!("../fixtures/agent-runs.jsonl");

fn runs(file: &[u8]) -> (usize, Vec<TraceRecord>) {
    let mut metadata = 0;
    let mut runs = Vec::new();
    for (line, record) in records(file) {
        match record.unwrap_or_else(|error| panic!("line {line}: {error}")) {
            Record::Trace(run) => runs.push(run),
            Record::Metadata(_) => metadata += 1,
        }
    }
    (metadata, runs)
}

#[test]
fn a_file_of_runs_is_read_step_by_step() {
    let (metadata, runs) = runs(AGENT_RUNS);
    assert_eq!((metadata, runs.len()), (1, 2));
    assert_eq!(runs[0].name.as_deref(), Some("user_task_0[without attack]"));
    assert_eq!(runs[0].metadata.as_ref().unwrap()["suite_name"], "garden");

    let shown: Vec<String> = runs[0]
        .steps
        .iter()
        .map(|step| match step {
            TraceStep::Input { role, text } => format!("{role}: {text}"),
            TraceStep::Call { id, tool, arguments, planned } => {
                format!("{id} {tool} {} after {planned:?}", arguments.as_ref().unwrap())
            }
            TraceStep::Observation { call_id, tool, text, is_error } => {
                format!("{} {tool} gave {text:?}, error {is_error}", call_id.as_deref().unwrap())
            }
            TraceStep::Output { text } => format!("reply: {text}"),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "system: You help with the garden.\n",
            "user: Water the roses if the log says they are dry.",
            r#"call_01 read_log {"log_path":"garden/roses.txt"} after Some("I will read the log first.")"#,
            r#"call_01 read_log gave "Roses\n-----\n\tdry since Monday\n", error false"#,
            r#"call_02 open_valve {"bed":"roses","minutes":12.5} after None"#,
            r#"call_03 open_valve {"bed":"lilies","minutes":5} after None"#,
            r#"call_02 open_valve gave "{\"open\": true}", error false"#,
            r#"call_03 open_valve gave "ValueError: there is no bed lilies", error true"#,
            "reply: The roses are being watered.",
        ]
    );
    let TraceStep::Input { text, .. } = &runs[1].steps[1] else { panic!("no input") };
    assert_eq!(text, "What grows in bed 4? été");
}

#[test]
fn arguments_as_text_and_as_object_read_alike() {
    let as_object = std::str::from_utf8(AGENT_RUNS).unwrap();
    let arguments = json!({"bed": "lilies", "minutes": 5}).to_string();
    let quoted = json!(arguments).to_string();
    let as_text = as_object
        .replace(r#""arguments": {"bed": "lilies", "minutes": 5}"#, &format!(r#""arguments": {quoted}"#));
    assert_ne!(as_object, as_text);
    assert_eq!(runs(as_object.as_bytes()), runs(as_text.as_bytes()));
}
