//! Reads Markdown test files.

use std::collections::BTreeMap;

use portcullis_core::bundle::Diagnostic;
use portcullis_core::delegation::{Objection, ParentAnswer};
use portcullis_core::event::{Control, OutcomeStatus, Place};
use portcullis_core::observed::Observed;
use portcullis_core::principal::Principal;
use portcullis_core::profile::Level;
use portcullis_core::program::{self, Says};
use portcullis_core::time::Timestamp;
use portcullis_core::usage::Used;
use portcullis_core::verdict::Verdict;
use portcullis_guards::flow::second_opinion::Opinion;
use serde_json::{Value, json};

use super::observed::observed;

/// Largest number of steps in one block.
const STEPS_MAX: usize = 10_000;

/// A test file.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseFile {
    /// The runs in order.
    pub cases: Vec<Case>,
}

/// One run with its expectations.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The headings above it, joined by ` / `.
    pub name: String,
    /// Bundle files that the blocks before it replaced.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// One line of a `run` block.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Line in the file, from 1.
    pub line: usize,
    /// What happens.
    pub kind: StepKind,
    /// What the gate must say; steps without one only drive the run.
    pub expect: Option<Expectation>,
}

/// What happens in a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepKind {
    /// Chooses the runtime policy.
    Policy(String),
    /// The working directory of the calls from here on.
    Directory(String),
    /// The time from here on.
    Time(Timestamp),
    /// The user speaks.
    Input(String),
    /// The planned action of the next call.
    Plan(String),
    /// How sure the agent says it is of the next call.
    Confidence(f64),
    /// A tool call.
    Call {
        /// Tool name or id.
        tool: String,
        /// Arguments.
        arguments: Value,
    },
    /// A thinking step with its planned action.
    Think(String),
    /// Outcome of the last call.
    Result(OutcomeStatus, String),
    /// A person approves; true for every call of the tool.
    Grant(bool),
    /// A person refuses.
    Refuse,
    /// A person takes hold of the run.
    Control(Control),
    /// The agent replies.
    Output(String),
    /// On whose behalf the whole run is.
    Principal(Principal),
    /// Where the whole run takes place.
    Place(Place),
    /// The surface that connects the whole run.
    Surface(String),
    /// What the judge of a contract says of the next reply or result, or `None` if it cannot tell.
    Judged(String, Option<bool>),
    /// How the model rewrites the next reply or result.
    Rewritten(String),
    /// A server lists the tool with another description or schema than was accepted.
    Changed(String),
    /// A person accepts the tool as it is now.
    Accepted(String),
    /// What is shown of the last result or reply.
    Sees(String),
    /// What other runs of the principal have used up.
    Used(Used),
    /// An engine says this of every action from here on.
    Engine(String, program::Answer),
    /// A model that gives second opinions says this from here on.
    Opinion(Option<Opinion>),
    /// Another run of the principal makes this call, which succeeds.
    Elsewhere {
        /// Name or id of the tool.
        tool: String,
        /// The arguments.
        arguments: Value,
    },
    /// What the run that opened this one says of the calls from here on.
    Parent(ParentAnswer),
    /// The level at which the surface runs command lines contained from here on.
    Contained(Level),
    /// What the last call was seen to do while it ran contained.
    Observed(Box<Observed>),
    /// The agent works on an item, and its criteria come to this when the next reply is given.
    Unshown(String, Vec<String>),
    /// The run opens another one; what the runs below have used up from here on.
    Children(Used),
}

impl StepKind {
    /// Whether the gate has a verdict on it.
    fn is_judged(&self) -> bool {
        matches!(
            self,
            Self::Call { .. }
                | Self::Think(_)
                | Self::Input(_)
                | Self::Result(..)
                | Self::Output(_)
                | Self::Observed(_)
        )
    }

    /// Whether the last call may still get its result after this.
    pub(super) fn leaves_call_open(&self) -> bool {
        let of_result =
            matches!(self, Self::Result(..) | Self::Sees(_) | Self::Judged(..) | Self::Rewritten(_));
        of_result || matches!(self, Self::Observed(_))
    }
}

