//! Which marks and rules concern a tool.

use std::collections::HashMap;

use serde_json::Value;

use super::rule::{Fired, Sequence};
use super::{Mark, MarkKey, MarkRule};
use crate::id::Digest;
use crate::state::Marks;
use crate::state::marks::Now;

/// The marks and rules of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sequences {
    marks: Vec<MarkRule>,
    rules: Vec<Sequence>,
    /// What concerns the tools that are known.
    known: HashMap<String, Concerns>,
}

/// Places of the marks and rules that concern a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Concerns {
    marks: Vec<usize>,
    rules: Vec<usize>,
}

/// What a call is marked with, and the values by which rules compare it with others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marked {
    marks: Vec<Mark>,
    /// Of each rule that compares, by its place in the bundle.
    keys: Vec<(usize, Option<MarkKey>)>,
}

impl Marked {
    /// The marks.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The same under a run's key.
    #[must_use]
    pub(crate) fn keyed(mut self, key: &Digest) -> Self {
        for mark in &mut self.marks {
            mark.key = mark.key.map(|of| of.keyed(key));
        }
        for (_, of) in &mut self.keys {
            *of = of.map(|of| of.keyed(key));
        }
        self
    }
}

/// A call as one rule sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) marks: &'a [Mark],
    pub(crate) key: Option<MarkKey>,
}

impl Sequences {
    /// Puts marks and rules in order, for these tools, by id and name. Tools that are not known are compared with each
    /// pattern.
    pub(crate) fn new<'t>(
        marks: Vec<MarkRule>,
        rules: Vec<Sequence>,
        tools: impl Iterator<Item = [&'t str; 2]>,
    ) -> Self {
        let mut all = Self { marks, rules, known: HashMap::new() };
        if !all.is_empty() {
            let each = |names: [&str; 2]| names.map(|name| (name.to_owned(), all.find(&names)));
            all.known = tools.flat_map(each).collect();
        }
        all
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty() && self.rules.is_empty()
    }

    /// What calls are marked with.
    pub fn marks(&self) -> &[MarkRule] {
        &self.marks
    }

    /// The rules, in the order of the bundle.
    pub fn rules(&self) -> &[Sequence] {
        &self.rules
    }

    /// What concerns a tool of these names.
    fn find(&self, names: &[&str]) -> Concerns {
        let fits =
            |patterns: &[String]| patterns.iter().any(|pattern| names.iter().any(|name| fits(pattern, name)));
        let places =
            |all: Vec<bool>| (0..).zip(all).filter(|(_, fits)| *fits).map(|(place, _)| place).collect();
        Concerns {
            marks: places(self.marks.iter().map(|mark| fits(&mark.tools)).collect()),
            rules: places(self.rules.iter().map(|rule| fits(&rule.tools)).collect()),
        }
    }

    fn concerns(&self, tool: &str) -> std::borrow::Cow<'_, Concerns> {
        match self.known.get(tool) {
            Some(known) => std::borrow::Cow::Borrowed(known),
            None => std::borrow::Cow::Owned(self.find(&[tool])),
        }
    }

    /// What a call does. Linear in the marks and rules that concern its tool.
    pub(crate) fn marked(&self, tool: &str, arguments: &Value) -> Marked {
        if self.is_empty() {
            return Marked::default();
        }
        let concerns = self.concerns(tool);
        let marks = concerns.marks.iter().filter_map(|place| self.marks.get(*place));
        let keys = concerns.rules.iter().filter_map(|place| {
            let same = self.rules.get(*place)?.same.as_deref()?;
            Some((*place, MarkKey::at(arguments, same)))
        });
        Marked { marks: marks.map(|rule| rule.mark(arguments)).collect(), keys: keys.collect() }
    }

    /// The rules that stop a call, with why, in the order of the bundle.
    pub fn fired<'s>(
        &'s self,
        tool: &str,
        marked: &Marked,
        past: &Marks,
        now: Now,
    ) -> Vec<(&'s Sequence, Fired)> {
        let mut keys = marked.keys.iter().peekable();
        let mut fired = Vec::new();
        for place in &self.concerns(tool).rules {
            let Some(rule) = self.rules.get(*place) else { continue };
            let key = keys.next_if(|(of, _)| of == place).and_then(|(_, key)| *key);
            let call = Call { marks: &marked.marks, key };
            fired.extend(rule.fires(past, &call, now).map(|why| (rule, why)));
        }
        fired
    }
}

/// Whether a name of a tool fits a pattern: `*` at its end stands for any rest.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}
