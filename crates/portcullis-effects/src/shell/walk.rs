//! The walk through the tree: lists, pipelines, branches, loops, functions.
//!
//! Every branch is taken. A command that can fail in a way that matters later (`cd`) gives the state after failing
//! beside the one after succeeding, so that `cd x && rm y` and `cd x; rm y` differ.

use std::ops::Range;
use std::rc::Rc;

use brush_parser::ast::{self, SourceLocation as _};

use super::interpreter::{Input, Interpreter, Printed};
use super::state::{Function, Meaning, State, Value};
use super::unit::Unit;
use super::word::Word;

/// Most passes through a loop whose values are not known, until nothing new is learnt.
const LOOP_PASSES_MAX: usize = 4;

/// How often a trap may set another.
const TRAPS_DEPTH_MAX: usize = 2;

/// The state after failing, where it is another than after succeeding.
pub(super) type Failure = Option<State>;

impl Interpreter<'_, '_> {
    /// Walks a whole text.
    pub(super) fn program(&mut self, unit: &Rc<Unit>) {
        for list in &unit.program.complete_commands {
            self.settled(unit, list);
        }
    }

    /// Walks a list; how it ended does not matter.
    fn settled(&mut self, unit: &Rc<Unit>, list: &ast::CompoundList) {
        let failure = self.list(unit, list);
        self.settle(failure);
    }

    fn settle(&mut self, failure: Failure) {
        if let Some(failure) = failure {
            let success = self.state.clone();
            self.state = success.join(failure);
        }
    }

    fn list(&mut self, unit: &Rc<Unit>, list: &ast::CompoundList) -> Failure {
        let mut failure = None;
        for ast::CompoundListItem(list, separator) in &list.0 {
            self.settle(failure.take());
            // Whether `exit` ends it is not for the gate to say; what follows is read all the same.
            self.state.dead = false;
            if matches!(separator, ast::SeparatorOperator::Async) {
                self.subshell(|shell| {
                    shell.and_or(unit, list);
                });
            } else {
                failure = self.and_or(unit, list);
            }
        }
        failure
    }

    fn and_or(&mut self, unit: &Rc<Unit>, list: &ast::AndOrList) -> Failure {
        let mut failure = self.pipeline(unit, &list.first);
        for next in &list.additional {
            let failed = failure.take().unwrap_or_else(|| self.state.clone());
            match next {
                ast::AndOr::And(pipeline) => {
                    let second = self.pipeline(unit, pipeline).unwrap_or_else(|| self.state.clone());
                    failure = Some(failed.join(second));
                }
                ast::AndOr::Or(pipeline) => {
                    let succeeded = std::mem::replace(&mut self.state, failed);
                    failure = self.pipeline(unit, pipeline).or_else(|| Some(self.state.clone()));
                    let second = self.state.clone();
                    self.state = succeeded.join(second);
                }
            }
        }
        failure
    }

    fn pipeline(&mut self, unit: &Rc<Unit>, pipeline: &ast::Pipeline) -> Failure {
        if let [command] = pipeline.seq.as_slice() {
            let input = self.input.clone();
            let failure = self.command(unit, command, input);
            return match failure {
                Some(failed) if pipeline.bang => Some(std::mem::replace(&mut self.state, failed)),
                failure => failure,
            };
        }
        let mut input = self.input.clone();
        for command in &pipeline.seq {
            let before = self.state.clone();
            self.output = None;
            let traps = std::mem::take(&mut self.traps);
            self.command(unit, command, input);
            let output = self.output.take();
            self.end();
            self.traps = traps;
            self.output = output;
            input = match self.output.take() {
                Some(Printed::Names(names)) => Input::Names(names),
                Some(Printed::Text(text)) if matches!(command, ast::Command::Simple(_)) => {
                    Input::Text(text.into())
                }
                _ => Input::Pipe,
            };
            self.state = before;
        }
        None
    }

    fn command(&mut self, unit: &Rc<Unit>, command: &ast::Command, input: Input) -> Failure {
        match command {
            ast::Command::Simple(simple) => self.simple(unit, simple, input),
            ast::Command::Compound(compound, redirects) => {
                let range = compound.location().map_or(0..0, |span| unit.range(&span));
                self.enclosed(unit, redirects.as_ref(), input, &range, |shell| {
                    shell.compound(unit, compound, &range)
                })
            }
            ast::Command::Function(function) => {
                if let Some((raw, range)) = unit.raw(function.fname.loc.as_ref()) {
                    let name = self.expand_one(raw, &range);
                    match name.literal() {
                        Some(name) => {
                            let body = Rc::new(function.body.clone());
                            let function = Function { unit: Rc::clone(unit), body };
                            self.state.define(name, Some(Meaning::Function(function)));
                        }
                        None => self.state.tampered = true,
                    }
                }
                None
            }
            ast::Command::ExtendedTest(test, redirects) => {
                let range = unit.range(&test.loc);
                self.enclosed(unit, redirects.as_ref(), input, &range, |shell| {
                    shell.insides(unit, &test.loc);
                    None
                })
            }
        }
    }

