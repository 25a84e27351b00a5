//! What was done to the items of a run, one line for each: the format of seed 003.
//!
//! ```text
//! [2026-11-28T10:00:00Z] TODO_CREATE id=1 content="Fix lint errors" actor=agent
//! [2026-11-28T10:05:00Z] TODO_CLAIM id=1 evidence=[tool_call_id=01f9...] actor=agent
//! [2026-11-28T10:05:01Z] TODO_VERIFY id=1 result=PASS criteria=[command_exit_zero] actor=harness
//! ```

use std::fmt::Write as _;

use portcullis_core::event::{Actor, Event};
use portcullis_core::work::{Came, ItemState, Op, WorkItem, WorkRecord};

use crate::out;

/// The line of an operation; a line for each item of what makes evidence stale.
pub(super) fn lines(event: &Event, record: &WorkRecord) -> Vec<String> {
    let begin = |op: &str| format!("[{}] TODO_{op}", out::seconds(event.t));
    if record.op == Op::Stale {
        let stale = |item| format!("{} id={item} actor=harness", begin("STALE"));
        return record.items.iter().map(|item| stale(item.0)).collect();
    }
    let refused = if record.refused.is_some() { "_REFUSED" } else { "" };
    let op = match record.op {
        Op::Check => "VERIFY".to_owned(),
        op => op.as_str().to_uppercase(),
    };
    let mut line = begin(&format!("{op}{refused}"));
    let mut add = |name: &str, value: &str| {
        let _infallible = write!(line, " {name}={value}");
    };
    if let Some(item) = record.item {
        add("id", &item.0.to_string());
    }
    if let Some(after) = record.after.as_deref() {
        members(record.op, after, &mut add);
    }
    if record.refused.is_some() {
        add("reason", &quoted(&record.why));
    }
    if let Some(cause) = event.cause {
        add("cause", &cause.to_string());
    }
    add("actor", &actor(&event.actor));
    vec![line]
}

/// What is said of an operation besides the item.
fn members(op: Op, after: &WorkItem, add: &mut impl FnMut(&str, &str)) {
    match op {
        Op::Create => add("content", &quoted(&after.title)),
        Op::Propose | Op::Require | Op::Accept => {
            let criteria = if op == Op::Propose { &after.proposed } else { &after.criteria };
            add("criteria", &list(criteria.iter().map(|one| one.check.kind().to_owned())));
        }
        Op::Claim => {
            add("evidence", &list(after.evidence.iter().map(|one| format!("tool_call_id={}", one.action))));
        }
        Op::Check => {
            add("result", result(after));
            let failed =
                |came: Came| if came == Came::Pass { String::new() } else { format!(":{}", came.as_str()) };
            let results = after.criteria.iter().zip(&after.results);
            add(
                "criteria",
                &list(results.map(|(one, came)| format!("{}{}", one.check.kind(), failed(came.came)))),
            );
        }
        Op::Decline | Op::Attest | Op::AskChanges | Op::Bury => add("reason", &quoted(&after.reason)),
        Op::Start | Op::Stale => {}
    }
}

fn result(after: &WorkItem) -> &'static str {
    let came = |wanted: Came| after.results.iter().any(|one| one.came == wanted);
    match after.state {
        ItemState::Verified => "PASS",
        _ if came(Came::Fail) || after.stale().is_some() => "FAIL",
        _ if came(Came::Timeout) => "TIMEOUT",
        _ => "ERROR",
    }
}

/// Who: the seed's words where it has some.
fn actor(actor: &Actor) -> String {
    match actor.as_str() {
        "gate" => "harness".to_owned(),
        name if name.starts_with("agent:") => "agent".to_owned(),
        name => match name.strip_prefix("approver:") {
            Some(person) => format!("person:{}", word(person)),
            None => word(name),
        },
    }
}

fn list(entries: impl Iterator<Item = String>) -> String {
    format!("[{}]", entries.collect::<Vec<_>>().join(", "))
}

