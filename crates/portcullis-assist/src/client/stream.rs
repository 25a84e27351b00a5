//! Reading a chat completion as it comes: server-sent events, or one JSON document from servers that do not stream.
//!
//! An answer is complete when the server has said why it ended (`finish_reason`) or that it is done (`[DONE]`). A
//! connection that closes before is an answer that broke off, whatever text had come.

use std::ops::ControlFlow;

use serde::Deserialize;

use super::retry::retry_after;
use super::transport::{Head, Sink};
use crate::limits::{
    MAX_ANSWER_BYTES, MAX_ERROR_BYTES, MAX_ERROR_CHARS, MAX_EVENT_BYTES, MAX_RESPONSE_BYTES,
};
use crate::model::{Completion, Finish, ModelError, Usage};

/// Takes a response.
#[derive(Debug, Default)]
pub(super) struct Reader {
    head: Option<Head>,
    /// Bytes that came altogether.
    taken: usize,
    /// The line that is not ended yet; of a response that is no stream, all of it.
    pending: Vec<u8>,
    /// The data of the event that is not ended yet.
    event: Vec<u8>,
    text: String,
    finish: Option<Finish>,
    usage: Option<Usage>,
    done: bool,
    failure: Option<ModelError>,
    /// The bytes whose message the failure repeats.
    quoted: Vec<u8>,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Tokens>,
    error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Choice {
    /// Of a stream.
    delta: Option<Content>,
    /// Of a document.
    message: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    content: Option<String>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

impl Sink for Reader {
    fn head(&mut self, head: &Head) {
        self.head = Some(head.clone());
    }

    fn bytes(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.taken = self.taken.saturating_add(bytes.len());
        if self.taken > MAX_RESPONSE_BYTES {
            return self.fail(format!("over {MAX_RESPONSE_BYTES} bytes"));
        }
        if !self.is_stream() {
            self.pending.extend_from_slice(bytes);
            // Of an error, the beginning is enough.
            let enough = self.status() >= 300 && self.pending.len() > MAX_ERROR_BYTES;
            return if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(piece);
            if self.pending.len() + self.event.len() > MAX_EVENT_BYTES {
                return self.fail(format!("an event of over {MAX_EVENT_BYTES} bytes"));
            }
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.pending);
                self.line(&line)?;
            }
        }
        ControlFlow::Continue(())
    }
}

impl Reader {
    fn status(&self) -> u16 {
        self.head.as_ref().map_or(0, |head| head.status)
    }

    fn is_stream(&self) -> bool {
        self.status() < 300 && self.head.as_ref().is_some_and(|head| head.media_type == "text/event-stream")
    }

    fn fail(&mut self, why: String) -> ControlFlow<()> {
        self.failure = Some(ModelError::NotACompletion(why));
        ControlFlow::Break(())
    }

