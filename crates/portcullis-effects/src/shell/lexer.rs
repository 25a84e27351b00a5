//! From shell text to the tokens of bash's grammar.
//!
//! The grammar is `brush-parser`'s; tokens are made here, because what is quoted and where `$(…)` ends decides what
//! runs. A token that is not plain goes to the grammar as a placeholder: the grammar says how words stand together,
//! [`Lexed::raw`] gives the word back by its place. So nothing hostile reaches the recursive parts of the foreign
//! parser, and text of any shape is read in time linear in its length.
//!
//! Positions in tokens are numbers of lexemes, two a lexeme: the end is one more than the start, or equals the next
//! start where nothing stands between (that makes the `2` of `2>x` a file descriptor).

use std::ops::Range;
use std::sync::Arc;

use brush_parser::{SourcePosition, SourceSpan, Token};

use super::scan::{self, Refusal, byte};
use crate::limits::NESTING_MAX;

/// Most tokens of one text.
pub(super) const TOKENS_MAX: usize = 20_000;
/// Deepest nesting of `case`: the grammar reads the last branch of each twice.
const CASE_NESTING_MAX: usize = 4;
/// Most coprocesses of one text: each may hold the next.
const COPROCESSES_MAX: usize = 8;
/// What stands for a word whose text does not matter to the grammar.
const PLACEHOLDER: &str = "w";
/// Longest number of a file descriptor.
const DESCRIPTOR_DIGITS_MAX: usize = 4;

/// What a stretch of the text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word or an operator, for the grammar to say.
    Plain,
    /// The inside of `((…))`.
    Arithmetic,
    /// The inside of `[[…]]`.
    Test,
    /// A here-document, its tabs removed where the operator says so.
    Document { expands: bool, body: String },
}

/// A stretch of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lexeme {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
}

/// A text in tokens.
#[derive(Debug, Default)]
pub(super) struct Lexed {
    pub(super) tokens: Vec<Token>,
    pub(super) lexemes: Vec<Lexeme>,
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// A command, reserved words included.
    Command,
    /// A further word of a command.
    Words,
    /// The variable of a loop.
    LoopName,
    /// `in`, `do` or a separator after the variable of a loop.
    LoopIn,
    /// The word after `case`.
    CaseWord,
    /// `in` after that.
    CaseIn,
    /// A pattern of a `case`, its first word.
    Pattern,
    /// Further words of a pattern.
    Patterns,
    /// The name after `function`.
    FunctionName,
}

/// What is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Paren,
    Array,
    Brace,
    If,
    Loop,
    Case,
}

/// A here-document whose body comes with the next line.
#[derive(Debug)]
struct Pending {
    lexeme: usize,
    delimiter: String,
    quoted: bool,
    tabs: bool,
}

/// Makes tokens of a text.
#[derive(Debug)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    /// Whether tokens are wanted; else only the end is.
    emit: bool,
    depth: usize,
    expect: Expect,
    open: Vec<Open>,
    pending: Vec<Pending>,
    coprocesses: usize,
    lexed: Lexed,
}

const OPERATORS: [&str; 22] = [
    ";;&", "<<-", "<<<", "&>>", "&&", "||", ";;", ";&", "|&", "<<", ">>", "<&", ">&", "<>", ">|", "&>", ";",
    "&", "|", "<", ">", "\n",
];

impl<'t> Lexer<'t> {
    fn new(text: &'t str, at: usize, depth: usize, emit: bool) -> Self {
        Self {
            text,
            at,
            emit,
            depth,
            expect: Expect::Command,
            open: Vec::new(),
            pending: Vec::new(),
            coprocesses: 0,
            lexed: Lexed::default(),
        }
    }

    /// The tokens of a whole text.
    pub(super) fn tokens(text: &'t str) -> Result<Lexed, Refusal> {
        let mut lexer = Self::new(text, 0, 0, true);
        if lexer.run()? {
            return Err(Refusal("a parenthesis closes nothing"));
        }
        Ok(lexer.lexed)
    }

