//! The limits of this crate. Reaching one is never an error of the reader: what lies behind it is reported as unread or
//! read in a simpler way, and whoever asks treats unread text as suspect.

/// Bytes of one text that are read; what follows is reported as unread.
pub const TEXT_BYTES: usize = 4 * 1024 * 1024;
/// Leaves of one text; what follows the last is reported as unread.
pub const LEAVES: usize = 65_536;
/// Records of one text; what follows the last belongs to the record around it.
pub const RECORDS: usize = 16_384;
/// How deep objects and lists may nest before the rest is read as lines of text.
pub const DEPTH: usize = 128;
/// How often a leaf that is itself JSON is opened.
pub const NESTED_TEXTS: usize = 4;
/// Bytes of a name of a field; a longer one is no name, and is read as text instead.
pub const FIELD_BYTES: usize = 64;
/// How often its own length may be read of a text in vain, while it is found out that something which began like JSON or
/// like a quoted scalar is none; then such beginnings are taken for plain text.
pub const FAILED_READS: usize = 4;
/// Enclosing keys that are remembered while indented lines are read.
pub const INDENTED_KEYS: usize = 64;
/// Bytes of one sentence; a longer one is cut at white space.
pub const SENTENCE_BYTES: usize = 2048;
