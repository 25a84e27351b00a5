//! A look at a source before a parser is given it.
//!
//! Parser and evaluator are recursive: what is nested or chained deeply enough overflows their stack. The worker would be
//! lost, and the author would be told no more than that. This finds such places from the tokens alone and names them.

use std::ops::Range;

/// Longest source, in bytes.
pub const SOURCE_BYTES_MAX: usize = 64 << 10;
/// Deepest nesting of brackets, and of blocks.
pub const NESTING_MAX: usize = 64;
/// Most operators, calls and comparisons in one expression, not counting those in brackets of their own.
pub const CHAIN_MAX: usize = 200;
/// Most `lambda` in one statement, and most `elif` in one file.
const REPEATED_MAX: usize = 200;

/// Why a source is not given to a parser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: &'static str,
}

/// Looks at a source.
///
/// # Errors
/// The first place that goes beyond a limit.
pub fn scan(source: &str) -> Result<(), Found> {
    let too =
        |at: usize, message: String, help| Err(Found { span: at..source.len().min(at + 1), message, help });
    if source.len() > SOURCE_BYTES_MAX {
        let message = format!("the program has {} bytes; the limit is {SOURCE_BYTES_MAX}", source.len());
        return too(0, message, "split it into several programs");
    }
    let mut depths = Depths { chains: vec![0], ..Depths::default() };
    let mut rest = Tokens { source, at: 0, line_start: true };
    while let Some((at, token)) = rest.next() {
        depths.take(&token);
        if depths.chains.len() > NESTING_MAX || depths.blocks.len() > NESTING_MAX {
            let message = format!("this is nested deeper than {NESTING_MAX} levels");
            return too(at, message, "give inner parts names of their own");
        }
        if depths.chains.last().is_some_and(|count| *count > CHAIN_MAX) {
            let message = format!("this expression chains more than {CHAIN_MAX} operators");
            return too(at, message, "use a list and a loop, or `any([…])` and `all([…])`");
        }
        if depths.lambdas > REPEATED_MAX || depths.elifs > REPEATED_MAX {
            let message = format!("more than {REPEATED_MAX} of these follow each other");
            return too(at, message, "use a dictionary");
        }
    }
    Ok(())
}

/// What a token means for depth.
#[derive(Debug, PartialEq, Eq)]
enum Token<'s> {
    /// The end of a line, with how far the next one that has something is indented.
    Line(usize),
    Open,
    Close,
    /// A comma, or a semicolon.
    Separator,
    /// A colon.
    Colon,
    Operator,
    Word(&'s str),
    Literal,
}

#[derive(Debug, Default)]
struct Depths {
    /// Operators of the expression in each open bracket, the statement's first.
    chains: Vec<usize>,
    /// Indentations of the open blocks.
    blocks: Vec<usize>,
    lambdas: usize,
    elifs: usize,
}

impl Depths {
    fn take(&mut self, token: &Token<'_>) {
        let count = |chains: &mut Vec<usize>| {
            if let Some(count) = chains.last_mut() {
                *count += 1;
            }
        };
        match token {
            Token::Open => {
                // A call or a subscript is a link of the chain that it is in.
                count(&mut self.chains);
                self.chains.push(0);
            }
            Token::Close => {
                if self.chains.len() > 1 {
                    self.chains.pop();
                }
            }
            Token::Separator => self.reset(),
            // Of an entry; elsewhere it is a lambda's, which goes on.
            Token::Colon if self.chains.len() > 1 && self.lambdas == 0 => self.reset(),
            Token::Colon | Token::Literal => {}
            Token::Operator => count(&mut self.chains),
            Token::Word("not" | "and" | "or" | "in" | "if" | "else" | "for") => count(&mut self.chains),
            Token::Word("lambda") => {
                self.lambdas += 1;
                count(&mut self.chains);
            }
            Token::Word("elif") => self.elifs += 1,
            Token::Word(_) => {}
            Token::Line(indent) if self.chains.len() == 1 => {
                self.reset();
                self.lambdas = 0;
                while self.blocks.last().is_some_and(|open| open >= indent) {
                    self.blocks.pop();
                }
                if *indent > 0 {
                    self.blocks.push(*indent);
                }
            }
            Token::Line(_) => {}
        }
    }

    fn reset(&mut self) {
        if let Some(count) = self.chains.last_mut() {
            *count = 0;
        }
    }
}

/// The tokens of a source, as far as depth depends on them.
#[derive(Debug)]
struct Tokens<'s> {
    source: &'s str,
    at: usize,
    line_start: bool,
}

