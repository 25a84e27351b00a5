//! Shell commands.
//!
//! A command line is parsed with bash's grammar and walked as a shell would run it ([`walk`](self)): variables that
//! the text sets are followed, scripts within scripts are read in turn, every branch is taken. What a program does
//! with its words is in `commands`; a program that is not there is a command that is *not known*.

mod ansi;
mod assignment;
mod brace;
mod builtins;
mod commands;
mod environment;
mod expand;
mod fields;
mod find;
mod find_words;
mod found;
mod interpreter;
mod lexer;
mod parameter;
mod redirect;
mod runners;
mod scan;
mod simple;
mod state;
mod unit;
mod walk;
mod word;
mod wrappers;

use std::rc::Rc;

use crate::{Sink, Surroundings};
use interpreter::Interpreter;
use unit::Unit;

/// Reads `text` and adds what it would touch to `sink`.
pub fn read(text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    match Unit::parse(text) {
        Ok(unit) => {
            let mut shell = Interpreter::new(surroundings, sink.again());
            shell.program(&Rc::new(unit));
            shell.end();
        }
        Err(why) => sink.unknown("shell", why, 0..text.len()),
    }
}
