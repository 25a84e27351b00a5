//! Exit codes, the same for every command.

/// Yes: allowed, valid, passed, done.
pub(crate) const YES: u8 = 0;
/// No: denied, invalid, failed.
pub(crate) const NO: u8 = 1;
/// Incomplete or blocked: held for a person, not anchored, or nothing to judge.
pub(crate) const INCOMPLETE: u8 = 2;
/// Something could not be read, started or written.
pub(crate) const UNREADABLE: u8 = 3;
/// The command line is wrong.
pub(crate) const USAGE: u8 = 64;
/// The command that was to be run may not be executed, as shells have it.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// There is no such command, as shells have it.
pub(crate) const NOT_FOUND: u8 = 127;
