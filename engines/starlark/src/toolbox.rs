//! What programs may call besides the language's own functions. The comments here are the manual: `portcullis-starlark toolbox`
//! prints them for people and for models that write programs.

use std::cell::RefCell;
use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use starlark::docs::{DocItem, DocMember, DocParam, DocString};
use starlark::environment::{Globals, GlobalsBuilder, LibraryExtension};
use starlark::starlark_module;
use starlark::values::dict::DictRef;
use starlark::values::list::AllocList;
use starlark::values::none::{NoneOr, NoneType};
use starlark::values::structs::{AllocStruct, StructRef};
use starlark::values::{Heap, Value};

/// Patterns that a worker keeps compiled.
const PATTERNS_MAX: usize = 256;
/// Bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 256 << 10;
const DAY_MINUTES: i64 = 24 * 60;

/// The language's own functions, `set`, and the toolbox. Nothing reads a file or a clock, prints, or tells one run of a
/// program from another.
pub(crate) fn globals() -> Globals {
    GlobalsBuilder::extended_by(&[LibraryExtension::SetType, LibraryExtension::Map, LibraryExtension::Filter])
        .with(answers)
        .with(access)
        .with(texts)
        .with(times)
        .build()
}

#[starlark_module]
fn answers(builder: &mut GlobalsBuilder) {
    /// Denies the action. `check` has to return it. `reasons` is a text or a list of texts, which the agent is shown;
    /// `resources` is what must not be touched.
    fn deny<'v>(
        reasons: Value<'v>,
        #[starlark(default = NoneOr::None)] resources: NoneOr<Value<'v>>,
        heap: Heap<'v>,
    ) -> anyhow::Result<Value<'v>> {
        Ok(answer("deny", reasons, resources, heap))
    }

    /// Holds the action for a person. `check` has to return it.
    fn hold<'v>(
        reasons: Value<'v>,
        #[starlark(default = NoneOr::None)] resources: NoneOr<Value<'v>>,
        heap: Heap<'v>,
    ) -> anyhow::Result<Value<'v>> {
        Ok(answer("hold", reasons, resources, heap))
    }
}

fn answer<'v>(says: &str, reasons: Value<'v>, resources: NoneOr<Value<'v>>, heap: Heap<'v>) -> Value<'v> {
    let resources = resources.into_option().unwrap_or_else(Value::new_none);
    heap.alloc(AllocStruct([("says", heap.alloc(says)), ("reasons", reasons), ("resources", resources)]))
}

