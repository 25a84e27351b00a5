//! libFuzzer on every parser that reads what agents or strangers wrote: `cargo xtask fuzz`.
//!
//! One program for all targets, because linking is what building them costs most; the variable [`CHOICE`] says which
//! of [`TARGETS`] gets the inputs. A target fails by panicking, by overflowing its stack or by taking too long. What
//! is in no target's way stays silent, so each of them sees the coverage of its own parser only.

#![no_main]

mod bundles;
mod inputs;
mod results;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use portcullis_effects::{activity, code, mail, place, shell, sql, url};

use bundles::read;

/// The environment variable that names the target.
const CHOICE: &str = "PORTCULLIS_FUZZ_TARGET";

type Target = fn(&[u8]);

/// What there is to fuzz, by name.
///
/// The readers of effects: every effect stands in the text. Policies and the main file of a bundle: what is too large or
/// too deep is refused before a parser sees it, and the rest is a bundle or a list of mistakes. `json` is hook inputs of
/// each agent, and with them JSON that must not be readable in two ways. `stream` is what an MCP server sends over HTTP. `leaves` and `detect`: what is found is a range of characters.
const TARGETS: &[(&str, Target)] = &[
    ("sql", |bytes| read(bytes, sql::read)),
    ("shell", |bytes| read(bytes, shell::read)),
    ("python", |bytes| read(bytes, code::read)),
    ("path", |bytes| read(bytes, place::read)),
    ("url", |bytes| read(bytes, url::read)),
    ("mail", |bytes| read(bytes, mail::read)),
    ("task", |bytes| read(bytes, activity::read)),
    ("policy", bundles::policy),
    ("bundle", bundles::main_file),
    ("json", inputs::hooks),
    ("stream", inputs::stream),
    ("leaves", results::leaves),
    ("detect", results::detect),
];

static TARGET: OnceLock<Target> = OnceLock::new();

fuzz_target!(init: choose(), |bytes: &[u8]| {
    if let Some(target) = TARGET.get() {
        target(bytes);
    }
});

/// Takes the target that is asked for, or ends the program: fuzzing nothing must not look like a success.
fn choose() {
    let name = std::env::var(CHOICE).unwrap_or_default();
    let Some((_, target)) = TARGETS.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!("set {CHOICE} to one of: {}", names.join(", "));
        std::process::exit(64);
    };
    let _ = TARGET.set(*target);
}

/// The longest beginning that is text, as most inputs of a parser of texts are cut from bytes.
fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}