/// What must stand after `=>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The verdict.
    pub verdict: Verdict,
    /// The rule of the headline.
    pub rule: Option<String>,
    /// A span's pointer.
    pub at: Option<String>,
}

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct CaseError {
    /// Line in the file, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl CaseError {
    /// The same as a mistake of the bundle that the file `path` with this text belongs to.
    pub(crate) fn diagnostic(self, path: &str, text: &str) -> Diagnostic {
        let before = text.split_inclusive('\n').take(self.line.saturating_sub(1)).map(str::len).sum();
        let line = text.get(before..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        Diagnostic::new(path, text, before..before + line.len(), self.message)
    }
}

impl CaseFile {
    /// Reads a file.
    pub fn parse(text: &str) -> Result<Self, CaseError> {
        let mut headings: Vec<(usize, String)> = Vec::new();
        let mut files = BTreeMap::new();
        let mut cases = Vec::new();
        let mut lines = text.lines().enumerate().map(|(number, line)| (number + 1, line));
        while let Some((number, line)) = lines.next() {
            let hashes = line.bytes().take_while(|b| *b == b'#').count();
            if let (1..=6, Some(title)) = (hashes, line.get(hashes..).and_then(|rest| rest.strip_prefix(' ')))
            {
                headings.retain(|(level, _)| *level < hashes);
                headings.push((hashes, title.trim().to_owned()));
            }
            let Some(info) = line.strip_prefix("```") else { continue };
            let mut block = Vec::new();
            loop {
                match lines.next() {
                    Some((_, line)) if line.trim_end() == "```" => break,
                    Some(line) => block.push(line),
                    None => {
                        return Err(CaseError { line: number, message: "the block is not closed".into() });
                    }
                }
            }
            match info.trim().split_once(' ') {
                Some(("toml" | "json" | "cedar" | "star", path)) => {
                    let text: String = block.iter().flat_map(|(_, line)| [*line, "\n"]).collect();
                    files.insert(path.trim().to_owned(), text.into_bytes());
                }
                None if info.trim() == "run" => {
                    let name: Vec<&str> = headings.iter().map(|(_, title)| title.as_str()).collect();
                    let steps = parse_block(&block)?;
                    cases.push(Case { name: name.join(" / "), files: files.clone(), steps });
                }
                _ => {}
            }
        }
        Ok(Self { cases })
    }
}

fn parse_block(block: &[(usize, &str)]) -> Result<Vec<Step>, CaseError> {
    let mut steps = Vec::new();
    for (line, text) in block {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if steps.len() >= STEPS_MAX {
            return Err(CaseError { line: *line, message: format!("more than {STEPS_MAX} steps") });
        }
        let step = parse_step(text).map_err(|message| CaseError { line: *line, message })?;
        steps.push(Step { line: *line, kind: step.0, expect: step.1 });
    }
    Ok(steps)
}

/// The words that a step begins with.
const STEP_WORDS: [&str; 35] = [
    "policy",
    "directory",
    "time",
    "input",
    "plan",
    "confidence",
    "think",
    "output",
    "call",
    "result",
    "grant",
    "refuse",
    "pause",
    "halt",
    "resume",
    "freeze",
    "release-reads",
    "release",
    "principal",
    "place",
    "changed",
    "accepted",
    "sees",
    "used",
    "elsewhere",
    "engine",
    "opinion",
    "parent",
    "children",
    "contained",
    "observed",
    "surface",
    "judged",
    "rewritten",
    "unshown",
];

/// A call: the name or id of a tool, and its arguments.
fn call(rest: &mut Rest<'_>) -> Result<StepKind, String> {
    let tool = if rest.0.starts_with('"') { rest.string()? } else { rest.word().to_owned() };
    if tool.is_empty() {
        return Err("`call` needs the name or id of a tool".into());
    }
    let arguments = if rest.0.starts_with('{') { rest.json()? } else { json!({}) };
    Ok(StepKind::Call { tool, arguments })
}

/// What became of a call, and what the agent would see of it.
fn result(rest: &mut Rest<'_>) -> Result<StepKind, String> {
    let status = match rest.word() {
        "ok" => OutcomeStatus::Ok,
        "error" => OutcomeStatus::Error,
        "timeout" => OutcomeStatus::Timeout,
        "not-executed" => OutcomeStatus::NotExecuted,
        other => return Err(format!("`{other}` is not a result: ok, error, timeout, not-executed")),
    };
    let content = if rest.0.starts_with('"') { rest.string()? } else { String::new() };
    Ok(StepKind::Result(status, content))
}

/// What a judge says of a contract: it holds, it is broken, or it cannot tell.
fn judgement(word: &str) -> Result<Option<bool>, String> {
    match word {
        "holds" => Ok(Some(true)),
        "broken" => Ok(Some(false)),
        "undecided" => Ok(None),
        other => Err(format!("`{other}` is not a judgement: holds, broken, undecided")),
    }
}

fn confidence(word: &str) -> Result<f64, String> {
    let value = word.parse().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "`confidence` needs a number from 0 to 1".into())
}

