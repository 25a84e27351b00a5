//! The abstract interpreter: every statement is followed with all the values that it may see, none is run.
//!
//! Branches are followed one after the other and joined; loops until nothing changes any more, or item by item
//! where the list is known; functions at every call. Every part is bounded: by steps, depth and rounds; what is
//! cut off is noted as unknown. Statements behind a `return` or `break` are not reached and not read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use portcullis_core::effect::{Effect, Resource};
use ruff_python_ast::{ExceptHandler, Expr, Parameters, Stmt};
use ruff_text_size::Ranged;

use super::ToolCall;
use super::value::{Atom, HeapId, Object, Value};
use crate::limits::{CODE_CALLS_MAX, CODE_DEPTH_MAX, CODE_ROUNDS_MAX, CODE_STEPS_MAX, CODE_UNROLL_MAX};
use crate::{Sink, Surroundings};

/// Variables of the module or of one call.
#[derive(Debug, Clone)]
pub(super) struct Scope<'a> {
    parent: Option<usize>,
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
    /// The working directory; none once it is not known.
    pub(super) directory: Option<String>,
    state: State<'a>,
    current: usize,
    heap: Vec<Object>,
    sites: BTreeMap<(usize, u16), HeapId>,
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
        let module = Scope { parent: None, variables: Rc::default(), elsewhere: Rc::default() };
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

    pub(super) fn lookup(&self, name: &str) -> Value {
        let mut scope = Some(self.current);
        while let Some(at) = scope.and_then(|at| self.state.get(at)) {
            if let Some(value) = at.variables.get(name) {
                return value.clone();
            }
            scope = at.parent;
        }
        if self.surroundings.settings.functions.contains_key(name) {
            return Atom::Declared(name.into()).into();
        }
        if super::modules::is_builtin(name) {
            return Value::name(&format!("builtins.{name}"));
        }
        Value::unknown()
    }

    pub(super) fn assign(&mut self, name: &'a str, value: Value) {
        let current = self.current;
        let at = self.state.get(current).and_then(|scope| scope.elsewhere.get(name)).copied();
        self.assign_in(at.unwrap_or(current), name, value);
    }

    fn assign_in(&mut self, scope: usize, name: &'a str, value: Value) {
        // A function that has effects and is only perhaps replaced is still the other one as well.
        let declared = self.surroundings.settings.functions.contains_key(name);
        let value = if declared {
            value.or(&Atom::Declared(name.into()).into())
        } else if super::modules::is_weighty_builtin(name) {
            value.or(&Value::name(&format!("builtins.{name}")))
        } else {
            value
        };
        for recorder in &mut self.recorders {
            recorder.push((scope, name, value.clone()));
        }
        if let Some(scope) = self.state.get_mut(scope) {
            Rc::make_mut(&mut scope.variables).insert(name, value);
        }
    }

    /// Puts back what a name meant before, as at the end of a comprehension.
    pub(super) fn restore(&mut self, name: &'a str, before: Option<Value>) {
        let current = self.current;
        if let Some(scope) = self.state.get_mut(current) {
            let variables = Rc::make_mut(&mut scope.variables);
            match before {
                Some(value) => variables.insert(name, value),
                None => variables.remove(name),
            };
        }
    }

    /// What a name means in the innermost scope.
    pub(super) fn local(&self, name: &str) -> Option<Value> {
        self.state.get(self.current)?.variables.get(name).cloned()
    }

    /// Anything may have happened to every variable.
    pub(super) fn forget_variables(&mut self) {
        for scope in &mut self.state {
            for value in Rc::make_mut(&mut scope.variables).values_mut() {
                *value = value.or(&Value::unknown());
            }
        }
    }

    // The heap.

    /// The object made at a place of the code; made again there, it may be either.
    pub(super) fn allocate(&mut self, site: (usize, u16), object: Object) -> HeapId {
        if let Some(id) = self.sites.get(&site).copied() {
            self.merge(id, object);
            return id;
        }
        let id = HeapId(self.heap.len());
        self.heap.push(object);
        self.heap_version += 1;
        self.sites.insert(site, id);
        id
    }

    fn merge(&mut self, id: HeapId, object: Object) {
        let Some(known) = self.heap.get_mut(id.0) else { return };
        if *known == object {
            return;
        }
        let joined = match (&*known, &object) {
            (Object::List { items: a, exact: true, rest }, Object::List { items: b, exact: true, .. })
                if a.len() == b.len() =>
            {
                let items = a.iter().zip(b).map(|(a, b)| a.or(b)).collect();
                Object::List { items, exact: true, rest: rest.clone() }
            }
            (Object::List { items: a, rest: x, .. }, Object::List { items: b, rest: y, .. }) => {
                let rest = a.iter().chain(b).fold(x.or(y), |all, item| all.or(item));
                Object::List { items: Vec::new(), exact: false, rest }
            }
            (Object::Dict { entries: a, rest: x }, Object::Dict { entries: b, rest: y }) => {
                let mut entries = a.clone();
                for (key, value) in b {
                    let joined = entries.get(key).map_or_else(|| value.clone(), |known| known.or(value));
                    entries.insert(key.clone(), joined);
                }
                Object::Dict { entries, rest: x.or(y) }
            }
            (known, _) => known.clone(),
        };
        if *known != joined {
            *known = joined;
            self.heap_version += 1;
        }
    }

    pub(super) fn object(&self, id: HeapId) -> Option<&Object> {
        self.heap.get(id.0)
    }

    /// Changes an object in place.
    pub(super) fn change(&mut self, id: HeapId, change: impl FnOnce(&mut Object)) {
        if let Some(object) = self.heap.get_mut(id.0) {
            let before = object.clone();
            change(object);
            if *object != before {
                self.heap_version += 1;
            }
        }
    }

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
                let value = node.value.as_ref().map_or_else(Value::nothing, |value| self.eval(value));
                let state = self.state.clone();
                if let Some(returns) = self.returns.last_mut() {
                    returns.value = returns.value.or(&value);
                    join_into(&mut returns.state, state);
                }
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
                    self.eval(message);
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

    fn enclosing(&self, name: &str) -> usize {
        let mut scope = self.state.get(self.current).and_then(|scope| scope.parent);
        while let Some((at, found)) = scope.and_then(|at| Some((at, self.state.get(at)?))) {
            if found.variables.contains_key(name) {
                return at;
            }
            scope = found.parent;
        }
        0
    }

    fn elsewhere(&mut self, names: impl Iterator<Item = &'a str>, find: impl Fn(&Self, &str) -> usize) {
        let current = self.current;
        for name in names {
            let at = find(self, name);
            if at != current
                && let Some(scope) = self.state.get_mut(current)
            {
                Rc::make_mut(&mut scope.elsewhere).insert(name, at);
            }
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

    fn widen_heap(&mut self) {
        for object in &mut self.heap {
            match object {
                Object::List { items, exact, rest } => {
                    items.clear();
                    *exact = false;
                    *rest = rest.or(&Value::unknown());
                }
                Object::Dict { entries, rest } => {
                    for value in entries.values_mut() {
                        *value = value.or(&Value::unknown());
                    }
                    *rest = rest.or(&Value::unknown());
                }
            }
        }
        self.heap_version += 1;
    }

    fn try_block(&mut self, node: &'a ruff_python_ast::StmtTry) -> bool {
        let before = self.state.clone();
        self.recorders.push(Vec::new());
        let mut goes_on = self.block(&node.body);
        let recorded = self.recorders.pop().unwrap_or_default();
        let mut raised = join(before, self.state.clone());
        for (scope, name, value) in recorded {
            if let Some(scope) = raised.get_mut(scope) {
                let variables = Rc::make_mut(&mut scope.variables);
                let joined = variables.get(name).map_or_else(|| value.clone(), |known| known.or(&value));
                variables.insert(name, joined);
            }
        }
        if goes_on {
            goes_on = self.block(&node.orelse);
        }
        let mut after = goes_on.then(|| self.state.clone());
        for handler in &node.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            self.state = raised.clone();
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
        for item in &node.items {
            let value = self.eval(&item.context_expr);
            if let Some(target) = &item.optional_vars {
                let entered = self.entered(&value, range_of(&item.context_expr));
                self.assign_target(target, &entered);
            }
        }
        self.block(&node.body)
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

    pub(super) fn make_function(
        &mut self,
        parameters: Option<&'a Parameters>,
        body: Body<'a>,
        start: u32,
    ) -> Value {
        let mut defaults = Vec::new();
        for parameter in parameters.into_iter().flat_map(|parameters| parameters.iter_non_variadic_params()) {
            if let Some(default) = &parameter.default {
                defaults.push((parameter.parameter.name.id.as_str(), self.eval(default)));
            }
        }
        let site = (start, self.current);
        let known = self.functions.iter().position(|known| known.site == site && known.defaults == defaults);
        let id = known.unwrap_or_else(|| {
            self.functions.push(Function { site, parameters, body, scope: self.current, defaults });
            self.functions.len() - 1
        });
        Atom::Function(id).into()
    }

    fn define_function(&mut self, node: &'a ruff_python_ast::StmtFunctionDef) {
        let start = node.name.range().start().to_u32();
        let mut value = self.make_function(Some(&node.parameters), Body::Statements(&node.body), start);
        for decorator in node.decorator_list.iter().rev() {
            let wrapper = self.eval(&decorator.expression);
            value = self.decorated(&wrapper, value, range_of(&decorator.expression));
        }
        self.assign(&node.name.id, value);
    }

    fn decorated(&mut self, wrapper: &Value, function: Value, range: Range<usize>) -> Value {
        let harmless = wrapper.atoms().iter().all(|atom| {
            matches!(atom, Atom::Name(name) if super::modules::keeps_function(name)) || *atom == Atom::Data
        });
        if harmless { function } else { self.call(wrapper, Arguments::of(vec![function], range)) }
    }

    fn define_class(&mut self, node: &'a ruff_python_ast::StmtClassDef) {
        let site = node.name.range().start().to_u32();
        let mut bases = Vec::new();
        for argument in node.arguments.iter().flat_map(|arguments| arguments.args.iter()) {
            bases.push(self.eval(argument));
        }
        // The body has a scope of its own, which methods do not see.
        let outer = self.current;
        let parent = Some(outer);
        self.state.push(Scope { parent, variables: Rc::default(), elsewhere: Rc::default() });
        self.current = self.state.len() - 1;
        self.block(&node.body);
        let inner = self.state.get(self.current).map(|scope| Rc::clone(&scope.variables)).unwrap_or_default();
        let class_scope = self.current;
        self.current = outer;
        for function in &mut self.functions {
            if function.scope == class_scope {
                function.scope = outer;
            }
        }
        let entries = inner.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let members = self.allocate((site as usize, 1), Object::Dict { entries, rest: Value::none() });
        let known = self.classes.iter().position(|class| class.site == site);
        let id = known.unwrap_or_else(|| {
            self.classes.push(Class { site, members, bases, started: false });
            self.classes.len() - 1
        });
        let mut value: Value = Atom::Class(id).into();
        for decorator in node.decorator_list.iter().rev() {
            let wrapper = self.eval(&decorator.expression);
            value = self.decorated(&wrapper, value, range_of(&decorator.expression));
        }
        self.assign(&node.name.id, value);
    }

    /// Calls a function that the code defines.
    pub(super) fn call_function(&mut self, id: usize, arguments: &Arguments) -> Value {
        let Some(function) = self.functions.get(id).cloned() else { return Value::unknown() };
        // A function that calls itself with ever different numbers is followed as for any number.
        let calls_itself = self.returns.iter().filter(|open| open.function == id).count() > 1;
        let arguments = &if calls_itself { numberless(arguments) } else { arguments.clone() };
        if self.returns.iter().any(|open| open.function == id && open.arguments == *arguments) {
            return Value::unknown();
        }
        if self.returns.len() >= CODE_CALLS_MAX {
            self.unknown(format!("calls nest deeper than {CODE_CALLS_MAX}"), arguments.range.clone());
            return Value::unknown();
        }
        let made = self.functions.len();
        let before = self.current;
        let parent = Some(function.scope);
        self.state.push(Scope { parent, variables: Rc::default(), elsewhere: Rc::default() });
        self.current = self.state.len() - 1;
        let scope = self.current;
        self.bind_parameters(&function, arguments);
        let open = Returns {
            function: id,
            arguments: arguments.clone(),
            value: Value::none(),
            yielded: Value::none(),
            state: None,
        };
        self.returns.push(open);
        let loops = std::mem::take(&mut self.loops);
        let mut result = Value::none();
        let goes_on = match function.body {
            Body::Statements(body) => self.block(body),
            Body::Expression(body) => {
                result = self.eval(body);
                true
            }
        };
        self.loops = loops;
        if let Some(returns) = self.returns.pop() {
            let mut after = returns.state;
            if goes_on {
                join_into(&mut after, self.state.clone());
                if matches!(function.body, Body::Statements(_)) {
                    result = result.or(&Value::nothing());
                }
            }
            result = result.or(&returns.value);
            if !returns.yielded.is_none() {
                let object = Object::List { items: Vec::new(), exact: false, rest: returns.yielded };
                let made_of = self.allocate((function.site.0 as usize, 2), object);
                result = Atom::List(made_of).into();
            }
            // A call that never returns leaves everything as it was.
            if let Some(after) = after {
                self.state = after;
            }
        }
        self.current = before;
        if made == self.functions.len() && self.state.len() == scope + 1 {
            self.state.pop();
        }
        result
    }

    pub(super) fn yielded(&mut self, value: &Value) {
        if let Some(open) = self.returns.last_mut() {
            open.yielded = open.yielded.or(value);
        }
    }

    fn bind_parameters(&mut self, function: &Function<'a>, arguments: &Arguments) {
        let Some(parameters) = function.parameters else { return };
        let positional = parameters.posonlyargs.len() + parameters.args.len();
        for (position, parameter) in parameters.iter_non_variadic_params().enumerate() {
            let name = parameter.parameter.name.id.as_str();
            let given = if position < positional { arguments.positional.get(position) } else { None };
            let given = given.or_else(|| arguments.named(name)).or(arguments.rest.as_ref());
            let default =
                || function.defaults.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
            let value = given.or_else(default).cloned().unwrap_or_else(Value::unknown);
            self.assign(name, value);
        }
        let site = function.site.0 as usize;
        if let Some(parameter) = &parameters.vararg {
            let items: Vec<Value> = arguments.positional.iter().skip(positional).cloned().collect();
            let object = match &arguments.rest {
                None => Object::List { items, exact: true, rest: Value::none() },
                Some(rest) => {
                    let rest = items.iter().fold(rest.clone(), |all, item| all.or(item));
                    Object::List { items: Vec::new(), exact: false, rest }
                }
            };
            let id = self.allocate((site, 3), object);
            self.assign(&parameter.name.id, Atom::List(id).into());
        }
        if let Some(parameter) = &parameters.kwarg {
            let taken: Vec<&str> =
                parameters.iter_non_variadic_params().map(|known| known.parameter.name.id.as_str()).collect();
            let entries = arguments.named.iter().filter(|(name, _)| !taken.contains(&name.as_str())).cloned();
            let rest = arguments.rest.clone().unwrap_or_else(Value::none);
            let id = self.allocate((site, 4), Object::Dict { entries: entries.collect(), rest });
            self.assign(&parameter.name.id, Atom::Dict(id).into());
        }
    }
}

fn join_into<'a>(into: &mut Option<State<'a>>, state: State<'a>) {
    *into = Some(match into.take() {
        Some(known) => join(known, state),
        None => state,
    });
}

/// Either of two states.
fn join<'a>(mut a: State<'a>, b: State<'a>) -> State<'a> {
    for (at, scope) in b.into_iter().enumerate() {
        let Some(known) = a.get_mut(at) else {
            a.push(scope);
            continue;
        };
        if Rc::ptr_eq(&known.variables, &scope.variables) {
            continue;
        }
        let changed: Vec<_> = scope
            .variables
            .iter()
            .filter(|(name, value)| known.variables.get(*name) != Some(value))
            .map(|(name, value)| (*name, value.clone()))
            .collect();
        if !changed.is_empty() {
            let variables = Rc::make_mut(&mut known.variables);
            for (name, value) in changed {
                let joined = variables.get(name).map_or_else(|| value.clone(), |known| known.or(&value));
                variables.insert(name, joined);
            }
        }
    }
    a
}

fn same(a: &State<'_>, b: &State<'_>) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| Rc::ptr_eq(&a.variables, &b.variables) || a.variables == b.variables)
}

