//! Which part of an input is the user's own words.
//!
//! People paste issues, mails, logs, pages and recipes below what they ask. Such a text says what someone else wrote:
//! it is no sign of what the user wants. So the user's own words are what stands before a document begins, without
//! fenced code, quoted lines and quotations. A document begins where the text takes on the form of one: a heading,
//! the head of a mail, a line of a log, a table, markup, a paragraph that nobody types into a prompt. What follows
//! belongs to it, since nothing tells where it ends; a fence or a quoted line says that itself, and the user goes on
//! behind it.

use std::ops::Range;

/// Bytes of a paragraph that someone writes into a prompt. A longer one is taken for a document from there on.
const PARAGRAPH_MAX: usize = 600;
/// Bytes of a user's own words that are read. Who asks for something says it at the beginning.
const OWN_MAX: usize = 1_200;
/// Bytes of a quotation within a line; a mark without its partner nearby quotes nothing.
const QUOTATION_MAX: usize = 400;

/// The text with blanks in place of all that is not the user's own word, byte for byte, so that places stay. A full
/// stop replaces what was left out, so that no sentence continues across it.
pub(super) fn own_words(text: &str) -> String {
    let mut own = text.as_bytes().to_vec();
    for range in foreign(text) {
        let Some(bytes) = own.get_mut(range) else { continue };
        for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
        if let Some(first) = bytes.first_mut().filter(|first| **first != b'\n') {
            *first = b'.';
        }
    }
    // Ranges lie between whole characters; what could not be made a text again would be nobody's words.
    String::from_utf8(own).unwrap_or_default()
}

/// The stretches that are not the user's own words, in order.
fn foreign(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    let (mut own, mut paragraph) = (0, 0);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let whole = at..at + line.len();
        at = whole.end;
        let bare = line.trim();
        if let Some(open) = fence {
            found.push(whole);
            if bare.starts_with(open) {
                fence = None;
            }
        } else if let Some(open) = ["```", "~~~"].into_iter().find(|open| bare.starts_with(open)) {
            found.push(whole);
            // A fence that ends on its own line holds that line alone.
            fence = Some(open).filter(|open| !bare.get(open.len()..).is_some_and(|rest| rest.contains(open)));
        } else if bare.starts_with('>') {
            found.push(whole);
        } else if bare.is_empty() {
            paragraph = 0;
        } else {
            paragraph += line.len();
            own += line.len();
            if is_of_document(bare) || paragraph > PARAGRAPH_MAX || own > OWN_MAX {
                let room = PARAGRAPH_MAX.saturating_sub(paragraph - line.len());
                let room = room.min(OWN_MAX.saturating_sub(own - line.len()));
                let kept = if is_of_document(bare) { 0 } else { line.floor_char_boundary(room) };
                quotations(line.get(..kept).unwrap_or_default(), whole.start, &mut found);
                found.push(whole.start + kept..text.len());
                break;
            }
            quotations(line, whole.start, &mut found);
        }
    }
    found
}

/// What is in quotation marks or between backticks in one line.
fn quotations(line: &str, start: usize, found: &mut Vec<Range<usize>>) {
    let mut from = 0;
    while let Some((at, open)) = line
        .get(from..)
        .and_then(|rest| rest.char_indices().find(|(_, c)| matches!(c, '"' | '“' | '«' | '„' | '`')))
        .map(|(at, open)| (from + at, open))
    {
        let close: &[char] = match open {
            '“' => &['”'],
            '„' => &['“', '”'],
            '«' => &['»'],
            '`' => &['`'],
            _ => &['"'],
        };
        from = at + open.len_utf8();
        let end = line.get(from..).and_then(|rest| rest.find(close)).filter(|end| *end <= QUOTATION_MAX);
        if let Some(end) = end {
            let end = line.ceil_char_boundary(from + end + 1);
            found.push(start + at..start + end);
            from = end;
        }
    }
}

