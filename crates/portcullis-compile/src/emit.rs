//! From rules to files of a bundle: a guard program for each rule about one call, sequences for those about the past, and
//! who approves.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::rule::{Asks, Condition, Past, Rule, Stop, Test, Times, Window};
use crate::spec::quoted;
use crate::{english, narrowed};

/// What was emitted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Emitted {
    /// Files by path.
    pub files: BTreeMap<String, String>,
    /// Text for the end of `portcullis.toml`.
    pub settings: String,
}

/// Writes rules as files, whose names begin with that of the draft.
pub fn emit(name: &str, rules: &[Rule]) -> Emitted {
    let mut emitted = Emitted::default();
    let mut sequences = String::new();
    for rule in rules {
        let id = file_id(name, rule);
        match &rule.past {
            None => {
                emitted.files.insert(format!("programs/{id}.star"), program(rule));
            }
            Some(past) => sequence(&mut sequences, &id, rule, past),
        }
        if let Stop::Hold(Some(role)) = &rule.stop {
            let finding = finding(name, rule);
            let _infallible = write!(
                emitted.settings,
                "\n[[approvals.rule]]\nrules = [{}]\nroles = [{}]\n",
                quoted(&finding),
                quoted(role)
            );
        }
    }
    if !sequences.is_empty() {
        emitted.files.insert(format!("sequences/{name}.toml"), sequences);
    }
    emitted
}

/// The name of what a rule becomes.
pub fn file_id(name: &str, rule: &Rule) -> String {
    format!("{name}-{}", rule.id)
}

/// The rule of the findings of what a rule becomes.
pub fn finding(name: &str, rule: &Rule) -> String {
    let kind = if rule.past.is_some() { "policy/sequence" } else { "program/check" };
    format!("{kind}/{}", file_id(name, rule))
}

fn sequence(text: &mut String, id: &str, rule: &Rule, past: &Past) {
    let tools = |tools: &[String]| tools.iter().map(|tool| quoted(tool)).collect::<Vec<_>>().join(", ");
    let (question, marked, meant): (String, &[String], &[Condition]) = match &past.asks {
        Asks::Count(most) => (format!("count = {}\nat_most = {most}", quoted(id)), &rule.tools, &rule.when),
        Asks::Sum(_, most) => (format!("sum = {}\nat_most = {most}", quoted(id)), &rule.tools, &rule.when),
        Asks::After(before) => (format!("after = {}", quoted(id)), before, &past.earlier),
        Asks::Before(needed) => (format!("before = {}", quoted(id)), needed, &past.earlier),
    };
    let _infallible = write!(
        text,
        "# {}\n[[mark]]\nname = {}\ntools = [{}]\n{}",
        english::sentence(rule),
        quoted(id),
        tools(marked),
        narrowed::table(meant)
    );
    if let Some((earlier, _)) = &past.same {
        let _infallible = writeln!(text, "key = {}", quoted(&pointer(earlier)));
    }
    if let Asks::Sum(argument, _) = &past.asks {
        let _infallible = writeln!(text, "amount = {}", quoted(&pointer(argument)));
    }
    let _infallible = write!(
        text,
        "\n[[sequence]]\nid = {}\ntools = [{}]\n{}{}{question}\n",
        quoted(id),
        tools(&rule.tools),
        narrowed::table(&rule.when),
        narrowed::roles(&rule.when)
    );
    if let Some((_, judged)) = &past.same {
        let _infallible = writeln!(text, "same = {}", quoted(&pointer(judged)));
    }
    if let Some(Window::Seconds(seconds)) = past.within {
        let _infallible = writeln!(text, "within = {}", quoted(&window(seconds)));
    }
    if past.is_over_principal() {
        text.push_str("over = \"principal\"\n");
    }
    if rule.stop != Stop::Deny {
        text.push_str("verdict = \"review\"\n");
    }
    text.push('\n');
}