    fn line(&mut self, line: &[u8]) -> ControlFlow<()> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return self.dispatch();
        }
        // Other fields and comments say nothing about the text.
        if let Some(data) = line.strip_prefix(b"data:") {
            if !self.event.is_empty() {
                self.event.push(b'\n');
            }
            self.event.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
        ControlFlow::Continue(())
    }

    fn dispatch(&mut self) -> ControlFlow<()> {
        let event = std::mem::take(&mut self.event);
        match event.trim_ascii() {
            b"" => ControlFlow::Continue(()),
            b"[DONE]" => {
                self.done = true;
                ControlFlow::Break(())
            }
            data => self.chunk(data),
        }
    }

    fn chunk(&mut self, data: &[u8]) -> ControlFlow<()> {
        let chunk: Chunk = match serde_json::from_slice(data) {
            Ok(chunk) => chunk,
            // The parser's own words may quote the text.
            Err(_) => return self.fail("a part of it is not the JSON of one".to_owned()),
        };
        if let Some(error) = &chunk.error {
            self.failure = Some(ModelError::Broken(words(error)));
            self.quoted = data.to_vec();
            return ControlFlow::Break(());
        }
        if let Some(tokens) = chunk.usage {
            self.usage =
                Some(Usage { input_tokens: tokens.prompt_tokens, output_tokens: tokens.completion_tokens });
        }
        // One answer is asked for; a server that sends several is read for the first.
        if let Some(choice) = chunk.choices.into_iter().next() {
            let content = choice.delta.or(choice.message).and_then(|content| content.content);
            self.text.push_str(content.as_deref().unwrap_or_default());
            if self.text.len() > MAX_ANSWER_BYTES {
                return self.fail(format!("a text of over {MAX_ANSWER_BYTES} bytes"));
            }
            if let Some(reason) = choice.finish_reason {
                self.finish = Some(match &*reason {
                    "stop" | "end_turn" | "eos" => Finish::Stop,
                    "length" | "max_tokens" => Finish::Length,
                    _ => Finish::Other,
                });
            }
        }
        ControlFlow::Continue(())
    }

    /// Bytes that an error may repeat.
    pub(super) fn quotable(&self) -> &[u8] {
        if self.quoted.is_empty() { &self.pending } else { &self.quoted }
    }

    /// The completion, given how the transport ended.
    pub(super) fn end(
        mut self,
        ended: Result<(), ModelError>,
        attempts: u32,
    ) -> Result<Completion, ModelError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let Some(head) = self.head.take() else {
            return Err(ended.err().unwrap_or_else(|| ModelError::Broken("no head came".to_owned())));
        };
        if head.status >= 300 {
            return Err(refused(&head, &self.pending));
        }
        if head.media_type == "text/event-stream" {
            // The last event may lack its blank line. If it cannot be read, it is because the rest did not come.
            let line = std::mem::take(&mut self.pending);
            if ended.is_ok() && (self.line(&line).is_break() || self.dispatch().is_break()) && !self.done {
                return Err(ModelError::Broken("it ended within an event".to_owned()));
            }
        } else {
            ended.clone()?;
            let document = std::mem::take(&mut self.pending);
            let _ = self.chunk(&document);
        }
        match (self.failure, self.finish) {
            (Some(failure), _) => Err(failure),
            (None, Some(finish)) => Ok(Completion { text: self.text, finish, usage: self.usage, attempts }),
            (None, None) if self.done => {
                Ok(Completion { text: self.text, finish: Finish::Other, usage: self.usage, attempts })
            }
            (None, None) => {
                ended?;
                Err(ModelError::Broken("it ended before the server said that it was done".to_owned()))
            }
        }
    }
}

fn refused(head: &Head, body: &[u8]) -> ModelError {
    let message = match head.status {
        // Such answers may quote the key.
        401 | 403 => "check the variable with the key, and that the key may use the model".to_owned(),
        300..=399 => "redirects are not followed; give the address it leads to".to_owned(),
        _ => match serde_json::from_slice::<serde_json::Value>(body) {
            Ok(value) => words(value.get("error").unwrap_or(&value)),
            Err(_) => shown(&String::from_utf8_lossy(body)),
        },
    };
    let retry_after = head.retry_after.as_deref().and_then(retry_after);
    ModelError::Refused { status: head.status, message, retry_after }
}

/// The message of an error object.
fn words(error: &serde_json::Value) -> String {
    let message = error.get("message").unwrap_or(error);
    message.as_str().map_or_else(|| shown(&message.to_string()), shown)
}