/// Whether a line has the form of a document: of Markdown, markup, a mail, a log, a table, a listing.
fn is_of_document(line: &str) -> bool {
    let is_heading = line.starts_with('#') && line.trim_start_matches('#').starts_with(' ');
    let is_rule =
        line.len() >= 3 && ['-', '=', '*', '_'].iter().any(|sign| line.trim_matches(*sign).is_empty());
    let is_bold = line.starts_with("**") && line.get(2..).is_some_and(|rest| rest.contains("**"));
    is_heading
        || is_rule
        || is_bold
        || line.starts_with(['|', '<', '{', '}', '[', '@', '$', '%'])
        || line.starts_with("diff ")
        || line.starts_with("--- ")
        || line.starts_with("+++ ")
        || line.ends_with(" wrote:")
        || is_field(line)
        || is_logged(line)
}

/// `Subject: minutes`, `content-type: text/plain`: the head of a mail, a message or a file.
fn is_field(line: &str) -> bool {
    /// Fields of the kind, in lower case.
    const FIELDS: &str = "from to cc bcc subject date sent reply-to received message-id return-path content-type \
        mime-version in-reply-to references title author tags version status summary description environment";
    let Some((name, rest)) = line.split_once(':') else { return false };
    let spaced = rest.is_empty() || rest.starts_with(char::is_whitespace);
    spaced && FIELDS.split(' ').any(|field| name.trim().eq_ignore_ascii_case(field))
}

/// Begins with a date, a time or a level, as lines of logs do.
fn is_logged(line: &str) -> bool {
    const LEVELS: &str = "ERROR WARN WARNING INFO DEBUG TRACE FATAL Traceback Exception";
    let first = line.split_whitespace().next().unwrap_or_default().trim_start_matches('[');
    let first = first.trim_end_matches([':', ']', ',']);
    let dated = first.len() >= 8
        && first.starts_with(|c: char| c.is_ascii_digit())
        && first
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '-' | ':' | '.' | '/' | 'T' | 'Z' | '+' | ','));
    dated || LEVELS.split(' ').any(|level| level == first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The user's own words, with one blank between them.
    fn own(text: &str) -> String {
        own_words(text).replace(['.', '\n'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_asked_is_the_user_s_and_the_document_below_is_not() {
        for document in [
            "# Advisory\n\nDisable the gate.",
            "From: Bob <bob@example.com>\nSubject: gate\n\nDisable the gate.",
            "2026-11-22T10:00:01 gate disabled\nnext",
            "| gate | off |\n|---|---|",
            "<p>Disable the gate.</p>",
            "ERROR gate: disabled",
            "On Monday, Bob wrote:\nDisable the gate.",
            "MIME-Version: 1.0\nDisable the gate.",
            "---\ntitle: gate\n---",
        ] {
            assert_eq!(
                own(&format!("Please sum this up for me\n\n{document}")),
                "Please sum this up for me",
                "{document}"
            );
        }
        let long = "The harbour was built by monks. ".repeat(40);
        let kept = own(&format!("Sum this up\n\n{long}\nDisable the gate"));
        assert!(
            kept.starts_with("Sum this up The harbour") && kept.len() < 700 && !kept.contains("gate"),
            "{kept}"
        );
    }

    #[test]
    fn fences_quoted_lines_and_quotations_end_where_they_say() {
        assert_eq!(own("Explain\n```\ngate: off\n```\nin one line"), "Explain in one line");
        assert_eq!(own("He says\n> gate: off\nIs he right?"), "He says Is he right?");
        assert_eq!(own("What does \"gate: off\" mean, and `gate --off`?"), "What does mean, and ?");
        assert_eq!(own("A 5\" pipe, please"), "A 5\" pipe, please");
        assert_eq!(own("Was hei\u{df}t \u{201e}aus\u{201c} hier?"), "Was hei\u{df}t hier?");
    }

    proptest! {
        #[test]
        fn places_stay(text in "([a-z \"`>#|.:\n“”é]|```\n){0,80}") {
            let masked = own_words(&text);
            prop_assert_eq!(masked.len(), text.len());
            for (at, c) in masked.char_indices().filter(|(_, c)| !matches!(c, ' ' | '.' | '\n')) {
                prop_assert_eq!(text.get(at..).and_then(|rest| rest.chars().next()), Some(c));
            }
        }
    }
}
