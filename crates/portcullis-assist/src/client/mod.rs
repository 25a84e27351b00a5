//! A model behind an OpenAI-compatible server: chat completions, streamed, tried again where that may help.
//!
//! One call is one question. It may take several requests: a server that is busy, slow or dies half-way is asked again
//! after a wait ([`Retries`]); one that does not know JSON Schemas or usage in streams is asked without, and remembered for it.

mod endpoint;
mod http;
mod retry;
mod stream;
mod transport;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use endpoint::{EndpointError, Key};
pub use http::{Http, Timeouts};
pub use retry::Retries;
pub use transport::{Head, Sink, Transport};

use crate::clock::{BoxFuture, Clock};
use crate::limits::{MAX_OUTPUT_TOKENS, MAX_PROMPT_BYTES};
use crate::model::{Completion, Message, Model, ModelError, Request};
use stream::Reader;

/// How a server calls the limit on an answer's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenLimit {
    /// `max_tokens`, which nearly all know.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which some models ask for instead.
    MaxCompletionTokens,
}

/// What to ask for, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The model's name, as the server knows it.
    pub model: String,
    /// How the limit on tokens is called.
    #[serde(default)]
    pub token_limit: TokenLimit,
    /// Most tokens of any answer, where the model takes fewer than this crate would ask for.
    #[serde(default = "most_output_tokens")]
    pub max_output_tokens: u32,
    /// Whether to send a temperature: some models take none.
    #[serde(default = "yes")]
    pub temperature: bool,
    /// When to try again.
    #[serde(default)]
    pub retries: Retries,
}

const fn most_output_tokens() -> u32 {
    MAX_OUTPUT_TOKENS
}

const fn yes() -> bool {
    true
}

impl Options {
    /// The defaults for a model.
    #[must_use]
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            token_limit: TokenLimit::default(),
            max_output_tokens: MAX_OUTPUT_TOKENS,
            temperature: true,
            retries: Retries::default(),
        }
    }
}

/// A model behind a transport: a server, or a cassette.
#[derive(Debug)]
pub struct Client {
    options: Options,
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    /// The fullest form that the server may still take, as a number.
    form: AtomicU8,
}

/// How much a request asks of a server, the fullest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// An answer by a JSON Schema, and its usage at the end of the stream.
    Structured,
    /// Usage at the end of the stream.
    Plain,
    /// An answer in a stream, no more.
    Bare,
}

impl Form {
    const fn of(number: u8) -> Self {
        match number {
            0 => Self::Structured,
            1 => Self::Plain,
            _ => Self::Bare,
        }
    }

    /// The next one that asks for less.
    const fn less(self) -> Option<Self> {
        match self {
            Self::Structured => Some(Self::Plain),
            Self::Plain => Some(Self::Bare),
            Self::Bare => None,
        }
    }
}

impl Client {
    /// A client that asks over a transport.
    #[must_use]
    pub fn new(options: Options, transport: Arc<dyn Transport>, clock: Arc<dyn Clock>) -> Self {
        Self { options, transport, clock, form: AtomicU8::new(0) }
    }

    /// The clock that its waits go by.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    async fn ask(&self, request: &Request) -> Result<Completion, ModelError> {
        if request.bytes() > MAX_PROMPT_BYTES {
            return Err(ModelError::TooLong { bytes: request.bytes(), limit: MAX_PROMPT_BYTES });
        }
        let start = self.clock.now();
        let most = if request.schema.is_some() { Form::Structured } else { Form::Plain };
        let most = most.max(Form::of(self.form.load(Ordering::Relaxed)));
        let mut form = most;
        let mut sent = 0;
        let mut failed = 0;
        loop {
            let elapsed = self.clock.now().saturating_sub(start);
            let left = request.time_left.map(|time| time.saturating_sub(elapsed));
            let body = body(&self.options, request, form);
            sent += 1;
            let mut reader = Reader::default();
            let ended = self.transport.post(&body, left, &mut reader).await;
            let secret = self.transport.is_secret(reader.quotable());
            let error = match reader.end(ended, sent) {
                Ok(completion) => {
                    if form > most {
                        self.form.store(form as u8, Ordering::Relaxed);
                    }
                    return Ok(completion);
                }
                Err(error) if secret => without_words(error),
                Err(error) => error,
            };
            // Servers have no common sign for what they do not know: asked for less, they answer or refuse again.
            if matches!(error, ModelError::Refused { status: 400 | 404 | 415 | 422 | 501, .. })
                && let Some(less) = form.less()
            {
                form = less;
                continue;
            }
            failed += 1;
            let Some(wait) = self.options.retries.wait(failed, &error, self.clock.random()) else {
                return Err(error);
            };
            let elapsed = self.clock.now().saturating_sub(start);
            if request.time_left.is_some_and(|time| elapsed.saturating_add(wait) >= time) {
                return Err(error);
            }
            self.clock.sleep(wait).await;
        }
    }
}

/// An error without the server's words, which repeat the key.
fn without_words(error: ModelError) -> ModelError {
    let withheld = "its message repeats the key and is not shown".to_owned();
    match error {
        ModelError::Refused { status, retry_after, .. } => {
            ModelError::Refused { status, message: withheld, retry_after }
        }
        ModelError::Broken(_) => ModelError::Broken(withheld),
        error => error,
    }
}

impl Model for Client {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, ModelError>> {
        Box::pin(self.ask(request))
    }
}

/// The request's body. Its bytes depend on nothing but the arguments: cassettes find answers by them.
fn body(options: &Options, request: &Request, form: Form) -> String {
    #[derive(Serialize)]
    struct Body<'a> {
        model: &'a str,
        messages: &'a [Message],
        #[serde(skip_serializing_if = "Option::is_none")]
        temperature: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        max_completion_tokens: Option<u32>,
        stream: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        stream_options: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        response_format: Option<Value>,
    }
    let tokens = request.max_output_tokens.min(options.max_output_tokens);
    let is = |limit| (options.token_limit == limit).then_some(tokens);
    let response_format = request.schema.as_ref().filter(|_| form == Form::Structured).map(|schema| {
        let inner = json!({"name": schema.name, "strict": true, "schema": schema.schema});
        json!({"type": "json_schema", "json_schema": inner})
    });
    let body = Body {
        model: &options.model,
        messages: &request.messages,
        temperature: options.temperature.then_some(request.temperature),
        max_tokens: is(TokenLimit::MaxTokens),
        max_completion_tokens: is(TokenLimit::MaxCompletionTokens),
        stream: true,
        stream_options: (form < Form::Bare).then(|| json!({"include_usage": true})),
        response_format,
    };
    // Nothing in it can fail to be written: strings, finite numbers and values.
    serde_json::to_string(&body).unwrap_or_default()
}
