//! Marks of Markdown and of templates: bullets, highlights, placeholders, titles, postscripts, numbered sections.

use super::{Span, cut, from};

/// Bullets: lines of white space and `-`, and lines of white space, `*` and a character that is no `*`.
///
/// No space is needed after the mark, so `*emphasis*` at the start of a line and `---` count, and `**bold**`, `1.` and
/// `+` do not. A span runs from the mark to the end of its line.
#[must_use]
pub fn bullets(text: &str) -> Vec<Span> {
    let mut out = marked_lines(text, '*', true);
    out.extend(marked_lines(text, '-', false));
    out.sort_by_key(|span| span.start);
    out
}

fn marked_lines(text: &str, mark: char, needs_other: bool) -> Vec<Span> {
    let mut out = Vec::new();
    let mut line = Some(0);
    while let Some(start) = line {
        let rest = from(text, start);
        let at = start + rest.len() - rest.trim_start().len();
        let mut follow = from(text, at);
        let matched = match follow.strip_prefix(mark) {
            Some(after) if needs_other => match after.chars().next() {
                Some(other) if other != mark => {
                    // The other character may be the line's end; the bullet then takes in the line below.
                    follow = from(after, other.len_utf8());
                    true
                }
                _ => false,
            },
            Some(after) => {
                follow = after;
                true
            }
            None => false,
        };
        if matched {
            let consumed = text.len() - follow.len();
            let end = follow.find('\n').map_or(text.len(), |newline| consumed + newline);
            out.push(at..end);
            line = (end < text.len()).then_some(end + 1);
        } else {
            // White space may have run over several lines: the next candidate is the line after the one found.
            let on = at.max(start);
            line = from(text, on).find('\n').map(|newline| on + newline + 1);
        }
    }
    out
}

/// Highlights: `*...*` on one line with something in it, and `**...**` with something in it, counted apart.
#[must_use]
pub fn highlights(text: &str) -> Vec<Span> {
    let mut out = between_stars(text, 1);
    out.extend(between_stars(text, 2));
    out
}

fn between_stars(text: &str, width: usize) -> Vec<Span> {
    let mark = if width == 1 { "*" } else { "**" };
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(start) = from(text, at).find(mark).map(|found| at + found) {
        let inside = start + width;
        let body = from(text, inside);
        let length = body.find(['*', '\n']).unwrap_or(body.len());
        if from(body, length).starts_with(mark) {
            let end = inside + length + width;
            if !to_content(cut(text, start..end), width).is_empty() {
                out.push(start..end);
            }
            at = end;
        } else {
            at = start + 1;
        }
    }
    out
}

fn to_content(found: &str, width: usize) -> &str {
    if width == 1 {
        found.trim_matches('*').trim()
    } else {
        found.strip_prefix("**").and_then(|rest| rest.strip_suffix("**")).unwrap_or_default().trim()
    }
}

/// Placeholders: the shortest `[...]` on one line; it may be empty.
#[must_use]
pub fn placeholders(text: &str) -> Vec<Span> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(start) = from(text, at).find('[').map(|found| at + found) {
        let body = from(text, start + 1);
        let length = body.find([']', '\n']).unwrap_or(body.len());
        if from(body, length).starts_with(']') {
            let end = start + 1 + length + 1;
            out.push(start..end);
            at = end;
        } else {
            at = start + 1;
        }
    }
    out
}

/// The first title: `<<...>>` on one line, with something in it.
#[must_use]
pub fn title(text: &str) -> Option<Span> {
    let mut offset = 0;
    for line in text.split('\n') {
        if let Some(start) = line.find("<<")
            && let Some(end) = line.rfind(">>").filter(|&end| end > start + 2)
        {
            let inside = cut(line, start..end + 2).trim_start_matches('<').trim_end_matches('>').trim();
            if !inside.is_empty() {
                return Some(offset + start..offset + end + 2);
            }
        }
        offset += line.len() + 1;
    }
    None
}