#[starlark_module]
fn access(builder: &mut GlobalsBuilder) {
    /// What of `needed` is not in `allowed`, as a list of `table.column`. Both are dictionaries from a table to its
    /// columns, as `columns(action)` gives them. A table that `allowed` leaves out has none.
    fn check_access<'v>(allowed: Value<'v>, needed: Value<'v>, heap: Heap<'v>) -> anyhow::Result<Value<'v>> {
        let allowed = dictionary(allowed, "allowed")?;
        let needed = dictionary(needed, "needed")?;
        let mut denied = Vec::new();
        for (table, columns) in needed.iter() {
            let has = allowed.get(table).map_err(starlark::Error::into_anyhow)?;
            let name = table.unpack_str().ok_or_else(|| anyhow::anyhow!("a table's name is no text"))?;
            for column in elements(columns, heap)? {
                let granted = match has {
                    Some(has) => holds(has, column)?,
                    None => false,
                };
                if !granted {
                    let column =
                        column.unpack_str().ok_or_else(|| anyhow::anyhow!("a column's name is no text"))?;
                    denied.push(format!("{name}.{column}"));
                }
            }
        }
        Ok(heap.alloc(AllocList(denied)))
    }

    /// The messages of the rules that `facts` break for `activity`. `rules` is a list of dictionaries
    /// `{"activity": …, "attribute": …, "operator": "==" or "!=" or ">=" or "<=" or ">" or "<", "value": …, "message": …}`;
    /// a rule holds when the attribute compares so with the value. An attribute that `facts` lack breaks the rule.
    fn check_rules<'v>(
        rules: Value<'v>,
        activity: &str,
        facts: Value<'v>,
        heap: Heap<'v>,
    ) -> anyhow::Result<Value<'v>> {
        let facts = dictionary(facts, "facts")?;
        let mut broken = Vec::new();
        for rule in elements(rules, heap)? {
            let rule = dictionary(rule, "a rule")?;
            let field =
                |name: &str| rule.get_str(name).ok_or_else(|| anyhow::anyhow!("a rule has no `{name}`"));
            let text = |name: &str| {
                field(name)?.unpack_str().ok_or_else(|| anyhow::anyhow!("`{name}` of a rule is no text"))
            };
            if text("activity")? != activity {
                continue;
            }
            let has = facts.get_str(text("attribute")?);
            let keeps = match has {
                Some(has) => compares(has, text("operator")?, field("value")?)?,
                None => false,
            };
            if !keeps {
                broken.push(text("message")?.to_owned());
            }
        }
        Ok(heap.alloc(AllocList(broken)))
    }

    /// The effects of an action, those of a `verb` (`"read"`, `"write"`, `"delete"`, `"execute"`, `"send"`, `"pay"`,
    /// `"configure"`) and of a `kind` (`"path"`, `"host"`, `"recipient"`, `"payee"`, `"table"`, `"column"`, …) where these
    /// are given. Each has `verb`, `kind`, `name` and `attributes`.
    fn effects<'v>(
        action: Value<'v>,
        #[starlark(default = NoneOr::None)] verb: NoneOr<&str>,
        #[starlark(default = NoneOr::None)] kind: NoneOr<&str>,
        heap: Heap<'v>,
    ) -> anyhow::Result<Value<'v>> {
        let fits = |effect: &Value<'v>| {
            let is = |name, wanted: &NoneOr<&str>| match wanted {
                NoneOr::None => true,
                NoneOr::Other(wanted) => {
                    field(*effect, name).and_then(|value| value.unpack_str()) == Some(*wanted)
                }
            };
            is("verb", &verb) && is("kind", &kind)
        };
        let found: Vec<Value<'v>> = effects_of(action, heap)?.into_iter().filter(fits).collect();
        Ok(heap.alloc(AllocList(found)))
    }

    /// The columns that an action reads or changes, as a dictionary from the table to the list of its columns, for
    /// `check_access`. A table of which only the name is known has the column `"*"`.
    fn columns<'v>(action: Value<'v>, heap: Heap<'v>) -> anyhow::Result<Value<'v>> {
        let mut tables: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let all = effects_of(action, heap)?;
        let text = |effect: Value<'v>, name| field(effect, name).and_then(|value| value.unpack_str());
        for effect in &all {
            let (kind, Some(name)) = (text(*effect, "kind"), text(*effect, "name")) else { continue };
            if let (Some("column"), Some((table, column))) = (kind, name.rsplit_once('.')) {
                let columns = tables.entry(table).or_default();
                if !columns.contains(&column) {
                    columns.push(column);
                }
            }
        }
        for effect in &all {
            if let (Some("table"), Some(name)) = (text(*effect, "kind"), text(*effect, "name")) {
                tables.entry(name).or_insert_with(|| vec!["*"]);
            }
        }
        let tables = tables.into_iter().map(|(table, columns)| (table, heap.alloc(AllocList(columns))));
        Ok(heap.alloc(starlark::values::dict::AllocDict(tables)))
    }

    /// Whether the run has seen something that came from `label`: `"user"`, `"operator"`, `"unknown"`, `"tool"` for any
    /// tool, or a label in full, as `run.labels` has them.
    fn has_seen<'v>(run: Value<'v>, label: &str, heap: Heap<'v>) -> anyhow::Result<bool> {
        let labels =
            field(run, "labels").ok_or_else(|| anyhow::anyhow!("the first argument is not `run`"))?;
        let is =
            |seen: &str| seen == label || seen.strip_prefix(label).is_some_and(|rest| rest.starts_with(':'));
        Ok(elements(labels, heap)?.into_iter().any(|seen| seen.unpack_str().is_some_and(is)))
    }
}

#[starlark_module]
fn texts(builder: &mut GlobalsBuilder) {
    /// Whether a regular expression matches anywhere in a text. `(?i)` at its beginning ignores case. Matching takes time
    /// in proportion to the text, whatever the expression.
    fn matches<'v>(pattern: &str, text: &str) -> anyhow::Result<bool> {
        with_pattern(pattern, |regex| regex.is_match(text))
    }

    /// The stretches of a text that a regular expression matches, from left to right; with a group, what the first group
    /// matched.
    fn find_all<'v>(pattern: &str, text: &str, heap: Heap<'v>) -> anyhow::Result<Value<'v>> {
        let found = with_pattern(pattern, |regex| {
            let groups = regex.captures_iter(text);
            let first = groups.filter_map(|groups| groups.get(1).or_else(|| groups.get(0)));
            first.map(|found| found.as_str().to_owned()).collect::<Vec<String>>()
        })?;
        Ok(heap.alloc(AllocList(found)))
    }

    /// The words of a text in lower case, without what stands between them.
    fn words<'v>(text: &str, heap: Heap<'v>) -> anyhow::Result<Value<'v>> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        Ok(heap.alloc(AllocList(words.map(str::to_lowercase))))
    }

    /// An amount of money in a text, such as `"EUR 1,234.50"`, `"$20"` or `"19.9 USD"`: a value with `cents`, which is a
    /// whole number, and `currency`, which is empty where none is named. `None` where there is no amount, or more than one.
    fn money<'v>(text: &str, heap: Heap<'v>) -> anyhow::Result<Value<'v>> {
        Ok(match amount(text) {
            Some((cents, currency)) => {
                heap.alloc(AllocStruct([("cents", heap.alloc(cents)), ("currency", heap.alloc(currency))]))
            }
            None => heap.alloc(NoneType),
        })
    }
}

