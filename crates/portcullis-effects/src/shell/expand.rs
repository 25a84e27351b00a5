//! From a word as it is written to the words that a program gets.
//!
//! Quotes, escapes, tildes, variables, substitutions and braces, in bash's order. What is not known is marked, and
//! whatever is substituted is walked for its effects on the way, wherever it stands.

use std::collections::BTreeSet;
use std::ops::Range;

use super::environment::{self, Influence};
use super::fields::Fields;
use super::interpreter::{Interpreter, Printed};
use super::scan::{self, byte};
use super::state::Value;
use super::word::{Gaps, Word};
use super::{ansi, assignment, brace};

/// What a process substitution is replaced by: a descriptor that is open already.
pub(super) const PROCESS: &str = "/dev/fd/63";

/// Most variables that one expression is followed through.
const EVALUATED_MAX: usize = 256;

/// How text is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    None,
    /// In double quotes, or between them in a here-document.
    Double,
    /// A here-document, where quotes are text.
    Document,
}

impl Interpreter<'_, '_> {
    /// The words that a written word becomes.
    pub(super) fn expand(&mut self, raw: &str, range: &Range<usize>) -> Vec<Word> {
        if !raw.contains('{') {
            return self.fields(raw, range, true);
        }
        let Some(raws) = brace::expand(raw) else {
            self.fields(raw, range, true);
            return vec![Word::unknown(range.clone())];
        };
        raws.iter().flat_map(|raw| self.fields(raw, range, true)).collect()
    }

    /// The one word that a written word becomes where nothing is split: values, targets of redirections.
    pub(super) fn expand_one(&mut self, raw: &str, range: &Range<usize>) -> Word {
        let words = self.fields(raw, range, false);
        words.into_iter().next().unwrap_or_else(|| Word::known("", range.clone()))
    }

    /// The text of a here-document.
    pub(super) fn expand_document(&mut self, body: &str, range: &Range<usize>) -> Word {
        let mut fields = Fields::new(false);
        self.pieces(body, Quoting::Document, range, &mut fields);
        fields.words(range).into_iter().next().unwrap_or_else(|| Word::known("", range.clone()))
    }

    fn fields(&mut self, raw: &str, range: &Range<usize>, splits: bool) -> Vec<Word> {
        let mut fields = Fields::new(splits).elsewhere(self.state.splits_elsewhere);
        let mut rest = raw;
        // `NAME=~/x` has a tilde too.
        if let Some(found) = assignment::split(raw).filter(|found| found.value.starts_with('~')) {
            let (name, value) = raw.split_at_checked(raw.len() - found.value.len()).unwrap_or((raw, ""));
            fields.literal(name, false);
            rest = value;
        }
        rest = self.tilde(rest, &mut fields);
        self.pieces(rest, Quoting::None, range, &mut fields);
        fields.words(range)
    }

