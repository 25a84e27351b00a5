//! Cases in Markdown: below a heading, a fenced block in the language under test and a block `effects` with one
//! effect a line, in any order:
//!
//! ````markdown
//! ## the dot-dot leads out of the workspace
//! ```sh
//! rm -rf ../x
//! ```
//! ```effects
//! delete path /home/u/x (force, recursive)
//! ```
//! ````
//!
//! In brackets stand attributes: those that are true by name, other values as `name=value`; of `resolved`,
//! `known` and `catalogued` it is said when they are false: `not known`. The workspace and working directory is
//! `/home/u/project`, home is `/home/u`. A file `cases/X.toml` beside `X.md` is the bundle's further files in one:
//! a table from path to text; a path that ends in `/` takes the files of a folder
//! instead, and `scope` is the one that literal activities get for the test. `BLESS=1` writes what came out into the files, for reading before committing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use portcullis_core::bundle::Bundle;
use portcullis_core::effect::{Effect, Effects};
use portcullis_core::principal::Attribute;
use portcullis_effects::{Sink, Surroundings, activity, code, mail, place, shell, sql, url};

const SAID_WHEN_FALSE: [&str; 3] = ["resolved", "known", "catalogued"];

pub(crate) fn describe(effect: &Effect) -> String {
    let mut notes = Vec::new();
    for (name, value) in effect.resource.attributes.iter().chain(&effect.attributes) {
        match value {
            Attribute::Boolean(flag) if SAID_WHEN_FALSE.contains(name) => {
                if !flag {
                    notes.push(format!("not {name}"));
                }
            }
            Attribute::Boolean(true) => notes.push((*name).to_owned()),
            Attribute::Boolean(false) => {}
            Attribute::Integer(value) => notes.push(format!("{name}={value}")),
            Attribute::Decimal(value) => notes.push(format!("{name}={value}")),
            // Reasons are for people; cases do not pin their wording.
            Attribute::Text(_) if *name == "why" => {}
            Attribute::Text(value) => notes.push(format!("{name}={value}")),
        }
    }
    notes.sort();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    format!("{effect}{notes}")
}

pub(crate) fn bundle(beside: &Path) -> Bundle {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    files.insert("portcullis.toml".into(), b"version = 1\n".to_vec());
    let policy = "[[policy]]\nname = \"p\"\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 0\n";
    files.insert("policies/p.toml".into(), policy.into());
    if let Ok(text) = std::fs::read_to_string(beside) {
        let more: serde_json::Map<String, serde_json::Value> = toml::from_str(&text).unwrap();
        for (path, text) in more {
            let text = text.as_str().unwrap();
            if path == "scope" {
                let scope = |file: &[u8]| {
                    let other = std::str::from_utf8(file).unwrap();
                    other.replace("scope = \"literal\"", &format!("scope = \"{text}\"")).into_bytes()
                };
                files.values_mut().for_each(|file| *file = scope(file));
                continue;
            }
            match path.strip_suffix('/') {
                Some(folder) => files.extend(folder_files(folder, &beside.with_file_name(text))),
                None => drop(files.insert(path, text.as_bytes().to_vec())),
            }
        }
    }
    Bundle::load(&files).unwrap_or_else(|mistakes| panic!("{}: {mistakes:?}", beside.display()))
}

/// The files of a folder under a name within the bundle.
fn folder_files(name: &str, folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let file = |path: PathBuf| {
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        (format!("{name}/{file}"), std::fs::read(path).unwrap())
    };
    entries.map(|entry| file(entry.unwrap().path())).collect()
}

pub(crate) fn effects_of(language: &str, text: &str, bundle: &Bundle) -> Effects {
    let surroundings = Surroundings {
        settings: &bundle.effects,
        workspace: Some("/home/u/project"),
        home: Some("/home/u"),
        directory: Some("/home/u/project"),
    };
    let mut effects = Effects::none();
    let mut sink = Sink::new(&mut effects, "/arguments/text");
    match language {
        "sh" => shell::read(text, &surroundings, &mut sink),
        "sql" => sql::read(text, &surroundings, &mut sink),
        "python" => code::read(text, &surroundings, &mut sink),
        "path" => place::read(text, &surroundings, &mut sink),
        "url" => url::read(text, &surroundings, &mut sink),
        "email" => mail::read(text, &surroundings, &mut sink),
        "task" => activity::read(text, &surroundings, &mut sink),
        other => panic!("no reader for `{other}`"),
    }
    for effect in effects.iter() {
        let span = effect.span.as_ref().unwrap();
        assert!(text.get(span.start..span.end).is_some(), "{text:?}: {effect} is placed outside of the text");
    }
    effects
}

fn markdown_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            markdown_files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            into.push(path);
        }
    }
}

pub(crate) fn run_all() {
    let mut files = Vec::new();
    markdown_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases"), &mut files);
    files.sort();
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = String::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let bundle = bundle(&file.with_extension("toml"));
        let blessed = run_file(file, &text, &bundle, &mut wrong);
        if bless && blessed != text {
            std::fs::write(file, blessed).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Runs one file; returns it with the effects that came out.
fn run_file(file: &Path, text: &str, bundle: &Bundle, wrong: &mut String) -> String {
    let mut blessed = String::new();
    let mut heading = "";
    let mut got: Option<Vec<String>> = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        blessed.push_str(line);
        blessed.push('\n');
        if let Some(title) = line.strip_prefix("## ") {
            heading = title;
        }
        let Some(language) = line.strip_prefix("```").filter(|language| !language.is_empty()) else {
            continue;
        };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if language == "effects" {
            let got = got.take().unwrap_or_else(|| panic!("{}: effects of nothing", file.display()));
            let mut want: Vec<&str> = body.iter().copied().filter(|line| !line.is_empty()).collect();
            want.sort_unstable();
            let mut sorted = got.clone();
            sorted.sort();
            if want != sorted {
                let _ = writeln!(
                    wrong,
                    "{}: {heading}\n  expected\n    {}\n  found\n    {}",
                    file.display(),
                    want.join("\n    "),
                    sorted.join("\n    ")
                );
            }
            blessed.extend(got.iter().map(|line| format!("{line}\n")));
        } else {
            let effects = effects_of(language, &body.join("\n"), bundle);
            got = Some(effects.iter().map(describe).collect());
            blessed.extend(body.iter().map(|line| format!("{line}\n")));
        }
        blessed.push_str("```\n");
    }
    blessed
}

/// A case without its expectation.
pub(crate) struct Case {
    pub(crate) heading: String,
    pub(crate) text: String,
    pub(crate) effects: Effects,
}

/// All cases in one language, with the effects that are read now.
pub(crate) fn of_language(language: &str) -> Vec<Case> {
    let mut files = Vec::new();
    markdown_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases"), &mut files);
    files.sort();
    let mut found = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let bundle = bundle(&file.with_extension("toml"));
        let mut heading = String::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(title) = line.strip_prefix("## ") {
                heading = title.to_owned();
            }
            let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            if info == language {
                let text = body.join("\n");
                let effects = effects_of(language, &text, &bundle);
                found.push(Case { heading: heading.clone(), text, effects });
            }
        }
    }
    found
}
