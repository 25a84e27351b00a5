//! The abstract interpreter: every statement is followed with all the values that it may see, none is run.
//!
//! Branches are followed one after the other and joined; loops until nothing changes any more, or item by item
//! where the list is known; functions at every call. Every part is bounded: by steps, depth and rounds; what is
//! cut off is noted as unknown. Statements behind a `return` or `break` are not reached and not read.

mod state;

mod functions;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use portcullis_core::effect::{Effect, Resource};
use ruff_python_ast::{ExceptHandler, Expr, Parameters, Stmt};
use ruff_text_size::Ranged;

use state::{join, join_into, same, widen};

use super::ToolCall;
use super::value::{Atom, HeapId, Object, Value};
use crate::limits::{CODE_DEPTH_MAX, CODE_ROUNDS_MAX, CODE_STEPS_MAX, CODE_UNROLL_MAX};
use crate::{Sink, Surroundings};

/// Variables of the module or of one call.
#[derive(Debug, Clone)]
pub(super) struct Scope<'a> {
    parent: Option<usize>,
    /// Of a class: a name that is not bound in it means what it means outside.
    class: bool,
    variables: Rc<BTreeMap<&'a str, Value>>,
    /// Names that `global` and `nonlocal` mean elsewhere.
    elsewhere: Rc<BTreeMap<&'a str, usize>>,
}

/// All variables at one place of the code.
pub(super) type State<'a> = Vec<Scope<'a>>;

/// A function that the code defines.
#[derive(Debug, Clone)]
pub(super) struct Function<'a> {
    site: (u32, usize),
    pub(super) parameters: Option<&'a Parameters>,
    pub(super) body: Body<'a>,
    scope: usize,
    defaults: Vec<(&'a str, Value)>,
}

/// What a function does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Body<'a> {
    Statements(&'a [Stmt]),
    Expression(&'a Expr),
}

/// A class that the code defines.
#[derive(Debug, Clone)]
pub(super) struct Class {
    site: u32,
    /// Methods and attributes of the class and of all its objects.
    pub(super) members: HeapId,
    pub(super) bases: Vec<Value>,
    pub(super) started: bool,
}

/// What a call has given back so far.
#[derive(Debug)]
struct Returns<'a> {
    function: usize,
    arguments: Arguments,
    value: Value,
    yielded: Value,
    state: Option<State<'a>>,
}

/// The arguments of a call.
#[derive(Debug, Clone)]
pub(super) struct Arguments {
    pub(super) positional: Vec<Value>,
    pub(super) named: Vec<(String, Value)>,
    /// Arguments whose number or names are not known.
    pub(super) rest: Option<Value>,
    pub(super) range: Range<usize>,
}

impl PartialEq for Arguments {
    /// Where the call stands is no part of what is given.
    fn eq(&self, other: &Self) -> bool {
        self.positional == other.positional && self.named == other.named && self.rest == other.rest
    }
}

impl Arguments {
    pub(super) fn of(positional: Vec<Value>, range: Range<usize>) -> Self {
        Self { positional, named: Vec::new(), rest: None, range }
    }

    /// The argument at a position or of a name.
    pub(super) fn get(&self, position: usize, name: &str) -> Option<&Value> {
        self.positional.get(position).or_else(|| self.named(name)).or(self.rest.as_ref())
    }