    /// Takes a tilde at the start of a word.
    fn tilde<'r>(&mut self, raw: &'r str, fields: &mut Fields) -> &'r str {
        let Some(after) = raw.strip_prefix('~') else { return raw };
        let length = after.find(['/', ':']).unwrap_or(after.len());
        let (user, rest) = after.split_at_checked(length).unwrap_or((after, ""));
        if user.contains(['\\', '\'', '"', '$', '`']) {
            return raw;
        }
        let folder = match user {
            "" => self.home(),
            "+" => self.state.directory().filter(|folder| !folder.contains('*')).map(ToOwned::to_owned),
            _ => None,
        };
        match folder {
            Some(folder) => fields.literal(&folder, true),
            None => fields.shape(&format!("~{user}")),
        }
        rest
    }

    /// What `~` and `$HOME` mean here.
    pub(super) fn home(&self) -> Option<String> {
        if self.state.assigns("HOME") {
            return match self.state.variable("HOME") {
                Value::Text(text) => Some(text),
                _ => None,
            };
        }
        self.surroundings().home.map(ToOwned::to_owned)
    }

    /// Expands text piece by piece.
    pub(super) fn pieces(&mut self, text: &str, quoting: Quoting, range: &Range<usize>, fields: &mut Fields) {
        let mut at = 0;
        let mut plain = 0;
        while let Some(here) = byte(text, at) {
            let special = match here {
                b'\\' | b'$' | b'`' => true,
                b'\'' | b'"' => quoting == Quoting::None,
                b'<' | b'>' | b'@' | b'!' | b'?' | b'+' | b'*' => {
                    quoting == Quoting::None && byte(text, at + 1) == Some(b'(')
                }
                _ => false,
            };
            if !special {
                at += 1;
                continue;
            }
            fields.literal(text.get(plain..at).unwrap_or_default(), quoting != Quoting::None);
            at = self.piece(text, at, quoting, range, fields);
            plain = at;
        }
        fields.literal(text.get(plain..).unwrap_or_default(), quoting != Quoting::None);
    }

    /// Expands the special piece at `at`; gives its end.
    fn piece(
        &mut self,
        text: &str,
        at: usize,
        quoting: Quoting,
        range: &Range<usize>,
        fields: &mut Fields,
    ) -> usize {
        let quoted = quoting != Quoting::None;
        if let Some(name) = text.get(at..).and_then(|rest| rest.strip_prefix('$')).and_then(unbraced) {
            self.parameter(name, quoting, range, fields);
            return at + 1 + name.len();
        }
        let end = match byte(text, at) {
            Some(b'@' | b'!' | b'?' | b'+' | b'*') => scan::group(text, at + 2, 0),
            Some(b'<' | b'>') => scan::command(text, at + 2, 0),
            _ if quoted => scan::double_piece(text, at, 0),
            _ => scan::piece(text, at, 0),
        };
        let Ok(end) = end else {
            self.unknown("shell", "a substitution cannot be read", range.clone());
            fields.unknown();
            return text.len();
        };
        let inside =
            |skip: usize, back: usize| text.get(at + skip..end.saturating_sub(back)).unwrap_or_default();
        match byte(text, at) {
            Some(b'\\') => fields_escape(inside(1, 0), quoting, fields),
            Some(b'\'') => fields.literal(inside(1, 1), true),
            Some(b'"') => {
                fields.literal("", true);
                self.pieces(inside(1, 1), Quoting::Double, range, fields);
            }
            Some(b'`') => {
                let script = unescape_backquoted(inside(1, 1), quoting == Quoting::Double);
                self.command_substitution(&script, quoted, range, fields);
            }
            Some(b'@' | b'!' | b'?' | b'+' | b'*') => {
                // Whether the shell takes it for a pattern is an option of it. What it would substitute is walked.
                self.pieces(inside(2, 1), quoting, range, &mut Fields::new(false));
                match inside(2, 1).contains('.') {
                    // Dots of its own may match the folder above.
                    true => fields.unknown(),
                    false => fields.literal("*", false),
                }
            }
            Some(b'<' | b'>') => {
                self.substitute(inside(2, 1), range);
                fields.literal(PROCESS, true);
            }
            _ => self.dollar(text, at..end, quoting, range, fields),
        }
        end
    }

    fn dollar(
        &mut self,
        text: &str,
        piece: Range<usize>,
        quoting: Quoting,
        range: &Range<usize>,
        fields: &mut Fields,
    ) {
        let quoted = quoting != Quoting::None;
        let whole = text.get(piece.clone()).unwrap_or_default();
        let inside = |before: &str, after: &str| -> String {
            whole
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after))
                .unwrap_or_default()
                .to_owned()
        };
        if whole.starts_with("$((") {
            self.arithmetic(&inside("$((", "))"), range);
            fields.unknown();
        } else if whole.starts_with("$(") {
            self.command_substitution(&inside("$(", ")"), quoted, range, fields);
        } else if whole.starts_with("$[") {
            self.arithmetic(&inside("$[", "]"), range);
            fields.unknown();
        } else if whole.starts_with("${") {
            self.parameter(&inside("${", "}"), quoting, range, fields);
        } else if whole.starts_with("$'") {
            match ansi::decode(&inside("$'", "'")) {
                Some(decoded) => fields.literal(&decoded, true),
                None => fields.unknown(),
            }
        } else if whole.starts_with("$\"") {
            fields.literal("", true);
            self.pieces(&inside("$\"", "\""), Quoting::Double, range, fields);
        } else {
            fields.literal("$", quoted);
        }
    }

    fn command_substitution(
        &mut self,
        script: &str,
        quoted: bool,
        range: &Range<usize>,
        fields: &mut Fields,
    ) {
        match self.substitute(script, range) {
            Some(Printed::Text(output)) => fields.value(output.trim_end_matches('\n'), quoted),
            Some(Printed::Made(path)) => fields.gap(&path, Gaps::Letters, quoted),
            Some(Printed::Names(_)) | None => fields.unknown(),
        }
    }

    /// Walks what arithmetic substitutes; its value is not followed, and variables it sets are not known.
    pub(super) fn arithmetic(&mut self, text: &str, range: &Range<usize>) {
        let mut fields = Fields::new(false);
        self.pieces(text, Quoting::Document, range, &mut fields);
        let expanded = fields.words(range).into_iter().next();
        self.evaluated(expanded.as_ref().map_or("", |word| &word.shape), range);
        self.evaluated_names(text, range);
        let changes = text.contains('=') || text.contains("++") || text.contains("--");
        for word in names(text).filter(|_| changes) {
            // Names that nothing here set are followed only where they change what programs do.
            self.influence(word, &Value::Unknown, range);
            if self.state.assigns(word) || environment::influence(word, None) != Influence::None {
                self.state.assign(word, Value::Unknown);
            }
        }
    }

    /// Notes text that is arithmetic after expansion: subscripts in it are expanded again.
    pub(super) fn evaluated(&mut self, expanded: &str, range: &Range<usize>) {
        if runs_when_evaluated(expanded) {
            self.unknown("shell", "arithmetic expands a subscript", range.clone());
        }
    }

    /// Notes variables that arithmetic names, the text of which is evaluated in turn: `x='a[$(rm y)]'; ((x))`.
    pub(super) fn evaluated_names(&mut self, text: &str, range: &Range<usize>) {
        let mut open: Vec<String> = names(text).map(ToOwned::to_owned).collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            if seen.len() >= EVALUATED_MAX {
                return self.unknown("shell", "arithmetic names too many variables", range.clone());
            }
            let texts = match self.state.variable(&name) {
                Value::Text(text) | Value::Shape(text, _) => vec![text],
                Value::List(texts) => texts,
                Value::Unset | Value::Glob(_) | Value::Unknown => Vec::new(),
            };
            if !seen.insert(name) {
                continue;
            }
            if texts.iter().any(|text| text.contains(['$', '`'])) {
                return self.unknown("shell", "arithmetic evaluates the text of a variable", range.clone());
            }
            open.extend(texts.iter().flat_map(|text| names(text)).map(ToOwned::to_owned));
        }
    }

    /// After `declare -i` an assignment is arithmetic.
    pub(super) fn evaluated_on_assignment(&mut self, value: &Value, range: &Range<usize>) {
        if let Value::Text(text) | Value::Shape(text, _) = value
            && self.state.forgets_variables()
        {
            self.evaluated(text, range);
        }
    }
}