fn parse_step(text: &str) -> Result<(StepKind, Option<Expectation>), String> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let mut rest = Rest(rest.trim_start());
    let kind = match word {
        "policy" => StepKind::Policy(rest.string()?),
        "directory" => StepKind::Directory(rest.folder()?),
        "time" => StepKind::Time(rest.minute()?),
        "input" => StepKind::Input(rest.string()?),
        "plan" => StepKind::Plan(rest.string()?),
        "confidence" => StepKind::Confidence(confidence(rest.word())?),
        "think" => StepKind::Think(rest.string()?),
        "output" => StepKind::Output(rest.string()?),
        "call" => call(&mut rest)?,
        "result" => result(&mut rest)?,
        "grant" => {
            let tool = rest.0.starts_with("tool");
            if tool {
                rest.word();
            }
            StepKind::Grant(tool)
        }
        "refuse" => StepKind::Refuse,
        "principal" => {
            let given = known_fields("principal", rest.json()?, &["id", "roles", "attributes"])?;
            StepKind::Principal(
                serde_json::from_value(given).map_err(|error| format!("not a principal: {error}"))?,
            )
        }
        "place" => {
            let given = known_fields("place", rest.json()?, &["workspace", "home", "gate"])?;
            StepKind::Place(serde_json::from_value(given).map_err(|error| format!("not a place: {error}"))?)
        }
        "surface" => StepKind::Surface(rest.string()?),
        "changed" => StepKind::Changed(rest.string()?),
        "accepted" => StepKind::Accepted(rest.string()?),
        "sees" => StepKind::Sees(rest.string()?),
        "pause" => StepKind::Control(Control::Pause),
        "halt" => StepKind::Control(Control::Halt),
        "resume" => StepKind::Control(Control::Resume),
        "freeze" => StepKind::Control(Control::Freeze),
        "release-reads" => StepKind::Control(Control::ReleaseReads),
        "release" => StepKind::Control(Control::Release),
        _ => known_from_outside(word, &mut rest)?,
    };
    let expect = rest.expectation()?;
    if expect.is_some() && !kind.is_judged() {
        return Err("only `call`, `think`, `input`, `result`, `observed` and `output` have a verdict".into());
    }
    Ok((kind, expect))
}