#[starlark_module]
fn times(builder: &mut GlobalsBuilder) {
    /// The day of a date or time, such as `action.at` or `"2026-11-28"`, in days since 1970-01-01, so that days can be
    /// subtracted. An error where it is no date.
    fn day(text: &str) -> anyhow::Result<i64> {
        days(text)
    }

    /// The day of the week of a date or time: 0 is Monday, 6 is Sunday.
    fn weekday(text: &str) -> anyhow::Result<i64> {
        // 1970-01-01 was a Thursday.
        Ok((days(text)? + 3).rem_euclid(7))
    }

    /// The minutes of a time since midnight, in UTC or with `offset` minutes added: `minute(action.at) >= 9 * 60`. An error
    /// where there is no time.
    fn minute(text: &str, #[starlark(default = 0)] offset: i32) -> anyhow::Result<i64> {
        let clock = text.split_once(['T', ' ']).map_or(text, |(_, clock)| clock);
        let mut parts = clock.trim_end_matches('Z').split(':');
        let mut next = || parts.next().and_then(|part| part.parse::<i64>().ok());
        match (next(), next()) {
            (Some(hours @ 0..=23), Some(minutes @ 0..=59)) => {
                Ok((hours * 60 + minutes + i64::from(offset)).rem_euclid(DAY_MINUTES))
            }
            _ => Err(anyhow::anyhow!("`{}` has no time, such as 2026-11-28T14:36Z or 14:36", shown(text))),
        }
    }
}

fn effects_of<'v>(action: Value<'v>, heap: Heap<'v>) -> anyhow::Result<Vec<Value<'v>>> {
    let effects = field(action, "effects").ok_or_else(|| anyhow::anyhow!("the argument is not `action`"))?;
    elements(effects, heap)
}

fn field<'v>(value: Value<'v>, wanted: &str) -> Option<Value<'v>> {
    let fields = StructRef::from_value(value)?;
    fields.iter().find(|(name, _)| name.as_str() == wanted).map(|(_, value)| value)
}

fn dictionary<'v>(value: Value<'v>, what: &str) -> anyhow::Result<DictRef<'v>> {
    DictRef::from_value(value)
        .ok_or_else(|| anyhow::anyhow!("{what} is {}, not a dictionary", value.get_type()))
}

/// The elements of a list, a tuple, a set or a dictionary's keys.
fn elements<'v>(value: Value<'v>, heap: Heap<'v>) -> anyhow::Result<Vec<Value<'v>>> {
    Ok(value.iterate(heap).map_err(starlark::Error::into_anyhow)?.collect())
}

fn holds<'v>(all: Value<'v>, one: Value<'v>) -> anyhow::Result<bool> {
    if all.unpack_str().is_some() {
        // In a text it would be looked for as a part of it.
        return Err(anyhow::anyhow!("the columns of a table are a text, not a list"));
    }
    all.is_in(one).map_err(starlark::Error::into_anyhow)
}

fn compares<'v>(has: Value<'v>, operator: &str, wanted: Value<'v>) -> anyhow::Result<bool> {
    use std::cmp::Ordering;
    let equal = || has.equals(wanted).map_err(starlark::Error::into_anyhow);
    let order = || has.compare(wanted).map_err(starlark::Error::into_anyhow);
    Ok(match operator {
        "==" => equal()?,
        "!=" => !equal()?,
        ">=" => order()? != Ordering::Less,
        "<=" => order()? != Ordering::Greater,
        ">" => order()? == Ordering::Greater,
        "<" => order()? == Ordering::Less,
        other => return Err(anyhow::anyhow!("`{}` is no operator of a rule", shown(other))),
    })
}

/// Runs something with a compiled pattern; the latest are kept.
fn with_pattern<T>(pattern: &str, run: impl FnOnce(&Regex) -> T) -> anyhow::Result<T> {
    thread_local! {
        static KNOWN: RefCell<BTreeMap<String, Regex>> = const { RefCell::new(BTreeMap::new()) };
    }
    let known = KNOWN.with_borrow(|known| known.get(pattern).cloned());
    let regex = match known {
        Some(regex) => regex,
        None => {
            let made = RegexBuilder::new(pattern)
                .size_limit(PATTERN_BYTES_MAX)
                .dfa_size_limit(PATTERN_BYTES_MAX)
                .build();
            let regex = made.map_err(|error| {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default();
                anyhow::anyhow!("`{}` is no regular expression: {last}", shown(pattern))
            })?;
            KNOWN.with_borrow_mut(|known| {
                if known.len() >= PATTERNS_MAX {
                    known.clear();
                }
                known.insert(pattern.to_owned(), regex.clone());
            });
            regex
        }
    };
    Ok(run(&regex))
}

