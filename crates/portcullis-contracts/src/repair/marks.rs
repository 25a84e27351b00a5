//! Marks put where the text already has what they mark: bullets, highlights, titles, postscripts, sections, separators.

use super::candidate::{Candidate, Change, StepKind, Surroundings, apply, open_lines};
use crate::bound::Bound;
use crate::limits::MAX_EDITS;
use crate::text::search::find_all;
use crate::text::sentences::sentences;
use crate::text::{Span, cut, from, marks, to, trimmed, words};

/// Words that a section or a line to be marked has at least.
const CONTENT_WORDS: usize = 3;

/// The number of bullets.
pub(super) fn bullets(text: &str, count: &Bound, context: Surroundings<'_>) -> Vec<Candidate> {
    let found = marks::bullets(text);
    let holds = |text: &str| count.holds(marks::bullets(text).len());
    let sets = if count.below.is_some_and(|below| found.len() >= below as usize) {
        fewer_bullets(text, &found, context)
    } else {
        more_bullets(text, &found, context)
    };
    sets.into_iter()
        .filter_map(|(what, edits)| {
            (1..=edits.len().min(MAX_EDITS)).find_map(|n| {
                let mut some = edits.get(..n)?.to_vec();
                some.sort_by_key(|(span, _)| span.start);
                let changed = apply(text, &some);
                holds(&changed).then(|| Candidate::layout(what, changed))
            })
        })
        .collect()
}

type Edits = (&'static str, Vec<Change>);

fn fewer_bullets(text: &str, found: &[Span], context: Surroundings<'_>) -> Vec<Edits> {
    let mut emphasis = Vec::new();
    let mut rules = Vec::new();
    let mut items: Vec<(usize, Change)> = Vec::new();
    for bullet in found {
        let line = cut(text, bullet.clone());
        if context.is_delimiter(line) {
            continue;
        }
        let is_rule = line.trim().chars().all(|c| c == '-') && line.trim().len() >= 3;
        let star = line.strip_prefix('*').and_then(|rest| {
            let end = rest.find('*').filter(|&end| end > 0 && !rest.starts_with(' '))?;
            (!from(rest, end).starts_with("**")).then_some(bullet.start + 1 + end)
        });
        if is_rule {
            rules.push((bullet.start..bullet.start + line.trim_end().len(), "***".to_owned()));
        } else if let Some(close) = star {
            let opening = cut(text, bullet.start + 1..close);
            emphasis.push((bullet.start..close + 1, format!("**{opening}**")));
        } else {
            let body = from(line, 1).trim_start();
            let start = to(text, bullet.start).rfind('\n').map_or(0, |newline| newline + 1);
            let indent = bullet.start - start;
            let mark = bullet.start..bullet.end - body.len();
            items.push((indent, (mark, String::new())));
        }
    }
    // Nested ones first, then from the end.
    items.reverse();
    items.sort_by_key(|(indent, _)| std::cmp::Reverse(*indent));
    let items: Vec<Change> = items.into_iter().map(|(_, change)| change).collect();
    let soft: Vec<Change> = emphasis.into_iter().chain(rules).collect();
    let all = soft.iter().cloned().chain(items.iter().cloned()).collect();
    vec![
        ("wrote emphasis and rules with marks other than bullets", soft),
        ("removed the marks of surplus bullets", all),
        ("removed the marks of surplus bullets", items),
    ]
}

fn more_bullets(text: &str, found: &[Span], context: Surroundings<'_>) -> Vec<Edits> {
    let is_bullet =
        |line: &Span| found.iter().any(|bullet| bullet.start < line.end && line.start <= bullet.start);
    let mut other = Vec::new();
    let mut numbered = Vec::new();
    let mut plain = Vec::new();
    for line in open_lines(text) {
        let inner = trimmed(cut(text, line.clone()), line.start);
        let body = cut(text, inner.clone());
        if is_bullet(&line) || context.is_delimiter(body) || body.starts_with('#') {
            continue;
        }
        let foreign = body.chars().next().filter(|c| matches!(c, '•' | '+' | '–' | '◦' | '▪' | '●'));
        if let Some(mark) = foreign {
            other.push((
                inner.start..inner.start + mark.len_utf8(),
                if from(body, mark.len_utf8()).starts_with(' ') { "*" } else { "* " }.to_owned(),
            ));
        } else if body.starts_with(|c: char| c.is_ascii_digit()) {
            numbered.push((inner.start..inner.start, "* ".to_owned()));
        } else if words::count(body) >= CONTENT_WORDS {
            plain.push((inner.start..inner.start, "* ".to_owned()));
        }
    }
    let sentence_edits: Vec<Change> = sentences(text)
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b]
                if !cut(text, a.end..b.start).contains('\n')
                    && words::count(cut(text, b.clone())) >= CONTENT_WORDS =>
            {
                Some((a.end..b.start, "\n* ".to_owned()))
            }
            _ => None,
        })
        .collect();
    let listed: Vec<Change> = other.into_iter().chain(numbered).collect();
    let from_end: Vec<Change> = plain.iter().rev().cloned().collect();
    let everything =
        |first: &[Change], then: &[Change]| first.iter().chain(then).cloned().collect::<Vec<_>>();
    let (forward, backward) = (everything(&listed, &plain), everything(&listed, &from_end));
    let with_sentences: Vec<Change> = sentence_edits.iter().rev().cloned().collect();
    let lines_then_sentences = everything(&backward, &with_sentences);
    vec![
        ("marked list items as bullets", listed.clone()),
        ("marked lines as bullets", backward),
        ("marked lines as bullets", forward),
        ("put sentences on separate lines, as bullets", everything(&listed, &with_sentences)),
        ("put lines and sentences as bullets", lines_then_sentences),
    ]
}

