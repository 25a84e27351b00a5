//! Every limit of the crate. What is over one is refused with a clear error, never cut silently.

/// Statements in one call.
pub const MAX_STATEMENTS: usize = 256;
/// Bytes of one statement. The longest of the published ones are a few hundred.
pub const MAX_STATEMENT_BYTES: usize = 16 * 1024;
/// Bytes of a reply, and of the prompt that goes with it.
pub const MAX_REPLY_BYTES: usize = 1024 * 1024;
/// Spans that one check names; an explanation still gives the whole count.
pub const MAX_SPANS: usize = 64;
/// Literals in one list of keywords, words or options.
pub const MAX_LITERALS: usize = 512;
/// Characters of a literal that an explanation shows.
pub const MAX_SHOWN_CHARS: usize = 60;
/// Bytes of a reply that are parsed as YAML.
pub const MAX_YAML_BYTES: usize = 256 * 1024;
/// Bytes read in one repair, by checkers and by what proposes candidates: some seconds of work. A reply of a thousand
/// words with ten contracts needs a small part of it.
pub const MAX_CHECKED_BYTES: usize = 512 * 1024 * 1024;
/// Small edits that one candidate is made of.
pub const MAX_EDITS: usize = 200;
/// Candidates tried for one broken contract in one round.
pub const MAX_CANDIDATES: usize = 48;
/// Candidates that break other contracts and are still followed one step further.
pub const MAX_COMPOUND_CANDIDATES: usize = 6;
/// Contracts such a candidate may break.
pub const MAX_COMPOUND_BREAKS: usize = 2;
/// Bytes of a reply that is repaired; larger ones are checked, and left as they are.
pub const MAX_REPAIR_BYTES: usize = 64 * 1024;
/// Share of a reply's text that one step may change; indentation is not counted.
pub const MAX_STEP_RATIO: f64 = 0.25;
/// Tokens before times tokens after in one difference; beyond it whole lines are compared, and beyond that the edit
/// ratio is an upper bound.
pub const MAX_DIFF_CELLS: usize = 32_000_000;
/// Documents that a reply is verified against.
pub const MAX_DOCUMENTS: usize = 1_024;
/// Bytes of all of them together.
pub const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of the id of a document.
pub const MAX_DOCUMENT_ID_BYTES: usize = 256;
/// Key terms of a prompt.
pub const MAX_TERMS: usize = 64;
/// High-risk instructions that are looked for.
pub const MAX_HIGH_RISK: usize = 256;
/// Quotations of a reply that are looked up.
pub const MAX_QUOTATIONS: usize = 256;
/// Numbers of a reply that are looked up.
pub const MAX_NUMBERS: usize = 16_384;
/// Ids, terms, quotations or numbers that one result names.
pub const MAX_NAMED: usize = 32;
/// Characters of each.
pub const MAX_NAMED_CHARS: usize = 120;
/// Bytes of one of them where it comes with a reply.
pub const MAX_HIGH_RISK_BYTES: usize = 1_024;
/// Names of one list.
pub const MAX_NAMES: usize = 100_000;
/// Bytes of a name.
pub const MAX_NAME_BYTES: usize = 256;
/// Words of a name.
pub const MAX_NAME_WORDS: usize = 64;
