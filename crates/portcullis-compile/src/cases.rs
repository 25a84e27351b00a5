//! Tests for rules: for each, a run in which it stops a call, runs in which one thing is otherwise, and the boundaries.
//! What must come of each is computed by [`meaning`](crate::meaning).

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::meaning::{self, Call, Caller, Must};
use crate::rule::{Asks, Condition, Number, Past, Rule, Test, Times, Window};
use crate::spec::{Argument, Spec};

/// 2026-11-24 at noon, a Tuesday.
const NOON: i64 = 20_781 * 1_440 + 720;
/// Most runs that are generated for a rule.
const RUNS_MAX: usize = 64;
/// Most calls of one run: a limit of more calls than this is not walked up to.
const CALLS_MAX: u32 = 200;

/// A run of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What it shows.
    pub title: String,
    /// Who calls.
    pub caller: Caller,
    /// What is called.
    pub calls: Vec<Call>,
}

/// Who calls what, when.
#[derive(Debug, Clone)]
struct Setting {
    caller: Caller,
    call: Call,
}

/// The runs for rules.
pub fn runs(rules: &[Rule], spec: &Spec) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for rule in rules {
        let mut of_rule: Vec<Run> = Vec::new();
        for tool in &rule.tools {
            let caller = Caller { roles: admitted(rules, tool), ..Caller::default() };
            let setting = Setting { caller, call: plain(spec, tool) };
            match &rule.past {
                None => of_rule.extend(single(rule, &setting)),
                Some(past) => of_rule.extend(over_time(rule, past, &setting, spec)),
            }
        }
        of_rule.truncate(RUNS_MAX);
        runs.extend(of_rule);
    }
    let judged: Vec<&String> = rules.iter().flat_map(|rule| &rule.tools).collect();
    if let Some(other) = spec.tools.iter().find(|tool| !judged.contains(&&tool.name)) {
        let call = plain(spec, &other.name);
        runs.push(Run {
            title: format!("{} is not concerned", other.name),
            caller: Caller::default(),
            calls: vec![call],
        });
    }
    runs
}

/// Roles with which the rules about who may call a tool let it pass: otherwise no test reaches the others.
fn admitted(rules: &[Rule], tool: &str) -> Vec<String> {
    let of = |condition: &Condition| match condition {
        Condition::Not(inner) => match inner.as_ref() {
            Condition::Role(roles) => roles.first().cloned(),
            _ => None,
        },
        _ => None,
    };
    let about = rules.iter().filter(|rule| rule.tools.iter().any(|known| known == tool));
    about.flat_map(|rule| &rule.when).filter_map(of).collect()
}

/// The tests as Markdown, for `policy test`.
pub fn markdown(rules: &[Rule], spec: &Spec) -> String {
    markdown_of(&runs(rules, spec), rules, spec)
}

/// Runs as Markdown, each call with what must become of it.
pub fn markdown_of(runs: &[Run], rules: &[Rule], spec: &Spec) -> String {
    let mut text =
        "# Tests\n\nGenerated from the request; the verdicts are those of a second reading of its rules.\n"
            .to_owned();
    let mut types: Vec<&str> =
        spec.tools.iter().map(|tool| tool.tool_type.as_deref().unwrap_or("OTHER")).collect();
    types.sort_unstable();
    types.dedup();
    let types: Vec<String> = types.into_iter().map(crate::spec::quoted).collect();
    let _infallible = write!(
        text,
        "\n```toml policies/for-generated-tests.toml\n[[policy]]\nname = \"for generated tests\"\nallowed_types = [{}]\nmax_steps = 1000000\nmax_side_effects = 1000000\n```\n",
        types.join(", ")
    );
    for (number, run) in runs.iter().enumerate() {
        let musts = meaning::judge(rules, &run.caller, &run.calls);
        let _infallible =
            write!(text, "\n## {}: {}\n\n```run\npolicy \"for generated tests\"\n", number + 1, run.title);
        let caller = json!({"id": "tester", "roles": run.caller.roles, "attributes": run.caller.attributes});
        let _infallible = writeln!(text, "principal {caller}");
        for (call, must) in run.calls.iter().zip(musts) {
            let verdict = match must {
                Must::Pass => "allow",
                Must::Hold => "review",
                Must::Deny => "deny",
            };
            let (tool, args) = (Value::from(call.tool.clone()), Value::Object(call.args.clone()));
            let _infallible =
                write!(text, "time {}\ncall {tool} {args} => {verdict}\n", meaning::written(call.at));
        }
        text.push_str("```\n");
    }
    text
}

