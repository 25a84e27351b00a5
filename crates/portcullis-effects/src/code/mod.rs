//! Python that agents write.
//!
//! The text is parsed, and the tree is followed by an abstract interpreter: nothing runs, but every variable is
//! known by what it may hold. So it does not matter whether a table's name is in the call, in a variable, in
//! a dictionary or is put together from pieces.
//!
//! Two kinds of functions have effects: those that the bundle declares (`functions/*.toml`: loading, filtering
//! and reading tables, SQL, tools called by name) and those of Python itself and its usual libraries: files,
//! programs, networks, mail. What is neither, and what cannot be followed (computed names, `pickle`, modules that
//! nobody knows), is an effect on *unknown*.
//!
//! | module | has |
//! |---|---|
//! | [`nesting`] | the limit that is checked before the parser sees the text |
//! | [`value`], [`text`] | what a variable may hold; strings with unknown parts |
//! | [`interpreter`], [`expression`], [`call`] | statements, expressions, calls |
//! | [`builtins`], [`methods`], [`frame`] | built-in functions; methods of strings, lists, tables |
//! | [`exposure`] | what is handed to others, who may call it |
//! | [`tables`], [`condition`], [`sql`] | the bundle's functions and the languages in their strings |
//! | [`modules`], [`world`], [`process`] | what modules do: nothing, or something to files, hosts, programs |
//!
//! **Bounds.** A piece of code is a program of its own: what an earlier one left in variables is not known. Values
//! that come from data are taken for values: a number out of a table that is put into a condition or into SQL
//! does not change what is read. A table that a program leaves in a variable counts as read whole only when its
//! last statement leaves it there.

mod builtins;
mod call;
mod condition;
mod exposure;
mod expression;
mod frame;
mod interpreter;
mod methods;
mod modules;
mod nesting;
mod process;
mod sql;
mod tables;
mod text;
mod value;
mod world;

use std::collections::BTreeSet;
use std::ops::Range;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Alias, Expr, ModModule, Stmt};
use ruff_python_parser::{Parsed, parse_expression, parse_module};

use crate::limits::TEXT_BYTES_MAX;
use crate::{Sink, Surroundings};

/// A call of a tool that code makes by name.
#[derive(Debug)]
pub struct ToolCall<'c> {
    /// The tool that the bundle says the function calls.
    pub tool: &'c str,
    /// The arguments in the order of the call.
    pub arguments: &'c [ToolArgument],
    /// Whether these are all: no `*args` whose length is not known.
    pub complete: bool,
    /// Where the call is in the code.
    pub range: Range<usize>,
}

/// An argument of a tool that code calls.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolArgument {
    /// Its name, where it was given by name.
    pub name: Option<String>,
    /// Its value, when it is known completely.
    pub value: Option<serde_json::Value>,
}

/// Reads `text` and adds what it would touch to `sink`.
pub fn read(text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    read_with(text, surroundings, sink, &mut |_, _| {});
}

/// Like [`read`], and calls `on_tool` for every call of a tool that the code may make, with the known arguments: it
/// may add what they would touch. The same call may be reported several times.
pub fn read_with(
    text: &str,
    surroundings: &Surroundings<'_>,
    sink: &mut Sink<'_>,
    on_tool: &mut dyn FnMut(&ToolCall<'_>, &mut Sink<'_>),
) {
    let whole = 0..text.len();
    let parsed = match parse(text) {
        Ok(parsed) => parsed,
        Err(why) => {
            sink.unknown("code", why, whole);
            return;
        }
    };
    let mut interpreter = interpreter::Interpreter::new(text, surroundings, sink, on_tool);
    interpreter.program(&parsed.syntax().body);
}

/// Code within code. Tools that it calls are told to nobody, but noted.
fn read_nested(text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    read_with(text, surroundings, sink, &mut |_, _| {});
}

/// Whether `text` is a program: it parses, and some statement of it does something. A name, a number or a list
/// alone parses too, but is an answer.
pub fn is_program(text: &str) -> bool {
    let acts = |statement: &Stmt| match statement {
        Stmt::Expr(statement) => matches!(&*statement.value, Expr::Call(_)),
        // `Error: something`
        Stmt::AnnAssign(statement) => statement.value.is_some(),
        _ => true,
    };
    parse(text).is_ok_and(|parsed| parsed.syntax().body.iter().any(acts))
}

fn parse(text: &str) -> Result<Parsed<ModModule>, String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("it is longer than {TEXT_BYTES_MAX} bytes"));
    }
    nesting::check(text)?;
    parse_module(text).map_err(|error| format!("it is not Python: {error}"))
}

/// The names that code binds.
fn names_bound(text: &str) -> BTreeSet<String> {
    #[derive(Default)]
    struct Bound(BTreeSet<String>);
    impl<'a> Visitor<'a> for Bound {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            match statement {
                Stmt::FunctionDef(node) => drop(self.0.insert(node.name.id.to_string())),
                Stmt::ClassDef(node) => drop(self.0.insert(node.name.id.to_string())),
                Stmt::Import(node) => self.aliases(&node.names),
                Stmt::ImportFrom(node) => self.aliases(&node.names),
                _ => {}
            }
            walk_stmt(self, statement);
        }
        fn visit_expr(&mut self, expression: &'a Expr) {
            if let Expr::Name(name) = expression
                && !name.ctx.is_load()
            {
                self.0.insert(name.id.to_string());
            }
            walk_expr(self, expression);
        }
    }
    impl Bound {
        fn aliases(&mut self, aliases: &[Alias]) {
            for alias in aliases {
                let name = alias.asname.as_ref().unwrap_or(&alias.name);
                self.0.insert(name.id.to_string());
            }
        }
    }
    let mut bound = Bound::default();
    if let Ok(parsed) = parse(text) {
        parsed.syntax().body.iter().for_each(|statement| bound.visit_stmt(statement));
    }
    bound.0
}

/// The names in an expression, or `None` if it is not one.
fn names_in(text: &str) -> Option<BTreeSet<String>> {
    #[derive(Default)]
    struct Names(BTreeSet<String>);
    impl<'a> Visitor<'a> for Names {
        fn visit_expr(&mut self, expression: &'a Expr) {
            match expression {
                Expr::Name(name) => {
                    self.0.insert(name.id.to_string());
                }
                // `name.str.contains('x')`: the name is what matters.
                other => walk_expr(self, other),
            }
        }
    }
    nesting::check(text).ok()?;
    let parsed = parse_expression(text.trim()).ok()?;
    let mut names = Names::default();
    names.visit_expr(parsed.expr());
    Some(names.0)
}