/// Highlights on labels and headings that are there.
pub(super) fn highlights(text: &str, count: &Bound) -> Vec<Candidate> {
    let holds = |text: &str| count.holds(marks::highlights(text).len());
    let mut edits: Vec<Change> = Vec::new();
    let mut later: Vec<Change> = Vec::new();
    for line in open_lines(text) {
        let body = cut(text, line.clone());
        let skip = body.len() - body.trim_start_matches(|c: char| !c.is_alphanumeric()).len();
        let label = from(body, skip);
        if body.contains("**") || label.contains('*') || body.contains("<<") {
            continue;
        }
        let start = line.start + skip;
        match label.find(':').filter(|&at| (1..=6).contains(&words::count(to(label, at)))) {
            Some(at) => edits.push((start..start + at, format!("**{}**", to(label, at)))),
            None => {
                let end = label.find(|c: char| !c.is_alphanumeric()).unwrap_or(label.len());
                if end > 3 {
                    later.push((start..start + end, format!("**{}**", to(label, end))));
                }
            }
        }
    }
    edits.extend(later);
    (1..=edits.len().min(MAX_EDITS))
        .find_map(|n| {
            let mut some = edits.get(..n)?.to_vec();
            some.sort_by_key(|(span, _)| span.start);
            let changed = apply(text, &some);
            holds(&changed).then(|| Candidate::layout("highlighted existing labels", changed))
        })
        .into_iter()
        .collect()
}

/// A title from a heading that is there, or else from the words of the request.
pub(super) fn title(text: &str, context: Surroundings<'_>) -> Vec<Candidate> {
    let mut out = Vec::new();
    if let Some(line) = open_lines(text).into_iter().next() {
        let inner = trimmed(cut(text, line.clone()), line.start);
        let body = cut(text, inner.clone());
        let core = body
            .trim_start_matches(['#', '*', ' ', '<', '"', '«'])
            .trim_end_matches(['*', ' ', '>', '"', '»']);
        let lead = body.len() - body.trim_start_matches(['#', '*', ' ', '<', '"', '«']).len();
        let start = inner.start + lead;
        let heading = words::count(core) <= 12
            && !core.ends_with(['.', '!', '?', ':', ',', ';'])
            && !context.is_delimiter(body);
        let marked = body.starts_with('#') || body.starts_with("**");
        if !core.is_empty() && (heading || marked) {
            let rest = core.strip_prefix("Title: ").unwrap_or(core);
            let at = start + core.len() - rest.len();
            out.push(Candidate::layout(
                "wrote the heading as a title",
                apply(text, &[(at..at + rest.len(), format!("<<{rest}>>"))]),
            ));
        }
    }
    if let Some(words) =
        context.prompt.map(|prompt| prompt.split_whitespace().take(6).collect::<Vec<_>>().join(" "))
    {
        let words = words.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
        if !words.is_empty() {
            for join in ["\n\n", "\n"] {
                out.push(Candidate::new(
                    StepKind::Literal,
                    "added a title made of words from the request at the start",
                    format!("<<{words}>>{join}{text}"),
                ));
            }
            out.push(Candidate::new(
                StepKind::Literal,
                "added a title made of words from the request at the end",
                format!("{text}\n<<{words}>>"),
            ));
        }
    }
    out
}

