//! What is wrong with a bundle, with the place.

use std::fmt;
use std::ops::Range;

/// One mistake in a bundle. Displays as `file:line:column: message (help)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// File within the bundle.
    pub file: String,
    /// Bytes of the file that are wrong.
    pub span: Range<usize>,
    /// Line of the start of the span, from 1.
    pub line: usize,
    /// Column of the start of the span in characters, from 1.
    pub column: usize,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A mistake at `span` of `file`, whose text is `source`.
    pub fn new(file: &str, source: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let before = source.get(..source.floor_char_boundary(span.start)).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            file: file.to_owned(),
            span,
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            message: message.into(),
            help: None,
        }
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the nearest of the valid names, or all of them when none is near.
    #[must_use]
    pub fn did_you_mean<'n>(self, wrong: &str, valid: impl IntoIterator<Item = &'n str>) -> Self {
        let valid: Vec<&str> = valid.into_iter().collect();
        match nearest(wrong, &valid) {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None if valid.is_empty() => self,
            None => self.help(format!("expected one of: {}", valid.join(", "))),
        }
    }
}

/// The valid name that `wrong` was most likely meant to be.
pub fn nearest<'n>(wrong: &str, valid: &[&'n str]) -> Option<&'n str> {
    /// Jaro-Winkler similarity below which a suggestion is noise.
    const SIMILARITY_MIN: f64 = 0.8;
    let wrong = wrong.to_lowercase();
    valid
        .iter()
        .map(|name| (strsim::jaro_winkler(&wrong, &name.to_lowercase()), *name))
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters() {
        let source = "a = 1\nä = fasle\n";
        let start = source.find("fasle").unwrap();
        let diagnostic = Diagnostic::new("x.toml", source, start..start + 5, "not a boolean")
            .did_you_mean("fasle", ["true", "false"]);
        assert_eq!(diagnostic.to_string(), "x.toml:2:5: not a boolean (did you mean `false`?)");
    }

    #[test]
    fn far_names_are_listed_instead() {
        let diagnostic = Diagnostic::new("x", "", 0..0, "no").did_you_mean("qqq", ["mode", "policy"]);
        assert_eq!(diagnostic.help.as_deref(), Some("expected one of: mode, policy"));
    }
}