/// What is known from outside of the run: of other runs, of what was seen, of what others say.
fn known_from_outside(word: &str, rest: &mut Rest<'_>) -> Result<StepKind, String> {
    Ok(match word {
        "judged" => {
            let contract = rest.string()?;
            StepKind::Judged(contract, judgement(rest.word())?)
        }
        "rewritten" => StepKind::Rewritten(rest.string()?),
        "used" => StepKind::Used(used(rest.json()?)?),
        "engine" => {
            let name = rest.word().to_owned();
            let answer = engine_says(&name, rest.word(), rest)?;
            StepKind::Engine(name, answer)
        }
        "opinion" => StepKind::Opinion(opinion(rest.word())?),
        "elsewhere" => match call(rest)? {
            StepKind::Call { tool, arguments } => StepKind::Elsewhere { tool, arguments },
            other => other,
        },
        "parent" => StepKind::Parent(parent(rest.word(), rest.word())?),
        "contained" => StepKind::Contained(rest.word().parse()?),
        "observed" => StepKind::Observed(Box::new(observed(rest.json()?)?)),
        "unshown" => {
            let (title, mut missing) = (rest.string()?, Vec::new());
            while rest.0.starts_with('"') {
                missing.push(rest.string()?);
            }
            StepKind::Unshown(title, missing)
        }
        "children" => StepKind::Children(used(rest.json()?)?),
        other => {
            let hint = portcullis_core::bundle::nearest(other, &STEP_WORDS).unwrap_or("call");
            return Err(format!("`{other}` is not a step (did you mean `{hint}`?)"));
        }
    })
}

/// An object with no other fields than these: a misspelt one would say nothing, and the test would pass for it.
fn known_fields(what: &str, given: Value, known: &[&str]) -> Result<Value, String> {
    let Value::Object(fields) = &given else { return Err("expected an object".into()) };
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(given),
        Some(wrong) => {
            let help = match portcullis_core::bundle::nearest(wrong, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("expected one of: {}", known.join(", ")),
            };
            Err(format!("`{wrong}` is not a field of `{what}` ({help})"))
        }
    }
}

/// What a model says that is asked whether the request covers a call.
fn opinion(word: &str) -> Result<Option<Opinion>, String> {
    match word {
        "covered" => Ok(Some(Opinion { covers: true })),
        "uncovered" => Ok(Some(Opinion { covers: false })),
        "silent" => Ok(None),
        other => Err(format!("`{other}` is not an opinion: covered, uncovered, silent")),
    }
}

/// What an engine says of an action, and why.
fn engine_says(engine: &str, word: &str, rest: &mut Rest<'_>) -> Result<program::Answer, String> {
    let says = match word {
        "silent" => return Ok(program::Answer::default()),
        "denies" => Says::Deny,
        "holds" => Says::Hold,
        other => {
            return Err(format!(
                "`{other}` is not what an engine says: silent, denies \"WHY\", holds \"WHY\""
            ));
        }
    };
    let objection = program::Objection {
        program: engine.to_owned(),
        says,
        reasons: vec![rest.string()?],
        denied: Vec::new(),
    };
    Ok(program::Answer { objections: vec![objection], failures: Vec::new() })
}

/// What the run above says, and by which of its rules.
fn parent(word: &str, rule: &str) -> Result<ParentAnswer, String> {
    let holds = match word {
        "allows" => return Ok(ParentAnswer { seq: 1, objection: None }),
        "holds" => true,
        "denies" => false,
        other => return Err(format!("`{other}` is not what a parent says: allows, holds RULE, denies RULE")),
    };
    if rule.is_empty() {
        return Err(format!("`parent {word}` needs a rule"));
    }
    let objection = Objection { holds, rule: rule.to_owned(), why: "as the test says".to_owned() };
    Ok(ParentAnswer { seq: 1, objection: Some(objection) })
}

/// Some of what may be used up, the rest 0.
fn used(given: Value) -> Result<Used, String> {
    let given = known_fields("used", given, &["steps", "side_effects", "bytes", "cost_micros"])?;
    let mut whole = json!(Used::default());
    let (Value::Object(given), Some(whole_fields)) = (given, whole.as_object_mut()) else {
        return Err("expected an object".into());
    };
    whole_fields.extend(given);
    serde_json::from_value(whole).map_err(|error| format!("not a valid usage: {error}"))
}

/// What is left of a line.
struct Rest<'t>(&'t str);

