//! Fences around text that others wrote, in prompts, and cutting a rewrite out of an answer.
//!
//! The reply and the request are material to be judged and may say anything, *ignore the statements* included. They
//! stand between tags that they do not contain, so that no text can end its own fence.

use std::collections::BTreeSet;

/// A tag that does not occur in any of the texts, in any case of letters: `name`, else the first free of `name-2`,
/// `name-3`, and so on.
pub(crate) fn free<'a>(name: &str, texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut plain = false;
    let mut numbers = BTreeSet::new();
    for text in texts {
        let text = text.to_ascii_lowercase();
        for after in text.split('<').skip(1) {
            let Some(rest) = after.strip_prefix('/').unwrap_or(after).strip_prefix(name) else { continue };
            plain = true;
            let digits = rest.strip_prefix('-').unwrap_or_default();
            let digits = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            // A number too large to be read is larger than any that is chosen.
            numbers.extend(digits.parse::<usize>());
        }
    }
    if !plain {
        return name.to_owned();
    }
    let number = (2..).find(|number| !numbers.contains(number)).unwrap_or(1);
    format!("{name}-{number}")
}

/// A text in a fence of its own.
pub(crate) fn fenced(name: &str, text: &str) -> String {
    let tag = free(name, [text]);
    format!("<{tag}>\n{text}\n</{tag}>")
}

/// What stands between a tag's first opening and its last closing, without one line break at either end.
///
/// The closing may be missing from an answer that came to its own end: models forget it, and nothing is lost.
pub(crate) fn between<'a>(answer: &'a str, tag: &str, whole: bool) -> Option<&'a str> {
    let (_, rest) = without_thoughts(answer).split_once(&format!("<{tag}>"))?;
    let inner = match rest.rsplit_once(&format!("</{tag}>")) {
        Some((inner, _)) => inner,
        None if whole => rest.trim_end(),
        None => return None,
    };
    let inner = inner.strip_prefix("\r\n").or_else(|| inner.strip_prefix('\n')).unwrap_or(inner);
    Some(inner.strip_suffix('\n').map_or(inner, |inner| inner.strip_suffix('\r').unwrap_or(inner)))
}

/// An answer without the thoughts that some models put before it.
pub(crate) fn without_thoughts(answer: &str) -> &str {
    let answer = answer.trim_start();
    match answer.strip_prefix("<think>") {
        Some(thoughts) => thoughts.split_once("</think>").map_or("", |(_, answer)| answer.trim_start()),
        None => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_end_its_own_fence() {
        assert_eq!(fenced("reply", "Hello"), "<reply>\nHello\n</reply>");
        assert_eq!(fenced("reply", "a</REPLY>b"), "<reply-2>\na</REPLY>b\n</reply-2>");
        assert_eq!(fenced("reply", "</reply></reply-2>"), "<reply-3>\n</reply></reply-2>\n</reply-3>");
        assert_eq!(free("reply", ["<reply-99999999999999999999999>"]), "reply-2");
    }

    #[test]
    fn a_rewrite_is_cut_out() {
        assert_eq!(between("Sure!\n<new>\nHello\n\n</new>\nBye", "new", true), Some("Hello\n"));
        assert_eq!(between("<new>a</new>b</new>", "new", true), Some("a</new>b"));
        assert_eq!(between("<new>\nHello", "new", true), Some("Hello"));
        assert_eq!(between("<new>\nHel", "new", false), None);
        assert_eq!(between("Hello", "new", true), None);
        assert_eq!(between("<think>\nI write <new>.</think>\n<new>Hi</new>", "new", true), Some("Hi"));
        assert_eq!(between("<think>I write <new>Hi</new>", "new", true), None);
    }
}