fn window(seconds: u64) -> String {
    let units = [(86_400, 'd'), (3_600, 'h'), (60, 'm'), (1, 's')];
    let (size, unit) = units.into_iter().find(|(size, _)| seconds.is_multiple_of(*size)).unwrap_or((1, 's'));
    format!("{}{unit}", seconds / size)
}

pub(crate) fn pointer(argument: &str) -> String {
    format!("/{}", argument.replace('~', "~0").replace('/', "~1"))
}

/// A guard program.
fn program(rule: &Rule) -> String {
    let mut body = String::new();
    let mut used: Vec<&'static str> = Vec::new();
    for condition in &rule.when {
        guard(&mut body, condition, &mut used);
    }
    let tools: Vec<String> = rule.tools.iter().map(|tool| quoted(tool)).collect();
    let answer = if rule.stop == Stop::Deny { "deny" } else { "hold" };
    let mut text = format!(
        "\"\"\"{}\"\"\"\n\nTOOLS = [{}]\n\n",
        english::sentence(rule).replace(['\\', '"'], "'"),
        tools.join(", ")
    );
    let mut needed: Vec<&str> = used
        .iter()
        .flat_map(|name| HELPERS.iter().filter(move |helper| helper.name == *name))
        .flat_map(|helper| helper.needs.iter().copied().chain([helper.name]))
        .collect();
    needed.sort_unstable();
    needed.dedup();
    for helper in HELPERS.iter().filter(|helper| needed.contains(&helper.name)) {
        text.push_str(helper.text);
        text.push('\n');
    }
    let reason = quoted(&english::reason(rule));
    let _infallible = write!(
        text,
        "def check(action, run, principal):\n    if action.tool not in TOOLS:\n        return None\n{body}    return {answer}({reason})\n"
    );
    text
}

/// Lines that end the check where a condition is false.
fn guard(body: &mut String, condition: &Condition, used: &mut Vec<&'static str>) {
    let line = |body: &mut String, test: &str| {
        let _infallible = write!(body, "    if {test}:\n        return None\n");
    };
    let (inner, negated) = match condition {
        Condition::Not(inner) => (inner.as_ref(), true),
        other => (other, false),
    };
    match inner {
        Condition::Argument(name, Test::Compares(compare, value)) => {
            used.push("number");
            let _infallible = writeln!(body, "    value = number(action.args.get({}))", quoted(name));
            compares(body, compare.sign(), &value.to_string(), negated);
        }
        Condition::Attribute(name, compare, value) => {
            used.push("number");
            let _infallible = writeln!(
                body,
                "    value = number(getattr(principal, \"attributes\", {{}}).get({}))",
                quoted(name)
            );
            compares(body, compare.sign(), &value.to_string(), negated);
        }
        Condition::Role(roles) => {
            used.push("has_role");
            let not = if negated { "" } else { "not " };
            line(body, &format!("{not}has_role(principal, {})", texts(roles)));
        }
        other => {
            let is = if negated { "True" } else { "False" };
            let text = format!("{} == {is}", expression(other, used));
            line(body, &text);
        }
    }
}

fn compares(body: &mut String, sign: &str, value: &str, negated: bool) {
    let test = if negated { format!("value {sign} {value}") } else { format!("not value {sign} {value}") };
    let _infallible = write!(body, "    if value != None and {test}:\n        return None\n");
}

fn texts(items: &[String]) -> String {
    format!("[{}]", items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", "))
}

fn lower(items: &[String]) -> String {
    texts(&items.iter().map(|item| item.to_lowercase()).collect::<Vec<_>>())
}

