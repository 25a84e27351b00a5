//! Differences of texts, line by line, with what changed within a line marked.

use maud::{Markup, html};
use similar::{ChangeTag, TextDiff};

use crate::foreign::shown;

/// Lines around a change that are shown.
const AROUND: usize = 2;
/// Lines of a difference that are shown; the rest is counted.
const LINES_MAX: usize = 400;

/// What differs in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Its path.
    pub path: String,
    /// Whether it is new, gone, or another.
    pub fate: Fate,
    /// The lines.
    pub lines: Vec<Line>,
    /// Lines that were added.
    pub added: usize,
    /// Lines that were removed.
    pub removed: usize,
}

/// What becomes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was not there.
    New,
    /// It goes.
    Gone,
    /// Its content is another.
    Changed,
}

/// A line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// The same in both.
    Same(usize, String),
    /// Removed, with the part that the line in its place does not have.
    Removed(usize, Marked),
    /// Added.
    Added(usize, Marked),
    /// So many lines that are the same.
    Skipped(usize),
}

/// A line in three parts; the one in the middle changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    before: String,
    changed: String,
    after: String,
}

impl Marked {
    fn whole(text: &str) -> Self {
        Self { before: text.to_owned(), changed: String::new(), after: String::new() }
    }
}

/// The difference of a file; one that is not there is none.
#[must_use]
pub fn of_texts(path: &str, old: Option<&str>, new: Option<&str>) -> FileDiff {
    let fate = match (old, new) {
        (None, _) => Fate::New,
        (_, None) => Fate::Gone,
        _ => Fate::Changed,
    };
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    let (mut added, mut removed, mut at) = (0, 0, 0);
    for group in diff.grouped_ops(AROUND) {
        let start = group.first().map_or(0, |op| op.old_range().start);
        if start > at {
            lines.push(Line::Skipped(start - at));
        }
        at = group.last().map_or(at, |op| op.old_range().end);
        for op in group {
            for change in diff.iter_changes(&op) {
                let text = change.value().trim_end_matches(['\n', '\r']);
                match change.tag() {
                    ChangeTag::Equal => {
                        lines.push(Line::Same(change.new_index().unwrap_or(0) + 1, text.to_owned()))
                    }
                    ChangeTag::Delete => {
                        removed += 1;
                        lines.push(Line::Removed(change.old_index().unwrap_or(0) + 1, Marked::whole(text)));
                    }
                    ChangeTag::Insert => {
                        added += 1;
                        lines.push(Line::Added(change.new_index().unwrap_or(0) + 1, Marked::whole(text)));
                    }
                }
            }
        }
    }
    let left = old.lines().count().saturating_sub(at);
    if left > 0 && !lines.is_empty() {
        lines.push(Line::Skipped(left));
    }
    mark(&mut lines);
    FileDiff { path: path.to_owned(), fate, lines, added, removed }
}

/// Marks what changed where a run of removed lines is followed by as many added ones.
fn mark(lines: &mut [Line]) {
    let mut at = 0;
    while at < lines.len() {
        let count = |from: usize, is: fn(&Line) -> bool| {
            lines.get(from..).map_or(0, |rest| rest.iter().take_while(|line| is(line)).count())
        };
        let gone = count(at, |line| matches!(line, Line::Removed(..)));
        let come = count(at + gone, |line| matches!(line, Line::Added(..)));
        if gone > 0
            && gone == come
            && let Some(pairs) = lines.get_mut(at..at + gone + come)
        {
            let (old, new) = pairs.split_at_mut(gone);
            for (old, new) in old.iter_mut().zip(new) {
                if let (Line::Removed(_, old), Line::Added(_, new)) = (old, new) {
                    part(old, new);
                }
            }
        }
        at += (gone + come).max(1);
    }
}

/// Parts two lines at what they have in common at both ends; lines that have little in common stay whole.
fn part(old: &mut Marked, new: &mut Marked) {
    let (a, b): (Vec<char>, Vec<char>) = (old.before.chars().collect(), new.before.chars().collect());
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let most = a.len().min(b.len()) - start;
    let end = a.iter().rev().zip(b.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    // Where one line is the other and more, all that is more is marked.
    let contained = start + end == a.len().min(b.len());
    if start + end == 0 || (!contained && (start + end) * 3 < a.len().max(b.len())) {
        return;
    }
    let cut = |line: &[char]| {
        let text = |part: Option<&[char]>| part.unwrap_or_default().iter().collect::<String>();
        let middle = line.len() - end;
        Marked {
            before: text(line.get(..start)),
            changed: text(line.get(start..middle)),
            after: text(line.get(middle..)),
        }
    };
    (*old, *new) = (cut(&a), cut(&b));
}

/// The difference, with the name of the file in view.
#[must_use]
pub fn view(file: &FileDiff) -> Markup {
    let word = match file.fate {
        Fate::New => "new file",
        Fate::Gone => "the file goes",
        Fate::Changed => "",
    };
    html! {
        div .diff tabindex="0" role="region" aria-label={ "Difference of " (file.path) } {
            div .file {
                b .mono { (shown(&file.path)) }
                @if !word.is_empty() { span .muted { (word) } }
                span .plus { "+" (file.added) }
                span .minus { "−" (file.removed) }
            }
            table { tbody {
                @for line in file.lines.iter().take(LINES_MAX) { (row(line)) }
                @if file.lines.len() > LINES_MAX {
                    tr .h { td .ln {} td .sg {} td { (file.lines.len() - LINES_MAX) " further lines are not shown here" } }
                }
            } }
        }
    }
}

fn row(line: &Line) -> Markup {
    html! {
        @match line {
            Line::Same(number, text) => { tr { td .ln { (number) } td .sg {} td { (shown(text)) } } }
            Line::Removed(number, text) => {
                tr .d { td .ln { (number) } td .sg { "−" span .sr { "removed" } } td { (shown(&text.before)) @if !text.changed.is_empty() { del { (shown(&text.changed)) } } (shown(&text.after)) } }
            }
            Line::Added(number, text) => {
                tr .a { td .ln { (number) } td .sg { "+" span .sr { "added" } } td { (shown(&text.before)) @if !text.changed.is_empty() { ins { (shown(&text.changed)) } } (shown(&text.after)) } }
            }
            Line::Skipped(count) => {
                tr .h { td .ln {} td .sg {} td { (count) @if *count == 1 { " line the same" } @else { " lines the same" } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_within_a_line_is_marked() {
        let old = "a = 1\nb = 2\nc = 3\nd = 4\nmax_steps = 5\ne\n";
        let diff = of_texts("p.toml", Some(old), Some(&old.replace("= 5", "= 60")));
        assert_eq!((diff.added, diff.removed, diff.fate), (1, 1, Fate::Changed));
        assert_eq!(diff.lines[0], Line::Skipped(2));
        let html = view(&diff).into_string();
        assert!(
            html.contains("max_steps = <del>5</del>") && html.contains("max_steps = <ins>60</ins>"),
            "{html}"
        );
        assert!(html.contains("2 lines the same"), "{html}");
    }

    #[test]
    fn a_new_file_is_all_added_and_hostile_lines_stay_texts() {
        let diff = of_texts("tools/x.toml", None, Some("<b>\u{202e}\n"));
        let html = view(&diff).into_string();
        assert!(html.contains("new file") && html.contains("&lt;b&gt;") && html.contains("RLO"), "{html}");
        assert_eq!(of_texts("x", Some("a\n"), Some("a\n")).lines, []);
        assert_eq!(of_texts("x", Some("a\n"), None).fate, Fate::Gone);
    }
}
