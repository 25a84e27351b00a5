//! Limits of the parsers. Reaching one makes the text *unknown*.

/// Longest text that is parsed, in bytes.
pub const TEXT_BYTES_MAX: usize = 256 << 10;
/// Deepest nesting of brackets, quotes and statements within one text.
pub const NESTING_MAX: usize = 64;
/// Deepest nesting of texts within texts: `sh -c "ssh host 'bash -c …'"`.
pub const EMBEDDING_MAX: usize = 8;
/// Longest path that is read whole, in bytes: `PATH_MAX` of Linux. A longer one is not resolved.
pub const PATH_BYTES_MAX: usize = 4096;
/// Most values of one action that are read; nested ones count.
pub const LEAVES_MAX: usize = 1024;
/// Most objects of answers that are read, beside the arguments of their call. Each costs as much as the arguments.
pub const ANSWERS_MAX: usize = 64;
/// Most bytes of one action that are read, all values together.
pub const ARGUMENTS_BYTES_MAX: usize = 1 << 20;
/// Most operators, dots, calls and similar that an expression of agent code may hang together by.
pub const CODE_CHAIN_MAX: usize = 256;
/// Deepest nesting of expressions, statements and calls that agent code is followed into.
pub const CODE_DEPTH_MAX: usize = 160;
/// Most expressions that are evaluated in one piece of agent code, those of loops and calls counted each time.
pub const CODE_STEPS_MAX: usize = 50_000;
/// Most values that one variable may have at the same time before it counts as unknown.
pub const CODE_VALUES_MAX: usize = 64;
/// Longest text that agent code may put together, in bytes, before it counts as unknown.
pub const CODE_STRING_BYTES_MAX: usize = 64 << 10;
/// Most rounds of a loop that are followed before what changes in it counts as unknown.
pub const CODE_ROUNDS_MAX: usize = 6;
/// Longest list that a loop is followed through item by item.
pub const CODE_UNROLL_MAX: usize = 32;
/// Deepest nesting of calls to functions that the code itself defines.
pub const CODE_CALLS_MAX: usize = 12;