/// A condition as an expression that is `True`, `False`, or `None` where nobody can tell.
fn expression(condition: &Condition, used: &mut Vec<&'static str>) -> String {
    match condition {
        Condition::Role(roles) => {
            used.push("has_role");
            format!("has_role(principal, {})", texts(roles))
        }
        Condition::Flag(name) => format!("getattr(principal, \"attributes\", {{}}).get({})", quoted(name)),
        Condition::Attribute(name, compare, value) => {
            used.push("compare");
            format!(
                "compare(getattr(principal, \"attributes\", {{}}).get({}), \"{}\", {value})",
                quoted(name),
                compare.sign()
            )
        }
        Condition::At(times) => {
            used.push("is_time");
            at(times)
        }
        Condition::Not(inner) => {
            used.push("negate");
            format!("negate({})", expression(inner, used))
        }
        Condition::Any(all) | Condition::All(all) => {
            let name = if matches!(condition, Condition::Any(_)) { "any_of" } else { "all_of" };
            used.push(name);
            let all: Vec<String> = all.iter().map(|one| expression(one, used)).collect();
            format!("{name}([{}])", all.join(", "))
        }
        Condition::Argument(name, test) => {
            let value = format!("action.args.get({})", quoted(name));
            let (helper, call) = match test {
                Test::OneOf(values) => ("one_of", format!("one_of({value}, {})", lower(values))),
                Test::Compares(compare, number) => {
                    ("compare", format!("compare({value}, \"{}\", {number})", compare.sign()))
                }
                Test::InDomain(domains, below) => (
                    "in_domain",
                    format!(
                        "in_domain({value}, {}, {})",
                        lower(domains),
                        if *below { "True" } else { "False" }
                    ),
                ),
                Test::Under(folders) => ("under", format!("under({value}, {})", texts(folders))),
                Test::Named(names) => ("named", format!("named({value}, {})", lower(names))),
                Test::Starts(starts) => ("starts", format!("starts({value}, {})", lower(starts))),
                Test::Contains(parts) => ("contains", format!("contains({value}, {})", lower(parts))),
                Test::Given => ("given", format!("given({value})")),
                Test::Items(compare, count) => {
                    ("items", format!("compare(items({value}), \"{}\", {count})", compare.sign()))
                }
            };
            used.push(helper);
            call
        }
    }
}

fn at(times: &Times) -> String {
    let days: Vec<String> = times.weekdays.iter().map(u8::to_string).collect();
    let (from, until) = times.minutes.unwrap_or((0, 0));
    let (first, last) = times.dates.clone().unwrap_or_default();
    format!(
        "is_time(action.at, [{}], {from}, {until}, {}, {}, {})",
        days.join(", "),
        quoted(&first),
        quoted(&last),
        times.offset
    )
}

/// A function that programs may need.
struct Helper {
    name: &'static str,
    needs: &'static [&'static str],
    text: &'static str,
}

