//! Functions and classes that the code defines, and calls of them.

use std::ops::Range;
use std::rc::Rc;

use ruff_python_ast::Parameters;
use ruff_text_size::Ranged as _;

use super::state::{join_into, numberless};
use super::{Arguments, Body, Class, Function, Interpreter, Returns, Scope, range_of};
use crate::code::value::{Atom, Object, Value};
use crate::limits::CODE_CALLS_MAX;

impl<'a> Interpreter<'a, '_> {
    pub(in crate::code) fn make_function(
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

    pub(super) fn define_function(&mut self, node: &'a ruff_python_ast::StmtFunctionDef) {
        let start = node.name.range().start().to_u32();
        let annotations = node.parameters.iter().filter_map(|parameter| parameter.annotation());
        for annotation in annotations.chain(node.returns.as_deref()) {
            self.eval(annotation);
        }
        let mut value = self.make_function(Some(&node.parameters), Body::Statements(&node.body), start);
        for decorator in node.decorator_list.iter().rev() {
            let wrapper = self.eval(&decorator.expression);
            value = self.decorated(&wrapper, value, range_of(&decorator.expression));
        }
        self.assign(&node.name.id, value);
    }

    pub(super) fn decorated(&mut self, wrapper: &Value, function: Value, range: Range<usize>) -> Value {
        let harmless = wrapper.atoms().iter().all(|atom| {
            matches!(atom, Atom::Name(name) if crate::code::modules::keeps_function(name))
                || *atom == Atom::Data
        });
        if harmless { function } else { self.call(wrapper, Arguments::of(vec![function], range)) }
    }

    pub(super) fn define_class(&mut self, node: &'a ruff_python_ast::StmtClassDef) {
        let site = node.name.range().start().to_u32();
        let mut bases = Vec::new();
        for argument in node.arguments.iter().flat_map(|arguments| arguments.args.iter()) {
            bases.push(self.eval(argument));
        }
        let mut keywords = Vec::new();
        for keyword in node.arguments.iter().flat_map(|arguments| arguments.keywords.iter()) {
            let value = self.eval(&keyword.value);
            keywords.push((keyword.arg.as_ref().map_or("", |name| name.id.as_str()), value));
        }
        // The body has a scope of its own, which methods do not see.
        let outer = self.current;
        let parent = Some(outer);
        self.state.push(Scope { parent, class: true, variables: Rc::default(), elsewhere: Rc::default() });
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
        self.class_made(id, &keywords, range_of(node));
        let mut value: Value = Atom::Class(id).into();
        for decorator in node.decorator_list.iter().rev() {
            let wrapper = self.eval(&decorator.expression);
            value = self.decorated(&wrapper, value, range_of(&decorator.expression));
        }
        self.assign(&node.name.id, value);
    }

    /// What runs because a class is made: its metaclass, and what its bases do with those below them.
    fn class_made(&mut self, id: usize, keywords: &[(&str, Value)], range: Range<usize>) {
        let named: Vec<(String, Value)> =
            keywords.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let bases = self.classes.get(id).map(|class| class.bases.clone()).unwrap_or_default();
        for base in bases.iter().flat_map(|base| base.atoms().to_vec()) {
            let Atom::Class(base) = base else { continue };
            let hook = self.inherited(base, "__init_subclass__");
            if hook.any(|atom| matches!(atom, Atom::Function(_) | Atom::Partial(_))) {
                let class = Atom::Class(id).into();
                let arguments =
                    Arguments { named: named.clone(), ..Arguments::of(vec![class], range.clone()) };
                self.call(&hook, arguments);
            }
        }
        for (_, meta) in keywords.iter().filter(|(name, _)| *name == "metaclass") {
            self.expose(meta, &range);
            if meta.any(|atom| !matches!(atom, Atom::Class(_) | Atom::Name(_) | Atom::Data)) {
                let arguments =
                    Arguments { rest: Some(Value::unknown()), ..Arguments::of(Vec::new(), range.clone()) };
                self.call(meta, arguments);
            }
        }
    }

    /// Calls a function that the code defines.
    pub(in crate::code) fn call_function(&mut self, id: usize, arguments: &Arguments) -> Value {
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
        self.state.push(Scope { parent, class: false, variables: Rc::default(), elsewhere: Rc::default() });
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

    pub(in crate::code) fn yielded(&mut self, value: &Value) {
        if let Some(open) = self.returns.last_mut() {
            open.yielded = open.yielded.or(value);
        }
    }

    pub(super) fn bind_parameters(&mut self, function: &Function<'a>, arguments: &Arguments) {
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
