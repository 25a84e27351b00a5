//! `cargo xtask detector SETS`: the shipped models of the detector, from the sets they are trained on.
//!
//! SETS is a folder with the public sets, one folder a set, as `docs/models/` names them. What is taken from each stands
//! in [`orders`] and [`overrides`]: sets without a licence that allows it are measured on and never trained on. The
//! texts go to `target/detector/`, the grammars of `crates/portcullis-detect/data/` come first, and `portcullis train`
//! does the rest. The same sets give the same models.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::process::{Failure, Program, Result, doing, root};

/// Every how manieth text is kept for the threshold.
const HOLD_OUT: &str = "5";
/// The heads, each with the share of what is innocent that may be flagged.
const HEADS: [(&str, &str); 2] = [("order", "0.01"), ("override", "0.0125")];

const AGENTDOJO: &[&str] =
    &["agentdojo_suites/agentdojo_suites_v1.2.2.json", "agentdojo_suites/agentdojo_suites_v1.json"];
const AGENTDYN: &str = "agentdojo_suites/agentdyn_suites.json";

/// One text and its label.
type Labelled = (String, bool);

/// Trains both heads into `crates/portcullis-detect/models/`, or without some sets into `target/detector/`.
///
/// # Errors
/// A set is missing, or a program fails.
pub(crate) fn run(sets: &Path, without: Option<&str>) -> Result<()> {
    let sets = Sets { root: sets.to_path_buf(), without: without.unwrap_or_default() };
    let work = root().join("target/detector");
    doing("create `target/detector`", fs::create_dir_all(&work))?;
    let data = |head: &str| work.join(format!("{head}.jsonl"));
    write(&data("order"), orders(&sets)?)?;
    write(&data("override"), overrides(&sets)?)?;
    let folder =
        if without.is_some() { work.clone() } else { root().join("crates/portcullis-detect/models") };
    for (head, fpr) in HEADS {
        let grammar = root().join(format!("crates/portcullis-detect/data/{head}-training.toml"));
        let out = folder.join(format!("{head}.model"));
        let paths = [grammar, data(head), out].map(|path| path.display().to_string());
        let [grammar, data, out] = paths.each_ref().map(String::as_str);
        Program::cargo([
            "run",
            "--quiet",
            "--package",
            "portcullis",
            "--",
            "train",
            "--head",
            head,
            "--data",
            grammar,
            "--data",
            data,
            "--hold-out",
            HOLD_OUT,
            "--fpr",
            fpr,
            "--out",
            out,
        ])
        .run()?;
    }
    Ok(())
}

/// The folder of the sets.
struct Sets<'a> {
    root: PathBuf,
    /// Names of sets that are left out, parted by commas.
    without: &'a str,
}

impl Sets<'_> {
    fn has(&self, set: &str) -> bool {
        !self.without.split(',').any(|left_out| left_out == set)
    }

    fn text(&self, file: &str) -> Result<String> {
        let path = self.root.join(file);
        if !file.ends_with(".gz") {
            return doing(&format!("read `{}`", path.display()), fs::read_to_string(&path));
        }
        let output = doing("start gzip", Command::new("gzip").arg("-dc").arg(&path).output())?;
        if !output.status.success() {
            return Err(Failure::new(format!("gzip cannot read `{}`", path.display())));
        }
        doing(&format!("read `{}`", path.display()), String::from_utf8(output.stdout))
    }

    fn whole(&self, file: &str) -> Result<Value> {
        doing(&format!("read `{file}`"), serde_json::from_str(&self.text(file)?))
    }

    fn lines(&self, file: &str) -> Result<Vec<Value>> {
        let text = self.text(file)?;
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| doing(&format!("read `{file}`"), serde_json::from_str(line))).collect()
    }
}