    /// The end of commands that start at `at` and are in parentheses: after the closing one.
    pub(super) fn skip(text: &'t str, at: usize, depth: usize) -> Result<usize, Refusal> {
        let mut lexer = Self::new(text, at, depth, false);
        if lexer.run()? { Ok(lexer.at + 1) } else { Err(Refusal("a `$(` is not closed")) }
    }

    /// Reads up to the end, or up to a closing parenthesis that nothing here opened: true.
    fn run(&mut self) -> Result<bool, Refusal> {
        while let Some(here) = byte(self.text, self.at) {
            match here {
                b' ' | b'\t' => self.at += 1,
                b'\\' if byte(self.text, self.at + 1) == Some(b'\n') => self.at += 2,
                b'#' => {
                    let rest = self.text.get(self.at..).unwrap_or_default();
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                b')' if self.open.is_empty() => {
                    return if self.pending.is_empty() {
                        Ok(true)
                    } else {
                        Err(Refusal("a here-document has no body"))
                    };
                }
                b'(' | b')' => self.parenthesis(here)?,
                b'<' | b'>' if byte(self.text, self.at + 1) == Some(b'(') => self.word()?,
                here if scan::is_meta(here) => self.operator()?,
                _ => self.word()?,
            }
            if self.lexed.tokens.len() > TOKENS_MAX {
                return Err(Refusal("it has too many words"));
            }
        }
        self.documents()?;
        if self.open.is_empty() { Ok(false) } else { Err(Refusal("something is not closed")) }
    }

    fn push(&mut self, open: Open) -> Result<(), Refusal> {
        if self.open.len() + self.depth >= NESTING_MAX {
            return Err(Refusal("it is nested too deeply"));
        }
        let cases = self.open.iter().filter(|open| **open == Open::Case).count();
        if open == Open::Case && cases >= CASE_NESTING_MAX {
            return Err(Refusal("`case` is nested too deeply"));
        }
        self.open.push(open);
        Ok(())
    }

    fn pop(&mut self, open: Open) -> Result<(), Refusal> {
        if self.open.pop() == Some(open) { Ok(()) } else { Err(Refusal("brackets or keywords do not match")) }
    }

    fn lexeme(&mut self, range: Range<usize>, kind: Kind) -> usize {
        self.lexed.lexemes.push(Lexeme { range, kind });
        self.lexed.lexemes.len() - 1
    }

    /// Adds a token for the grammar.
    fn token(&mut self, text: &str, word: bool, range: Range<usize>, kind: Kind, joined: bool) -> usize {
        if !self.emit {
            return 0;
        }
        let place = |index| Arc::new(SourcePosition { index, line: 1, column: 1 });
        let number = self.lexeme(range, kind);
        let start = number * 2;
        let end = if joined { start + 2 } else { start + 1 };
        let span = SourceSpan { start: place(start), end: place(end) };
        let text = text.to_owned();
        self.lexed.tokens.push(if word { Token::Word(text, span) } else { Token::Operator(text, span) });
        number
    }

    fn operator_token(&mut self, text: &str, range: Range<usize>) {
        self.token(text, false, range, Kind::Plain, false);
    }

    fn parenthesis(&mut self, here: u8) -> Result<(), Refusal> {
        let range = self.at..self.at + 1;
        let twice = byte(self.text, self.at + 1) == Some(b'(');
        match (here, self.expect) {
            (b'(', Expect::Command | Expect::LoopName) if twice => return self.arithmetic(),
            (b'(', Expect::Pattern) => {
                self.operator_token("(", range);
                self.expect = Expect::Patterns;
            }
            (b'(', _) => {
                let before = byte(self.text, self.at.wrapping_sub(1));
                let array = self.expect == Expect::Words && before == Some(b'=');
                self.push(if array { Open::Array } else { Open::Paren })?;
                self.operator_token("(", range.clone());
                let empty = byte(self.text, self.at + 1) == Some(b')');
                if !array && !empty && self.expect == Expect::Command {
                    // `( (` is not arithmetic, though the grammar does not see the space.
                    self.operator_token("\n", range);
                }
                if !array {
                    self.expect = Expect::Command;
                }
            }
            (_, Expect::Pattern | Expect::Patterns) => {
                self.operator_token(")", range);
                self.expect = Expect::Command;
            }
            _ => {
                let array = self.open.last() == Some(&Open::Array);
                self.pop(if array { Open::Array } else { Open::Paren })?;
                self.operator_token(")", range);
                self.expect = if array { Expect::Words } else { Expect::Command };
            }
        }
        self.at += 1;
        Ok(())
    }

    /// `((…))`, also after `for`.
    fn arithmetic(&mut self) -> Result<(), Refusal> {
        let end = scan::arithmetic(self.text, self.at + 2, self.depth)?;
        let range = self.at..end;
        let inside = self.at + 2..end - 2;
        let semicolons = if self.expect == Expect::LoopName { 2 } else { 0 };
        self.operator_token("(", range.clone());
        self.operator_token("(", range.clone());
        self.token(PLACEHOLDER, true, inside.clone(), Kind::Arithmetic, false);
        for _ in 0..semicolons {
            self.operator_token(";", inside.clone());
        }
        self.operator_token(")", range.clone());
        self.operator_token(")", range);
        self.at = end;
        if self.expect == Expect::LoopName {
            let rest = self.text.get(end..).unwrap_or_default();
            if !rest.trim_start_matches([' ', '\t', '\n', ';']).starts_with('{') {
                self.push(Open::Loop)?;
            }
        }
        self.expect = Expect::Command;
        Ok(())
    }

    fn operator(&mut self) -> Result<(), Refusal> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) else {
            return Err(Refusal("there is an operator that bash does not have"));
        };
        let range = self.at..self.at + operator.len();
        self.at = range.end;
        match *operator {
            "<<" | "<<-" => return self.here_document(operator, range),
            "\n" => {
                self.documents()?;
                let inside = self.open.last() == Some(&Open::Array);
                let kept = matches!(self.expect, Expect::CaseIn | Expect::Pattern | Expect::Patterns);
                if !inside && !kept {
                    self.expect = Expect::Command;
                }
                self.operator_token("\n", range);
            }
            // `|&` is `2>&1 |`, which touches nothing more.
            "|&" => self.separator("|", range),
            "|" if matches!(self.expect, Expect::Pattern | Expect::Patterns) => {
                self.operator_token("|", range);
            }
            ";;" | ";&" | ";;&" => {
                if self.open.last() != Some(&Open::Case) {
                    return Err(Refusal("`;;` stands outside of `case`"));
                }
                self.operator_token(operator, range);
                self.expect = Expect::Pattern;
            }
            "&&" | "||" | ";" | "&" | "|" => self.separator(operator, range),
            _ => {
                self.operator_token(operator, range);
                self.target()?;
            }
        }
        Ok(())
    }

    fn separator(&mut self, operator: &str, range: Range<usize>) {
        self.operator_token(operator, range);
        self.expect = Expect::Command;
    }

    fn blanks(&mut self) {
        loop {
            match byte(self.text, self.at) {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if byte(self.text, self.at + 1) == Some(b'\n') => self.at += 2,
                _ => break,
            }
        }
    }

    /// The word after a redirection.
    fn target(&mut self) -> Result<Range<usize>, Refusal> {
        self.blanks();
        let start = self.at;
        self.at = scan::word(self.text, start, self.depth)?;
        if self.at == start {
            return Err(Refusal("a redirection leads nowhere"));
        }
        self.token(PLACEHOLDER, true, start..self.at, Kind::Plain, false);
        self.expect = Expect::Words;
        Ok(start..self.at)
    }

    fn here_document(&mut self, operator: &str, range: Range<usize>) -> Result<(), Refusal> {
        self.operator_token(operator, range);
        let tag = self.target()?;
        let end = tag.end;
        let (delimiter, quoted) = delimiter(self.text.get(tag).unwrap_or_default())?;
        let document = Kind::Document { expands: !quoted, body: String::new() };
        let lexeme = self.token(PLACEHOLDER, true, end..end, document, false);
        self.token(PLACEHOLDER, true, end..end, Kind::Plain, false);
        self.pending.push(Pending { lexeme, delimiter, quoted, tabs: operator == "<<-" });
        Ok(())
    }

    /// Reads the bodies of here-documents; they start here.
    fn documents(&mut self) -> Result<(), Refusal> {
        for pending in std::mem::take(&mut self.pending) {
            let start = self.at;
            let mut body = String::new();
            let mut end = self.text.len();
            while self.at < self.text.len() {
                let line_start = self.at;
                let line = self.line(!pending.quoted);
                let line = if pending.tabs { line.trim_start_matches('\t') } else { line };
                let joined = if pending.quoted { line.to_owned() } else { line.replace("\\\n", "") };
                if joined.trim_end_matches('\n') == pending.delimiter {
                    end = line_start;
                    break;
                }
                body.push_str(line);
            }
            if let Some(lexeme) = self.lexed.lexemes.get_mut(pending.lexeme).filter(|_| self.emit) {
                *lexeme = Lexeme {
                    range: start.min(end)..end,
                    kind: Kind::Document { expands: !pending.quoted, body },
                };
            }
        }
        Ok(())
    }

    /// The next line with its end; where backslashes join lines, all that are joined.
    fn line(&mut self, joins: bool) -> &'t str {
        let start = self.at;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(length) = rest.find('\n') else {
                self.at = self.text.len();
                break;
            };
            self.at += length + 1;
            let line = rest.get(..length).unwrap_or_default();
            let backslashes = line.len() - line.trim_end_matches('\\').len();
            if !joins || backslashes % 2 == 0 {
                break;
            }
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn word(&mut self) -> Result<(), Refusal> {
        let start = self.at;
        self.at = scan::word(self.text, start, self.depth)?;
        let raw = self.text.get(start..self.at).unwrap_or_default();
        let joined = without_continuations(raw);
        let plain = joined.bytes().all(is_plain);
        let next = byte(self.text, self.at);
        let redirects = matches!(next, Some(b'<' | b'>'));
        if redirects && is_variable_descriptor(raw) {
            return Ok(());
        }
        let number = redirects && raw.bytes().all(|digit| digit.is_ascii_digit());
        if number && raw.len() > DESCRIPTOR_DIGITS_MAX {
            return Err(Refusal("the number of a file descriptor is too large"));
        }
        let range = start..self.at;
        let shown = if plain { joined.clone() } else { placeholder(&joined) };
        let shown = match (shown.as_str(), self.expect) {
            ("[[", _) => PLACEHOLDER.to_owned(),
            // The same but for the prompt.
            ("select", Expect::Command) => "for".to_owned(),
            _ => shown,
        };
        let reserved = if plain && self.expect != Expect::Words { joined.as_str() } else { "" };
        if raw == "[[" && self.expect == Expect::Command {
            return self.test(range);
        }
        if number {
            self.token(raw, true, range, Kind::Plain, true);
            return Ok(());
        }
        self.token(&shown, true, range, Kind::Plain, false);
        self.follow(reserved)
    }

    /// What a word makes of what may come next.
    fn follow(&mut self, word: &str) -> Result<(), Refusal> {
        if self.open.last() == Some(&Open::Array) {
            return Ok(());
        }
        self.expect = match self.expect {
            Expect::Command => return self.reserved(word),
            Expect::LoopName => Expect::LoopIn,
            Expect::LoopIn if word == "do" => Expect::Command,
            Expect::CaseWord => Expect::CaseIn,
            Expect::CaseIn if word == "in" => Expect::Pattern,
            Expect::Pattern if word == "esac" => {
                self.pop(Open::Case)?;
                Expect::Command
            }
            Expect::Pattern | Expect::Patterns => Expect::Patterns,
            Expect::FunctionName => Expect::Command,
            Expect::Words | Expect::LoopIn | Expect::CaseIn => Expect::Words,
        };
        Ok(())
    }

    fn reserved(&mut self, word: &str) -> Result<(), Refusal> {
        self.expect = Expect::Command;
        match word {
            "then" | "do" | "else" | "elif" | "!" | "time" => {}
            "coproc" => {
                self.coprocesses += 1;
                if self.coprocesses > COPROCESSES_MAX {
                    return Err(Refusal("it starts too many coprocesses"));
                }
            }
            "if" => self.push(Open::If)?,
            "while" | "until" => self.push(Open::Loop)?,
            "{" => self.push(Open::Brace)?,
            "case" => {
                self.push(Open::Case)?;
                self.expect = Expect::CaseWord;
            }
            "for" | "select" => {
                self.expect = Expect::LoopName;
                self.blanks();
                if byte(self.text, self.at) != Some(b'(') {
                    self.push(Open::Loop)?;
                }
            }
            "function" => self.expect = Expect::FunctionName,
            "fi" => self.pop(Open::If)?,
            "done" => self.pop(Open::Loop)?,
            "}" => self.pop(Open::Brace)?,
            "esac" => self.pop(Open::Case)?,
            _ => self.expect = Expect::Words,
        }
        Ok(())
    }

    /// `[[…]]`; `range` is where its opening stands.
    fn test(&mut self, range: Range<usize>) -> Result<(), Refusal> {
        self.token("[[", true, range.clone(), Kind::Plain, false);
        let start = self.at;
        loop {
            let Some(here) = byte(self.text, self.at) else { return Err(Refusal("a `[[` is not closed")) };
            let next = byte(self.text, self.at + 1);
            match here {
                b'&' if next != Some(b'&') => return Err(Refusal("a test holds a separator")),
                b'&' => self.at += 2,
                b';' | b'#' => return Err(Refusal("a test holds a separator or comment")),
                b'<' | b'>' if next == Some(b'(') => {}
                here if scan::is_meta(here) => {
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            let word = self.at;
            self.at = scan::word(self.text, word, self.depth)?;
            if self.text.get(word..self.at) == Some("]]") {
                self.token(PLACEHOLDER, true, start..word, Kind::Test, false);
                self.token("]]", true, word..self.at, Kind::Plain, false);
                self.expect = Expect::Command;
                return Ok(());
            }
        }
    }
}

/// Bytes of words that stand for themselves in the grammar and mean nothing to its word parsers.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'_' | b'-'
                | b'.'
                | b'/'
                | b':'
                | b','
                | b'+'
                | b'%'
                | b'@'
                | b'^'
                | b'='
                | b'!'
                | b'{'
                | b'}'
                | b'~'
        )
}

