//! Canonical sentences: what `english` writes, read back into the same rule. They are how a reading is offered, and how it
//! is answered; an operator who wants no guessing can write them.

use crate::rule::{Asks, Compare, Condition, Number, Past, Rule, Stop, Test, Times, Unit, Window};

/// How canonical sentences begin.
pub(super) const START: &str = "A call of `";
/// How deep conditions may be nested.
const DEPTH_MAX: usize = 4;

/// Reads a canonical sentence. Nothing where it is none; the id and place of the rule are the caller's.
pub(super) fn read(sentence: &str) -> Option<Rule> {
    let mut text = Text(sentence.trim().strip_suffix('.').unwrap_or(sentence.trim()));
    text.eat("A call of ")?;
    let tools = text.list()?;
    let stop = if text.eat(" is denied").is_some() {
        Stop::Deny
    } else if text.eat(" is held until a person approves it").is_some() {
        Stop::Hold(None)
    } else {
        text.eat(" is held until somebody with the role ")?;
        let role = text.code()?;
        text.eat(" approves it")?;
        Stop::Hold(Some(role))
    };
    let mut rule = Rule { id: String::new(), span: 0..0, tools, when: Vec::new(), past: None, stop };
    if text.eat(", always").is_some() {
        return text.0.is_empty().then_some(rule);
    }
    text.eat(" if ")?;
    loop {
        match text.past() {
            Some(past) => rule.past = Some(past),
            None => rule.when.push(text.condition(0)?),
        }
        if text.0.is_empty() {
            return Some(rule);
        }
        if rule.past.is_some() {
            return None;
        }
        text.eat(", and ")?;
    }
}

/// Canonical sentences, one after the other; nothing where something else stands among them.
pub(crate) fn all(text: &str) -> Option<Vec<Rule>> {
    let mut rules = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let next = rest.get(1..)?.find(START).map_or(rest.len(), |at| at + 1);
        let (sentence, more) = rest.split_at_checked(next)?;
        rules.push(read(sentence)?);
        rest = more;
    }
    (!rules.is_empty()).then_some(rules)
}

/// What is left of a sentence. A method that returns nothing has taken nothing that another could need.
#[derive(Clone, Copy)]
struct Text<'t>(&'t str);

