//! `awk`: its programs run commands, and read and write files.
//!
//! The program is cut into tokens, no more: a command is `system(…)` or is at a `|`, a file follows `>` of a
//! `print` or `<` of a `getline`. Where what follows is not a text but computed, the effect is on something unknown.

use portcullis_core::effect::Verb::{Execute, Read, Send};

use super::super::interpreter::Interpreter;
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::words;

/// `awk PROGRAM FILE…`, `awk -f FILE FILE…`.
pub(super) fn model(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let mut programs = call.values(&["-e", "--source"]);
    let from_files = call.values(&["-f", "--file", "-E", "--exec", "-i", "--include", "-l", "--load"]);
    let mut operands = call.operands.as_slice();
    if programs.is_empty() && call.values(&["-f", "--file", "-E", "--exec"]).is_empty() {
        let Some((program, files)) = operands.split_first() else { return true };
        programs.push(program.clone());
        operands = files;
    }
    for program in &programs {
        read(call, program, shell);
    }
    for file in &from_files {
        call.act(Act::Path(Execute), file, shell);
    }
    for option in ["-o", "--pretty-print", "-p", "--profile", "-d", "--dump-variables"] {
        call.act_on_each(WRITE, &call.values(&[option]), shell);
    }
    let assignment =
        |word: &Word| words::split(word, '=').is_some_and(|(name, _)| is_name(words::text(&name)));
    for file in operands.iter().filter(|word| !assignment(word)) {
        call.act(READ, file, shell);
    }
    from_files.is_empty() && !call.has("-W")
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Text(String),
    Number,
    /// A regular expression.
    Pattern,
    /// `|&` is `&` after `|`; `||`, `>>`, `&&` are one.
    Sign(&'static str),
    Line,
}

fn read(call: &Parsed<'_>, program: &Word, shell: &mut Interpreter<'_, '_>) {
    let Some(tokens) = tokens(words::text(program)) else {
        shell.unknown("awk", "the program could not be read", program.range.clone());
        return;
    };
    let mut printing: Option<usize> = None;
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let next = tokens.get(at + 1);
        let after = tokens.get(at + 2);
        match token {
            Token::Sign("(") => depth += 1,
            Token::Sign(")") => depth = depth.saturating_sub(1),
            Token::Sign(";" | "{" | "}") | Token::Line => printing = None,
            Token::Sign("|" | "|&") => {
                let reads = matches!(next, Some(Token::Name(name)) if name == "getline");
                let command = if reads { before } else { next };
                // A text that is only a part of the command says nothing about the whole.
                let whole = if reads {
                    !matches!(
                        at.checked_sub(2).and_then(|at| tokens.get(at)),
                        Some(Token::Text(_) | Token::Name(_) | Token::Sign(")"))
                    )
                } else {
                    ends(after)
                };
                script(call, command.filter(|_| whole), program, shell);
            }
            Token::Sign(">" | ">>") if printing == Some(depth) => {
                file(call, WRITE, next.filter(|_| ends(after)), program, shell)
            }
            Token::Sign("<")
                if matches!(before, Some(Token::Name(name)) if name == "getline")
                    || reads_into(&tokens, at) =>
            {
                file(call, READ, next.filter(|_| ends(after)), program, shell);
            }
            Token::Sign("@") => {
                shell.unknown("awk", "an extension or a computed call", program.range.clone())
            }
            Token::Name(name) => match name.as_str() {
                "print" | "printf" => printing = Some(depth),
                "system" => {
                    let whole = tokens.get(at + 3) == Some(&Token::Sign(")"));
                    script(call, after.filter(|_| whole), program, shell);
                }
                "ENVIRON" => {
                    call.act(Act::Environment(Read), &words::literal("*", program.range.clone()), shell)
                }
                "ARGV" if matches!(next, Some(Token::Sign("["))) && assigned(&tokens, at) => {
                    call.act(READ, &Word::unknown(program.range.clone()), shell);
                }
                _ => {}
            },
            _ => {}
        }
    }
}

/// Whether the operand of a redirection ends before this token.
fn ends(token: Option<&Token>) -> bool {
    matches!(
        token,
        None | Some(Token::Line | Token::Sign(";" | "}" | ")" | "&&" | "||" | "?" | ":" | "|" | ","))
    )
}

