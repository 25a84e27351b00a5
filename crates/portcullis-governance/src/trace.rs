//! The trace of a run: one row an event, and the rows as a table for a terminal.
//!
//! Rows are what a reader of a run wants to see, in seven columns; the full events are in the ledger.
//! The table is plain text: columns are padded to the widest cell, long cells are cut with `…`, and
//! control characters are escaped, since payloads hold text that an agent or a tool chose and a
//! terminal obeys escape sequences. Widths count characters; wide scripts may stand out of line.

use std::fmt;

use portcullis_core::id::RunId;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::PolicyAction;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The type of a row of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EventType {
    /// The agent thought, without choosing a tool.
    LlmThinking,
    /// The agent chose a tool and its arguments.
    ToolSelected,
    /// The tool was not called.
    ToolBlocked,
    /// The call is held until a person decides.
    ApprovalRequested,
    /// The tool was called; the payload holds its result.
    ToolExecuted,
    /// The agent gave an answer.
    OutputGenerated,
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::LlmThinking => "LLM_THINKING",
            Self::ToolSelected => "TOOL_SELECTED",
            Self::ToolBlocked => "TOOL_BLOCKED",
            Self::ApprovalRequested => "APPROVAL_REQUESTED",
            Self::ToolExecuted => "TOOL_EXECUTED",
            Self::OutputGenerated => "OUTPUT_GENERATED",
        })
    }
}

/// A row of a trace. Serialized, its fields are the columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceRow {
    /// The run.
    pub run_id: RunId,
    /// Number of the agent's step, from 1. One step may have several rows.
    pub step_number: u32,
    /// What happened.
    pub event_type: EventType,
    /// What policy decided about the step.
    pub policy_action: PolicyAction,
    /// Why.
    pub policy_reason: String,
    /// When.
    pub timestamp: Timestamp,
    /// The particulars: planned action, tool, arguments or result.
    pub payload: Value,
}

/// The columns, as serialized and as the table names them.
pub const COLUMNS: [&str; 7] =
    ["run_id", "step_number", "event_type", "policy_action", "policy_reason", "timestamp", "payload"];

/// Widest cell of each column, in characters; the payload takes what is left of the line instead.
const MAX_CELL_CHARS: [usize; 7] = [8, 11, 18, 17, 60, 27, MIN_PAYLOAD_CHARS];
/// Least room for the payload, however narrow the terminal.
const MIN_PAYLOAD_CHARS: usize = 30;
/// Between two columns.
const GAP: &str = "  ";

/// The rows as a table whose lines have at most `width` characters, more only where the other columns
/// leave less than 30 for the payload. The run id is shortened to its first 8 digits. Ends with a line
/// break.
#[must_use]
pub fn table(rows: &[TraceRow], width: usize) -> String {
    let cells: Vec<[String; 7]> = rows.iter().map(cells).collect();
    let mut widths: [usize; 7] = COLUMNS.map(|name| name.chars().count());
    for row in &cells {
        for ((cell, limit), widest) in row.iter().zip(MAX_CELL_CHARS).zip(&mut widths) {
            *widest = (*widest).max(cell.chars().count().min(limit));
        }
    }
    if let Some((payload, others)) = widths.split_last_mut() {
        let taken: usize = others.iter().map(|width| width + GAP.len()).sum();
        *payload = width.saturating_sub(taken).max(MIN_PAYLOAD_CHARS);
    }
    let mut table = line(&COLUMNS.map(str::to_owned), &widths);
    table.push_str(&line(&COLUMNS.map(|name| "-".repeat(name.len())), &widths));
    for row in &cells {
        table.push_str(&line(row, &widths));
    }
    table
}

fn cells(row: &TraceRow) -> [String; 7] {
    [
        row.run_id.to_string().chars().take(8).collect(),
        row.step_number.to_string(),
        row.event_type.to_string(),
        row.policy_action.to_string(),
        printable(&row.policy_reason),
        row.timestamp.to_string(),
        printable(&row.payload.to_string()),
    ]
}

fn line(cells: &[String; 7], widths: &[usize; 7]) -> String {
    let fitted: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| {
            let mut fitted = cell.clone();
            if let Some((cut, _)) = cell.char_indices().nth(width.saturating_sub(1))
                && cell.chars().nth(*width).is_some()
            {
                fitted.truncate(cut);
                fitted.push('…');
            }
            format!("{fitted:<width$}")
        })
        .collect();
    format!("{}\n", fitted.join(GAP).trim_end())
}

/// `text` with control characters, and those that turn the direction of writing, escaped.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        let turns =
            matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || turns {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn row(
        step_number: u32,
        event_type: EventType,
        policy_action: PolicyAction,
        reason: &str,
        payload: Value,
    ) -> TraceRow {
        TraceRow {
            run_id: RunId::from_bytes([0xab; 16]),
            step_number,
            event_type,
            policy_action,
            policy_reason: reason.to_owned(),
            timestamp: Timestamp::from_micros(1_772_357_400_250_000),
            payload,
        }
    }

    #[test]
    fn rows_have_the_named_columns() {
        let row = row(1, EventType::ToolBlocked, PolicyAction::Denied, "no", json!({"tool": "x"}));
        let value = serde_json::to_value(&row).unwrap();
        let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = COLUMNS;
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected);
        assert_eq!(value["event_type"], "TOOL_BLOCKED");
        assert_eq!(value["policy_action"], "DENIED");
        assert_eq!(serde_json::from_value::<TraceRow>(value).unwrap(), row);
    }

    #[test]
    fn printed_and_serialized_names_are_the_same() {
        for event_type in [
            EventType::LlmThinking,
            EventType::ToolSelected,
            EventType::ToolBlocked,
            EventType::ApprovalRequested,
            EventType::ToolExecuted,
            EventType::OutputGenerated,
        ] {
            assert_eq!(serde_json::to_value(event_type).unwrap(), event_type.to_string());
        }
    }

    #[test]
    fn the_table_is_aligned_and_cut() {
        let rows = [
            row(
                1,
                EventType::ToolSelected,
                PolicyAction::Allowed,
                "allowed",
                json!({"query": "x".repeat(80)}),
            ),
            row(
                2,
                EventType::ToolBlocked,
                PolicyAction::Denied,
                "tool type not allowed",
                json!("é\u{1b}[2J\u{202e}"),
            ),
        ];
        expect![[r#"
            run_id    step_number  event_type     policy_action  policy_reason          timestamp                    payload
            ------    -----------  ----------     -------------  -------------          ---------                    -------
            abababab  1            TOOL_SELECTED  ALLOWED        allowed                2026-03-01T09:30:00.250000Z  {"query":"xxxxxxxxxxxxxxxxxxxxxxxxxxx…
            abababab  2            TOOL_BLOCKED   DENIED         tool type not allowed  2026-03-01T09:30:00.250000Z  "é\u001b[2J\u{202e}"
        "#]]
        .assert_eq(&table(&rows, 143));
        let wide = table(&rows, 160);
        assert_eq!(wide.lines().map(|line| line.chars().count()).max(), Some(160));
        assert!(table(&[], 80).starts_with("run_id"));
    }
}
