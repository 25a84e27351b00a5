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
/// Bytes of the guard requests, and of the specification of the target agent: some twenty pages each.
pub const MAX_REQUEST_BYTES: usize = 64 * 1024;
/// Bytes of the target agent's input, and of its output log.
pub const MAX_TARGET_BYTES: usize = 256 * 1024;
/// Bytes of a plan. Four steps have under 4 KiB.
pub const MAX_PLAN_BYTES: usize = 32 * 1024;
/// Bytes of a program, as the engine takes them.
pub const MAX_SOURCE_BYTES: usize = 64 * 1024;
/// How often a plan is asked for, the first time included.
pub const MAX_PLANS: u32 = 3;
/// Rounds of debugging, as the seed has them.
pub const MAX_ROUNDS: u32 = 3;
/// Bytes of an error that the model is shown.
pub const MAX_SHOWN_ERROR_BYTES: usize = 4 * 1024;
/// Tokens of a plan.
pub const PLAN_TOKENS: u32 = 2_048;
/// Tokens of a program with what is said around it.
pub const PROGRAM_TOKENS: u32 = 6_144;
/// Most examples that a model is shown at once.
pub const MAX_SHOTS: usize = 16;
/// Most examples in a memory.
pub const MAX_MEMORIES: usize = 10_000;
/// Bytes of one text of an example.
pub const MAX_EXAMPLE_BYTES: usize = 64 * 1024;
/// Bytes of a file with an example.
pub const MAX_EXAMPLE_FILE_BYTES: u64 = 512 * 1024;
/// Steps of comparing texts in one search of a memory, of 64 letters each. It is what bounds the time of a search among
/// texts that have nothing in common: some 80 ms on a small server.
pub const MAX_SEARCH_STEPS: u64 = 8_000_000;
