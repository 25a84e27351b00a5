//! Markdown for people, made of counted facts: every sentence names the events that it rests on.
//!
//! Names come from agents, tools and bundles, so they are shown as code with nothing in them that a reader's program
//! could take for anything else.

use std::fmt::Write as _;

/// The most events that one sentence names.
pub(crate) const EVENTS_NAMED_MAX: usize = 12;

/// The most characters of a name or a reason that are shown.
const SHOWN_CHARS_MAX: usize = 240;

/// A name as code: one line, no control characters, no marks that end it.
pub(crate) fn code(name: &str) -> String {
    format!("`{}`", text(name).replace('`', "'"))
}

/// Foreign text in a sentence: one line, without what Markdown or a terminal would act on.
pub(crate) fn text(said: &str) -> String {
    let mut shown = String::new();
    for (number, character) in said.chars().enumerate() {
        if number == SHOWN_CHARS_MAX {
            shown.push('…');
            break;
        }
        match character {
            '\n' | '\r' | '\t' => shown.push(' '),
            '<' => shown.push_str("&lt;"),
            '|' => shown.push('¦'),
            other if is_hidden(other) => {
                let _written = write!(shown, "\\u{{{:x}}}", u32::from(other));
            }
            other => shown.push(other),
        }
    }
    shown
}

/// Characters that change what is seen of others.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// `1 step`, `3 steps`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// `event 4`, `events 4, 9 and 12`, `events 1, 2, … and 30 more`.
pub(crate) fn events(numbers: &[u64]) -> String {
    let named: Vec<String> = numbers.iter().take(EVENTS_NAMED_MAX).map(u64::to_string).collect();
    let more = numbers.len().saturating_sub(EVENTS_NAMED_MAX);
    match (named.split_last(), more) {
        (None, _) => "no event".to_owned(),
        (Some((only, [])), 0) => format!("event {only}"),
        (Some((last, rest)), 0) => format!("events {} and {last}", rest.join(", ")),
        (Some(_), more) => format!("events {} and {more} more", named.join(", ")),
    }
}

/// `` `a` and `b` ``, every one.
pub(crate) fn all_names<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let shown: Vec<String> = names.into_iter().map(code).collect();
    match shown.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// `` `a` and `b` ``; at most so many of them as events are named.
pub(crate) fn names<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let all: Vec<&str> = names.into_iter().collect();
    let more = all.len().saturating_sub(EVENTS_NAMED_MAX);
    let shown: Vec<String> = all.iter().take(EVENTS_NAMED_MAX).map(|name| code(name)).collect();
    match (shown.split_last(), more) {
        (None, _) => String::new(),
        (Some((only, [])), 0) => only.clone(),
        (Some((last, rest)), 0) => format!("{} and {last}", rest.join(", ")),
        (Some(_), more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A document: a title, and sections of which those that say nothing are left out.
#[derive(Debug)]
pub(crate) struct Document {
    text: String,
}

impl Document {
    /// Begins with a title.
    pub(crate) fn new(title: &str) -> Self {
        Self { text: format!("# {title}\n") }
    }

    /// A paragraph.
    pub(crate) fn paragraph(&mut self, paragraph: &str) {
        let _written = write!(self.text, "\n{paragraph}\n");
    }

    /// A section of points; nothing if there are none.
    pub(crate) fn points(&mut self, title: &str, points: &[String]) {
        if points.is_empty() {
            return;
        }
        let _written = write!(self.text, "\n## {title}\n\n");
        for point in points {
            let _written = writeln!(self.text, "- {point}");
        }
    }

    /// A section with a table; nothing where it has no rows.
    pub(crate) fn table(&mut self, title: &str, columns: &[&str], rows: &[Vec<String>]) {
        if rows.is_empty() {
            return;
        }
        let _written = write!(self.text, "\n## {title}\n\n| {} |\n", columns.join(" | "));
        let _written = writeln!(self.text, "|{}", "---|".repeat(columns.len()));
        for row in rows {
            let _written = writeln!(self.text, "| {} |", row.join(" | "));
        }
    }

    /// The bytes.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_named_and_cut() {
        assert_eq!(events(&[]), "no event");
        assert_eq!(events(&[4]), "event 4");
        assert_eq!(events(&[4, 9, 12]), "events 4, 9 and 12");
        let many: Vec<u64> = (1..=20).collect();
        assert!(events(&many).ends_with("11, 12 and 8 more"), "{}", events(&many));
        assert_eq!(count(1, "step", "steps"), "1 step");
        assert_eq!(names(["a", "b"]), "`a` and `b`");
    }

    #[test]
    fn foreign_names_stay_names() {
        assert_eq!(code("a`b\n<script>|\u{202e}x"), "`a'b &lt;script>¦\\u{202e}x`");
        assert_eq!(text(&"x".repeat(1_000)).chars().count(), SHOWN_CHARS_MAX + 1);
    }
}