/// A postscript: a marker written otherwise, or the last sentence or line marked as one.
pub(super) fn postscript(text: &str, marker: &str) -> Vec<Candidate> {
    let mut out = Vec::new();
    let variants: &[&str] = if marker.to_uppercase().starts_with("P.P") {
        &["p.p.s", "p. p. s.", "pps", "p.p.s."]
    } else {
        &["p.s", "ps:", "p. s.", "p.s:"]
    };
    for line in open_lines(text) {
        let inner = trimmed(cut(text, line.clone()), line.start);
        let body = cut(text, inner.clone());
        let core = body.trim_start_matches(['*', '_', ' ']);
        let at = inner.end - core.len();
        if let Some(variant) = variants
            .iter()
            .find(|variant| core.get(..variant.len()).is_some_and(|head| head.eq_ignore_ascii_case(variant)))
        {
            let edit = (at..at + variant.len(), marker.to_owned());
            out.push(Candidate::new(
                StepKind::Format,
                "corrected the mark of the postscript",
                apply(text, &[edit]),
            ));
        }
    }
    let end = text.trim_end_matches(|c: char| c.is_whitespace() || c == '`').len();
    let spans = sentences(to(text, end));
    let last_line = open_lines(to(text, end)).last().map(|line| line.start);
    let starts = spans.iter().rev().take(3).map(|span| span.start).chain(last_line);
    let starts: Vec<usize> = starts.filter(|&at| !begins_a_block(from(text, at))).collect();
    for at in starts.iter().copied().filter(|&at| at > 0 && words::count(cut(text, at..end)) > 0) {
        for join in [" ", "\n", "\n\n"] {
            let before = to(text, at).trim_end();
            let gap = cut(text, before.len()..at);
            let join = if join == " " { gap } else { join };
            out.push(Candidate::new(
                StepKind::Literal,
                "marked the last sentences as the postscript",
                format!("{before}{join}{marker} {}", from(text, at)),
            ));
        }
    }
    out.extend(starts.into_iter().filter_map(|at| joined_postscript(text, marker, at)));
    out
}

/// A list item, a heading or a quotation begins here: a mark before it would break the block.
fn begins_a_block(text: &str) -> bool {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = digits.len() < text.len() && (digits.starts_with(". ") || digits.starts_with(") "));
    numbered || ["* ", "- ", "+ ", "#", ">"].iter().any(|mark| text.starts_with(mark))
}

/// The postscript's mark behind `;`, so that it makes no sentence of its own.
fn joined_postscript(text: &str, marker: &str, at: usize) -> Option<Candidate> {
    let before = to(text, at).trim_end();
    let open = before.strip_suffix('.').filter(|open| !open.ends_with('.'))?;
    let gap = cut(text, before.len()..at);
    let joined = format!("{open};{gap}{marker} {}", from(text, at));
    Some(Candidate::new(StepKind::Literal, "marked the last sentences as the postscript", joined))
}

/// Section markers: written as demanded where they are written otherwise, or put before paragraphs that are there.
pub(super) fn sections(text: &str, marker: &str, count: &Bound) -> Vec<Candidate> {
    let mut out: Vec<Candidate> = rewritten_markers(text, marker).into_iter().collect();
    let have = marks::sections(text, marker);
    let need = (count.at_least as usize).saturating_sub(have.len());
    if need == 0 || count.most().is_some_and(|most| have.len() > most as usize) {
        return out;
    }
    let after = have.last().map_or(0, |span| span.end);
    let lines = open_lines(text);
    let content = |line: &Span| words::count(cut(text, line.clone())) >= CONTENT_WORDS;
    let paragraph =
        |line: &&Span| line.start == 0 || to(text, line.start).trim_end_matches(' ').ends_with("\n\n");
    let blocks: Vec<usize> =
        lines.iter().filter(paragraph).filter(|line| content(line)).map(|line| line.start).collect();
    let all_lines: Vec<usize> = lines.iter().filter(|line| content(line)).map(|line| line.start).collect();
    let all_sentences: Vec<usize> =
        sentences(text).into_iter().filter(|span| content(span)).map(|span| span.start).collect();
    for (starts, what) in [
        (blocks, "marked paragraphs as sections"),
        (all_lines, "marked lines as sections"),
        (all_sentences, "marked sentences as sections"),
    ] {
        let mut usable: Vec<usize> = starts.into_iter().filter(|&start| start >= after).collect();
        if !have.is_empty() && usable.len() > 1 {
            // What comes right behind the last marker belongs to it.
            usable.remove(0);
        }
        if usable.len() < need {
            continue;
        }
        let spread: Vec<usize> =
            (0..need).filter_map(|n| usable.get(n * usable.len() / need).copied()).collect();
        for chosen in [spread, usable.iter().take(need).copied().collect()] {
            let edits: Vec<Change> = chosen
                .into_iter()
                .enumerate()
                .map(|(n, at)| {
                    let lead = if at == 0 || to(text, at).ends_with('\n') { "" } else { "\n" };
                    (at..at, format!("{lead}{marker} {}\n", have.len() + n + 1))
                })
                .collect();
            out.push(Candidate::new(StepKind::Literal, what, apply(text, &edits)));
        }
    }
    out
}