/// For the order head: orders of the grammar and of a set that is split for training, against what tools and mails say.
/// The sets by whose attacks the gate is measured are not among them.
fn orders(sets: &Sets<'_>) -> Result<Vec<Labelled>> {
    let mut texts = Vec::new();
    if sets.has("bipia") {
        texts.extend(
            strings(Some(&sets.whole("bipia/text_attack_train.json")?)).into_iter().map(|text| (text, true)),
        );
    }
    texts.extend(mails(sets)?);
    if sets.has("tau_bench") {
        for run in sets.lines("tau_bench/gpt-4o-airline_trajectories.jsonl.gz")? {
            texts.extend(said_by(list(&run, "traj"), "tool"));
        }
    }
    Ok(texts)
}

/// For the override head: what users ask of assistants, and mails; the attacks are the grammar's alone.
fn overrides(sets: &Sets<'_>) -> Result<Vec<Labelled>> {
    let mut texts = fields(&sets.lines("ifeval/input_data.jsonl")?, "prompt", false);
    texts.extend(mails(sets)?);
    if sets.has("bipia") {
        texts.extend(
            strings(Some(&sets.whole("bipia/text_attack_train.json")?)).into_iter().map(|text| (text, false)),
        );
    }
    for file in suites(sets) {
        for suite in sets.whole(file)?.as_object().into_iter().flat_map(|suites| suites.values()) {
            texts.extend(fields(list(suite, "user_tasks"), "prompt", false));
            let shown = strings(suite.get("environment")).into_iter();
            texts.extend(
                shown.filter(|text| text.split_whitespace().nth(5).is_some()).map(|text| (text, false)),
            );
        }
    }
    if sets.has("injecagent") {
        texts.extend(fields(&sets.lines("injecagent/user_cases.jsonl")?, "User Instruction", false));
    }
    if sets.has("tau_bench") {
        for run in sets.lines("tau_bench/gpt-4o-airline_trajectories.jsonl.gz")? {
            texts.extend(said_by(list(&run, "traj"), "user"));
        }
    }
    Ok(texts)
}

fn suites(sets: &Sets<'_>) -> Vec<&'static str> {
    let dojo = AGENTDOJO.iter().copied().filter(|_| sets.has("agentdojo"));
    dojo.chain(Some(AGENTDYN).filter(|_| sets.has("agentdyn"))).collect()
}

fn mails(sets: &Sets<'_>) -> Result<Vec<Labelled>> {
    let mut texts = Vec::new();
    if sets.has("llmail") {
        texts.extend(fields(&sets.lines("llmail_benign_emails/emails.jsonl.gz")?, "email", false));
    }
    if sets.has("bipia") {
        texts.extend(fields(&sets.lines("bipia/email_train.jsonl")?, "context", false));
    }
    Ok(texts)
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn fields(records: &[Value], field: &str, label: bool) -> Vec<Labelled> {
    let texts = records.iter().filter_map(|record| record.get(field)?.as_str());
    texts.map(|text| (text.to_owned(), label)).collect()
}

/// What messages of a role say, all of it innocent.
fn said_by(messages: &[Value], role: &str) -> Vec<Labelled> {
    let messages =
        messages.iter().filter(|message| message.get("role").and_then(Value::as_str) == Some(role));
    messages
        .map(|message| match message.get("content") {
            Some(Value::Array(parts)) => {
                fields(parts, "text", false).into_iter().map(|(text, _)| text).collect()
            }
            content => content.and_then(Value::as_str).unwrap_or_default().to_owned(),
        })
        .map(|text| (text, false))
        .collect()
}

/// All strings of a value.
fn strings(value: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<&Value> = value.into_iter().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Array(items) => open.extend(items.iter().rev()),
            Value::Object(items) => open.extend(items.values().rev()),
            _ => {}
        }
    }
    found
}

fn write(path: &Path, texts: Vec<Labelled>) -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut out = String::new();
    for (text, label) in texts {
        if !text.trim().is_empty() && seen.insert(text.clone()) {
            out.push_str(&json!({"text": text, "label": label}).to_string());
            out.push('\n');
        }
    }
    doing(&format!("write `{}`", path.display()), fs::write(path, out))
}