    /// Walks what has redirections of its own.
    fn enclosed(
        &mut self,
        unit: &Rc<Unit>,
        redirects: Option<&ast::RedirectList>,
        input: Input,
        range: &Range<usize>,
        walk: impl FnOnce(&mut Self) -> Failure,
    ) -> Failure {
        // Several commands share one input; which of them reads what is not known.
        let mut inside = if matches!(input, Input::Text(_)) { Input::Pipe } else { input };
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(unit, redirect, &mut inside, range);
        }
        if matches!(inside, Input::Text(_)) {
            inside = Input::Pipe;
        }
        let outside = std::mem::replace(&mut self.input, inside);
        let mut failure = None;
        self.deeper(range, |shell| failure = walk(shell));
        self.input = outside;
        failure
    }

    fn compound(
        &mut self,
        unit: &Rc<Unit>,
        compound: &ast::CompoundCommand,
        range: &Range<usize>,
    ) -> Failure {
        use ast::CompoundCommand as C;
        match compound {
            C::BraceGroup(group) => return self.list(unit, &group.list),
            C::Arithmetic(arithmetic) => self.insides(unit, &arithmetic.loc),
            C::Subshell(subshell) => self.subshell(|shell| shell.settled(unit, &subshell.list)),
            C::Coprocess(coprocess) => self.subshell(|shell| {
                shell.command(unit, &coprocess.body, Input::Pipe);
            }),
            C::IfClause(clause) => self.branches(unit, clause),
            C::CaseClause(clause) => self.cases(unit, clause),
            C::WhileClause(clause) | C::UntilClause(clause) => self.repeated(range, |shell| {
                shell.settled(unit, &clause.0);
                shell.settled(unit, &clause.1.list);
            }),
            C::ArithmeticForClause(clause) => {
                self.insides(unit, &clause.loc);
                self.repeated(range, |shell| shell.settled(unit, &clause.body.list));
            }
            C::ForClause(clause) => self.values(unit, clause, range),
        }
        None
    }

    /// Walks what cannot change this shell.
    pub(super) fn subshell(&mut self, walk: impl FnOnce(&mut Self)) {
        let before = self.state.clone();
        let escapes = self.escapes.take();
        let traps = std::mem::take(&mut self.traps);
        walk(self);
        self.end();
        self.traps = traps;
        self.state = before;
        self.escapes = escapes;
    }

    /// The shell ends: what it has put off runs.
    pub(super) fn end(&mut self) {
        for _ in 0..TRAPS_DEPTH_MAX {
            for trap in std::mem::take(&mut self.traps) {
                let end = self.state.clone();
                self.state = trap.state.until(&end, trap.changes);
                self.deeper(&trap.range, |shell| shell.text(&trap.text, &trap.range));
                self.state = end;
            }
        }
        if let Some(trap) = std::mem::take(&mut self.traps).first() {
            self.unknown("shell", "traps set further traps too often", trap.range.clone());
        }
    }

    /// The substitutions inside of tests and arithmetic.
    fn insides(&mut self, unit: &Rc<Unit>, span: &brush_parser::SourceSpan) {
        // Those of the first only: a loop's body has its own.
        let inside = unit.insides(span).next().map(|(text, range)| (text.to_owned(), range));
        if let Some((text, range)) = inside {
            if unit.text(range.start.saturating_sub(2)..range.start) == "((" {
                self.arithmetic(&text, &range);
            } else {
                self.test(&text, &range);
            }
        }
    }

    /// The inside of `[[…]]`: comparing numbers is arithmetic, and asking for a variable expands its subscript.
    fn test(&mut self, text: &str, range: &Range<usize>) {
        const EVALUATES: [&str; 8] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"];
        self.compares = true;
        let expanded = self.expand_one(text, range);
        self.compares = false;
        if text.split_ascii_whitespace().any(|word| EVALUATES.contains(&word)) {
            self.evaluated(&expanded.shape, range);
            self.evaluated_names(text, range);
        }
    }

    fn branches(&mut self, unit: &Rc<Unit>, clause: &ast::IfClauseCommand) {
        let failure = self.list(unit, &clause.condition);
        let mut otherwise = failure.unwrap_or_else(|| self.state.clone());
        self.settled(unit, &clause.then);
        let mut after = self.state.clone();
        let mut exhausted = false;
        for part in clause.elses.iter().flatten() {
            self.state = otherwise;
            otherwise = match &part.condition {
                Some(condition) => {
                    let failure = self.list(unit, condition);
                    failure.unwrap_or_else(|| self.state.clone())
                }
                None => {
                    exhausted = true;
                    self.state.clone()
                }
            };
            self.settled(unit, &part.body);
            after = after.join(self.state.clone());
        }
        self.state = if exhausted { after } else { after.join(otherwise) };
    }

    fn cases(&mut self, unit: &Rc<Unit>, clause: &ast::CaseClauseCommand) {
        self.raw_effects(unit, &clause.value);
        let base = self.state.clone();
        let mut after = base.clone();
        for case in &clause.cases {
            for pattern in &case.patterns {
                self.raw_effects(unit, pattern);
            }
            // The branch before may fall through into this one.
            self.state = base.clone().join(after.clone());
            if let Some(list) = &case.cmd {
                self.settled(unit, list);
            }
            after = after.join(self.state.clone());
        }
        self.state = after;
    }

    fn raw_effects(&mut self, unit: &Rc<Unit>, word: &ast::Word) {
        if let Some((raw, range)) = unit.raw(word.loc.as_ref()) {
            self.expand_one(raw, &range);
        }
    }

    /// Walks what is repeated until nothing more is learnt about variables.
    fn repeated(&mut self, range: &Range<usize>, mut walk: impl FnMut(&mut Self)) {
        let escapes = self.escapes.take();
        for pass in 0..=LOOP_PASSES_MAX {
            if !self.step(range) {
                break;
            }
            if pass == LOOP_PASSES_MAX {
                self.state.forget_all();
            }
            let before = self.state.clone();
            walk(self);
            let after = self.state.clone();
            self.state = before.clone().join(after);
            if let Some(escaped) = self.escapes.take() {
                self.state = self.state.clone().join(escaped);
            }
            if self.state.same(&before) {
                break;
            }
        }
        self.escapes = escapes;
    }

    /// `for NAME in WORDS`, and `select`.
    fn values(&mut self, unit: &Rc<Unit>, clause: &ast::ForClauseCommand, range: &Range<usize>) {
        let name = clause.variable_name.clone();
        let asked = unit.text(range.clone()).starts_with("select");
        let words: Vec<Word> = match &clause.values {
            Some(values) => {
                let mut words = Vec::new();
                for value in values {
                    if let Some((raw, range)) = unit.raw(value.loc.as_ref()) {
                        words.extend(self.expand(raw, &range));
                    }
                }
                words
            }
            None => self.expand("\"$@\"", range),
        };
        let open = asked || words.iter().any(|word| word.value.is_none() && word.shape == "*");
        if open {
            self.repeated(range, |shell| {
                shell.assign_unread(&name, range);
                shell.settled(unit, &clause.body.list);
            });
            return;
        }
        let escapes = self.escapes.take();
        let mut after = self.state.clone();
        for word in &words {
            if !self.step(range) {
                break;
            }
            if word.glob {
                let shape = word.shape.clone();
                let known = word.value.is_some();
                self.state
                    .assign(&name, if known { Value::Glob(shape) } else { Value::Shape(shape, word.gaps) });
            } else {
                self.assign(&name, word);
            }
            self.settled(unit, &clause.body.list);
            if let Some(escaped) = self.escapes.take() {
                self.state = self.state.clone().join(escaped);
            }
            after = after.join(self.state.clone());
        }
        self.state = after;
        self.escapes = escapes;
    }

    /// Calls a function with the words after its name.
    pub(super) fn function(
        &mut self,
        function: &Function,
        args: &[Word],
        range: &Range<usize>,
        input: Input,
    ) {
        let values = args.iter().map(Value::of).collect();
        let before = self.state.positional.replace(Rc::new(values));
        let outside = std::mem::replace(&mut self.input, input);
        let Function { unit, body } = function;
        self.nested(range, |shell| {
            let ast::FunctionBody(compound, redirects) = body.as_ref();
            let range = 0..0;
            let input = shell.input.clone();
            let failure = shell.enclosed(unit, redirects.as_ref(), input, &range, |shell| {
                shell.compound(unit, compound, &range)
            });
            shell.settle(failure);
            if let Some(escaped) = shell.escapes.take() {
                shell.state = shell.state.clone().join(escaped);
            }
            for name in std::mem::take(&mut shell.locals) {
                shell.state.assign(&name, Value::Unknown);
            }
            shell.state.dead = false;
        });
        self.input = outside;
        self.state.positional = before;
    }
}