impl<'s> Tokens<'s> {
    fn rest(&self) -> &'s str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn next(&mut self) -> Option<(usize, Token<'s>)> {
        loop {
            if self.line_start {
                self.line_start = false;
                let text = self.rest();
                let indent = text.len() - text.trim_start_matches([' ', '\t']).len();
                let from = self.at;
                self.at += indent;
                if !self.rest().starts_with(['\n', '\r', '#']) && !self.rest().is_empty() {
                    return Some((from, Token::Line(indent)));
                }
            }
            let from = self.at;
            let first = self.rest().chars().next()?;
            self.at += first.len_utf8();
            let token = match first {
                '\n' => {
                    self.line_start = true;
                    continue;
                }
                '#' => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                    continue;
                }
                // A line that goes on.
                '\\' => {
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                    continue;
                }
                '\'' | '"' => self.text(first),
                '(' | '[' | '{' => Token::Open,
                ')' | ']' | '}' => Token::Close,
                ',' | ';' => Token::Separator,
                ':' => Token::Colon,
                c if c.is_alphanumeric() || c == '_' => self.word(from),
                c if c.is_whitespace() => continue,
                _ => Token::Operator,
            };
            return Some((from, token));
        }
    }

    fn word(&mut self, from: usize) -> Token<'s> {
        let rest = self.rest();
        self.at += rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        Token::Word(self.source.get(from..self.at).unwrap_or_default())
    }

    /// A text, whose first quote was read. One that does not end is for the parser to tell.
    fn text(&mut self, quote: char) -> Token<'s> {
        let mut two = [0; 4];
        let one: &str = quote.encode_utf8(&mut two);
        let is_long = self.rest().strip_prefix(one).is_some_and(|rest| rest.starts_with(one));
        if is_long {
            self.at += 2;
        }
        while let Some(c) = self.rest().chars().next() {
            self.at += c.len_utf8();
            if c == '\\' {
                self.at += self.rest().chars().next().map_or(0, char::len_utf8);
            } else if c == quote && !is_long {
                break;
            } else if c == quote && self.rest().starts_with(&one.repeat(2)) {
                self.at += 2;
                break;
            } else if c == '\n' && !is_long {
                self.line_start = true;
                break;
            }
        }
        Token::Literal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Option<(usize, String)> {
        scan(source).err().map(|found| (found.span.start, found.message))
    }

    #[test]
    fn deep_and_chained_sources_are_found_with_their_place() {
        for (source, word) in [
            ("x".repeat(SOURCE_BYTES_MAX + 1), "bytes"),
            (format!("x = {}{}", "[".repeat(100), "]".repeat(100)), "nested"),
            (format!("x = {}{}", "(".repeat(20_000), ")".repeat(20_000)), "nested"),
            (format!("x = {}True", "not ".repeat(500)), "chains"),
            (format!("x = {}1", "1+".repeat(500)), "chains"),
            (format!("x = {}1", "-".repeat(500)), "chains"),
            (format!("x = f{}", "()".repeat(500)), "chains"),
            (format!("x = a{}", ".b".repeat(500)), "chains"),
            (format!("x = {}1", "lambda: ".repeat(500)), "chains"),
            (format!("x = {{1: {}1}}", "lambda: ".repeat(500)), "chains"),
            (format!("x = {}1", "1 if a else ".repeat(300)), "chains"),
            (format!("if a:\n  pass\n{}", "elif b:\n  pass\n".repeat(300)), "follow"),
            ((0..100).map(|n| format!("{}if a:\n", " ".repeat(n))).collect::<String>(), "nested"),
        ] {
            let (_, message) = found(&source).unwrap_or_else(|| panic!("{word}: {}", source.len()));
            assert!(message.contains(word), "{message}");
        }
        assert_eq!(found(&format!("a = 1\nx = {}", "[".repeat(100))).unwrap().0, 10 + 63);
    }

    #[test]
    fn tables_texts_and_comments_are_no_depth() {
        let table: String = (0..2_000).map(|n| format!("    'k{n}': -{n},\n")).collect();
        let lists = format!("x = [{}]", "[1, -2], ".repeat(3_000));
        let text = format!("x = '{}' # {}\n", "(+[-".repeat(2_000), "[".repeat(5_000));
        let long = format!("\"\"\"{}\n\"quoted\" {}\"\"\"\nx = 1\n", "[".repeat(500), "-".repeat(500));
        let functions: String = (0..500).map(|n| format!("def f{n}(a):\n    return a + {n}\n\n")).collect();
        for source in [format!("x = {{\n{table}}}\n"), lists, text, long, functions] {
            assert_eq!(found(&source), None);
        }
    }
}