/// A call with ordinary arguments.
fn plain(spec: &Spec, tool: &str) -> Call {
    let arguments = spec.tool(tool).map(|tool| tool.arguments.as_slice()).unwrap_or_default();
    let args = arguments.iter().map(|argument| (argument.name.clone(), ordinary(argument))).collect();
    Call { at: NOON, tool: tool.to_owned(), args }
}

fn ordinary(argument: &Argument) -> Value {
    if let Some(first) = argument.values.first() {
        return json!(first);
    }
    match argument.kind.as_str() {
        "number" | "integer" => json!(1),
        "boolean" => json!(true),
        "array" => json!([text(argument)]),
        "object" => json!({}),
        _ => json!(text(argument)),
    }
}

/// A text of the form that other guards can read.
fn text(argument: &Argument) -> &'static str {
    let words = format!("{} {}", argument.name, argument.description).to_lowercase();
    let has = |word: &str| words.split(|c: char| !c.is_alphanumeric()).any(|own| own == word);
    let forms: [(&[&str], &str); 4] = [
        (&["sql", "statement", "query"], "select 1"),
        (&["url", "uri", "link", "website"], "https://one.example/"),
        (
            &["to", "recipient", "recipients", "address", "addresses", "email", "cc", "bcc", "attendees"],
            "one@a.example",
        ),
        (&["path", "file", "folder", "directory"], "/one"),
    ];
    forms.iter().find(|(named, _)| named.iter().any(|word| has(word))).map_or("one", |(_, form)| form)
}

/// A value of the same form as an ordinary one, and not equal to it.
fn another(value: Option<&Value>) -> Value {
    match value {
        Some(Value::String(text)) if text.contains("one") => json!(text.replace("one", "two")),
        Some(Value::String(text)) if text.contains('1') => json!(text.replace('1', "2")),
        Some(Value::Number(_)) => json!(2),
        Some(Value::Bool(is)) => json!(!is),
        _ => json!("two"),
    }
}

/// The call as the conditions want it, and each condition otherwise.
fn single(rule: &Rule, plain: &Setting) -> Vec<Run> {
    let meets = meeting(&rule.when, plain);
    let mut runs = vec![run("what the rule stops", &meets)];
    for condition in &rule.when {
        for setting in settings(condition, &meets) {
            let title = match meaning::holds(condition, &setting.caller, &setting.call) {
                Some(true) => "still so",
                Some(false) => "not so",
                None => "nobody can tell",
            };
            runs.push(run(&format!("{title}: {}", crate::english::condition(condition)), &setting));
        }
    }
    runs
}

/// The setting with the conditions true in it, as far as one at a time can be made so.
fn meeting(conditions: &[Condition], plain: &Setting) -> Setting {
    let mut meets = plain.clone();
    for condition in conditions {
        let is = |setting: &Setting| meaning::holds(condition, &setting.caller, &setting.call) == Some(true);
        if !is(&meets)
            && let Some(setting) = settings(condition, &meets).into_iter().find(is)
        {
            meets = setting;
        }
    }
    meets
}

fn run(title: &str, setting: &Setting) -> Run {
    Run { title: title.replace('`', "'"), caller: setting.caller.clone(), calls: vec![setting.call.clone()] }
}

