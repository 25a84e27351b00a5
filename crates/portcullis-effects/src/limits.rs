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
/// Most bytes of one action that are read, all values together.
pub const ARGUMENTS_BYTES_MAX: usize = 1 << 20;
