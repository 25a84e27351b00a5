//! A folder of requests, each with what is wanted of it: rules that behave, or the right question.
//!
//! `PORTCULLIS_REQUESTS=DIR` measures another folder: `cargo test -p portcullis-compile --test it requests -- --nocapture`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_compile::answers::Answer;
use portcullis_compile::draft::{Draft, Topic};
use portcullis_compile::enumerate::enumerated;
use portcullis_compile::spec::Spec;
use portcullis_compile::{cases, mutants};
use portcullis_session::cases::{CaseFile, run_file};
use portcullis_session::policy;
use serde_json::{Value, json};

/// What came of a request.
#[derive(Debug, Default)]
struct Sums {
    compiled: usize,
    behave: usize,
    asked_rightly: usize,
    asked_about_else: usize,
    asked_wrongly: usize,
    /// Of those that were asked about although clear: one of at most two offers behaves in all cases.
    offered: usize,
    compiled_wrongly: usize,
    cases: usize,
    stopped_wrongly: usize,
    passed_wrongly: usize,
    answered: usize,
    /// Generated tests that pass, and what in them does not.
    generated: usize,
    generated_wrong: usize,
    killed: usize,
    survivors: usize,
    vacuous: usize,
    lines: Vec<String>,
}

fn topics(words: &[Value]) -> Vec<Topic> {
    let topic = |word: &Value| match word.as_str().unwrap_or_default() {
        "window" => vec![Topic::Window],
        "scope" => vec![Topic::Scope],
        "amount" => vec![Topic::Amount],
        "hours" => vec![Topic::Hours],
        "who" => vec![Topic::Who],
        "which tool" => vec![Topic::Tool],
        "which argument" => vec![Topic::Argument],
        "contradiction" => vec![Topic::Contradiction],
        "vague" => vec![Topic::Meaning, Topic::Enforceable],
        "list" => vec![Topic::List],
        "not enforceable" => vec![Topic::Enforceable, Topic::Meaning],
        other => panic!("`{other}` is no topic"),
    };
    words.iter().flat_map(topic).collect()
}

/// What accepts every default.
fn accepted(request: &str, spec: &Spec, mut answers: Vec<Answer>) -> Draft {
    for _ in 0..4 {
        let draft = Draft::compile("request", request, spec, &answers);
        let more: Vec<Answer> = draft
            .questions
            .iter()
            .filter(|question| question.default.is_some())
            .map(|question| Answer::accepting(&question.id))
            .collect();
        if more.is_empty() {
            return draft;
        }
        answers.extend(more);
    }
    Draft::compile("request", request, spec, &answers)
}

fn run(folder: &Path) -> Sums {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    let mut sums = Sums::default();
    for path in files {
        let stated: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        one(&mut sums, &name, &stated);
    }
    sums
}

/// What a draft leaves open and refuses, with the words that are meant.
fn shown(draft: &Draft) -> String {
    let words = |span: &std::ops::Range<usize>| draft.read_as.get(span.clone()).unwrap();
    let questions = draft
        .blocking_questions()
        .map(|question| format!("{}: {} [{}]", question.id, question.text, words(&question.span)));
    let refusals = draft
        .refusals
        .iter()
        .map(|refusal| format!("refused: {} [{}]", refusal.message, words(&refusal.span)));
    questions.chain(refusals).collect::<Vec<_>>().join("; ")
}