impl<'t> Rest<'t> {
    fn word(&mut self) -> &'t str {
        let (word, rest) = self.0.split_once(char::is_whitespace).unwrap_or((self.0, ""));
        self.0 = rest.trim_start();
        word
    }

    fn folder(&mut self) -> Result<String, String> {
        let folder = self.word();
        if folder.starts_with('/') {
            Ok(folder.to_owned())
        } else {
            Err("expected the absolute path of a folder".into())
        }
    }

    /// A time to the minute, in UTC.
    fn minute(&mut self) -> Result<Timestamp, String> {
        let minute = self.word();
        let time = minute.strip_suffix('Z').and_then(|minute| format!("{minute}:00.000000Z").parse().ok());
        time.ok_or_else(|| format!("`{minute}` is no time, such as 2026-11-28T14:36Z"))
    }

    fn json(&mut self) -> Result<Value, String> {
        let mut stream = serde_json::Deserializer::from_str(self.0).into_iter::<Value>();
        let value = match stream.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => return Err(format!("not JSON: {error}")),
            None => return Err("a JSON value is missing".into()),
        };
        self.0 = self.0.get(stream.byte_offset()..).unwrap_or_default().trim_start();
        Ok(value)
    }

    fn string(&mut self) -> Result<String, String> {
        match self.json()? {
            Value::String(text) => Ok(text),
            _ => Err("expected a string in double quotes".into()),
        }
    }

    fn expectation(&mut self) -> Result<Option<Expectation>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        if self.word() != "=>" {
            return Err("only `=> VERDICT [RULE] [at POINTER]` may follow the step".into());
        }
        let name = self.word();
        let Some(verdict) = Verdict::from_name(name) else {
            let names = Verdict::ALL.map(Verdict::as_str).join(", ");
            return Err(format!("`{name}` is not a verdict: {names}"));
        };
        let mut expectation = Expectation { verdict, rule: None, at: None };
        while !self.0.is_empty() {
            match self.word() {
                "at" => expectation.at = Some(self.word().to_owned()),
                rule if expectation.rule.is_none() => expectation.rule = Some(rule.to_owned()),
                other => return Err(format!("`{other}` is not expected here")),
            }
        }
        Ok(Some(expectation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_prose_with_runs() {
        let file = CaseFile::parse(
            "# A\nprose\n```toml policies/x.toml\n[[policy]]\n```\n## B\n```run\n# note\ncall \"Send Email\" {\"a\": \"x => y\"} => deny r/x at /arguments/a\nresult error \"no\"\n```\n## C\n```text\nignored\n```\n",
        )
        .unwrap();
        let [case] = file.cases.as_slice() else { panic!("one case") };
        assert_eq!(case.name, "A / B");
        assert_eq!(case.files["policies/x.toml"], b"[[policy]]\n");
        let expect =
            Expectation { verdict: Verdict::Deny, rule: Some("r/x".into()), at: Some("/arguments/a".into()) };
        let call = StepKind::Call { tool: "Send Email".into(), arguments: json!({"a": "x => y"}) };
        assert_eq!(case.steps[0], Step { line: 9, kind: call, expect: Some(expect) });
        assert_eq!(case.steps[1].kind, StepKind::Result(OutcomeStatus::Error, "no".into()));
    }

    #[test]
    fn mistakes_name_the_line() {
        for (step, message) in [
            ("cal x", "line 2: `cal` is not a step (did you mean `call`?)"),
            ("call x {\"a\" => deny", "line 2: not JSON: expected `:` at line 1 column 6"),
            (
                "call x => no",
                "line 2: `no` is not a verdict: allow, warn, modify, clarify, pause, review, deny, halt",
            ),
            (
                "grant => allow",
                "line 2: only `call`, `think`, `input`, `result`, `observed` and `output` have a verdict",
            ),
            ("call", "line 2: `call` needs the name or id of a tool"),
            ("used {\"stps\": 1}", "line 2: `stps` is not a field of `used` (did you mean `steps`?)"),
            (
                "principal {\"id\": \"ann\", \"rolse\": [\"nurse\"]}",
                "line 2: `rolse` is not a field of `principal` (did you mean `roles`?)",
            ),
            (
                "place {\"wrokspace\": \"/srv\"}",
                "line 2: `wrokspace` is not a field of `place` (did you mean `workspace`?)",
            ),
        ] {
            let error = CaseFile::parse(&format!("```run\n{step}\n```\n")).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        assert!(CaseFile::parse("```run\n").is_err());
    }
}