/// `Group1`, `GROUP 1`, `Group: 1` and similar as `Group 1`.
fn rewritten_markers(text: &str, marker: &str) -> Option<Candidate> {
    let bare = marker.trim_matches(['*', '#', '_']);
    let mut edits = Vec::new();
    for span in find_all(text, bare) {
        let lead = to(text, span.start).len() - to(text, span.start).trim_end_matches(['*', '_']).len();
        let rest = from(text, span.end);
        let number = rest.trim_start_matches([' ', '*', '_', ':', '#', '-']);
        let digits = number.len() - number.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 || number.len() + 4 < rest.len() {
            continue;
        }
        let end = text.len() - number.len();
        let (start, open) = if marker.starts_with('*') { (span.start - lead, "") } else { (span.start, "") };
        edits.push((start..end, format!("{open}{marker} ")));
    }
    let what = "corrected the section markers";
    (!edits.is_empty()).then(|| Candidate::new(StepKind::Format, what, apply(text, &edits)))
}

/// Separators of the wrong length or of another mark, separators too many, responses that are given twice.
pub(super) fn responses(text: &str, count: u32, separator: &str) -> Vec<Candidate> {
    let mut out = Vec::new();
    let wanted = separator.chars().next().unwrap_or('*');
    for mark in [wanted, '*', '-', '=', '+', '_', '#', '~'] {
        let mut edits: Vec<Change> = Vec::new();
        let mut at = 0;
        while let Some(start) = from(text, at).find(mark).map(|found| at + found) {
            let run = from(text, start);
            let length = run.len() - run.trim_start_matches(mark).len();
            at = start + length;
            let line_start = to(text, start).rfind('\n').map_or(0, |newline| newline + 1);
            let line_end = from(text, at).find('\n').map_or(text.len(), |newline| at + newline);
            let alone =
                cut(text, line_start..start).trim().is_empty() && cut(text, at..line_end).trim().is_empty();
            if length >= 3 && (alone || mark == wanted && length >= separator.len()) {
                edits.push((start..at, separator.to_owned()));
            }
        }
        if !edits.is_empty() {
            let rewritten = apply(text, &edits);
            out.push(Candidate::layout("corrected the separators", rewritten.clone()));
            out.extend(fitted(&rewritten, count, separator));
        }
    }
    out.extend(fitted(text, count, separator));
    out.extend(labelled(text, count, separator));
    out
}

/// The right number of responses by taking out empty ones, exact duplicates, and separators too many.
fn fitted(text: &str, count: u32, separator: &str) -> Vec<Candidate> {
    let mut parts: Vec<&str> = Vec::new();
    let mut duplicates = false;
    for part in text.split(separator) {
        let empty = part.trim().is_empty();
        let twice = parts.iter().any(|before| before.trim() == part.trim());
        duplicates |= twice && !empty;
        if !empty && !twice {
            parts.push(part);
        }
    }
    if parts.len() < 2 || parts.len() < count as usize {
        return Vec::new();
    }
    let kind = if duplicates { StepKind::Duplicate } else { StepKind::Layout };
    let mut out = Vec::new();
    if parts.len() == count as usize {
        out.push(Candidate::new(kind, "removed empty or duplicate responses", parts.join(separator)));
    } else if let Some((head, tail)) = parts.split_at_checked(count as usize) {
        let joined = format!("{}{}", head.join(separator), tail.concat());
        out.push(Candidate::new(kind, "removed surplus separators", joined));
    }
    out
}

/// A separator before responses that the reply labels itself: `Response 1`, `Response 2`.
fn labelled(text: &str, count: u32, separator: &str) -> Vec<Candidate> {
    let labels = ["response", "answer", "version", "option", "reply", "alternative"];
    labels
        .iter()
        .filter_map(|label| {
            let starts: Vec<usize> = open_lines(text)
                .into_iter()
                .filter(|line| {
                    let body = cut(text, line.clone()).trim_start_matches(|c: char| !c.is_alphanumeric());
                    let rest = body
                        .get(..label.len())
                        .filter(|head| head.eq_ignore_ascii_case(label))
                        .map(|_| from(body, label.len()));
                    rest.is_some_and(|rest| {
                        rest.trim_start_matches([' ', '#']).starts_with(|c: char| c.is_ascii_digit())
                    })
                })
                .map(|line| line.start)
                .collect();
            if starts.len() != count as usize {
                return None;
            }
            let edits: Vec<Change> =
                starts.into_iter().skip(1).map(|at| (at..at, format!("{separator}\n"))).collect();
            Some(Candidate::new(
                StepKind::Literal,
                "put separators between labelled responses",
                apply(text, &edits),
            ))
        })
        .collect()
}
