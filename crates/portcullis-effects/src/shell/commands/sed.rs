//! `sed`: its scripts read and write files, and run commands.

use portcullis_core::effect::Verb::Execute;

use super::super::interpreter::Interpreter;
use super::options::Parsed;
use super::spec::*;
use super::words;

/// `sed SCRIPT FILE…`, `sed -e SCRIPT -f FILE FILE…`; with `-i` the files are changed.
pub(super) fn model(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let mut scripts = call.values(&["-e", "--expression"]);
    let from_files = call.values(&["-f", "--file"]);
    let in_place = call.has_any(&["-i", "--in-place", "-I"]);
    // The suffix of the copy may lead to another folder: `-i/tmp/*`.
    for suffix in call.values(&["-i", "--in-place", "-I"]) {
        if words::text(&suffix).contains('/') {
            call.act(WRITE, &suffix, shell);
        }
    }
    let mut operands = call.operands.as_slice();
    // `sed -i '' SCRIPT FILE` is the BSD spelling of no backup.
    if in_place && operands.first().is_some_and(|first| words::text(first).is_empty()) {
        operands = operands.get(1..).unwrap_or_default();
    }
    if scripts.is_empty() && from_files.is_empty() {
        let Some((script, files)) = operands.split_first() else { return true };
        scripts.push(script.clone());
        operands = files;
    }
    for script in &scripts {
        let read = Script { text: words::text(script), actions: Vec::new() }.read();
        match read {
            Some(actions) if !call.has("--sandbox") => {
                for (act, text) in actions {
                    call.act(act, &words::part(script, &text), shell);
                }
            }
            Some(_) => {}
            None => shell.unknown("sed", "the script could not be read", script.range.clone()),
        }
    }
    for file in &from_files {
        call.act(Act::Path(Execute), file, shell);
    }
    call.act_on_each(READ, operands, shell);
    if in_place {
        call.act_on_each(WRITE, operands, shell);
    }
    from_files.is_empty()
}

/// A script of which a part has been read.
struct Script<'t> {
    text: &'t str,
    actions: Vec<(Act, String)>,
}

impl Script<'_> {
    /// What the script touches, or `None` if it could not be read.
    fn read(mut self) -> Option<Vec<(Act, String)>> {
        loop {
            self.skip(|c| c.is_whitespace() || c == ';');
            if self.text.is_empty() {
                return Some(self.actions);
            }
            self.addresses()?;
            self.command()?;
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut letters = self.text.chars();
        let letter = letters.next()?;
        self.text = letters.as_str();
        Some(letter)
    }

    fn skip(&mut self, over: impl Fn(char) -> bool) {
        self.text = self.text.trim_start_matches(over);
    }

    fn line(&mut self) -> String {
        let (line, rest) = self.text.split_once('\n').unwrap_or((self.text, ""));
        self.text = rest;
        line.trim_start().to_owned()
    }

    /// Up to the delimiter, which may be in brackets or after a backslash.
    fn delimited(&mut self, delimiter: char, brackets: bool) -> Option<()> {
        let mut inside = false;
        loop {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                '[' if brackets && !inside => {
                    inside = true;
                    self.skip(|c| c == '^');
                    // A bracket that comes first stands for itself.
                    self.text = self.text.strip_prefix(']').unwrap_or(self.text);
                }
                ']' if inside => inside = false,
                letter if letter == delimiter && !inside => return Some(()),
                _ => {}
            }
        }
    }

    fn addresses(&mut self) -> Option<()> {
        loop {
            self.skip(|c| {
                c.is_ascii_digit() || matches!(c, '$' | ',' | '~' | '+' | '!') || c.is_whitespace()
            });
            if let Some(rest) = self.text.strip_prefix('/') {
                self.text = rest;
                self.delimited('/', true)?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            } else if let Some(rest) = self.text.strip_prefix('\\') {
                self.text = rest;
                let delimiter = self.next()?;
                self.delimited(delimiter, true)?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            } else {
                return Some(());
            }
        }
    }

    fn command(&mut self) -> Option<()> {
        match self.next()? {
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {
            }
            'l' | 'L' | 'q' | 'Q' => self.skip(|c| c.is_ascii_digit() || c == ' '),
            '#' => drop(self.line()),
            'a' | 'i' | 'c' => while self.line().ends_with('\\') && !self.text.is_empty() {},
            'b' | 't' | 'T' | ':' | 'v' => self.skip(|c| !matches!(c, ';' | '\n' | '}')),
            'r' | 'R' => {
                let file = self.line();
                self.actions.push((READ, file));
            }
            'w' | 'W' => {
                let file = self.line();
                self.actions.push((WRITE, file));
            }
            'e' => {
                let command = self.line();
                // Without a command, the text that is edited is the command.
                if command.is_empty() {
                    return None;
                }
                self.actions.push((Act::Script, command));
            }
            'y' => {
                let delimiter = self.next()?;
                self.delimited(delimiter, false)?;
                self.delimited(delimiter, false)?;
            }
            's' => self.substitute()?,
            _ => return None,
        }
        Some(())
    }

    fn substitute(&mut self) -> Option<()> {
        let delimiter = self.next().filter(|c| !matches!(c, '\n' | '\\'))?;
        self.delimited(delimiter, true)?;
        self.delimited(delimiter, false)?;
        loop {
            match self.text.chars().next() {
                Some('e') => return None,
                Some('w') => {
                    self.next();
                    let file = self.line();
                    self.actions.push((WRITE, file));
                    return Some(());
                }
                Some(c) if c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') => {
                    self.next();
                }
                Some(';' | '\n' | '}' | ' ' | '\t' | '#') | None => return Some(()),
                Some(_) => return None,
            }
        }
    }
}
