//! Variables of the environment.

use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};

use super::super::interpreter::Interpreter;
use super::super::word::Word;
use super::words;

/// Adds an effect on the variable that the word names; all of them may hold credentials.
pub(in crate::shell) fn read(verb: Verb, word: &Word, shell: &mut Interpreter<'_, '_>) {
    let name = words::text(word);
    let resource = Resource::new(ResourceKind::Environment, name).with("secret", is_secret(name));
    shell.add(Effect::new(verb, resource), word.range.clone());
}

/// Whether the name of a variable is that of a credential.
pub(in crate::shell) fn is_secret(name: &str) -> bool {
    const PARTS: [&str; 12] = [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "APIKEY",
        "API_KEY",
        "ACCESS_KEY",
        "PRIVATE_KEY",
        "AUTH",
        "DATABASE_URL",
    ];
    // `GIT_AUTHOR_NAME` is no credential.
    let upper = name.to_ascii_uppercase().replace("AUTHOR", "");
    name.contains('*')
        || PARTS.iter().any(|part| upper.contains(part))
        || upper.ends_with("_KEY")
        || upper.ends_with("_PASS")
}
