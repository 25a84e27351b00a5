//! Comprehensions: collections made by loops within an expression.

use std::collections::BTreeMap;
use std::ops::Range;

use ruff_python_ast::{Comprehension, Expr};

use super::{Made, key_of, target_names};
use crate::code::interpreter::{Interpreter, range_of};
use crate::code::value::{Atom, Object, Value};
use crate::limits::CODE_UNROLL_MAX;

impl<'a> Interpreter<'a, '_> {
    pub(super) fn comprehension(
        &mut self,
        generators: &'a [Comprehension],
        element: &'a Expr,
        range: &Range<usize>,
    ) -> Value {
        let mut made = Made::default();
        self.generate(generators, &mut made, |this, made| {
            let value = this.eval(element);
            made.push(value);
        });
        let id = self.allocate((range.start, 14), made.into_list());
        Atom::List(id).into()
    }

    pub(super) fn dict_comprehension(
        &mut self,
        key: Option<&'a Expr>,
        value: &'a Expr,
        generators: &'a [Comprehension],
        range: &Range<usize>,
    ) -> Value {
        let mut made: (BTreeMap<String, Value>, Value) = (BTreeMap::new(), Value::none());
        let mut discarded = Made::default();
        self.generate(generators, &mut discarded, |this, _| {
            let key = key.map(|key| this.eval(key));
            let value = this.eval(value);
            match key.as_ref().and_then(key_of) {
                Some(key) => {
                    let known = made.0.entry(key).or_insert_with(Value::none);
                    *known = known.or(&value);
                }
                None => made.1 = made.1.or(&value),
            }
        });
        let id = self.allocate((range.start, 15), Object::Dict { entries: made.0, rest: made.1 });
        Atom::Dict(id).into()
    }

    /// Follows the `for` and `if` of a comprehension, and what is made in its midst.
    pub(super) fn generate(
        &mut self,
        generators: &'a [Comprehension],
        made: &mut Made,
        mut make: impl FnMut(&mut Self, &mut Made),
    ) {
        let mut names = Vec::new();
        for generator in generators {
            target_names(&generator.target, &mut names);
        }
        let before: Vec<_> = names.iter().map(|name| (*name, self.local(name))).collect();
        self.generate_from(generators, made, &mut make);
        for (name, value) in before {
            self.restore(name, value);
        }
    }

    pub(super) fn generate_from(
        &mut self,
        generators: &'a [Comprehension],
        made: &mut Made,
        make: &mut dyn FnMut(&mut Self, &mut Made),
    ) {
        let Some((generator, inner)) = generators.split_first() else {
            make(self, made);
            return;
        };
        let iterated = self.eval(&generator.iter);
        let exact = self.exact_items(&iterated).filter(|items| items.len() <= CODE_UNROLL_MAX);
        let items = exact.unwrap_or_else(|| {
            made.inexact = true;
            vec![self.elements(&iterated, range_of(&generator.iter))]
        });
        made.inexact |= !generator.ifs.is_empty();
        for item in items {
            self.assign_target(&generator.target, &item);
            for condition in &generator.ifs {
                self.eval(condition);
            }
            self.generate_from(inner, made, make);
        }
    }
}