    /// The argument of a name.
    pub(super) fn named(&self, name: &str) -> Option<&Value> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The argument at a position, those with names counted after the others.
    pub(super) fn at(&self, position: usize) -> Option<&Value> {
        let named = || self.named.get(position - self.positional.len()).map(|(_, value)| value);
        self.positional.get(position).or_else(named).or(self.rest.as_ref())
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Value> {
        self.positional.iter().chain(self.named.iter().map(|(_, value)| value)).chain(&self.rest)
    }

    /// Whether a value holds for any of them.
    pub(super) fn any(&self, is: impl Fn(&Atom) -> bool) -> bool {
        self.all().any(|value| value.any(&is))
    }
}

/// See the [module documentation](self).
pub(super) struct Interpreter<'a, 'e> {
    pub(super) source: &'a str,
    pub(super) surroundings: &'a Surroundings<'a>,
    pub(super) sink: &'a mut Sink<'e>,
    pub(super) tools: &'a mut dyn FnMut(&ToolCall<'_>, &mut Sink<'_>),
    /// The working directory, or `None` once it is not known.
    pub(super) directory: Option<String>,
    state: State<'a>,
    current: usize,
    heap: Vec<Object>,
    sites: BTreeMap<(usize, u16), HeapId>,
    /// Names that code within the code binds; what they mean from there on is not known.
    pub(super) rebound: BTreeSet<String>,
    /// Classes whose objects went where anyone may call their methods.
    pub(super) exposed: BTreeSet<usize>,
    /// Columns of which it was said that they are read, by table.
    pub(super) columns_read: BTreeMap<String, BTreeSet<String>>,
    /// Grows whenever something in the heap does.
    heap_version: usize,
    pub(super) functions: Vec<Function<'a>>,
    pub(super) classes: Vec<Class>,
    /// Where `break` and `continue` of the open loops lead.
    loops: Vec<Option<State<'a>>>,
    returns: Vec<Returns<'a>>,
    /// What is assigned while a `try` is open: an exception may leave it at any statement.
    recorders: Vec<Vec<(usize, &'a str, Value)>>,
    steps: usize,
    depth: usize,
    exhausted: bool,
}

pub(super) fn range_of(node: &impl Ranged) -> Range<usize> {
    let range = node.range();
    range.start().to_usize()..range.end().to_usize()
}

impl<'a, 'e> Interpreter<'a, 'e> {
    pub(super) fn new(
        source: &'a str,
        surroundings: &'a Surroundings<'a>,
        sink: &'a mut Sink<'e>,
        tools: &'a mut dyn FnMut(&ToolCall<'_>, &mut Sink<'_>),
    ) -> Self {
        let module = Scope { parent: None, class: false, variables: Rc::default(), elsewhere: Rc::default() };
        Self {
            source,
            surroundings,
            sink,
            tools,
            directory: surroundings.directory.map(str::to_owned),
            state: vec![module],
            current: 0,
            heap: Vec::new(),
            sites: BTreeMap::new(),
            rebound: BTreeSet::new(),
            exposed: BTreeSet::new(),
            columns_read: BTreeMap::new(),
            heap_version: 0,
            functions: Vec::new(),
            classes: Vec::new(),
            loops: Vec::new(),
            returns: Vec::new(),
            recorders: Vec::new(),
            steps: 0,
            depth: 0,
            exhausted: false,
        }
    }

    /// Follows a whole program.
    pub(super) fn program(&mut self, body: &'a [Stmt]) {
        self.block(body);
        self.result_of(body, 0);
    }

    /// A table that the last statement leaves is the program's answer, and so is read whole.
    fn result_of(&mut self, body: &'a [Stmt], depth: usize) {
        if depth > 8 {
            return;
        }
        match body.last() {
            Some(Stmt::Expr(statement)) => {
                // Evaluated once more: the effects are the same.
                let value = self.eval(&statement.value);
                self.escape(&value, range_of(&*statement.value));
            }
            Some(Stmt::Assign(statement)) => {
                for target in &statement.targets {
                    if let Expr::Name(name) = target {
                        let value = self.lookup(&name.id);
                        self.escape(&value, range_of(&*statement.value));
                    }
                }
            }
            Some(Stmt::If(statement)) => {
                self.result_of(&statement.body, depth + 1);
                for clause in &statement.elif_else_clauses {
                    self.result_of(&clause.body, depth + 1);
                }
            }
            Some(Stmt::With(statement)) => self.result_of(&statement.body, depth + 1),
            Some(Stmt::Try(statement)) => {
                self.result_of(&statement.body, depth + 1);
                self.result_of(&statement.orelse, depth + 1);
                self.result_of(&statement.finalbody, depth + 1);
            }
            _ => {}
        }
    }

    // Effects.

    pub(super) fn add(&mut self, effect: Effect, range: Range<usize>) {
        self.sink.add(effect, range);
    }

    pub(super) fn effect(
        &mut self,
        verb: portcullis_core::effect::Verb,
        resource: Resource,
        range: Range<usize>,
    ) {
        self.sink.add(Effect::new(verb, resource), range);
    }

    pub(super) fn unknown(&mut self, why: impl Into<String>, range: Range<usize>) {
        self.sink.unknown("code", why, range);
    }

    // Bounds.