/// Settings in which a condition is so, is not so, and on either side of its boundary.
fn settings(condition: &Condition, from: &Setting) -> Vec<Setting> {
    let with = |change: &dyn Fn(&mut Setting)| {
        let mut setting = from.clone();
        change(&mut setting);
        setting
    };
    match condition {
        Condition::Not(inner) => settings(inner, from),
        Condition::Any(all) | Condition::All(all) => all.iter().flat_map(|one| settings(one, from)).collect(),
        Condition::Role(roles) => {
            let mut found: Vec<Setting> =
                roles.iter().map(|role| with(&|setting| setting.caller.roles = vec![role.clone()])).collect();
            found.push(with(&|setting| setting.caller.roles = vec!["somebody_else".to_owned()]));
            found.push(with(&|setting| setting.caller.roles.clear()));
            found
        }
        // Attributes have to be declared in the bundle, which generated tests cannot know.
        Condition::Attribute(..) | Condition::Flag(_) => vec![from.clone()],
        Condition::Argument(name, test) => {
            let mut found: Vec<Setting> = examples(test)
                .into_iter()
                .map(|value| with(&|setting| drop(setting.call.args.insert(name.clone(), value.clone()))))
                .collect();
            found.push(with(&|setting| drop(setting.call.args.remove(name))));
            found
        }
        Condition::At(times) => {
            moments(times).into_iter().map(|at| with(&|setting| setting.call.at = at)).collect()
        }
    }
}

fn decimal(number: Number) -> Value {
    serde_json::from_str(&number.to_string()).unwrap_or(Value::Null)
}

/// Values on either side of a test.
fn examples(test: &Test) -> Vec<Value> {
    match test {
        Test::OneOf(values) => {
            values.iter().map(|value| json!(value)).chain([json!("something else")]).collect()
        }
        Test::Compares(_, limit) => {
            let cent = Number::ONE / 100;
            [0, -cent, cent].iter().map(|step| decimal(Number(limit.0.saturating_add(*step)))).collect()
        }
        Test::InDomain(domains, _) => {
            let near = domains.iter().flat_map(|domain| {
                [
                    format!("ann@{domain}"),
                    format!("ann@not{domain}"),
                    format!("ann@{domain}.evil.example"),
                    format!("ann@sub.{domain}"),
                ]
            });
            near.chain(["ann@elsewhere.example".to_owned()]).map(Value::from).collect()
        }
        Test::Under(folders) => {
            let near = folders.iter().flat_map(|folder| {
                [
                    format!("{folder}/a/b.txt"),
                    format!("{folder}2/b.txt"),
                    format!("{folder}/../b.txt"),
                    format!("{folder}/a/../b.txt"),
                ]
            });
            near.map(Value::from).collect()
        }
        Test::Named(names) => {
            let near = names
                .iter()
                .map(|name| name.trim_start_matches('*'))
                .flat_map(|name| [format!("/a/b/{name}"), format!("/a/b/{name}x"), format!("/a/{name}/b")]);
            near.map(Value::from).collect()
        }
        Test::Starts(starts) => {
            let near = starts.iter().flat_map(|start| [format!("{start}1"), format!("x{start}1")]);
            near.chain(["something else".to_owned()]).map(Value::from).collect()
        }
        Test::Contains(parts) => {
            let near = parts.iter().flat_map(|part| [part.clone(), format!("one {part} two")]);
            near.chain(["something else".to_owned()]).map(Value::from).collect()
        }
        Test::Given => vec![json!("given"), json!(""), json!("  ")],
        Test::Items(_, count) => {
            let list = |count: u32| {
                Value::from(
                    (0..count.min(CALLS_MAX))
                        .map(|number| format!("u{number}@a.example"))
                        .collect::<Vec<_>>(),
                )
            };
            vec![list(*count), list(count.saturating_add(1)), list(count.saturating_sub(1))]
        }
    }
}

/// Minutes on either side of the ends of times.
fn moments(times: &Times) -> Vec<i64> {
    let offset = i64::from(times.offset);
    let day = match times
        .dates
        .as_ref()
        .and_then(|(first, last)| meaning::parsed(first).or_else(|| meaning::parsed(last)))
    {
        Some(day) => day,
        None => NOON.div_euclid(1_440),
    };
    let mut found: Vec<i64> = (0..7)
        .map(|step| (day + step) * 1_440 + times.minutes.map_or(720, |(from, _)| i64::from(from)) - offset)
        .collect();
    if let Some((from, until)) = times.minutes {
        let open = (day..day + 7)
            .find(|day| {
                times.weekdays.is_empty()
                    || times.weekdays.contains(&u8::try_from((day + 3).rem_euclid(7)).unwrap_or(0))
            })
            .unwrap_or(day);
        for minute in [i64::from(from), i64::from(until)] {
            found.extend([-1, 0, 1].map(|step| open * 1_440 + minute + step - offset));
        }
    }
    if let Some((first, last)) = &times.dates {
        let days = [first, last].into_iter().filter_map(|date| meaning::parsed(date));
        found.extend(
            days.flat_map(|day| [day * 1_440 - 1, day * 1_440, day * 1_440 + 1_439, (day + 1) * 1_440])
                .map(|at| at - offset),
        );
    }
    found
}

