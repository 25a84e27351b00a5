//! How an order and a call fit together.

use crate::arguments::Argument;
use crate::book::Order;
use crate::kind::CallKind;
use crate::trajectory::Trajectory;

/// What an order and a call have in common. Values and words that are the user's do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fit {
    /// The order's verb does what the tool does.
    pub(crate) verb: bool,
    /// Things of the tool's name that the order speaks of.
    pub(crate) object: usize,
    /// Words of the tool's name that the order has and the request has not.
    pub(crate) foreign: usize,
    /// Things of the tool's description that the order speaks of and the request does not.
    pub(crate) described: usize,
    /// A value of the call stands in the order.
    pub(crate) value: bool,
    /// That value is an address.
    pub(crate) address: bool,
    /// All words of what the call is done to stand in the order.
    pub(crate) words: bool,
    /// The order has the tool's name.
    pub(crate) named: bool,
    /// The order names an address and the call goes to another.
    pub(crate) elsewhere: bool,
}

fn has(sorted: &[u64], hash: u64) -> bool {
    sorted.binary_search(&hash).is_ok()
}

impl Fit {
    /// Of an order that a tool returned, and a call.
    pub(crate) fn of(
        run: &Trajectory,
        order: &Order,
        returned_by: u64,
        kind: &CallKind,
        arguments: &[Argument],
    ) -> Self {
        let request = run.request();
        let own = |stem: &&u64| has(&order.own, **stem);
        let foreign = |stem: &&u64| has(&order.own, **stem) && !request.says(**stem);
        let same = |verb: &u64| kind.verbs.contains(verb) || kind.objects.contains(verb);
        let mut fit = Self {
            verb: order.families.meets(kind.families) || order.verbs.iter().any(same),
            object: kind.objects.iter().filter(own).count(),
            foreign: kind.objects.iter().chain(&kind.verbs).filter(foreign).count(),
            described: kind.described.iter().filter(foreign).count(),
            named: has(&order.names, kind.name) && returned_by != kind.name,
            ..Self::default()
        };
        let targets = || arguments.iter().filter(|argument| !argument.content);
        let addresses =
            || targets().flat_map(|argument| &argument.values).filter(|value| value.kind.is_address());
        fit.elsewhere = order.addresses
            && addresses().next().is_some()
            && !addresses().any(|value| has(&order.values, value.hash));
        for value in arguments.iter().flat_map(|argument| &argument.values) {
            if has(&order.values, value.hash) && !run.is_trusted(value) {
                fit.value = true;
                fit.address |= value.kind.is_address();
            }
        }
        fit.words = targets().any(|argument| {
            !argument.stems.is_empty()
                && !request.says_all(argument)
                && argument.stems.iter().all(|stem| has(&order.window, *stem))
        });
        // A verb that nobody knows may be any.
        let about = order.principal && fit.foreign + fit.described > 0;
        fit.verb |= order.unknown && order.plain && (fit.value || fit.words || about);
        fit
    }

    /// Whether something that the call is done to, or with, comes from the order.
    pub(crate) fn carries(&self) -> bool {
        self.value || self.words
    }

    /// Whether the call does what the order says: two of verb, thing and value, or two words of the tool's name that
    /// only the order has.
    pub(crate) fn echoes(&self) -> bool {
        let thing = self.object > 0 || self.described > 0;
        let both = u8::from(self.verb) + u8::from(thing) + u8::from(self.carries()) > 1;
        !self.elsewhere && (both || self.foreign > 1)
    }

    /// Whether the order speaks of what the tool does, where there is no call yet.
    pub(crate) fn asks(&self) -> bool {
        self.named || self.verb && self.object + self.described > 0 || self.foreign > 1
    }

    /// Whether it does so with the words of the tool's own name.
    pub(crate) fn asks_plainly(&self) -> bool {
        self.named || self.verb && self.object > 0 || self.foreign > 2 || self.verb && self.foreign > 1
    }

    /// Whether it has the tool's name, or most words of a long one, which the request has not.
    pub(crate) fn spells_out(&self) -> bool {
        self.named || self.foreign > 2
    }

    /// Whether it is worth weighing at all.
    pub(crate) fn concerns(&self) -> bool {
        self.echoes() || self.carries() || self.named
    }

    /// How well it fits, to choose between orders.
    pub(crate) fn score(&self) -> usize {
        let when = |holds: bool, points: usize| if holds { points } else { 0 };
        when(self.named, 20)
            + when(self.address, 6)
            + when(self.value, 4)
            + when(self.verb, 3)
            + when(self.words, 2)
            + self.object.min(3)
    }
}

/// Which orders are weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// All but those that the user said to follow.
    Foreign,
    /// All.
    All,
}

/// The order that fits a call best, the latest of several, with its number.
pub(crate) fn best(
    run: &Trajectory,
    kind: &CallKind,
    arguments: &[Argument],
    which: Which,
) -> Option<(u32, Fit)> {
    let mut best: Option<(u32, Fit)> = None;
    for number in run.book().candidates(kind, arguments) {
        let Some(entry) = run.book().get(number) else { continue };
        if entry.status || entry.delegated && which == Which::Foreign {
            continue;
        }
        let fit = Fit::of(run, &entry.order, entry.tool, kind, arguments);
        if fit.concerns() && best.is_none_or(|(_, before)| fit.score() > before.score()) {
            best = Some((number, fit));
        }
    }
    best
}