/// Whether text has a subscript with a command in it.
pub(super) fn runs_when_evaluated(text: &str) -> bool {
    text.contains('[') && (text.contains("$(") || text.contains('`') || text.contains("${"))
}

/// Words of a text that may be names of variables.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let in_name = |char: char| char == '_' || char.is_ascii_alphanumeric();
    text.split(move |char| !in_name(char)).filter(|word| assignment::is_name(word))
}

/// The parameter that text after a dollar sign names without braces.
fn unbraced(text: &str) -> Option<&str> {
    let first = text.bytes().next()?;
    let length = match first {
        b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
            text.bytes().take_while(|byte| *byte == b'_' || byte.is_ascii_alphanumeric()).count()
        }
        b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' => 1,
        _ => return None,
    };
    text.get(..length)
}

/// What a backslash makes of the character after it.
fn fields_escape(escaped: &str, quoting: Quoting, fields: &mut Fields) {
    let special = match quoting {
        Quoting::None => true,
        Quoting::Double => matches!(escaped, "$" | "`" | "\"" | "\\"),
        Quoting::Document => matches!(escaped, "$" | "`" | "\\"),
    };
    if escaped == "\n" {
        return;
    }
    if !special || escaped.is_empty() {
        fields.literal("\\", true);
    }
    fields.literal(escaped, true);
}

/// Backquoted text has a level of backslashes more.
fn unescape_backquoted(text: &str, double: bool) -> String {
    let mut script = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let dropped = match chars.peek() {
            Some('$' | '`' | '\\') => true,
            Some('"') => double,
            _ => false,
        };
        if char == '\\' && dropped {
            script.extend(chars.next());
        } else {
            script.push(char);
        }
    }
    script
}