    /// Counts a step; false when no more are to be made.
    pub(super) fn enter(&mut self, range: Range<usize>) -> bool {
        self.steps += 1;
        self.depth += 1;
        if self.steps > CODE_STEPS_MAX || self.sink.is_full() {
            if !self.exhausted {
                self.exhausted = true;
                self.unknown(format!("it takes more than {CODE_STEPS_MAX} steps to follow"), range);
            }
            return false;
        }
        if self.depth > CODE_DEPTH_MAX {
            self.unknown(format!("it is nested deeper than {CODE_DEPTH_MAX} levels"), range);
            return false;
        }
        true
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    // Variables.

    // The heap.

    // Statements.

    /// Follows statements in order; false if the end is not reached.
    pub(super) fn block(&mut self, body: &'a [Stmt]) -> bool {
        for statement in body {
            let follow = self.enter(range_of(statement));
            let goes_on = follow && self.statement(statement);
            self.leave();
            if !goes_on {
                return false;
            }
        }
        true
    }

    fn statement(&mut self, statement: &'a Stmt) -> bool {
        match statement {
            Stmt::Expr(node) => {
                self.eval(&node.value);
            }
            Stmt::Assign(node) => {
                let value = self.eval(&node.value);
                for target in &node.targets {
                    self.assign_target(target, &value);
                }
            }
            Stmt::AnnAssign(node) => {
                self.eval(&node.annotation);
                if let Some(value) = &node.value {
                    let value = self.eval(value);
                    self.assign_target(&node.target, &value);
                }
            }
            Stmt::AugAssign(node) => self.augment(node),
            Stmt::If(node) => return self.branches(node),
            Stmt::For(node) => return self.for_loop(node),
            Stmt::While(node) => return self.while_loop(node),
            Stmt::Try(node) => return self.try_block(node),
            Stmt::With(node) => return self.with_block(node),
            Stmt::Match(node) => return self.match_block(node),
            Stmt::FunctionDef(node) => self.define_function(node),
            Stmt::ClassDef(node) => self.define_class(node),
            Stmt::Return(node) => {
                self.leave_function(node);
                return false;
            }
            Stmt::Raise(node) => {
                for part in [&node.exc, &node.cause].into_iter().flatten() {
                    let value = self.eval(part);
                    self.escape(&value, range_of(&**part));
                }
                return false;
            }
            Stmt::Assert(node) => {
                self.eval(&node.test);
                if let Some(message) = &node.msg {
                    let value = self.eval(message);
                    self.escape(&value, range_of(&**message));
                }
            }
            Stmt::Break(_) | Stmt::Continue(_) => {
                let state = self.state.clone();
                if let Some(exit) = self.loops.last_mut() {
                    join_into(exit, state);
                }
                return false;
            }
            Stmt::Delete(node) => {
                for target in &node.targets {
                    self.delete(target);
                }
            }
            Stmt::Import(node) => self.import(node),
            Stmt::ImportFrom(node) => self.import_from(node),
            Stmt::Global(node) => self.elsewhere(node.names.iter().map(|name| name.id.as_str()), |_, _| 0),
            Stmt::Nonlocal(node) => {
                self.elsewhere(node.names.iter().map(|name| name.id.as_str()), Self::enclosing);
            }
            Stmt::TypeAlias(_) | Stmt::Pass(_) => {}
            Stmt::IpyEscapeCommand(_) => self.unknown("a notebook command", range_of(statement)),
        }
        true
    }

    fn leave_function(&mut self, node: &'a ruff_python_ast::StmtReturn) {
        let value = node.value.as_ref().map_or_else(Value::nothing, |value| self.eval(value));
        let state = self.state.clone();
        if let Some(returns) = self.returns.last_mut() {
            returns.value = returns.value.or(&value);
            join_into(&mut returns.state, state);
        }
    }

    fn branches(&mut self, node: &'a ruff_python_ast::StmtIf) -> bool {
        self.eval(&node.test);
        let mut before = self.state.clone();
        let mut after = None;
        if self.block(&node.body) {
            join_into(&mut after, self.state.clone());
        }
        let mut exhaustive = false;
        for clause in &node.elif_else_clauses {
            self.state = before;
            match &clause.test {
                Some(test) => {
                    self.eval(test);
                }
                None => exhaustive = true,
            }
            before = self.state.clone();
            if self.block(&clause.body) {
                join_into(&mut after, self.state.clone());
            }
        }
        if !exhaustive {
            join_into(&mut after, before);
        }
        self.resume(after)
    }

    fn resume(&mut self, after: Option<State<'a>>) -> bool {
        match after {
            Some(state) => {
                self.state = state;
                true
            }
            None => false,
        }
    }

    fn for_loop(&mut self, node: &'a ruff_python_ast::StmtFor) -> bool {
        let iterated = self.eval(&node.iter);
        let range = range_of(&*node.iter);
        match self.exact_items(&iterated) {
            Some(items) if items.len() <= CODE_UNROLL_MAX => {
                for item in items {
                    let before = self.state.clone();
                    self.assign_target(&node.target, &item);
                    self.round(before, |this| this.block(&node.body));
                }
            }
            _ => {
                let element = self.elements(&iterated, range);
                self.repeat(|this| {
                    this.assign_target(&node.target, &element);
                    this.block(&node.body)
                });
            }
        }
        self.block_after_loop(&node.orelse)
    }

    fn while_loop(&mut self, node: &'a ruff_python_ast::StmtWhile) -> bool {
        self.repeat(|this| {
            this.eval(&node.test);
            this.block(&node.body)
        });
        self.block_after_loop(&node.orelse)
    }

    /// `else` of a loop runs when no `break` left it: either way may be taken.
    fn block_after_loop(&mut self, body: &'a [Stmt]) -> bool {
        let mut after = Some(self.state.clone());
        if self.block(body) {
            join_into(&mut after, self.state.clone());
        }
        self.resume(after)
    }

    /// One round of a loop; afterwards the round was made, left early, or not made.
    fn round(&mut self, before: State<'a>, body: impl FnOnce(&mut Self) -> bool) {
        self.loops.push(None);
        let goes_on = body(self);
        let mut after = self.loops.pop().flatten();
        if goes_on {
            join_into(&mut after, self.state.clone());
        }
        // The round may not have been made: a `break` before it, or no items.
        join_into(&mut after, before);
        self.resume(after);
    }

    /// Rounds until nothing changes; what still does after [`CODE_ROUNDS_MAX`] counts as unknown.
    pub(super) fn repeat(&mut self, mut body: impl FnMut(&mut Self) -> bool) {
        for round in 0.. {
            let before = self.state.clone();
            let version = self.heap_version;
            self.round(before.clone(), &mut body);
            if self.exhausted || (version == self.heap_version && same(&before, &self.state)) {
                return;
            }
            if round >= CODE_ROUNDS_MAX {
                widen(&before, &mut self.state);
            }
            if round >= 2 * CODE_ROUNDS_MAX {
                self.widen_heap();
                self.loops.push(None);
                body(self);
                self.loops.pop();
                self.state = join(before, self.state.clone());
                return;
            }
        }
    }

    /// Follows statements that an exception may leave anywhere: whether they reach their end, and the state that
    /// the exception finds.
    fn guarded(&mut self, body: &'a [Stmt]) -> (bool, State<'a>) {
        let before = self.state.clone();
        self.recorders.push(Vec::new());
        let goes_on = self.block(body);
        let recorded = self.recorders.pop().unwrap_or_default();
        let mut raised = join(before, self.state.clone());
        for (scope, name, value) in recorded {
            if let Some(scope) = raised.get_mut(scope) {
                let variables = Rc::make_mut(&mut scope.variables);
                let joined = variables.get(name).map_or_else(|| value.clone(), |known| known.or(&value));
                variables.insert(name, joined);
            }
        }
        (goes_on, raised)
    }

    fn try_block(&mut self, node: &'a ruff_python_ast::StmtTry) -> bool {
        let (mut goes_on, raised) = self.guarded(&node.body);
        if goes_on {
            goes_on = self.block(&node.orelse);
        }
        let mut after = goes_on.then(|| self.state.clone());
        for handler in &node.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            self.state = raised.clone();
            if let Some(type_) = &handler.type_ {
                self.eval(type_);
            }
            if let Some(name) = &handler.name {
                self.assign(&name.id, Value::data());
            }
            if self.block(&handler.body) {
                join_into(&mut after, self.state.clone());
            }
        }
        let goes_on = after.is_some();
        self.state = match after {
            Some(after) if node.finalbody.is_empty() => after,
            Some(after) => join(after, raised),
            None => raised,
        };
        self.block(&node.finalbody) && goes_on
    }

