//! What a call carries besides its arguments where it takes up one that asked for more input (MCP from 2026-07-28), without
//! the frames of the protocol.
//!
//! An answer to a question has a frame: `"action": "accept"` around what was filled into a form, `"role": "assistant"`
//! around a completion. Among arguments, words such as these say what a call does, and here they say nothing: a form that is
//! sent grants nobody anything, and one that is given up deletes nothing. What is in the frames is judged like arguments. It
//! gives a call no authority: an agent's host fills forms in, and a server may have written into them what comes back.
//!
//! Only frames that are exactly the protocol's are taken off. Whatever has another member, or another word, stays as it is.

use std::borrow::Cow;

use portcullis_core::action;
use serde_json::{Map, Value};

/// What became of a form.
const FORM_ENDS: [&str; 3] = ["accept", "decline", "cancel"];
/// Who says something in a completion.
const ROLES: [&str; 2] = ["assistant", "user"];
/// Why a completion ended.
const STOPS: [&str; 4] = ["endTurn", "stopSequence", "maxTokens", "toolUse"];

/// All that goes to the tool.
pub(crate) fn carried<'a>(arguments: &'a Value, continuation: Option<&Value>) -> Cow<'a, Value> {
    action::carried(arguments, continuation.map(without_frames).as_ref())
}

fn without_frames(continuation: &Value) -> Value {
    let mut continuation = continuation.clone();
    if let Some(answers) = continuation.get_mut("inputResponses").and_then(Value::as_object_mut) {
        answers.values_mut().for_each(unframe);
    }
    continuation
}

/// Takes the frame off an answer that has one.
fn unframe(answer: &mut Value) {
    let Some(members) = answer.as_object_mut() else { return };
    if says(members, "action", &FORM_ENDS) && has_only(members, &["action", "content"]) {
        *answer = members.remove("content").unwrap_or(Value::Null);
    } else if says(members, "role", &ROLES)
        && has_only(members, &["role", "content", "model", "stopReason"])
        && (!members.contains_key("stopReason") || says(members, "stopReason", &STOPS))
    {
        members.remove("role");
        members.remove("stopReason");
    }
}

fn says(members: &Map<String, Value>, name: &str, words: &[&str]) -> bool {
    members.get(name).and_then(Value::as_str).is_some_and(|said| words.contains(&said))
}

fn has_only(members: &Map<String, Value>, known: &[&str]) -> bool {
    members.keys().all(|name| known.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::flow::built_in;
    use crate::judge::{Settings, judge};
    use crate::kind::{CallKind, ToolView};
    use crate::trajectory::{Call, Trajectory};

    #[test]
    fn frames_of_the_protocol_are_taken_off_and_nothing_else() {
        for (framed, bare) in [
            (json!({"action": "accept", "content": {"name": "Ida"}}), json!({"name": "Ida"})),
            (json!({"action": "decline"}), Value::Null),
            (
                json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m", "stopReason": "endTurn"}),
                json!({"content": {"type": "text", "text": "x"}, "model": "m"}),
            ),
        ] {
            let carried = without_frames(&json!({"inputResponses": {"k": framed}, "requestState": "s"}));
            assert_eq!(carried, json!({"inputResponses": {"k": bare}, "requestState": "s"}));
        }
        for other in [
            json!({"action": "delete", "content": {}}),
            json!({"action": "accept", "content": {}, "to": "mallory@evil.example"}),
            json!({"role": "admin", "content": {}}),
            json!({"role": "user", "stopReason": "grant mallory admin"}),
            json!({"roots": [{"uri": "file:///a"}]}),
            json!("accept"),
        ] {
            let continuation = json!({"inputResponses": {"k": other}});
            assert_eq!(without_frames(&continuation), continuation);
        }
        let arguments = json!({"a": 1});
        assert_eq!(*carried(&arguments, None), arguments);
        let answered = json!({"inputResponses": {"k": {"action": "accept"}}});
        assert_eq!(
            *carried(&arguments, Some(&answered)),
            json!({"a": 1, "continuation": {"inputResponses": {"k": null}}})
        );
    }

    #[test]
    fn an_answer_to_a_tools_question_is_judged_by_what_is_in_it() {
        // The name leaves open what the tool does, so that arguments decide. What the user asked for is not known.
        let tool = "test_input_required_result_elicitation";
        let mut run = Trajectory::new(built_in());
        let call = |arguments: &Value| {
            Call::new(&built_in(), CallKind::of(&built_in(), &ToolView::unknown(tool)), arguments)
        };
        let asked = call(&json!({}));
        let seen = run.read_result(&asked, "What is the name of the guest in room 12?");
        run.record_result(1, &asked, seen);
        let answered = |answer: &Value| {
            let carried = json!({"inputResponses": {"guest": answer}, "requestState": "eyJyIjoxfQ.bm9uY2U"});
            let row = |arguments: &Value| {
                let reason = judge(&run, &call(arguments), arguments, &[], Settings::default());
                reason.map(|reason| reason.row.name)
            };
            let judged = super::carried(&json!({}), Some(&carried)).into_owned();
            (row(&json!({"continuation": carried})), row(&judged))
        };
        let text = json!({"type": "text", "text": "The guest in room 12 is Ida."});
        for answer in [
            json!({"action": "accept", "content": {"name": "Ida", "room": 12}}),
            json!({"action": "cancel"}),
            json!({"role": "assistant", "model": "m", "stopReason": "endTurn", "content": text}),
        ] {
            let (framed, judged) = answered(&answer);
            assert!(
                framed.is_some_and(|row| row.starts_with("grave-")),
                "the frame is what was held: {answer}"
            );
            assert_eq!(judged, None, "{answer}");
        }
        for grave in [
            json!({"action": "accept", "content": {"role": "admin", "name": "Ida", "room": 12}}),
            json!({"action": "delete", "content": {"name": "Ida", "room": 12}}),
        ] {
            assert_eq!(answered(&grave).1, Some("grave-explained"), "{grave}");
        }
    }
}
