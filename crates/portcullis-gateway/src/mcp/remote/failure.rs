//! What can go wrong with a remote server, and what is known of a call then.

use std::time::Duration;

use portcullis_core::event::OutcomeStatus;

/// Why a request got no answer that can be passed on. The words are the gate's own: what the server says is in the log
/// alone, because nobody has judged it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// Nothing of the request was sent.
    #[error("cannot be reached: {0}")]
    NotSent(String),
    /// No byte came for so long.
    #[error("said nothing for {} s", .0.as_secs())]
    Silent(Duration),
    /// It says other things for so long, and does not answer what the gate itself asks.
    #[error("did not answer the gate's own request within {} s", .0.as_secs())]
    Evasive(Duration),
    /// The connection broke, or what came on it is no HTTP.
    #[error("broke off its answer ({0})")]
    Broken(String),
    /// The answer ended without the response.
    #[error("ended its answer without a response to the request")]
    NoResponse,
    /// An HTTP error.
    #[error("{}", told(*.0))]
    Status(u16),
    /// It says that it does not know the session, and took no request.
    #[error("refused the request with HTTP status 400: it does not know this session")]
    SessionUnknown,
    /// It says that headers are missing, and took no request.
    #[error("refused the request with HTTP status 400: headers differ from its body")]
    HeadersMissing,
    /// It does not know the session any more, and a new one could not be opened.
    #[error("no longer knows this session, and no new one could be opened: {0}")]
    SessionLost(String),
    /// It wants credentials, or others.
    #[error("wants credentials (HTTP status {status}): {advice}")]
    Unauthorised {
        /// 401 or 403.
        status: u16,
        /// What to do about it.
        advice: String,
    },
    /// It sends its clients elsewhere.
    #[error(
        "redirects to another address, which is not followed; see the gate's log, and give that address if it is right"
    )]
    Redirected,
    /// The answer is of another kind.
    #[error("answered with neither JSON nor an event stream; is this the address of an MCP server?")]
    ContentType,
    /// The answer is encoded.
    #[error("answered with a content encoding that was not asked for")]
    ContentEncoding,
    /// The answer is too long.
    #[error("answered with more than the limit of {0} bytes")]
    TooLong(usize),
    /// The answer is not what it has to be.
    #[error("answered with something that is no response to the request: {0}")]
    NotAResponse(String),
    /// The request cannot be put in HTTP.
    #[error("was not asked: {0}")]
    Unfit(String),
}

fn told(status: u16) -> String {
    match status {
        404 | 405 => format!(
            "refused the request with HTTP status {status}; is the path of its address right? It is often `/mcp`"
        ),
        500.. => format!("failed with HTTP status {status}"),
        _ => format!("refused the request with HTTP status {status}"),
    }
}

impl Failure {
    pub(super) fn broken(error: &hyper::Error) -> Self {
        // The message of the parser says where it stopped and repeats nothing of what it read.
        Self::Broken(error.to_string())
    }

    /// What is known of a call that ended so.
    pub(super) fn status(&self) -> OutcomeStatus {
        match self {
            Self::NotSent(_) | Self::Unfit(_) => OutcomeStatus::NotExecuted,
            Self::Silent(_) | Self::Evasive(_) => OutcomeStatus::Timeout,
            Self::Status(400..=499)
            | Self::Unauthorised { .. }
            | Self::Redirected
            | Self::SessionUnknown
            | Self::HeadersMissing
            | Self::SessionLost(_) => OutcomeStatus::Error,
            _ => OutcomeStatus::Unknown,
        }
    }

    /// Whether the server says that it does not take such a request, rather than from this client or at this time.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::SessionUnknown | Self::Status(400 | 404..=406 | 415 | 422))
    }
}
