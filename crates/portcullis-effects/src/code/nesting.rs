//! How deeply a piece of code is nested, before the parser sees it.
//!
//! The parser's own recursion is bounded by memory only, and its tree is taken apart by recursion: text such as
//! ten thousand brackets or dots would overflow the stack and take the gate down with it. So the text is measured
//! first, by one pass that knows no more of Python than where strings, brackets, lines and operators are.
//!
//! The depth of a tree is at most the brackets and indentations that are open, plus what hangs together within
//! each of them without a comma: every operator, dot, call and prefix keyword may deepen it by one.

use crate::limits::{CODE_CHAIN_MAX, NESTING_MAX};

/// Why the text is not parsed, if it is nested too deeply.
pub(super) fn check(text: &str) -> Result<(), String> {
    let mut scan =
        Scan { bytes: text.as_bytes(), at: 0, frames: vec![Frame::code(Kind::Root)], ..Scan::default() };
    scan.indentation();
    while scan.at < scan.bytes.len() {
        scan.step();
        if scan.frames.len() + scan.indents.len() > NESTING_MAX {
            return Err(format!("it is nested deeper than {NESTING_MAX} levels"));
        }
        if scan.chained + scan.sticky > CODE_CHAIN_MAX {
            return Err(format!("an expression hangs together by more than {CODE_CHAIN_MAX} operators"));
        }
    }
    Ok(())
}

/// What is open at a place of the text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Root,
    Bracket,
    /// The text of an f-string.
    Formatted {
        quote: u8,
        triple: bool,
    },
    /// What stands between the braces of an f-string.
    Field,
    /// What stands behind the colon of a field.
    Specification {
        quote: u8,
        triple: bool,
    },
}

#[derive(Debug)]
struct Frame {
    kind: Kind,
    /// Operators since the last comma.
    chain: usize,
}

impl Frame {
    const fn code(kind: Kind) -> Self {
        Self { kind, chain: 0 }
    }
}

