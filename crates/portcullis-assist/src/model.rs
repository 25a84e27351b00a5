//! A language model as the rest of the crate sees it: a request in, a text out, or a reason why not.
//!
//! Detection and repair know [`Model`] and nothing of sockets, so that they are tested with a list of answers. The model
//! that asks a server is [`Client`](crate::Client); [`Metered`](crate::Metered) puts a budget around any.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::BoxFuture;

/// Something that completes chats.
pub trait Model: fmt::Debug + Send + Sync {
    /// Asks once. Retries, where there are any, are the model's own business and count as one call.
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, ModelError>>;
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What the model is to do.
    System,
    /// What it is to do it with.
    User,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// The form that an answer shall have, for servers that can enforce one.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// A name for it: letters, digits and underscores.
    pub name: &'static str,
    /// The JSON Schema.
    pub schema: Value,
}

/// One question to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What is said to it.
    pub messages: Vec<Message>,
    /// 0 for the likeliest answer, more for varied ones.
    pub temperature: f64,
    /// Most tokens of the answer.
    pub max_output_tokens: u32,
    /// The form of the answer. A server that cannot enforce it is asked without; the reader copes with both.
    pub schema: Option<Schema>,
    /// How long the call may take, retries included; none for as long as the model's own limits let it.
    pub time_left: Option<Duration>,
}

impl Request {
    /// A question with instructions, at temperature 0.
    #[must_use]
    pub fn new(system: impl Into<String>, user: impl Into<String>, max_output_tokens: u32) -> Self {
        let message = |role, content| Message { role, content };
        Self {
            messages: vec![message(Role::System, system.into()), message(Role::User, user.into())],
            temperature: 0.0,
            max_output_tokens,
            schema: None,
            time_left: None,
        }
    }

    /// Bytes of all messages.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.messages.iter().map(|message| message.content.len()).sum()
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model was done.
    Stop,
    /// The limit on tokens cut it.
    Length,
    /// Anything else: a filter, a call of a tool.
    Other,
}

/// Tokens of one call, as the server counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Of the request.
    pub input_tokens: u64,
    /// Of the answer.
    pub output_tokens: u64,
}

/// An answer that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// Tokens, where the server says.
    pub usage: Option<Usage>,
    /// How often the server was asked, refusals and retries included.
    pub attempts: u32,
}

/// A budget that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Exhausted {
    /// Calls.
    #[error("all {0} calls of the budget are used; raise `calls`")]
    Calls(u32),
    /// Tokens.
    #[error("all {0} tokens of the budget are used; raise `tokens`")]
    Tokens(u64),
    /// Money.
    #[error("all {0} millionths of the budget are spent; raise `cost_micros`")]
    Cost(u64),
    /// Money is bounded and nobody says what tokens cost.
    #[error("a budget of cost needs the prices of tokens; set `prices`")]
    NoPrices,
    /// Time.
    #[error("the budget of {} s is over; raise `time`", .0.as_secs_f64())]
    Time(Duration),
}

/// Why there is no answer. None of the messages holds a key or what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A budget is used up; nothing was sent.
    #[error(transparent)]
    Budget(#[from] Exhausted),
    /// The request is too long; nothing was sent.
    #[error(
        "the request has {bytes} bytes; at most {limit} are sent: shorten the reply or take fewer statements"
    )]
    TooLong {
        /// Its bytes.
        bytes: usize,
        /// Most there may be.
        limit: usize,
    },
    /// Nobody answers at the address.
    #[error("cannot reach the model's server: {0}; check the address and that the server runs")]
    Connect(String),
    /// The server was too slow: what it did not do, and for how long.
    #[error("the model's server {0}; give it more time or ask a faster model")]
    TimedOut(String),
    /// The answer broke off. What had come of it is not used.
    #[error("the model's answer broke off: {0}")]
    Broken(String),
    /// The server refused.
    #[error("the model's server refused with status {status}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The server's own words, shortened, or what to do.
        message: String,
        /// How long it asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// What came is no chat completion, or too long for one.
    #[error(
        "the server's answer is no chat completion: {0}; check that the address is of an OpenAI-compatible server"
    )]
    NotACompletion(String),
    /// A guard program that judges did not, or not in its form.
    #[error("the judge {0}")]
    Program(String),
    /// There is no model.
    #[error("there is no model to ask; name one")]
    Nobody,
    /// The cassette does not have it, or cannot be written.
    #[error("{0}")]
    Cassette(String),
}

impl ModelError {
    /// Whether the next question would fail alike: nobody answers at the address, the key is refused, the name is unknown,
    /// the cassette does not fit, or the judge cannot be run.
    #[must_use]
    pub const fn is_lasting(&self) -> bool {
        match self {
            Self::Connect(_) | Self::NotACompletion(_) | Self::Nobody | Self::Cassette(_) => true,
            Self::Refused { status, .. } => matches!(*status, 300..=399 | 401..=405),
            Self::Budget(_)
            | Self::TooLong { .. }
            | Self::TimedOut(_)
            | Self::Broken(_)
            | Self::Program(_) => false,
        }
    }

    /// Whether asking again may help.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Connect(_) | Self::TimedOut(_) | Self::Broken(_) => true,
            Self::Refused { status, .. } => {
                matches!(*status, 408 | 425 | 429 | 500 | 502 | 503 | 504 | 520..=529)
            }
            Self::Budget(_)
            | Self::TooLong { .. }
            | Self::NotACompletion(_)
            | Self::Program(_)
            | Self::Nobody
            | Self::Cassette(_) => false,
        }
    }
}