impl Text<'_> {
    fn eat(&mut self, words: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(words)?;
        Some(())
    }

    /// One of these, and what stands for it.
    fn one<T: Copy>(&mut self, choices: &[(&str, T)]) -> Option<T> {
        choices.iter().find_map(|(words, value)| self.eat(words).map(|()| *value))
    }

    /// Words in back-ticks.
    fn code(&mut self) -> Option<String> {
        let (word, rest) = self.0.strip_prefix('`')?.split_once('`')?;
        self.0 = rest;
        Some(word.to_owned())
    }

    /// `a`, `b` or `c`
    fn list(&mut self) -> Option<Vec<String>> {
        let mut all = vec![self.code()?];
        loop {
            let before = *self;
            let joined = self.eat(", ").or_else(|| self.eat(" or "));
            match joined.and_then(|()| self.code()) {
                // Of `a`, and `b` is …: the next condition.
                Some(next) => all.push(next),
                None => {
                    *self = before;
                    return Some(all);
                }
            }
        }
    }

    fn number(&mut self) -> Option<Number> {
        let end = self.0.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at_checked(end)?;
        let (sign, plain) = digits.strip_prefix('-').map_or((1, digits), |plain| (-1, plain));
        let (whole, decimals) = plain.split_once('.').unwrap_or((plain, ""));
        if whole.is_empty() || decimals.len() > 6 {
            return None;
        }
        let micros = format!("{whole}{decimals:0<6}").parse::<i64>().ok()?;
        self.0 = rest;
        Some(Number(sign * micros))
    }

    fn whole(&mut self) -> Option<u64> {
        let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at_checked(end)?;
        let whole = digits.parse().ok()?;
        self.0 = rest;
        Some(whole)
    }

    fn compare(&mut self) -> Option<Compare> {
        self.one(&[
            ("more than ", Compare::Over),
            ("at least ", Compare::AtLeast),
            ("less than ", Compare::Under),
            ("at most ", Compare::AtMost),
            ("exactly ", Compare::Equal),
        ])
    }

    fn condition(&mut self, depth: usize) -> Option<Condition> {
        if depth > DEPTH_MAX {
            return None;
        }
        let not =
            |condition: Condition, is: bool| if is { condition } else { Condition::Not(Box::new(condition)) };
        if let Some(is) =
            self.one(&[("the caller has the role ", true), ("the caller does not have the role ", false)])
        {
            return Some(not(Condition::Role(self.list()?), is));
        }
        if self.eat("the caller's ").is_some() {
            let name = self.code()?;
            if self.eat(" is true").is_some() {
                return Some(Condition::Flag(name));
            }
            self.eat(" is ")?;
            return Some(Condition::Attribute(name, self.compare()?, self.number()?));
        }
        if let Some(is) = self.one(&[("the time is not ", false), ("the time is ", true)]) {
            return Some(not(Condition::At(self.times()?), is));
        }
        if self.eat("it is not so that (").is_some() {
            let inner = self.condition(depth + 1)?;
            self.eat(")")?;
            return Some(not(inner, false));
        }
        if self.eat("(").is_some() {
            return self.several(depth);
        }
        let name = self.code()?;
        let (test, holds) = self.test()?;
        Some(not(Condition::Argument(name, test), holds))
    }

    /// What stands in parentheses.
    fn several(&mut self, depth: usize) -> Option<Condition> {
        let mut all = vec![self.condition(depth + 1)?];
        let mut either = None;
        while self.eat(")").is_none() {
            let is_either = self.one(&[("; or ", true), ("; and ", false)])?;
            if either.is_some_and(|either| either != is_either) {
                return None;
            }
            either = Some(is_either);
            all.push(self.condition(depth + 1)?);
        }
        Some(if either == Some(true) { Condition::Any(all) } else { Condition::All(all) })
    }

    fn test(&mut self) -> Option<(Test, bool)> {
        if let Some(holds) = self.one(&[(" begins with ", true), (" does not begin with ", false)]) {
            return Some((Test::Starts(self.list()?), holds));
        }
        if let Some(holds) = self.one(&[(" contains ", true), (" does not contain ", false)]) {
            return Some((Test::Contains(self.list()?), holds));
        }
        if let Some(holds) = self.one(&[(" is given", true), (" is missing or empty", false)]) {
            return Some((Test::Given, holds));
        }
        if let Some(holds) = self.one(&[(" has ", true), (" does not have ", false)]) {
            let (compare, count) = (self.compare()?, self.whole()?);
            self.eat(" entries")?;
            return Some((Test::Items(compare, u32::try_from(count).ok()?), holds));
        }
        let holds = self.one(&[(" is not ", false), (" is ", true)])?;
        if self.eat("at exactly ").is_some() {
            return Some((Test::InDomain(self.list()?, false), holds));
        }
        if self.eat("at ").is_some() && self.0.starts_with('`') {
            let domains = self.list()?;
            self.eat(" or below")?;
            return Some((Test::InDomain(domains, true), holds));
        }
        if self.eat("in the folder ").is_some() {
            return Some((Test::Under(self.list()?), holds));
        }
        if self.eat("a file named ").is_some() {
            return Some((Test::Named(self.list()?), holds));
        }
        if self.0.starts_with('`') {
            return Some((Test::OneOf(self.list()?), holds));
        }
        // `at least` began with the same letters as `at a domain`.
        let compare = self
            .compare()
            .or_else(|| self.one(&[("least ", Compare::AtLeast), ("most ", Compare::AtMost)]))?;
        Some((Test::Compares(compare, self.number()?), holds))
    }

    fn times(&mut self) -> Option<Times> {
        let (parts, rest) = self.0.split_once(" (UTC")?;
        let (zone, rest) = rest.split_once(')')?;
        self.0 = rest;
        let mut times = Times { offset: offset(zone)?, ..Times::default() };
        let mut parts = Text(parts);
        let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
        while !parts.0.is_empty() {
            if let Some(before) =
                parts.one(&[("on a day from ", 0), ("on or after ", 1), ("on or before ", 2)])
            {
                let first = parts.date()?;
                times.dates = Some(match before {
                    0 => {
                        parts.eat(" to ")?;
                        (first, parts.date()?)
                    }
                    1 => (first, String::new()),
                    _ => (String::new(), first),
                });
            } else if parts.eat("from ").is_some() {
                let from = parts.clock()?;
                parts.eat(" and before ")?;
                times.minutes = Some((from, parts.clock()?));
            } else {
                parts.eat("on ")?;
                loop {
                    let day = days.iter().position(|day| parts.eat(day).is_some())?;
                    times.weekdays.push(u8::try_from(day).ok()?);
                    let before = parts;
                    let more = parts.eat(", ").or_else(|| parts.eat(" or ")).is_some();
                    if !more || !days.iter().any(|day| parts.0.starts_with(day)) {
                        parts = before;
                        break;
                    }
                }
            }
            if parts.eat(", ").is_none() && !parts.0.is_empty() {
                return None;
            }
        }
        Some(times)
    }

    fn date(&mut self) -> Option<String> {
        let (date, rest) = self.0.split_at_checked(10)?;
        let plain = date.chars().all(|c| c.is_ascii_digit() || c == '-');
        self.0 = rest;
        plain.then(|| date.to_owned())
    }

    fn clock(&mut self) -> Option<u16> {
        let hour = self.whole()?;
        self.eat(":")?;
        let minute = self.whole()?;
        u16::try_from(hour * 60 + minute).ok().filter(|minute| *minute <= 1_440)
    }

    fn past(&mut self) -> Option<Past> {
        let mut text = *self;
        let past = text.past_inner()?;
        *self = text;
        Some(past)
    }

    fn past_inner(&mut self) -> Option<Past> {
        let mut earlier = Vec::new();
        let asks = if self.eat("it would be more than ").is_some() {
            if self.eat("once").is_some() {
                Asks::Count(1)
            } else {
                let most = u32::try_from(self.whole()?).ok()?;
                self.eat(" times")?;
                Asks::Count(most)
            }
        } else {
            let names = self.list()?;
            while self.eat(" whose ").or_else(|| self.eat(" and whose ")).is_some() {
                let is_argument = self.0.starts_with('`');
                earlier.push(self.condition(0).filter(|_| is_argument)?);
            }
            match self.one(&[
                (" of all such calls", 0),
                (" was called before", 1),
                (" has not succeeded before", 2),
            ])? {
                0 => Asks::Sum(names.into_iter().next()?, Number(0)),
                1 => Asks::After(names),
                _ => Asks::Before(names),
            }
        };
        let same = self.same()?;
        let asks = match asks {
            Asks::Sum(name, _) => {
                self.eat(" would come to more than ")?;
                Asks::Sum(name, self.number()?)
            }
            other => other,
        };
        let within = match self.eat(" within ") {
            Some(()) => Some(self.window()?),
            None => None,
        };
        self.one(&[(" in all runs of the principal", ()), (" in the run", ())])?;
        Some(Past { asks, earlier, same, within })
    }

    fn same(&mut self) -> Option<Option<(String, String)>> {
        if self.eat(" with the same ").is_some() {
            let name = self.code()?;
            return Some(Some((name.clone(), name)));
        }
        if self.eat(" with a ").is_some() {
            let earlier = self.code()?;
            self.eat(" equal to its ")?;
            return Some(Some((earlier, self.code()?)));
        }
        Some(None)
    }

    fn window(&mut self) -> Option<Window> {
        if self.eat("one calendar ").is_some() {
            let unit = self.one(&[
                ("hour", Unit::Hour),
                ("day", Unit::Day),
                ("week", Unit::Week),
                ("month", Unit::Month),
                ("year", Unit::Year),
            ])?;
            return Some(Window::Calendar(unit));
        }
        let count = self.whole()?;
        self.eat(" ")?;
        let size = self.one(&[("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1_u64)])?;
        let _plural = self.eat("s");
        Some(Window::Seconds(count.checked_mul(size)?))
    }
}

/// Minutes of `+05:30`; none are UTC.
fn offset(zone: &str) -> Option<i16> {
    if zone.is_empty() {
        return Some(0);
    }
    let (sign, rest) = match zone.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, zone.strip_prefix('+')?),
    };
    let (hours, minutes) = rest.split_once(':')?;
    Some(sign * (hours.parse::<i16>().ok()? * 60 + minutes.parse::<i16>().ok()?))
}