/// A text in quotes, on one line whatever is in it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A text as one word; in quotes where it is none.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-@:".contains(c);
    if text.chars().all(plain) && !text.is_empty() { text.to_owned() } else { quoted(text) }
}

#[cfg(test)]
mod tests {
    use portcullis_core::event::EventBody;
    use serde_json::json;

    use super::*;

    fn line(actor: &str, body: serde_json::Value) -> Vec<String> {
        let event = json!({
            "v": 1, "seq": 7, "t": "2026-11-28T10:05:01.250000Z", "kind": "work", "actor": actor,
            "cause": 5, "payloads": {}, "body": body,
        });
        let event = Event::from_line(event.to_string().as_bytes()).unwrap();
        match &event.body {
            EventBody::Work(record) => lines(&event, record),
            other => panic!("{other:?}"),
        }
    }

    /// C10.
    #[test]
    fn c10_audit_lines_are_those_of_the_seed() {
        let item = |state: &str, more: serde_json::Value| {
            let mut item = json!({
                "id": 1, "state": state, "title": "Fix \"lint\"\nerrors", "changed": 7,
                "criteria": [{"type": "command_exit_zero", "command": ["ruff"]}, {"type": "git_clean"}],
            });
            item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            item
        };
        let done = |op: &str, state: &str, more: serde_json::Value| json!({"op": op, "item": 1, "state": state, "after": item(state, more)});
        assert_eq!(
            line("agent:ana", done("create", "pending", json!({}))),
            [r#"[2026-11-28T10:05:01Z] TODO_CREATE id=1 content="Fix \"lint\"\nerrors" cause=5 actor=agent"#]
        );
        assert_eq!(
            line("agent:ana", done("start", "in_progress", json!({}))),
            ["[2026-11-28T10:05:01Z] TODO_START id=1 cause=5 actor=agent"]
        );
        let action = "01".repeat(16);
        let evidence = json!({"evidence": [{"action": action, "outcome": 4, "status": "ok", "digest": "02".repeat(32)}]});
        assert_eq!(
            line("agent:ana", done("claim", "claimed", evidence)),
            [format!(
                "[2026-11-28T10:05:01Z] TODO_CLAIM id=1 evidence=[tool_call_id={action}] cause=5 actor=agent"
            )]
        );
        let results =
            |came: &str| json!({"results": [{"came": came, "took_ms": 1}, {"came": "pass", "took_ms": 1}]});
        assert_eq!(
            line("gate", done("check", "verified", results("pass"))),
            [
                "[2026-11-28T10:05:01Z] TODO_VERIFY id=1 result=PASS criteria=[command_exit_zero, git_clean] cause=5 actor=harness"
            ]
        );
        for (state, came, result) in [
            ("in_progress", "fail", "FAIL"),
            ("claimed", "error", "ERROR"),
            ("claimed", "timeout", "TIMEOUT"),
        ] {
            let wanted = format!(
                "[2026-11-28T10:05:01Z] TODO_VERIFY id=1 result={result} criteria=[command_exit_zero:{came}, git_clean] cause=5 actor=harness"
            );
            assert_eq!(line("gate", done("check", state, results(came))), [wanted]);
        }
        let refused = json!({"op": "attest", "item": 1, "refused": "not_permitted", "why": "a person does"});
        assert_eq!(
            line("agent:ana", refused),
            [r#"[2026-11-28T10:05:01Z] TODO_ATTEST_REFUSED id=1 reason="a person does" cause=5 actor=agent"#]
        );
        assert_eq!(
            line("approver:bo", done("bury", "claimed", json!({"reason": "not wanted"}))),
            [r#"[2026-11-28T10:05:01Z] TODO_BURY id=1 reason="not wanted" cause=5 actor=person:bo"#]
        );
        assert_eq!(
            line("gate", json!({"op": "stale", "items": [1, 2]})),
            [
                "[2026-11-28T10:05:01Z] TODO_STALE id=1 actor=harness",
                "[2026-11-28T10:05:01Z] TODO_STALE id=2 actor=harness"
            ]
        );
    }
}
