//! Which marks and rules concern a tool.

use std::collections::HashMap;

use serde_json::Value;

use super::rule::{Fired, Over, Past, Sequence};
use super::{Mark, MarkKey, MarkRule, SOURCE};
use crate::fact::FactRequest;
use crate::id::Digest;
use crate::state::Marks;
use crate::state::marks::{History, Now, Tally};

/// The marks and rules of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sequences {
    marks: Vec<MarkRule>,
    rules: Vec<Sequence>,
    /// One of them is about all runs of a principal.
    over_principal: bool,
    /// What concerns the tools that are known.
    known: HashMap<String, Concerns>,
}

/// The marks and rules that concern a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Concerns {
    /// Places of marks in the bundle.
    marks: Vec<usize>,
    rules: Vec<Judging>,
    /// The marks that these rules name, each once.
    named: Vec<String>,
}

/// A rule that judges the calls of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Judging {
    /// Its place in the bundle.
    rule: usize,
    /// Where what it asks about is among the marks of a call.
    own: Option<usize>,
    /// Where the mark that it asks about, and the one since which it counts, are among those that are named.
    of: usize,
    since: Option<usize>,
}

/// What a call is marked with, and the values by which rules compare it with others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marked {
    marks: Vec<Mark>,
    /// Of the marks of its tool, in the order of the bundle, those that do not mean it.
    left_out: Vec<usize>,
    /// Of each rule that compares, by its place in the bundle.
    keys: Vec<(usize, Option<MarkKey>)>,
}

impl Marked {
    /// The marks.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The mark of this place among those of its tool.
    fn own(&self, place: usize) -> Option<&Mark> {
        let before = self.left_out.iter().filter(|out| **out < place).count();
        let is_out = self.left_out.contains(&place);
        self.marks.get(place.checked_sub(before)?).filter(|_| !is_out)
    }

    /// The same under a run's key, or another one under which they are compared.
    #[must_use]
    pub fn keyed(mut self, key: &Digest) -> Self {
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
    /// Its own mark, where it is what the rule asks about.
    pub(crate) own: Option<&'a Mark>,
    /// The value by which the rule compares it with others.
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
        let over_principal = rules.iter().any(|rule| rule.over == Over::Principal);
        let mut all = Self { marks, rules, over_principal, known: HashMap::new() };
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
        let each = (0..).zip(&self.marks).filter(|(_, mark)| fits(&mark.tools));
        let mut concerns = Concerns { marks: each.map(|(place, _)| place).collect(), ..Concerns::default() };
        for (rule, stated) in (0..).zip(&self.rules).filter(|(_, rule)| fits(&rule.tools)) {
            let is_asked =
                |place: &usize| self.marks.get(*place).is_some_and(|mark| mark.name == stated.asks.of());
            let own = concerns.marks.iter().position(is_asked);
            let of = concerns.name(stated.asks.of());
            let since = stated.since.as_deref().map(|since| concerns.name(since));
            concerns.rules.push(Judging { rule, own, of, since });
        }
        concerns
    }

    fn concerns(&self, tool: &str) -> std::borrow::Cow<'_, Concerns> {
        match self.known.get(tool) {
            Some(known) => std::borrow::Cow::Borrowed(known),
            None => std::borrow::Cow::Owned(self.find(&[tool])),
        }
    }

    /// Whether one of them is about all runs of a principal.
    pub fn are_over_principal(&self) -> bool {
        self.over_principal
    }

    /// The question what of all runs of the principal counts for a call of a tool, where a rule asks it. It names the
    /// rules.
    pub fn asks_principal(&self, tool: &str) -> Option<FactRequest> {
        if !self.are_over_principal() {
            return None;
        }
        let concerns = self.concerns(tool);
        let rules = concerns.rules.iter().filter_map(|judging| self.rules.get(judging.rule));
        let ids = rules.filter(|rule| rule.over == Over::Principal).map(|rule| rule.id.as_str());
        let question = ids.collect::<Vec<_>>().join(" ");
        (!question.is_empty()).then(|| FactRequest { source: SOURCE.to_owned(), question })
    }

    /// What a call does. Linear in the marks and rules that concern its tool.
    pub fn marked(&self, tool: &str, arguments: &Value) -> Marked {
        if self.is_empty() {
            return Marked::default();
        }
        let concerns = self.concerns(tool);
        let mut marked = Marked::default();
        for (place, rule) in concerns.marks.iter().enumerate() {
            match self.marks.get(*rule).and_then(|rule| rule.mark(arguments)) {
                Some(mark) => marked.marks.push(mark),
                None => marked.left_out.push(place),
            }
        }
        let keys = concerns.rules.iter().filter_map(|judging| {
            let same = self.rules.get(judging.rule)?.same.as_deref()?;
            Some((judging.rule, MarkKey::at(arguments, same)))
        });
        marked.keys = keys.collect();
        marked
    }

    /// What of all runs of a principal counts for a call of a tool, in the order of [`Self::asks_principal`]. Marks and
    /// past are under the same key.
    pub fn tallies(&self, tool: &str, marked: &Marked, past: &Marks, now: Now) -> Vec<Tally> {
        let mut tallies = Vec::new();
        self.each(tool, marked, past, |rule, past, call| {
            if rule.over == Over::Principal {
                tallies.push(rule.tally(past, call, now));
            }
        });
        tallies
    }

    /// The rules that stop a call, with why, in the order of the bundle. `past` is the run's own, and `of_principal` the
    /// answer to [`Self::asks_principal`].
    pub fn fired<'s>(
        &'s self,
        tool: &str,
        marked: &Marked,
        past: &Marks,
        of_principal: &[Tally],
        now: Now,
    ) -> Vec<(&'s Sequence, Fired)> {
        let (mut fired, mut of_principal) = (Vec::new(), of_principal.iter());
        self.each(tool, marked, past, |rule, past, call| {
            let tally = match rule.over {
                Over::Run => rule.tally(past, call, now),
                Over::Principal => of_principal.next().copied().unwrap_or_default(),
            };
            fired.extend(rule.fires(tally, call).map(|why| (rule, why)));
        });
        fired
    }

    /// Each rule that judges calls of a tool, with what is remembered of the marks that it names, and the call as it sees
    /// it.
    fn each<'s>(
        &'s self,
        tool: &str,
        marked: &Marked,
        past: &Marks,
        mut judge: impl FnMut(&'s Sequence, Past<'_>, Call<'_>),
    ) {
        let concerns = self.concerns(tool);
        let named: Vec<Option<&History>> = concerns.named.iter().map(|name| past.of(name)).collect();
        let history = |place: usize| named.get(place).copied().flatten();
        let mut keys = marked.keys.iter().peekable();
        for Judging { rule: place, own, of, since } in &concerns.rules {
            let Some(rule) = self.rules.get(*place) else { continue };
            let key = keys.next_if(|(of, _)| of == place).and_then(|(_, key)| *key);
            let call = Call { own: own.and_then(|own| marked.own(own)), key };
            let past = Past { of: history(*of), since: since.and_then(history) };
            judge(rule, past, call);
        }
    }
}

impl Concerns {
    /// The place of a mark among those that are named.
    fn name(&mut self, name: &str) -> usize {
        self.named.iter().position(|known| known == name).unwrap_or_else(|| {
            self.named.push(name.to_owned());
            self.named.len() - 1
        })
    }
}

/// Whether a name of a tool fits a pattern: `*` at its end stands for any rest.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}
