//! Text where a path is expected. Much that takes a path takes a URL as well.

use portcullis_core::effect::Verb;

use crate::{Sink, Surroundings, path, url};

/// Reads `text` as a path that is read.
pub fn read(text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    read_as(Verb::Read, text, surroundings, sink);
}

/// Reads `text` as a path to which `verb` is done. Text that is a URL of another scheme than `file:` is read as
/// a URL too.
pub(crate) fn read_as(verb: Verb, text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    path::read_as(verb, text, surroundings, sink);
    if path::has_foreign_scheme(text) {
        url::read_as(verb, text, surroundings, sink);
    }
}