fn one(sums: &mut Sums, name: &str, stated: &Value) {
    let request = stated["request"].as_str().unwrap();
    let spec = Spec::of_json(&stated["tools"]).unwrap();
    let draft = accepted(request, &spec, Vec::new());
    let open: Vec<Topic> = draft.blocking_questions().map(|question| question.about).collect();
    let compiles = open.is_empty() && draft.refusals.is_empty();
    if stated["outcome"] == "asks" {
        let wanted = topics(stated["asks_about"].as_array().unwrap());
        if compiles {
            sums.compiled_wrongly += 1;
            sums.lines.push(format!("COMPILED, and leaves open {wanted:?}: {name}: {:?}", draft.meaning));
        } else if open.iter().any(|topic| wanted.contains(topic)) {
            sums.asked_rightly += 1;
            answered(sums, name, stated, &spec, &draft);
        } else {
            sums.asked_about_else += 1;
            sums.lines.push(format!("asked about something else than {wanted:?}: {name}: {}", shown(&draft)));
        }
        return;
    }
    if !compiles {
        sums.asked_wrongly += 1;
        let is_offered = offered(request, &spec, &draft, &stated["cases"]);
        sums.offered += usize::from(is_offered);
        let word = if is_offered { "offered" } else { "refused although clear" };
        sums.lines.push(format!("{word}: {name}: {} {:?}", shown(&draft), draft.meaning));
        return;
    }
    sums.compiled += 1;
    let own =
        CaseFile::parse(&draft.tests).unwrap_or_else(|error| panic!("{name}: {error:?}\n{}", draft.tests));
    let report = run_file(&own, &draft.laid_over(&spec.open_bundle()), &Arc::new(policy::pipeline()));
    let shown = mutants::shown(&draft.rules, &cases::runs(&draft.rules, &spec));
    sums.killed += shown.killed;
    sums.vacuous += shown.vacuous.len();
    for place in &shown.vacuous {
        sums.lines.push(format!("not reached: {name}: {}", draft.meaning[*place]));
    }
    for mutant in &shown.survivors {
        sums.survivors += 1;
        sums.lines.push(format!("survives: {name}: {}", mutant.sentence()));
    }
    sums.generated += report.passed;
    for mismatch in report.mismatches {
        sums.generated_wrong += 1;
        sums.lines.push(format!(
            "GENERATED: {name}: {} line {}: {}: {:?}",
            mismatch.case, mismatch.line, mismatch.message, draft.meaning
        ));
    }
    for failure in short(&draft, &spec) {
        sums.generated_wrong += 1;
        sums.lines.push(format!("SHORT: {name}: {failure}: {:?}", draft.meaning));
    }
    let (wrong, cases) = behaves(&draft, &spec, &stated["cases"]);
    sums.cases += cases;
    if wrong.is_empty() {
        sums.behave += 1;
    }
    for (stopped, message) in wrong {
        if stopped {
            sums.stopped_wrongly += 1;
        } else {
            sums.passed_wrongly += 1;
        }
        sums.lines.push(format!("WRONG: {name}: {message}: {:?}", draft.meaning));
    }
}

/// How many short runs of a draft are judged by default. All of them are some hundreds for each, and take minutes.
const SHORT_MAX: usize = 40;

/// Short runs of which the files say something else than the rules mean. By default every so many of them, so that they
/// are of all lengths and callers.
fn short(draft: &Draft, spec: &Spec) -> Vec<String> {
    let long = std::env::var_os("PORTCULLIS_TEST_LONG").is_some();
    let mut runs = enumerated(&draft.rules, spec).runs;
    let step = if long { 1 } else { runs.len().div_ceil(SHORT_MAX).max(1) };
    runs = runs.into_iter().step_by(step).collect();
    let file = CaseFile::parse(&cases::markdown_of(&runs, &draft.rules, spec)).unwrap();
    let report = run_file(&file, &draft.laid_over(&spec.open_bundle()), &Arc::new(policy::pipeline()));
    report.mismatches.iter().map(|found| format!("{}: {}", found.case, found.message)).collect()
}

/// Whether the first or the second offer of the questions leads to rules that behave in all cases.
fn offered(request: &str, spec: &Spec, draft: &Draft, cases: &Value) -> bool {
    ["1", "2"].iter().any(|number| {
        let with = draft
            .blocking_questions()
            .filter(|question| question.offers.len() <= 2 && !question.offers.is_empty());
        let answers =
            with.map(|question| Answer { text: (*number).to_owned(), ..Answer::accepting(&question.id) });
        let again = accepted(request, spec, answers.collect());
        let open = again.blocking_questions().next().is_some() || !again.refusals.is_empty();
        !open && behaves(&again, spec, cases).0.is_empty()
    })
}