/// Removes backslashes at ends of lines, which join them.
pub(super) fn without_continuations(raw: &str) -> String {
    // Inside of single quotes they stay; a word with both is never plain, and expanded elsewhere.
    if raw.contains("\\\n") && !raw.contains('\'') { raw.replace("\\\n", "") } else { raw.to_owned() }
}

/// What stands for a word that is not plain: the same sort of word.
fn placeholder(raw: &str) -> String {
    match super::assignment::split(raw) {
        Some(assignment) => {
            let index = if assignment.index.is_some() { "[0]" } else { "" };
            let append = if assignment.append { "+" } else { "" };
            let value = if assignment.value.is_empty() { "" } else { PLACEHOLDER };
            format!("{}{index}{append}={value}", assignment.name)
        }
        None => PLACEHOLDER.to_owned(),
    }
}

/// `{fd}` of `{fd}>x`.
fn is_variable_descriptor(raw: &str) -> bool {
    let name = raw.strip_prefix('{').and_then(|raw| raw.strip_suffix('}'));
    name.is_some_and(super::assignment::is_name)
}

/// What ends a here-document, and whether it was quoted.
fn delimiter(raw: &str) -> Result<(String, bool), Refusal> {
    if raw.contains(['$', '`', '\n', '(']) {
        return Err(Refusal("the end of a here-document is not plain"));
    }
    let quoted = raw.contains(['\\', '\'', '"']);
    let mut word = String::new();
    let mut quote = None;
    let mut chars = raw.chars();
    while let Some(char) = chars.next() {
        match (char, quote) {
            ('\\', None | Some('"')) => word.extend(chars.next()),
            ('\'' | '"', None) => quote = Some(char),
            (char, Some(open)) if char == open => quote = None,
            (char, _) => word.push(char),
        }
    }
    Ok((word, quoted))
}