    fn with_block(&mut self, node: &'a ruff_python_ast::StmtWith) -> bool {
        let mut suppresses = false;
        for item in &node.items {
            let value = self.eval(&item.context_expr);
            // What the code defines itself, what nobody knows, and what is made for it may swallow exceptions.
            suppresses |= value.any(|atom| match atom {
                Atom::Client(kind) => matches!(*kind, "exit stack" | "suppression"),
                _ => *atom != Atom::Data,
            });
            if let Some(target) = &item.optional_vars {
                let entered = self.entered(&value, range_of(&item.context_expr));
                self.assign_target(target, &entered);
            }
        }
        if !suppresses {
            return self.block(&node.body);
        }
        let (_, raised) = self.guarded(&node.body);
        self.state = raised;
        true
    }

    fn match_block(&mut self, node: &'a ruff_python_ast::StmtMatch) -> bool {
        let subject = self.eval(&node.subject);
        let before = self.state.clone();
        let mut after = Some(before.clone());
        for case in &node.cases {
            self.state = before.clone();
            self.bind_pattern(&case.pattern, &subject, 0);
            if let Some(guard) = &case.guard {
                self.eval(guard);
            }
            if self.block(&case.body) {
                join_into(&mut after, self.state.clone());
            }
        }
        self.resume(after)
    }

    // Functions and classes.
}