/// A piece of a text, for messages.
fn shown(text: &str) -> &str {
    text.get(..text.floor_char_boundary(64)).unwrap_or_default()
}

/// Days since 1970-01-01 of the date that a text begins with. The civil calendar's arithmetic is Howard Hinnant's.
fn days(text: &str) -> anyhow::Result<i64> {
    let wrong = || anyhow::anyhow!("`{}` is no date, such as 2026-11-28", shown(text));
    let date = text.split(['T', ' ']).next().unwrap_or_default();
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (Some(Some(year @ 0..=9_999)), Some(Some(month @ 1..=12)), Some(Some(day @ 1..=31))) =
        (parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong());
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let most = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if day > most {
        return Err(wrong());
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Ok(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// The one amount of a text, in hundredths.
fn amount(text: &str) -> Option<(i64, String)> {
    const SIGNS: [(char, &str); 4] = [('$', "USD"), ('€', "EUR"), ('£', "GBP"), ('¥', "JPY")];
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    let numbers = text.split(|c: char| !is_part(c)).map(|part| part.trim_matches([',', '.']));
    let mut numbers = numbers.filter(|part| part.chars().any(|c| c.is_ascii_digit()));
    let (number, None) = (numbers.next()?, numbers.next()) else { return None };
    let (whole, cents) = number.rsplit_once('.').unwrap_or((number, ""));
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let grouped = whole.contains(',');
    if first.is_empty()
        || (grouped && first.len() > 3)
        || groups.any(|group| group.len() != 3)
        || cents.len() > 2
    {
        return None;
    }
    let whole: i64 = whole.replace(',', "").parse().ok()?;
    let cents: i64 = if cents.is_empty() { 0 } else { format!("{cents:0<2}").parse().ok()? };
    let code = text
        .split(|c: char| !c.is_ascii_alphabetic())
        .find(|word| word.len() == 3 && word.chars().all(|c| c.is_ascii_uppercase()));
    let sign = || SIGNS.iter().find(|(sign, _)| text.contains(*sign)).map(|(_, code)| *code);
    let minus = text.trim_start().starts_with('-');
    let cents = whole.checked_mul(100)?.checked_add(cents)?;
    let cents = if minus { cents.checked_neg()? } else { cents };
    Some((cents, code.or_else(sign).unwrap_or_default().to_owned()))
}

/// The manual of the toolbox, in Markdown.
pub(crate) fn manual() -> String {
    let mut text = String::new();
    for (title, make) in [
        ("Answers", answers as fn(&mut GlobalsBuilder)),
        ("Access and effects", access),
        ("Texts and money", texts),
        ("Dates and times", times),
    ] {
        text.push_str(&format!("### {title}\n\n"));
        for (name, member) in GlobalsBuilder::new().with(make).build().documentation().members {
            if let DocItem::Member(DocMember::Function(function)) = member {
                let parameters: Vec<String> = function
                    .params
                    .pos_only
                    .iter()
                    .chain(&function.params.pos_or_named)
                    .map(parameter)
                    .collect();
                let said = function.docs.as_ref().map(described).unwrap_or_default();
                text.push_str(&format!("`{name}({})`: {said}\n\n", parameters.join(", ")));
            }
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn parameter(parameter: &DocParam) -> String {
    match &parameter.default_value {
        Some(default) => format!("{}={default}", parameter.name),
        None => parameter.name.clone(),
    }
}

fn described(docs: &DocString) -> String {
    let details = docs.details.iter().map(String::as_str);
    let all: Vec<&str> = std::iter::once(docs.summary.as_str()).chain(details).collect();
    all.join(" ").split_whitespace().collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_count_from_the_epoch_and_what_is_no_date_is_an_error() {
        for (text, wanted) in [("1970-01-01", 0), ("2000-03-01", 11_017), ("2026-11-28T14:36Z", 20_785)] {
            assert_eq!(days(text).unwrap(), wanted, "{text}");
        }
        for text in ["", "2026", "2026-13-01", "2026-02-29", "2026-1-", "x"] {
            assert!(days(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_are_read_in_hundredths_or_not_at_all() {
        for (text, wanted) in [
            ("EUR 1,234.50", Some((123_450, "EUR"))),
            ("$20", Some((2_000, "USD"))),
            ("19.9 USD", Some((1_990, "USD"))),
            ("-5", Some((-500, ""))),
            ("1,23", None),
            ("1.234", None),
            ("10 or 20", None),
            ("nothing", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(amount(text), wanted.map(|(cents, code)| (cents, code.to_owned())), "{text}");
        }
    }
}
