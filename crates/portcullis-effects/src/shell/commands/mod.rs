//! What programs do, by name.

use super::interpreter::{Call, Interpreter};
use super::word::Word;

/// Adds what one simple command does. False when the program is not known: the command is then marked so.
pub(crate) fn effects(call: &Call<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let _ = (call, shell);
    false
}

/// The word of a command that says what to do: `push` of `git push`.
pub(crate) fn subcommand<'w>(program: &str, args: &'w [Word]) -> Option<&'w str> {
    let _ = (program, args);
    None
}