/// `getline variable < FILE`.
fn reads_into(tokens: &[Token], at: usize) -> bool {
    let from = at.saturating_sub(5);
    let line = tokens
        .get(from..at)
        .unwrap_or_default()
        .rsplit(|token| matches!(token, Token::Line | Token::Sign(";" | "{" | "}")));
    line.take(1)
        .any(|tokens| tokens.iter().any(|token| matches!(token, Token::Name(name) if name == "getline")))
}

fn assigned(tokens: &[Token], at: usize) -> bool {
    let rest = tokens.get(at..).unwrap_or_default();
    rest.iter().skip_while(|token| **token != Token::Sign("]")).nth(1) == Some(&Token::Sign("="))
}

fn script(call: &Parsed<'_>, command: Option<&Token>, program: &Word, shell: &mut Interpreter<'_, '_>) {
    match command {
        Some(Token::Text(text)) if text.starts_with("/inet") => {
            let host = text.split('/').nth(4).unwrap_or("*");
            call.act(Act::Host(Send), &words::part(program, host), shell);
        }
        Some(Token::Text(text)) => call.act(Act::Script, &words::part(program, text), shell),
        _ => shell.unknown("shell", "awk runs a command that it makes up", program.range.clone()),
    }
}

fn file(call: &Parsed<'_>, act: Act, name: Option<&Token>, program: &Word, shell: &mut Interpreter<'_, '_>) {
    match name {
        Some(Token::Text(text)) => call.act(act, &words::part(program, text), shell),
        _ => call.act(act, &Word::unknown(program.range.clone()), shell),
    }
}

/// The tokens of a program, or `None` if a text or pattern does not end.
fn tokens(program: &str) -> Option<Vec<Token>> {
    const SIGNS: [&str; 27] = [
        "|&", "||", "&&", ">>", ">=", "<=", "==", "!=", "|", ">", "<", "=", "(", ")", "{", "}", "[", "]",
        ";", ",", "?", ":", "@", "!", "$", "~", "&",
    ];
    let mut tokens: Vec<Token> = Vec::new();
    let mut rest = program;
    while let Some(first) = rest.chars().next() {
        let tail = rest.get(first.len_utf8()..).unwrap_or_default();
        let operand = matches!(
            tokens.last(),
            Some(Token::Name(_) | Token::Number | Token::Text(_) | Token::Sign(")" | "]" | "$"))
        );
        if first == '\n' {
            tokens.push(Token::Line);
            rest = tail;
        } else if first.is_whitespace() || first == '\\' {
            rest = tail;
        } else if first == '#' {
            rest = rest.split_once('\n').map_or("", |_| rest.trim_start_matches(|c| c != '\n'));
        } else if first == '"' {
            let (text, after) = quoted(tail, '"')?;
            tokens.push(text.map_or(Token::Number, Token::Text));
            rest = after;
        } else if first == '/' && !operand {
            rest = quoted(tail, '/')?.1;
            tokens.push(Token::Pattern);
        } else if first.is_ascii_digit() || first == '.' {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '.');
            tokens.push(Token::Number);
        } else if first.is_alphabetic() || first == '_' {
            let after = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
            let name = rest.get(..rest.len() - after.len()).unwrap_or_default();
            tokens.push(Token::Name(name.to_owned()));
            rest = after;
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            rest = rest.get(sign.len()..).unwrap_or_default();
        } else {
            tokens.push(Token::Sign("other"));
            rest = tail;
        }
    }
    Some(tokens)
}

/// What stands before the closing mark, without its escapes, and what stands after. Of a text with numeric escapes
/// it is not said what it is.
fn quoted(text: &str, mark: char) -> Option<(Option<String>, &str)> {
    let mut inside = String::new();
    let mut readable = true;
    let mut letters = text.chars();
    loop {
        match letters.next()? {
            '\\' => match letters.next()? {
                'n' => inside.push('\n'),
                't' => inside.push('\t'),
                c if c.is_ascii_digit() || c == 'x' || c == 'u' => readable = false,
                c => inside.push(c),
            },
            letter if letter == mark => return Some((readable.then_some(inside), letters.as_str())),
            letter => inside.push(letter),
        }
    }
}