/// Makes unknown what differs between two rounds.
fn widen(before: &State<'_>, after: &mut State<'_>) {
    for (at, scope) in after.iter_mut().enumerate() {
        let Some(before) = before.get(at) else { continue };
        if before.variables == scope.variables {
            continue;
        }
        for (name, value) in Rc::make_mut(&mut scope.variables) {
            if before.variables.get(name) != Some(value) {
                *value = widened(value);
            }
        }
    }
}

/// Arguments with any number for each that is known.
fn numberless(arguments: &Arguments) -> Arguments {
    let forget = |value: &Value| -> Value {
        let atoms = value.atoms().iter();
        atoms.map(|atom| if matches!(atom, Atom::Integer(_)) { Atom::Data } else { atom.clone() }).collect()
    };
    Arguments {
        positional: arguments.positional.iter().map(forget).collect(),
        named: arguments.named.iter().map(|(name, value)| (name.clone(), forget(value))).collect(),
        rest: arguments.rest.as_ref().map(forget),
        range: arguments.range.clone(),
    }
}

/// Strings and numbers that keep growing become any data; other things become unknown.
fn widened(value: &Value) -> Value {
    let growing = |atom: &Atom| matches!(atom, Atom::Text(_) | Atom::Integer(_) | Atom::Data | Atom::Nothing);
    if value.any(|atom| !growing(atom)) { value.or(&Value::unknown()) } else { Value::data() }
}