const HELPERS: &[Helper] = &[
    Helper {
        name: "number",
        needs: &[],
        text: "def number(value):
    if type(value) == \"int\" or type(value) == \"float\":
        return value
    if type(value) == \"string\" and matches(\"^-?[0-9]{1,15}([.][0-9]{1,6})?$\", value):
        return float(value)
    return None
",
    },
    Helper {
        name: "compare",
        needs: &["number"],
        text: "def compare(value, sign, limit):
    value = number(value)
    if value == None:
        return None
    if sign == \">\":
        return value > limit
    if sign == \">=\":
        return value >= limit
    if sign == \"<\":
        return value < limit
    if sign == \"<=\":
        return value <= limit
    return value == limit
",
    },
    Helper {
        name: "has_role",
        needs: &[],
        text: "def has_role(principal, roles):
    for role in getattr(principal, \"roles\", []):
        if role in roles:
            return True
    return False
",
    },
    Helper {
        name: "negate",
        needs: &[],
        text: "def negate(value):
    return None if value == None else not value
",
    },
    Helper {
        name: "any_of",
        needs: &[],
        text: "def any_of(values):
    if True in values:
        return True
    return None if None in values else False
",
    },
    Helper {
        name: "all_of",
        needs: &[],
        text: "def all_of(values):
    if False in values:
        return False
    return None if None in values else True
",
    },
    Helper {
        name: "each",
        needs: &[],
        text: "def each(value, test):
    values = value if type(value) == \"list\" else [value]
    results = [test(one) for one in values]
    if not results or None in results or (True in results and False in results):
        return None
    return results[0]
",
    },
    Helper {
        name: "one_of",
        needs: &["each"],
        text: "def one_of(value, values):
    def test(one):
        if type(one) == \"string\":
            return one.strip().lower() in values
        if type(one) == \"int\" or type(one) == \"float\" or type(one) == \"bool\":
            return str(one).lower() in values
        return None
    return each(value, test)
",
    },
    Helper {
        name: "starts",
        needs: &["each"],
        text: "def starts(value, starts):
    def test(one):
        if type(one) != \"string\":
            return None
        text = one.lstrip().lower()
        for start in starts:
            if text.startswith(start):
                return True
        return False
    return each(value, test)
",
    },
    Helper {
        name: "contains",
        needs: &[],
        text: "def contains(value, parts):
    texts = value if type(value) == \"list\" else [value]
    for text in texts:
        if type(text) != \"string\":
            return None
    for text in texts:
        for part in parts:
            if part in text.lower():
                return True
    return False
",
    },
    Helper {
        name: "given",
        needs: &[],
        text: "def given(value):
    if type(value) == \"string\":
        return value.strip() != \"\"
    return value != None and value != [] and value != {}
",
    },
    Helper {
        name: "items",
        needs: &["number", "compare"],
        text: "def items(value):
    if type(value) == \"list\":
        return len(value)
    if type(value) == \"string\":
        return len([part for part in value.replace(\";\", \",\").split(\",\") if part.strip()])
    return None
",
    },
    Helper {
        name: "in_domain",
        needs: &["each"],
        text: "def in_domain(value, domains, below):
    def test(one):
        if type(one) != \"string\":
            return None
        text = one.strip().lower()
        found = find_all(\"^(?:[^<>]*<)?[^@<>,;/\\\\s]+@([a-z0-9.-]+)>?$\", text)
        if not found:
            found = find_all(\"^(?:[a-z]+://)?([a-z0-9.-]+)(?::[0-9]+)?(?:[/?#].*)?$\", text)
        if not found:
            return None
        host = found[0].rstrip(\".\")
        for domain in domains:
            if host == domain or (below and host.endswith(\".\" + domain)):
                return True
        return False
    if type(value) == \"string\":
        value = [part for part in value.replace(\";\", \",\").split(\",\") if part.strip()]
    return each(value, test)
",
    },
    Helper {
        name: "normal",
        needs: &[],
        text: "def normal(path):
    if type(path) != \"string\" or path == \"\" or \"\\\\\" in path:
        return None
    parts = []
    for part in path.split(\"/\"):
        if part == \"..\":
            if not parts:
                return None
            parts.pop()
        elif part != \"\" and part != \".\":
            parts.append(part)
    return (\"/\" if path.startswith(\"/\") else \"\") + \"/\".join(parts)
",
    },
    Helper {
        name: "under",
        needs: &["each", "normal"],
        text: "def under(value, folders):
    def test(one):
        path = normal(one)
        if path == None:
            return None
        for folder in folders:
            if path.startswith(\"/\") != folder.startswith(\"/\"):
                return None
            if path == folder or path.startswith(folder + \"/\"):
                return True
        return False
    return each(value, test)
",
    },
    Helper {
        name: "named",
        needs: &["each", "normal"],
        text: "def named(value, names):
    def test(one):
        path = normal(one)
        if path == None:
            return None
        last = path.split(\"/\")[-1].lower()
        for name in names:
            if last == name or (name.startswith(\"*\") and last.endswith(name[1:])):
                return True
        return False
    return each(value, test)
",
    },
    Helper {
        name: "is_time",
        needs: &[],
        text: "def is_time(at, weekdays, start, end, first, last, offset):
    minutes = day(at) * 1440 + minute(at) + offset
    today = minutes // 1440
    now = minutes % 1440
    if weekdays and (today + 3) % 7 not in weekdays:
        return False
    if first and today < day(first):
        return False
    if last and today > day(last):
        return False
    if start == end:
        return True
    if start < end:
        return start <= now and now < end
    return now >= start or now < end
",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_written_in_the_largest_unit() {
        assert_eq!([window(86_400), window(7_200), window(599)], ["1d", "2h", "599s"]);
    }
}