/// Runs of several calls: up to a limit and beyond it, of another key, at the end of the window and after it.
fn over_time(rule: &Rule, past: &Past, plain_call: &Setting, spec: &Spec) -> Vec<Run> {
    let judged = meeting(&rule.when, plain_call);
    let earlier: Vec<Setting> = match &past.asks {
        Asks::After(tools) | Asks::Before(tools) => {
            let plain =
                tools.iter().map(|tool| Setting { caller: judged.caller.clone(), call: plain(spec, tool) });
            plain.map(|plain| meeting(&past.earlier, &plain)).collect()
        }
        Asks::Count(_) | Asks::Sum(..) => vec![judged.clone()],
    };
    let mut runs = vec![run("alone", &judged)];
    for before in earlier {
        runs.extend(after(past, &before.call, &judged));
        for condition in &past.earlier {
            let otherwise = settings(condition, &before).into_iter();
            runs.extend(otherwise.map(|before| {
                let title = format!("earlier: {}", crate::english::condition(condition));
                repeated(&title, past, &before.call, &judged, 1)
            }));
        }
        for condition in &rule.when {
            let title = format!("with or without: {}", crate::english::condition(condition));
            let otherwise = settings(condition, &judged).into_iter();
            runs.extend(otherwise.map(|judged| repeated(&title, past, &before.call, &judged, 1)));
        }
    }
    runs
}

/// As many earlier calls as are needed, and the judged one so many minutes after them.
fn repeated(title: &str, past: &Past, before: &Call, judged: &Setting, gap: i64) -> Run {
    let mut calls: Vec<Call> = (0..repeats(past)).map(|_| before.clone()).collect();
    calls.push(Call { at: before.at + gap, ..judged.call.clone() });
    Run { title: title.replace('`', "'"), caller: judged.caller.clone(), calls }
}

/// Runs in which earlier calls of one kind come before the judged one.
fn after(past: &Past, before: &Call, judged: &Setting) -> Vec<Run> {
    let (mut before, mut judged) = (before.clone(), judged.clone());
    let mut runs = Vec::new();
    if let Asks::Sum(argument, most) = &past.asks {
        // Half of what is allowed: two of them pass, and one more does not.
        let half = decimal(Number(most.0 / 2));
        before.args.insert(argument.clone(), half.clone());
        judged.call.args.insert(argument.clone(), half);
        let mut all = judged.clone();
        for step in [0, 10_000] {
            all.call.args.insert(argument.clone(), decimal(Number(most.0.saturating_add(step))));
            runs.push(run("all at once", &all));
        }
    }
    let stretch = |title: &str, gap: i64, judged: &Setting| repeated(title, past, &before, judged, gap);
    runs.push(stretch("as often as is needed", 1, &judged));
    let mut twice = stretch("twice more", 1, &judged);
    twice.calls.push(Call { at: before.at + 1, ..judged.call.clone() });
    runs.push(twice);
    if let Some((_, argument)) = &past.same {
        let mut other = judged.clone();
        let value = another(judged.call.args.get(argument));
        other.call.args.insert(argument.clone(), value);
        runs.push(stretch("of another one", 1, &other));
        other.call.args.remove(argument);
        runs.push(stretch("without saying of which", 1, &other));
    }
    if let Some(Window::Seconds(seconds)) = past.within {
        let minutes = i64::try_from(seconds.div_ceil(60)).unwrap_or(0);
        for (title, gap) in [
            ("just within the time", minutes - 1),
            ("after the time", minutes + 1),
            ("twice the time later", minutes * 2 - 1),
        ] {
            runs.push(stretch(title, gap.max(0), &judged));
        }
    }
    runs
}

/// How many earlier calls there are.
fn repeats(past: &Past) -> u32 {
    match &past.asks {
        Asks::Count(most) => (*most).min(CALLS_MAX),
        Asks::Sum(..) => 2,
        Asks::After(_) | Asks::Before(_) => 1,
    }
}