/// The beginning of a text on one line.
fn shown(text: &str) -> String {
    let line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_ERROR_CHARS).collect();
    let line = line.trim();
    if line.is_empty() { "it gives no reason".to_owned() } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str = concat!(
        ": a comment\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"Grüße, \"}}]}\n\n",
        "event: message\nid: 3\ndata: {\"choices\":[{\"delta\":{\"content\":\"Welt\"},\"finish_reason\":null}]}\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n",
        "data: [DONE]\n\n",
    );

    fn head(status: u16, media_type: &str) -> Head {
        Head { status, media_type: media_type.to_owned(), retry_after: None }
    }

    fn read(head: &Head, pieces: &[&[u8]], ended: Result<(), ModelError>) -> Result<Completion, ModelError> {
        let mut reader = Reader::default();
        reader.head(head);
        for piece in pieces {
            if reader.bytes(piece).is_break() {
                break;
            }
        }
        reader.end(ended, 1)
    }

    fn stream(text: &str) -> Result<Completion, ModelError> {
        read(&head(200, "text/event-stream"), &[text.as_bytes()], Ok(()))
    }

    proptest! {
        #[test]
        fn where_a_stream_is_cut_into_pieces_does_not_matter(size in 1_usize..80) {
            let pieces: Vec<&[u8]> = STREAM.as_bytes().chunks(size).collect();
            let completion = read(&head(200, "text/event-stream"), &pieces, Ok(())).unwrap();
            prop_assert_eq!(&completion.text, "Grüße, Welt");
            prop_assert_eq!(completion.finish, Finish::Stop);
            prop_assert_eq!(completion.usage, Some(Usage { input_tokens: 7, output_tokens: 3 }));
        }
    }

    #[test]
    fn an_answer_without_its_end_broke_off() {
        let cut = STREAM.split_once("data: {\"choices\":[{\"delta\":{},").unwrap().0;
        assert!(matches!(stream(cut), Err(ModelError::Broken(_))));
        // The reason for the end is enough: some servers send neither usage nor a last mark.
        let reasoned = STREAM.split_once("data: {\"choices\":[],").unwrap().0;
        assert_eq!(stream(reasoned).unwrap().usage, None);
        let broken = ModelError::Broken("reset".to_owned());
        assert!(read(&head(200, "text/event-stream"), &[reasoned.as_bytes()], Err(broken.clone())).is_ok());
        assert_eq!(
            read(&head(200, "text/event-stream"), &[cut.as_bytes()], Err(broken.clone())),
            Err(broken)
        );
    }

    #[test]
    fn a_document_is_read_where_a_server_does_not_stream() {
        let document = br#"{"choices":[{"message":{"content":"Yes"},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
        let completion = read(&head(200, "application/json"), &[document], Ok(())).unwrap();
        assert_eq!((&*completion.text, completion.finish), ("Yes", Finish::Length));
        assert!(matches!(
            read(&head(200, "text/html"), &[b"<html>"], Ok(())),
            Err(ModelError::NotACompletion(_))
        ));
        assert!(matches!(read(&head(200, "application/json"), &[b"{}"], Ok(())), Err(ModelError::Broken(_))));
    }

    #[test]
    fn an_error_in_the_stream_ends_it() {
        let text = "data: {\"choices\":[{\"delta\":{\"content\":\"Yes\"}}]}\n\ndata: {\"error\":{\"message\":\"overloaded\"}}\n\n";
        assert_eq!(stream(text), Err(ModelError::Broken("overloaded".to_owned())));
        assert!(matches!(stream("data: {]\n\n"), Err(ModelError::NotACompletion(_))));
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let endless = format!("data: {}", "x".repeat(MAX_EVENT_BYTES));
        assert!(matches!(stream(&endless), Err(ModelError::NotACompletion(why)) if why.contains("event")));
    }

    #[test]
    fn a_refusal_keeps_the_servers_words_but_not_those_about_keys() {
        let body = br#"{"error":{"message":"the model `x` is not\nserved here","type":"invalid"}}"#;
        let Err(ModelError::Refused { status: 404, message, .. }) =
            read(&head(404, "application/json"), &[body], Ok(()))
        else {
            panic!("not refused");
        };
        assert_eq!(message, "the model `x` is not served here");
        let body = br#"{"error":{"message":"wrong key s3cret"}}"#;
        let error = read(&head(401, "application/json"), &[body], Ok(())).unwrap_err();
        assert!(!error.to_string().contains("s3cret"));
        let redirect = read(&head(302, "text/html"), &[b""], Ok(())).unwrap_err();
        assert!(redirect.to_string().contains("not followed"));
    }
}
