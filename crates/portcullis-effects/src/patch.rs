//! Patches as coding agents write them.
//!
//! ```text
//! *** Begin Patch
//! *** Add File: a.txt
//! +text
//! *** Update File: b.txt
//! *** Move to: c.txt
//! @@
//! -old
//! +new
//! *** Delete File: d.txt
//! *** End Patch
//! ```
//!
//! Only the headers say what is touched. Those who apply such a patch differ in how much white space they allow around a
//! header, so a line that could be one is one. Anything else that begins with `***` is not known, and neither is a text
//! without any header.

use portcullis_core::effect::Verb;

use crate::{Sink, Surroundings, path};

/// What a header says of its path.
const HEADERS: [(&str, Verb); 4] = [
    ("*** Add File:", Verb::Write),
    ("*** Update File:", Verb::Write),
    ("*** Delete File:", Verb::Delete),
    ("*** Move to:", Verb::Write),
];
/// Lines that touch nothing.
const FRAME: [&str; 4] = ["*** Begin Patch", "*** End Patch", "*** End of File", "***"];

/// Reads `text` as a patch.
pub(crate) fn read(text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    let mut updated: Option<(&str, usize)> = None;
    let mut start = 0;
    let mut any = false;
    for line in text.split('\n') {
        let at = start;
        start += line.len() + 1;
        // Lines of the contents begin with one of these.
        let inside = line.starts_with(['+', '-']);
        let Some(trimmed) = Some(line.trim()).filter(|line| !inside && line.starts_with("***")) else {
            continue;
        };
        let header =
            HEADERS.iter().find_map(|(header, verb)| Some((*verb, trimmed.strip_prefix(header)?, *header)));
        match header {
            Some((verb, rest, header)) => {
                any = true;
                let name = rest.trim();
                let begins = at + line.find(name).filter(|_| !name.is_empty()).unwrap_or_default();
                if header == "*** Move to:" {
                    // What is moved is no longer where it was.
                    if let Some((from, place)) = updated.take() {
                        path::read_as(Verb::Delete, from, surroundings, &mut sink.part(place));
                    }
                }
                updated = (header == "*** Update File:").then_some((name, begins));
                path::read_as(verb, name, surroundings, &mut sink.part(begins));
            }
            None if FRAME.contains(&trimmed) => {}
            None => sink.unknown("patch", "a line that begins with `***` is not known", at..at + line.len()),
        }
    }
    if !any {
        sink.unknown("patch", "it has no header that names a file", 0..text.len());
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::bundle::EffectSettings;
    use portcullis_core::effect::{Effects, ResourceKind};

    use super::*;

    fn all(text: &str) -> Effects {
        let mut effects = Effects::none();
        let settings = EffectSettings::default();
        let surroundings =
            Surroundings { settings: &settings, workspace: Some("/p"), home: None, directory: Some("/p") };
        read(text, &surroundings, &mut Sink::new(&mut effects, "/arguments/patch"));
        effects
    }

    fn is_unknown(text: &str) -> bool {
        all(text).iter().any(|effect| effect.resource.kind == ResourceKind::Unknown)
    }

    /// Verbs and names, with the text at the span of each.
    fn effects(text: &str) -> Vec<(Verb, String, String)> {
        let effects = all(text);
        let at = |effect: &portcullis_core::effect::Effect| {
            let span = effect.span.as_ref().unwrap();
            text.get(span.start..span.end).unwrap().to_owned()
        };
        effects.iter().map(|effect| (effect.verb, effect.resource.name.clone(), at(effect))).collect()
    }

    fn effect(verb: Verb, name: &str, text: &str) -> (Verb, String, String) {
        (verb, name.to_owned(), text.to_owned())
    }

    #[test]
    fn headers_say_what_is_touched() {
        let patch = "*** Begin Patch\n*** Add File: a.txt\n+*** Delete File: x\n*** Update File: b b.txt\n*** Move to: ../c.txt\n@@ f\n-*** Add File: y\n+new\n context\n*** End of File\n*** Delete File: /etc/passwd\r\n*** End Patch\n";
        assert_eq!(
            effects(patch),
            [
                effect(Verb::Write, "/p/a.txt", "a.txt"),
                effect(Verb::Write, "/p/b b.txt", "b b.txt"),
                effect(Verb::Delete, "/p/b b.txt", "b b.txt"),
                effect(Verb::Write, "/c.txt", "../c.txt"),
                effect(Verb::Delete, "/etc/passwd", "/etc/passwd"),
            ]
        );
    }

    #[test]
    fn a_line_that_could_be_a_header_is_one() {
        assert_eq!(effects(" *** Delete File:x"), [effect(Verb::Delete, "/p/x", "x")]);
    }

    #[test]
    fn what_is_no_patch_is_not_known() {
        for text in ["", "rm -rf /", "*** Begin Patch\n*** End Patch", "--- a/x\n+++ b/x\n"] {
            assert!(is_unknown(text), "{text}");
        }
        assert!(is_unknown("*** Add File: a\n+x\n*** Rename File: b"));
        assert!(!is_unknown("*** Begin Patch\n*** Add File: a\n+*** Rename File: b\n*** End Patch"));
    }
}
