//! Expressions, and the targets of assignments.

mod targets;

mod comprehensions;

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use portcullis_core::effect::Verb;
use ruff_python_ast::{
    ConversionFlag, Expr, ExprBinOp, ExprCall, ExprCompare, ExprDict, ExprFString, ExprIf, ExprSlice,
    InterpolatedStringElement, Number, Operator, UnaryOp,
};
use smallvec::smallvec;

use super::interpreter::{Arguments, Body, Interpreter, range_of};
use super::text::{Text, Texts, concatenate};
use super::value::{Atom, HeapId, Object, Value};
use crate::limits::CODE_UNROLL_MAX;

/// How deep values within values are followed.
const VALUES_DEPTH_MAX: usize = 5;

impl<'a> Interpreter<'a, '_> {
    /// What an expression may be; its effects are noted.
    pub(super) fn eval(&mut self, expression: &'a Expr) -> Value {
        let follow = self.enter(range_of(expression));
        let value = if follow { self.expression(expression) } else { Value::unknown() };
        self.leave();
        value
    }

    fn expression(&mut self, expression: &'a Expr) -> Value {
        let range = range_of(expression);
        match expression {
            Expr::StringLiteral(node) => Value::text(Text::literal(node.value.to_str(), range)),
            Expr::NumberLiteral(node) => number(&node.value),
            Expr::NoneLiteral(_) => Value::nothing(),
            Expr::BooleanLiteral(_) | Expr::EllipsisLiteral(_) | Expr::BytesLiteral(_) => Value::data(),
            Expr::Name(node) => self.lookup(&node.id),
            Expr::FString(node) => self.f_string(node),
            Expr::BinOp(node) => self.binary(node),
            Expr::BoolOp(node) => node.values.iter().fold(Value::none(), |all, part| {
                let part = self.eval(part);
                all.or(&part)
            }),
            Expr::UnaryOp(node) => {
                let value = self.eval(&node.operand);
                negated(node.op, &value)
            }
            Expr::Compare(node) => self.comparison(node),
            Expr::If(node) => self.conditional(node),
            Expr::Named(node) => {
                let value = self.eval(&node.value);
                self.assign_target(&node.target, &value);
                value
            }
            Expr::Call(node) => self.call_expression(node),
            Expr::Attribute(node) => {
                let value = self.eval(&node.value);
                self.attribute(&value, &node.attr.id, range)
            }
            Expr::Subscript(node) => {
                let value = self.eval(&node.value);
                let index = self.eval(&node.slice);
                self.subscript(&value, &index, &node.slice, range)
            }
            Expr::List(node) => self.sequence(&node.elts, &range),
            Expr::Tuple(node) => self.sequence(&node.elts, &range),
            Expr::Set(node) => self.sequence(&node.elts, &range),
            Expr::Dict(node) => self.dictionary(node),
            Expr::ListComp(node) => self.comprehension(&node.generators, &node.elt, &range),
            Expr::SetComp(node) => self.comprehension(&node.generators, &node.elt, &range),
            Expr::Generator(node) => self.comprehension(&node.generators, &node.elt, &range),
            Expr::DictComp(node) => {
                self.dict_comprehension(node.key.as_deref(), &node.value, &node.generators, &range)
            }
            Expr::Lambda(node) => {
                let start = u32::try_from(range.start).unwrap_or(u32::MAX);
                self.make_function(node.parameters.as_deref(), Body::Expression(&node.body), start)
            }
            Expr::Starred(node) => {
                let value = self.eval(&node.value);
                self.elements(&value, range)
            }
            Expr::Slice(node) => self.slice(node),
            Expr::Await(node) => self.eval(&node.value),
            Expr::Yield(node) => {
                let value = node.value.as_ref().map_or_else(Value::data, |value| self.eval(value));
                self.yielded(&value);
                Value::data()
            }
            Expr::YieldFrom(node) => {
                let value = self.eval(&node.value);
                let element = self.elements(&value, range);
                self.yielded(&element);
                Value::data()
            }
            Expr::TString(_) | Expr::IpyEscapeCommand(_) => {
                self.unknown("a template or a notebook command", range);
                Value::unknown()
            }
        }
    }

    /// Of tables and columns, a comparison chooses rows.
    fn comparison(&mut self, node: &'a ExprCompare) -> Value {
        let mut any = self.eval(&node.left);
        for part in &node.comparators {
            let part = self.eval(part);
            any = any.or(&part);
        }
        let per_row = any.any(|atom| matches!(atom, Atom::Series | Atom::Mask | Atom::Table(_)));
        if per_row { Atom::Mask.into() } else { Value::data() }
    }

    fn conditional(&mut self, node: &'a ExprIf) -> Value {
        self.eval(&node.test);
        let value = self.eval(&node.body);
        let other = self.eval(&node.orelse);
        value.or(&other)
    }

    fn slice(&mut self, node: &'a ExprSlice) -> Value {
        for part in [&node.lower, &node.upper, &node.step].into_iter().flatten() {
            self.eval(part);
        }
        Value::data()
    }

    fn f_string(&mut self, node: &'a ExprFString) -> Value {
        let range = range_of(node);
        let mut texts: Texts = smallvec![Rc::new(Text::literal("", range.clone()))];
        for part in &node.value {
            match part {
                ruff_python_ast::FStringPart::Literal(literal) => {
                    texts = concatenate(&texts, &[Rc::new(Text::literal(&*literal.value, range.clone()))]);
                }
                ruff_python_ast::FStringPart::FString(string) => {
                    for element in &string.elements {
                        let next = self.f_string_element(element, &range);
                        texts = concatenate(&texts, &next);
                    }
                }
            }
        }
        texts.into_iter().map(Atom::Text).collect()
    }

    fn f_string_element(&mut self, element: &'a InterpolatedStringElement, range: &Range<usize>) -> Texts {
        match element {
            InterpolatedStringElement::Literal(literal) => {
                smallvec![Rc::new(Text::literal(&*literal.value, range.clone()))]
            }
            InterpolatedStringElement::Interpolation(field) => {
                let value = self.eval(&field.expression);
                for inner in field.format_spec.iter().flat_map(|spec| &spec.elements) {
                    self.f_string_element(inner, range);
                }
                let plain = field.format_spec.is_none()
                    && field.debug_text.is_none()
                    && matches!(field.conversion, ConversionFlag::None | ConversionFlag::Str);
                self.shown(&value, plain, range)
            }
        }
    }

    /// The strings that a value is shown as; a table that is shown is read.
    pub(super) fn shown(&mut self, value: &Value, plain: bool, range: &Range<usize>) -> Texts {
        self.escape(value, range.clone());
        let mut texts = Texts::new();
        for atom in value.atoms() {
            let text = match atom {
                Atom::Text(text) if plain => Rc::clone(text),
                Atom::Integer(number) if plain => Rc::new(Text::literal(number.to_string(), range.clone())),
                Atom::Location(text) if plain => Rc::clone(text),
                Atom::Nothing if plain => Rc::new(Text::literal("None", range.clone())),
                _ => Rc::new(Text::hole(range.clone())),
            };
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
    }

    /// Chains such as `a + b + c` are taken from the left without recursion.
    fn binary(&mut self, node: &'a ExprBinOp) -> Value {
        let mut rights = vec![node];
        let mut left = &*node.left;
        while let Expr::BinOp(inner) = left {
            rights.push(inner);
            left = &inner.left;
        }
        let mut value = self.eval(left);
        for node in rights.into_iter().rev() {
            let right = self.eval(&node.right);
            value = self.operate(node.op, &value, &right, range_of(node));
        }
        value
    }

    pub(super) fn operate(
        &mut self,
        op: Operator,
        left: &Value,
        right: &Value,
        range: Range<usize>,
    ) -> Value {
        let is_text = |atom: &Atom| matches!(atom, Atom::Text(_));
        if op == Operator::Mod && left.any(is_text) {
            return self.percent(left, right, range);
        }
        if op == Operator::Add && (left.any(is_text) || right.any(is_text)) {
            let per_row = |atom: &Atom| matches!(atom, Atom::Series | Atom::Table(_));
            if left.any(per_row) || right.any(per_row) {
                return Atom::Series.into();
            }
            let (a, b) = (self.shown(left, true, &range), self.shown(right, true, &range));
            return concatenate(&a, &b).into_iter().map(Atom::Text).collect();
        }
        let either = left.or(right);
        if either.any(|atom| matches!(atom, Atom::Location(_))) {
            return self.path_join(&[left.clone(), right.clone()], &range, true);
        }
        if op == Operator::Add && either.any(|atom| matches!(atom, Atom::List(_))) {
            return self.concatenated(left, right, &range);
        }
        if either.any(|atom| *atom == Atom::Mask) {
            return Atom::Mask.into();
        }
        if matches!(op, Operator::BitOr) && either.any(|atom| matches!(atom, Atom::Dict(_))) {
            return either;
        }
        if either.any(|atom| matches!(atom, Atom::List(_) | Atom::Unknown)) {
            // Set operations and repetition give nothing that was not there before.
            let rest = self.elements(&either, range.clone());
            let id = self.allocate((range.start, 10), Object::List { items: Vec::new(), exact: false, rest });
            return either.or(&Atom::List(id).into());
        }
        if let (Some(Atom::Integer(a)), Some(Atom::Integer(b))) = (left.single(), right.single()) {
            let number = match op {
                Operator::Add => a.checked_add(*b),
                Operator::Sub => a.checked_sub(*b),
                Operator::Mult => a.checked_mul(*b),
                _ => None,
            };
            return number.map_or_else(Value::data, |number| Atom::Integer(number).into());
        }
        if either.any(|atom| matches!(atom, Atom::Series)) {
            return Atom::Series.into();
        }
        if either.is_tabular() {
            self.escape(&either, range);
        }
        Value::data()
    }

    fn concatenated(&mut self, left: &Value, right: &Value, range: &Range<usize>) -> Value {
        let object = match (self.exact_items(left), self.exact_items(right)) {
            (Some(mut items), Some(more)) if items.len() + more.len() <= 4 * CODE_UNROLL_MAX => {
                items.extend(more);
                Object::List { items, exact: true, rest: Value::none() }
            }
            _ => {
                let rest = self.elements(&left.or(right), range.clone());
                Object::List { items: Vec::new(), exact: false, rest }
            }
        };
        let id = self.allocate((range.start, 11), object);
        Atom::List(id).into()
    }

    fn sequence(&mut self, elements: &'a [Expr], range: &Range<usize>) -> Value {
        let mut items = Vec::new();
        let mut rest = Value::none();
        let mut exact = true;
        for element in elements {
            if let Expr::Starred(starred) = element {
                let value = self.eval(&starred.value);
                match self.exact_items(&value) {
                    Some(more) => items.extend(more),
                    None => {
                        exact = false;
                        rest = rest.or(&self.elements(&value, range_of(element)));
                    }
                }
            } else {
                items.push(self.eval(element));
            }
        }
        if !exact {
            rest = items.drain(..).fold(rest, |all, item| all.or(&item));
        }
        let id = self.allocate((range.start, 12), Object::List { items, exact, rest });
        Atom::List(id).into()
    }

    fn dictionary(&mut self, node: &'a ExprDict) -> Value {
        let mut entries: BTreeMap<String, Value> = BTreeMap::new();
        let mut rest = Value::none();
        for item in &node.items {
            let value = self.eval(&item.value);
            let Some(key) = &item.key else {
                let (more, unknown) = self.entries_of(&value);
                entries.extend(more);
                rest = rest.or(&unknown);
                continue;
            };
            let key = self.eval(key);
            match key_of(&key) {
                Some(key) => {
                    entries.insert(key, value);
                }
                None => rest = rest.or(&value),
            }
        }
        let id = self.allocate((range_of(node).start, 13), Object::Dict { entries, rest });
        Atom::Dict(id).into()
    }

    /// The entries of a dictionary, and the values whose keys are not known.
    pub(super) fn entries_of(&mut self, value: &Value) -> (Vec<(String, Value)>, Value) {
        match value.single() {
            Some(Atom::Dict(id)) => match self.object(*id) {
                Some(Object::Dict { entries, rest }) => {
                    (entries.iter().map(|(key, value)| (key.clone(), value.clone())).collect(), rest.clone())
                }
                _ => (Vec::new(), Value::unknown()),
            },
            Some(Atom::Data) => (Vec::new(), Value::data()),
            // Known for what it is, so that it counts where it leaves and not where programs inherit it.
            Some(Atom::Name(name)) if is_environment(name) => (Vec::new(), value.clone()),
            _ => (Vec::new(), Value::unknown()),
        }
    }

    fn call_expression(&mut self, node: &'a ExprCall) -> Value {
        let function = self.eval(&node.func);
        let range = range_of(node);
        let mut arguments = Arguments::of(Vec::new(), range);
        for argument in &node.arguments.args {
            if let Expr::Starred(starred) = argument {
                let value = self.eval(&starred.value);
                match self.exact_items(&value) {
                    Some(items) if arguments.rest.is_none() => arguments.positional.extend(items),
                    _ => {
                        let element = self.elements(&value, range_of(argument));
                        arguments.rest =
                            Some(arguments.rest.map_or(element.clone(), |rest| rest.or(&element)));
                    }
                }
            } else {
                let value = self.eval(argument);
                match &arguments.rest {
                    None => arguments.positional.push(value),
                    Some(rest) => arguments.rest = Some(rest.or(&value)),
                }
            }
        }
        for keyword in &node.arguments.keywords {
            let value = self.eval(&keyword.value);
            match &keyword.arg {
                Some(name) => arguments.named.push((name.id.as_str().to_owned(), value)),
                None => {
                    let (entries, unknown) = self.entries_of(&value);
                    arguments.named.extend(entries);
                    if !unknown.is_none() {
                        arguments.rest =
                            Some(arguments.rest.map_or(unknown.clone(), |rest| rest.or(&unknown)));
                    }
                }
            }
        }
        self.call(&function, arguments)
    }

    // Values within values.

    /// The items of a list in order, when all are known.
    pub(super) fn exact_items(&self, value: &Value) -> Option<Vec<Value>> {
        match value.single()? {
            Atom::List(id) => match self.object(*id)? {
                Object::List { items, exact: true, .. } => Some(items.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    /// What iterating over a value gives.
    pub(super) fn elements(&mut self, value: &Value, range: Range<usize>) -> Value {
        let mut all = Value::none();
        for atom in value.atoms() {
            let element = match atom {
                Atom::List(id) => self.items_of(*id),
                Atom::Dict(id) => match self.object(*id) {
                    Some(Object::Dict { entries, rest }) => {
                        let keys = entries.keys().map(|key| match key.strip_prefix('#') {
                            Some(_) => Value::data(),
                            None => Value::text(Text::literal(key.clone(), range.clone())),
                        });
                        let start = if rest.is_none() { Value::none() } else { Value::data() };
                        keys.fold(start, |all, key| all.or(&key))
                    }
                    _ => Value::unknown(),
                },
                Atom::Table(frame) => Atom::Row(Rc::clone(frame)).into(),
                Atom::Row(_) => {
                    self.escape(value, range.clone());
                    Value::data()
                }
                Atom::Data | Atom::Nothing | Atom::Text(_) | Atom::Integer(_) | Atom::Series | Atom::Mask => {
                    Value::data()
                }

                Atom::Location(_) | Atom::Client(_) => Value::data(),
                Atom::Name(name) if is_environment(name) => {
                    self.environment(Verb::Read, &Value::unknown(), &range);
                    Value::data()
                }
                // `data.values`, taken without being called.
                Atom::Method(method) if method.0.atoms() == [Atom::Data] => Value::data(),
                _ => Value::unknown(),
            };
            all = all.or(&element);
        }
        all
    }

    /// All items of a list.
    pub(super) fn items_of(&self, id: HeapId) -> Value {
        match self.object(id) {
            Some(Object::List { items, rest, .. }) => {
                items.iter().fold(rest.clone(), |all, item| all.or(item))
            }
            Some(Object::Dict { entries, rest }) => {
                entries.values().fold(rest.clone(), |all, item| all.or(item))
            }
            None => Value::unknown(),
        }
    }

    /// A value leaves for where it is looked at: tables and rows in it are read with all their columns.
    pub(super) fn escape(&mut self, value: &Value, range: Range<usize>) {
        self.escape_from(value, &range, 0);
    }

    fn escape_from(&mut self, value: &Value, range: &Range<usize>, depth: usize) {
        if depth > VALUES_DEPTH_MAX {
            return;
        }
        for atom in value.atoms() {
            match atom {
                Atom::Table(frame) | Atom::Row(frame) => self.read_all(&Rc::clone(frame), range.clone()),
                Atom::Name(name) if is_environment(name) => {
                    self.environment(Verb::Read, &Value::unknown(), range);
                }
                Atom::List(id) | Atom::Dict(id) => {
                    let inner = self.items_of(*id);
                    self.escape_from(&inner, range, depth + 1);
                }
                _ => {}
            }
        }
    }

    // Targets.

    // Imports.
}

/// Whether a name means all variables of the environment.
fn is_environment(name: &str) -> bool {
    matches!(name, "os.environ" | "os.environb")
}

/// What a comprehension makes.
#[derive(Debug, Default)]
struct Made {
    items: Vec<Value>,
    inexact: bool,
}

impl Made {
    fn push(&mut self, value: Value) {
        self.items.push(value);
    }

    fn into_list(self) -> Object {
        if self.inexact || self.items.len() > 4 * CODE_UNROLL_MAX {
            let rest = self.items.iter().fold(Value::none(), |all, item| all.or(item));
            Object::List { items: Vec::new(), exact: false, rest }
        } else {
            Object::List { items: self.items, exact: true, rest: Value::none() }
        }
    }
}

fn target_names<'a>(target: &'a Expr, names: &mut Vec<&'a str>) {
    let mut open = vec![target];
    while let Some(target) = open.pop() {
        match target {
            Expr::Name(name) => names.push(&name.id),
            Expr::Tuple(node) => open.extend(&node.elts),
            Expr::List(node) => open.extend(&node.elts),
            Expr::Starred(node) => open.push(&node.value),
            _ => {}
        }
    }
}

fn negated(op: UnaryOp, value: &Value) -> Value {
    match (op, value.single()) {
        (UnaryOp::USub, Some(Atom::Integer(number))) => {
            number.checked_neg().map_or_else(Value::data, |number| Atom::Integer(number).into())
        }
        (UnaryOp::Invert, _) if value.any(|atom| matches!(atom, Atom::Mask | Atom::Series)) => {
            Atom::Mask.into()
        }
        (UnaryOp::Not, _) => Value::data(),
        (_, Some(Atom::Series)) => Atom::Series.into(),
        _ => Value::data(),
    }
}

/// The key under which a dictionary keeps a value, when it is known.
pub(super) fn key_of(key: &Value) -> Option<String> {
    match key.single()? {
        // `#` marks numbers.
        Atom::Text(text) => text.known().filter(|key| !key.starts_with('#')).map(str::to_owned),
        Atom::Integer(number) => Some(format!("#{number}")),
        _ => None,
    }
}

/// Adds an entry to what was under the key before.
pub(super) fn store_entry(object: &mut Object, key: Option<String>, value: &Value) {
    match (object, key) {
        (Object::Dict { entries, .. }, Some(key)) => {
            let joined = entries.get(&key).map_or_else(|| value.clone(), |known| known.or(value));
            entries.insert(key, joined);
        }
        (Object::Dict { rest, .. }, None) => *rest = rest.or(value),
        (list, _) => add_item(list, value),
    }
}

/// Adds an item to a list; from then on its order is not known.
pub(super) fn add_item(object: &mut Object, value: &Value) {
    match object {
        Object::List { items, exact, rest } => {
            *rest = items.drain(..).fold(rest.or(value), |all, item| all.or(&item));
            *exact = false;
        }
        Object::Dict { rest, .. } => *rest = rest.or(value),
    }
}

fn number(number: &Number) -> Value {
    match number {
        Number::Int(number) => {
            number.as_i64().map_or_else(Value::data, |number| Atom::Integer(number).into())
        }
        _ => Value::data(),
    }
}
