//! Every limit of the crate. What is over one is refused with a clear error, never cut silently.

use std::time::Duration;

/// Bytes of all messages of one request to a model.
pub const MAX_PROMPT_BYTES: usize = 4 * 1024 * 1024;
/// Bytes that a server may send in answer to one request, framing included.
pub const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of one event in a stream.
pub const MAX_EVENT_BYTES: usize = 1024 * 1024;
/// Bytes of text that one answer may have.
pub const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of an error's body that are read.
pub const MAX_ERROR_BYTES: usize = 64 * 1024;
/// Characters of a server's own message that an error repeats.
pub const MAX_ERROR_CHARS: usize = 200;
/// Attempts at one call, the first included.
pub const MAX_ATTEMPTS: u32 = 10;
/// Longest wait that a server may ask for with `Retry-After`; a longer one ends the call.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);
/// Bytes of a key. Those of the known providers have under 300.
pub const MAX_KEY_BYTES: usize = 4 * 1024;
/// Most tokens that one answer is ever asked to have.
pub const MAX_OUTPUT_TOKENS: u32 = 32_768;
/// Tokens that a judgement may take for each statement: a sentence of explanation and the row around it.
pub const OUTPUT_TOKENS_A_STATEMENT: u32 = 160;
/// Tokens that every answer may take beyond.
pub const OUTPUT_TOKENS_BASE: u32 = 512;
/// Bytes of an explanation that is kept of a judgement.
pub const MAX_EXPLANATION_BYTES: usize = 1024;
/// Bytes that a guard program may answer when it judges.
pub const MAX_JUDGE_BYTES: usize = 1024 * 1024;
/// Bytes of a guard program's complaints that are read.
pub const MAX_JUDGE_ERROR_BYTES: usize = 4 * 1024;
/// Rewrites that one strategy may ask for: one for each statement that there may be.
pub const MAX_REWRITES: u32 = 256;
/// Tokens that a rewrite may take beyond those of the reply: statements may ask for more text.
pub const REWRITE_TOKENS_BASE: u32 = 4_096;
/// Bytes of a cassette.
pub const MAX_CASSETTE_BYTES: usize = 256 * 1024 * 1024;
/// Exchanges in a cassette.
pub const MAX_EXCHANGES: usize = 100_000;