#[derive(Debug, Default)]
struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
    frames: Vec<Frame>,
    /// Widths of the open indentations.
    indents: Vec<usize>,
    /// The sum of all chains.
    chained: usize,
    /// Keywords of this logical line whose reach does not end at a comma.
    sticky: usize,
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn kind(&self) -> Kind {
        self.frames.last().map_or(Kind::Root, |frame| frame.kind)
    }

    fn link(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.chain += 1;
            self.chained += 1;
        }
    }

    fn separate(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            self.chained -= frame.chain;
            frame.chain = 0;
        }
    }

    fn push(&mut self, kind: Kind) {
        self.link();
        self.frames.push(Frame::code(kind));
    }

    fn pop(&mut self) {
        if self.frames.len() > 1 {
            self.separate();
            self.frames.pop();
        }
    }

    fn step(&mut self) {
        match self.kind() {
            Kind::Formatted { quote, triple } => self.formatted(quote, triple),
            Kind::Specification { quote, triple } => self.specification(quote, triple),
            Kind::Root | Kind::Bracket | Kind::Field => self.code(),
        }
    }

    fn closes(&self, quote: u8, triple: bool) -> bool {
        self.peek(0) == quote && (!triple || (self.peek(1) == quote && self.peek(2) == quote))
    }

    fn formatted(&mut self, quote: u8, triple: bool) {
        match self.peek(0) {
            b'\\' if matches!(self.peek(1), b'{' | b'}') => self.at += 1,
            b'\\' => self.at += 2,
            b'{' if self.peek(1) == b'{' => self.at += 2,
            b'{' => {
                self.at += 1;
                self.push(Kind::Field);
            }
            b'\n' if !triple => self.pop(),
            _ if self.closes(quote, triple) => {
                self.at += if triple { 3 } else { 1 };
                self.pop();
            }
            _ => self.at += 1,
        }
    }

    fn specification(&mut self, quote: u8, triple: bool) {
        match self.peek(0) {
            b'{' => {
                self.at += 1;
                self.push(Kind::Field);
            }
            b'}' => {
                self.at += 1;
                self.pop();
                self.pop();
            }
            b'\n' if !triple => self.leave_string(),
            _ if self.closes(quote, triple) => self.leave_string(),
            _ => self.at += 1,
        }
    }

    /// The string ends within a field: the field was not closed.
    fn leave_string(&mut self) {
        while matches!(self.kind(), Kind::Specification { .. } | Kind::Field) {
            self.pop();
        }
    }

    fn code(&mut self) {
        let byte = self.peek(0);
        match byte {
            b'\n' => {
                self.at += 1;
                if self.frames.len() == 1 {
                    self.separate();
                    self.sticky = 0;
                    self.indentation();
                }
            }
            b'\\' if self.peek(1) == b'\n' => self.at += 2,
            b' ' | b'\t' | b'\r' | 0x0c => self.at += 1,
            b'#' => {
                while self.at < self.bytes.len() && self.peek(0) != b'\n' {
                    self.at += 1;
                }
            }
            b'(' | b'[' | b'{' => {
                self.at += 1;
                self.push(Kind::Bracket);
            }
            b')' | b']' | b'}' => {
                self.at += 1;
                if self.kind() == Kind::Bracket || (self.kind() == Kind::Field && byte == b'}') {
                    self.pop();
                }
            }
            b':' if self.kind() == Kind::Field => {
                self.at += 1;
                if let Some((quote, triple)) = self.enclosing_string() {
                    self.push(Kind::Specification { quote, triple });
                }
            }
            b',' => {
                self.at += 1;
                self.separate();
            }
            b';' => {
                self.at += 1;
                self.separate();
                self.sticky = 0;
            }
            b'\'' | b'"' => self.string(false),
            b'0'..=b'9' | b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => self.word(),
            _ => {
                self.at += 1;
                self.link();
            }
        }
    }

    fn enclosing_string(&self) -> Option<(u8, bool)> {
        self.frames.iter().rev().find_map(|frame| match frame.kind {
            Kind::Formatted { quote, triple } => Some((quote, triple)),
            _ => None,
        })
    }

    fn word(&mut self) {
        let start = self.at;
        while matches!(self.peek(0), b'0'..=b'9' | b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80..) {
            self.at += 1;
        }
        let word = self.bytes.get(start..self.at).unwrap_or_default();
        if matches!(self.peek(0), b'\'' | b'"') && word.len() <= 2 {
            let prefix = word.to_ascii_lowercase();
            if prefix.iter().all(|letter| b"rbuft".contains(letter)) {
                self.string(prefix.iter().any(|letter| b"ft".contains(letter)));
                return;
            }
        }
        match word {
            b"not" | b"await" | b"if" | b"else" | b"and" | b"or" | b"in" | b"is" | b"yield" | b"for"
            | b"from" => self.link(),
            b"lambda" | b"async" | b"def" | b"class" | b"while" | b"with" | b"try" | b"match" | b"case" => {
                self.sticky += 1;
            }
            _ => {}
        }
    }

    fn string(&mut self, formatted: bool) {
        let quote = self.peek(0);
        let triple = self.peek(1) == quote && self.peek(2) == quote;
        self.at += if triple { 3 } else { 1 };
        if formatted {
            self.push(Kind::Formatted { quote, triple });
            return;
        }
        while self.at < self.bytes.len() {
            if self.closes(quote, triple) {
                self.at += if triple { 3 } else { 1 };
                return;
            }
            match self.peek(0) {
                b'\\' => self.at += 2,
                b'\n' if !triple => return,
                _ => self.at += 1,
            }
        }
    }

    /// Measures the indentation of the line that begins here. Blank lines and comments have none.
    fn indentation(&mut self) {
        let mut width = 0;
        loop {
            match self.peek(0) {
                b' ' => width += 1,
                b'\t' => width = (width / 8 + 1) * 8,
                0x0c => width = 0,
                b'\n' | b'\r' | b'#' => return,
                _ => break,
            }
            self.at += 1;
        }
        while self.indents.last().is_some_and(|open| *open > width) {
            self.indents.pop();
        }
        if width > self.indents.last().copied().unwrap_or(0) {
            self.indents.push(width);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn ordinary_code_passes() {
        let code = "def f(a, b):\n    return {'x': [a.b(c)[0] for c in b if c], \"y\": f'{a!r:>{b}} {{}} {b[\"k\"]}'}\n";
        assert_eq!(check(code), Ok(()));
        let table = format!("x = [{}]\n", "{'a': 1, 'b': [1, 2]}, ".repeat(500));
        assert_eq!(check(&table), Ok(()));
        assert_eq!(check(&"x = '((((' + y  # ((((((\n".repeat(200)), Ok(()));
    }

    #[test]
    fn depth_is_seen_however_it_is_made() {
        let deep = 2_000;
        let texts = [
            "(".repeat(deep),
            "[".repeat(deep) + &"]".repeat(deep),
            "x = ".to_owned() + &"-".repeat(deep) + "1",
            "x = ".to_owned() + &"not ".repeat(deep) + "y",
            "x = a".to_owned() + &".b".repeat(deep),
            "x = a".to_owned() + &"()".repeat(deep),
            "x = 1".to_owned() + &" + 1".repeat(deep),
            "x = ".to_owned() + &"lambda a, b: ".repeat(deep) + "1",
            "x = ".to_owned() + &"1 if a else ".repeat(deep) + "1",
            (0..deep).map(|depth| " ".repeat(depth) + "if a:\n").collect(),
            "x = ".to_owned() + &"f'{".repeat(deep) + "1" + &"}'".repeat(deep),
            "x = ".to_owned() + &"f'{1:{".repeat(deep),
            "x = '\"' ".to_owned() + &"(".repeat(deep),
            "x = (')'".to_owned() + &"(')'".repeat(deep),
            "class a: ".repeat(deep),
        ];
        for text in texts {
            assert!(check(&text).is_err(), "{}", text.get(..60).unwrap_or(&text));
        }
    }
}