/// The operator's answer leads to rules.
fn answered(sums: &mut Sums, name: &str, stated: &Value, spec: &Spec, draft: &Draft) {
    let answers = stated["answers"].as_object().unwrap();
    let texts = draft.blocking_questions().zip(answers.values().cycle());
    let given = texts
        .map(|(question, text)| Answer {
            text: text.as_str().unwrap().to_owned(),
            ..Answer::accepting(&question.id)
        })
        .collect();
    let again = accepted(stated["request"].as_str().unwrap(), spec, given);
    let open = again.blocking_questions().next().is_none() && again.refusals.is_empty();
    if open {
        sums.answered += 1;
    }
    sums.lines.push(format!(
        "answered: {name}: {}: {:?}",
        if open { "compiles" } else { "still open" },
        again.meaning
    ));
}

/// What did not get the verdict that was wanted, and whether it was stopped; with the number of cases.
fn behaves(draft: &Draft, spec: &Spec, cases: &Value) -> (Vec<(bool, String)>, usize) {
    let mut files = draft.laid_over(&spec.open_bundle());
    // Attributes have to be declared where principals have them.
    let attributes = "[access]\nattributes = { age = \"integer\" }\n";
    files.get_mut("portcullis.toml").unwrap().extend_from_slice(attributes.as_bytes());
    let mut text = String::from("# Cases\n");
    for (number, case) in cases.as_array().unwrap().iter().enumerate() {
        text.push_str(&format!("\n## {number}\n\n```run\n"));
        if let Some(principal) = case.get("principal") {
            text.push_str(&format!("principal {principal}\n"));
        }
        for call in case["calls"].as_array().unwrap() {
            let verdict = match call["expect"].as_str().unwrap() {
                "hold" => "review",
                other => other,
            };
            text.push_str(&format!(
                "time {}\ncall {} {} => {verdict}\n",
                call["at"].as_str().unwrap(),
                json!(call["tool"]),
                call["args"]
            ));
        }
        text.push_str("```\n");
    }
    let file = CaseFile::parse(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let files: BTreeMap<String, Vec<u8>> = files;
    let report = run_file(&file, &files, &Arc::new(policy::pipeline()));
    let wrong = report.mismatches.iter().map(|mismatch| {
        (mismatch.message.contains("expected allow"), format!("case {}: {}", mismatch.case, mismatch.message))
    });
    (wrong.collect(), file.cases.len())
}

#[test]
fn requests_compile_and_behave_or_are_asked_about() {
    super::install();
    let other = std::env::var_os("PORTCULLIS_REQUESTS").map(PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requests");
    let sums = run(other.as_deref().unwrap_or(&own));
    for line in &sums.lines {
        println!("{line}");
    }
    println!(
        "clear: {} compiled, {} behave in all of their cases, {} asked about, {} of these with the right reading offered; {} cases, {} calls stopped wrongly, {} passed wrongly",
        sums.compiled,
        sums.behave,
        sums.asked_wrongly,
        sums.offered,
        sums.cases,
        sums.stopped_wrongly,
        sums.passed_wrongly
    );
    println!(
        "open: {} asked rightly ({} compile with the operator's answer), {} asked about something else, {} compiled",
        sums.asked_rightly, sums.answered, sums.asked_about_else, sums.compiled_wrongly
    );
    println!("generated: {} runs pass, {} calls do not", sums.generated, sums.generated_wrong);
    println!(
        "mutants: {} killed, {} survive; {} rules are vacuous",
        sums.killed, sums.survivors, sums.vacuous
    );
    if other.is_none() {
        // What is refused although it is clear: a calendar month has no form in a bundle.
        assert!(sums.asked_wrongly <= 2, "{} refused", sums.asked_wrongly);
        let wrong =
            sums.stopped_wrongly + sums.passed_wrongly + sums.compiled_wrongly + sums.asked_about_else;
        assert_eq!((wrong, sums.generated_wrong), (0, 0));
        assert!(sums.generated > 100);
        // An attribute has to be declared by the bundle, and generated tests set none: that rule is not reached.
        assert!(sums.vacuous <= 1 && sums.survivors <= 4, "{} and {}", sums.vacuous, sums.survivors);
    }
}
