//! Tasks: what a request about one names, and what the answer says of it.
//!
//! A call that continues as a task is answered twice: with the task, and later with its result. The second answer
//! is the one that matters, so it is read as strictly as that of a call. Up to 2025-11-25 the result is fetched
//! with [`TASKS_RESULT`](super::TASKS_RESULT); later it is a field of what
//! [`TASKS_GET`](super::TASKS_GET) answers.

use crate::fields::{self, FieldError};
use serde_json::value::RawValue;

use super::text::Told;

/// Longest name of a task, in bytes.
pub const TASK_ID_BYTES_MAX: usize = 1024;

/// Why a request about a task cannot be understood with certainty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// The parameters are missing, no object, or say a field twice.
    #[error("the parameters cannot be read: {0}")]
    Field(#[from] FieldError),
    /// `taskId` is missing, no string, or longer than [`TASK_ID_BYTES_MAX`].
    #[error("`params.taskId` must be the name of a task, of at most {TASK_ID_BYTES_MAX} bytes")]
    Id,
}

/// The task that a `tasks/…` request names.
///
/// # Errors
/// [`TaskError`] if it names none, or two readers could take it for different ones.
pub fn task_id(params: Option<&RawValue>) -> Result<String, TaskError> {
    let params = fields::present(params).ok_or(TaskError::Id)?;
    let [id] = fields::read(params.get(), &["taskId"])?;
    let id = id.and_then(fields::string).filter(|id| id.len() <= TASK_ID_BYTES_MAX);
    id.map(String::from).ok_or(TaskError::Id)
}

/// The state of a task, as `tasks/get` answers it.
#[derive(Debug, Clone)]
pub struct TaskState<'a> {
    /// The status is `failed`.
    pub failed: bool,
    /// The result of the call, once it is there.
    pub result: Option<&'a RawValue>,
    /// The error that the call ended with.
    pub error: Option<&'a RawValue>,
    /// What the server says besides: of the status, and in metadata.
    pub told: Told,
}

/// Reads the state of a task.
///
/// # Errors
/// [`FieldError`] if it is not an object, says one of these fields twice, or cannot be read with certainty.
pub fn read_task_state(answer: &RawValue) -> Result<TaskState<'_>, FieldError> {
    let ([status, result, error], rest) =
        fields::read_with_rest(answer.get(), &["status", "result", "error"])?;
    let mut told = Told::default();
    told.push_unless_plain(status)?;
    told.push_rest(&rest)?;
    let status = status.map(|status| fields::lossy_string(status).unwrap_or_default());
    Ok(TaskState {
        failed: status.as_deref() == Some("failed"),
        result: fields::present(result),
        error: fields::present(error),
        told,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_task_is_named_once() {
        assert_eq!(task_id(Some(&raw(r#"{"taskId":"\u0061","x":1}"#))).unwrap(), "a");
        let long = format!(r#"{{"taskId":"{}"}}"#, "x".repeat(TASK_ID_BYTES_MAX + 1));
        for params in ["null", "{}", r#"{"taskId":1}"#, &long] {
            assert_eq!(task_id(Some(&raw(params))), Err(TaskError::Id), "{params}");
        }
        assert_eq!(task_id(None), Err(TaskError::Id));
        for params in [
            r#"{"taskId":"a","taskId":"b"}"#,
            r#"{"taskId":"a","TASKID":"b"}"#,
            r#"{"taskId":"a","ta\u017fkId":"b"}"#,
            r#"{"taskId":"a","tas\u212aId":"b"}"#,
            "[]",
        ] {
            assert!(matches!(task_id(Some(&raw(params))), Err(TaskError::Field(_))), "{params}");
        }
    }

    #[test]
    fn a_state_says_what_came_of_the_call() {
        let answer = raw(r#"{"status":"f\u0061iled","error":{"code":1},"result":null,"statusMessage":"m"}"#);
        let state = read_task_state(&answer).unwrap();
        assert!(state.failed && state.result.is_none() && state.error.is_some());
        assert_eq!(state.told.text, "m");
        for answer in [r#"{"result":{},"re\u017fult":{}}"#, r#"{"status":"failed","Status":"working"}"#, "[]"]
        {
            assert!(read_task_state(&raw(answer)).is_err(), "{answer}");
        }
    }
}