/// The first postscript with this marker, to the end of its line. It may stand anywhere and in either case; in `P.S.`
/// and `P.P.S` a white-space character may follow a dot.
#[must_use]
pub fn postscript(text: &str, marker: &str) -> Option<Span> {
    let wanted: Vec<char> = match marker.trim() {
        "P.P.S" | "P.P.S." => "p.p.s".chars().collect(),
        "P.S." | "P.S" => "p.s.".chars().collect(),
        other => other.chars().collect(),
    };
    let first = *wanted.first()?;
    text.char_indices().filter(|(_, c)| c.eq_ignore_ascii_case(&first)).find_map(|(at, _)| {
        let end = at + loose_prefix(from(text, at), &wanted)?;
        let line_end = from(text, end).find('\n').map_or(text.len(), |newline| end + newline);
        Some(at..line_end)
    })
}

/// Bytes of `text` that spell `wanted`, with at most one white-space character after each dot that a letter follows.
fn loose_prefix(text: &str, wanted: &[char]) -> Option<usize> {
    let mut rest = text;
    let mut before = ' ';
    for &c in wanted {
        if before == '.'
            && c.is_alphabetic()
            && let Some(after) = rest.strip_prefix(char::is_whitespace)
        {
            rest = after;
        }
        let found = rest.chars().next().filter(|f| *f == c || f.to_lowercase().eq(c.to_lowercase()))?;
        rest = from(rest, found.len_utf8());
        before = c;
    }
    Some(text.len() - rest.len())
}

/// Section markers: `marker` as written, at most one white-space character, digits. Numbers are not compared.
#[must_use]
pub fn sections(text: &str, marker: &str) -> Vec<Span> {
    let mut out = Vec::new();
    if marker.is_empty() {
        return out;
    }
    let mut at = 0;
    while let Some(start) = from(text, at).find(marker).map(|found| at + found) {
        let mut rest = from(text, start + marker.len());
        rest = rest.strip_prefix(char::is_whitespace).unwrap_or(rest);
        let digits = rest.find(|c: char| !c.is_numeric()).unwrap_or(rest.len());
        if digits > 0 {
            let end = text.len() - rest.len() + digits;
            out.push(start..end);
            at = end;
        } else {
            at = start + marker.len();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bullets_are_what_the_grader_counts() {
        for (text, n) in [
            ("* a\n* b", 2),
            ("*emphasis* here\n**bold** there", 1),
            ("---\n- a\n  - nested", 3),
            ("1. a\n+ b", 0),
            ("\n\n  * a", 1),
            ("*", 0),
            ("*\n* b", 1),
            ("a - b * c", 0),
        ] {
            assert_eq!(bullets(text).len(), n, "{text:?}");
        }
        assert_eq!(bullets("x\n * a b\n").first(), Some(&(3..8)));
    }

    #[test]
    fn highlights_of_both_widths_add_up() {
        for (text, n) in [
            ("*a*", 1),
            ("**a**", 1),
            ("**a** *b*", 2),
            ("***a***", 2),
            ("* a\n* b", 0),
            ("**", 0),
            ("* *", 0),
        ] {
            assert_eq!(highlights(text).len(), n, "{text:?}");
        }
    }

    #[test]
    fn placeholders_titles_postscripts_sections() {
        assert_eq!(placeholders("[a] [b [c] [] [\n]").len(), 3);
        assert_eq!(title("x <<a>> y"), Some(2..7));
        assert_eq!(title("<< >>\n<<<b>>>"), Some(6..13));
        assert_eq!(title("<<>>"), None);
        assert_eq!(postscript("a p. s. more\nb", "P.S."), Some(2..12));
        assert_eq!(postscript("P. P.S yes", "P.P.S"), Some(0..10));
        assert_eq!(postscript("ps: no", "P.S."), None);
        assert_eq!(sections("SECTION 1 x Section 2 SECTION3", "SECTION").len(), 2);
    }
}
