//! The draft: what came of a request, before anybody relies on it.

use std::collections::BTreeMap;
use std::ops::Range;

use portcullis_core::id::Digest;
use serde::{Deserialize, Serialize};

use crate::answers::Answer;
use crate::known::{self, KnownTool};
use crate::read::{self, Reading};
use crate::rule::Rule;
use crate::spec::Spec;
use crate::{cases, emit, english, tables};

/// The longest request, in bytes. A page of rules has some four thousand.
pub const REQUEST_BYTES_MAX: usize = 16 << 10;
/// Most rules of one request.
pub const RULES_MAX: usize = 64;

/// What came of a request. It is data: nothing in it has been executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// Its name, which the names of its files begin with.
    pub name: String,
    /// The request as it was written.
    pub request: String,
    /// The request with the answers in it: what was read, and what spans are places of.
    pub read_as: String,
    /// What was answered.
    pub answers: Vec<Answer>,
    /// The tools that it is about.
    pub tools: Vec<KnownTool>,
    /// Who wrote the files.
    pub origin: Origin,
    /// What the request says, where it could be read.
    pub rules: Vec<Rule>,
    /// Files of a bundle by path, which are new in it.
    pub files: BTreeMap<String, String>,
    /// Text for the end of `portcullis.toml`; empty where none is needed.
    pub settings: String,
    /// The generated tests, in the format of `policy test`.
    pub tests: String,
    /// The rules in plain English, one sentence each.
    pub meaning: Vec<String>,
    /// What is open. What was answered, or accepted, is not among it.
    pub questions: Vec<Question>,
    /// What cannot be stated in a bundle, or cannot be read.
    pub refusals: Vec<Refusal>,
}

/// Who wrote the files of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Origin {
    /// This compiler.
    Compiler {
        /// Its version.
        version: String,
    },
    /// A model. The cassette is the record of what it was asked and said.
    Model {
        /// Its name.
        model: String,
        /// SHA-256 of the cassette.
        cassette: Digest,
    },
    /// A person.
    Person {
        /// Who.
        name: String,
    },
}

/// What the request leaves open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// By which it is answered; unique in a draft.
    pub id: String,
    /// What it is about.
    pub about: Topic,
    /// The words of the request, in bytes.
    pub span: Range<usize>,
    /// The question.
    pub text: String,
    /// What is taken where nobody answers, if that is safe to say.
    pub default: Option<String>,
    /// How an answer is put into the request.
    pub put: Put,
    /// Readings of the sentence, in canonical sentences. The number of one is an answer, and never a default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<String>,
}

/// How an answer changes the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Put {
    /// It replaces the words.
    Replace,
    /// It follows the words.
    Append,
    /// It takes the sentence out, where the answer says so, and replaces it otherwise.
    Sentence,
    /// It only says that the default is meant, or which choice is.
    Choice,
}

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// How far back counts.
    Window,
    /// Whose calls are counted together.
    Scope,
    /// Which amount.
    Amount,
    /// In which currency.
    Currency,
    /// Which hours.
    Hours,
    /// Which time zone.
    Zone,
    /// Who.
    Who,
    /// Which tool.
    Tool,
    /// Which argument.
    Argument,
    /// Which of two statements that exclude each other.
    Contradiction,
    /// What a word means.
    Meaning,
    /// Which things are on a list.
    List,
    /// Whether it can be enforced here at all.
    Enforceable,
    /// What becomes of a call that lacks the argument.
    Missing,
    /// Whether a sentence was read rightly, of which some words were not.
    Reading,
    /// A further rule that tests do not tell from this one.
    Mutant,
}

/// A part of the request that is not compiled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// The words, in bytes of the request.
    pub span: Range<usize>,
    /// Why.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl Draft {
    /// Reads a request against the tools and writes files for what it says. Total: what cannot be read is in the draft.
    pub fn compile(name: &str, request: &str, spec: &Spec, answers: &[Answer]) -> Self {
        if let Some(table) = tables::read(request).filter(|_| request.len() <= REQUEST_BYTES_MAX) {
            return Self::of_table(name, request, spec, answers, table);
        }
        let Reading { text, rules, questions, refusals } = read::read(request, spec, answers);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let emitted = emit::emit(name, &rules);
        let mut draft = Self {
            name: name.to_owned(),
            request: request.to_owned(),
            read_as: text,
            answers: answers.to_vec(),
            tools: known::of_spec(spec),
            origin: Origin::Compiler { version },
            tests: cases::markdown(&rules, spec),
            meaning: rules.iter().map(english::sentence).collect(),
            rules,
            files: emitted.files,
            settings: emitted.settings,
            questions,
            refusals,
        };
        draft.tests = draft.tests.replace("# Tests", &format!("# Tests of `{name}`"));
        draft
    }

    /// What came of a request that is a table: nothing in it is open.
    fn of_table(name: &str, request: &str, spec: &Spec, answers: &[Answer], table: tables::Read) -> Self {
        let mut draft = Self {
            name: name.to_owned(),
            request: request.to_owned(),
            read_as: request.to_owned(),
            answers: answers.to_vec(),
            tools: known::of_spec(spec),
            origin: Origin::Compiler { version: env!("CARGO_PKG_VERSION").to_owned() },
            rules: Vec::new(),
            files: BTreeMap::new(),
            settings: String::new(),
            tests: String::new(),
            meaning: Vec::new(),
            questions: Vec::new(),
            refusals: Vec::new(),
        };
        match table {
            Ok(table) => {
                draft.files = [(draft.program_path(), tables::program(&table))].into();
                draft.meaning = tables::sentences(&table);
                let title = format!("# Tests of `{name}`");
                draft.tests = tables::tests(&table, spec).replacen("# Tests", &title, 1);
            }
            Err(refusal) => draft.refusals.push(refusal),
        }
        draft
    }

    /// A program that somebody else wrote for a request. Where the request can be read, its rules give the tests and the
    /// questions that the program is held to; a request that cannot be read needs tests of its author's.
    pub fn of_program(
        name: &str,
        request: &str,
        spec: &Spec,
        answers: &[Answer],
        source: &str,
        origin: Origin,
    ) -> Self {
        let mut draft = Self::compile(name, request, spec, answers);
        draft.files = [(draft.program_path(), source.to_owned())].into();
        draft.settings = String::new();
        draft.origin = origin;
        draft
    }

    /// The open questions that have no default: nobody can accept one.
    pub fn blocking_questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| question.default.is_none())
    }

    /// The tools that it is about.
    pub fn spec(&self) -> Spec {
        known::spec(&self.tools)
    }

    /// The path of a program that somebody else wrote.
    pub fn program_path(&self) -> String {
        format!("programs/{}.star", self.name)
    }

    /// The path of the generated tests in a bundle.
    pub fn tests_path(&self) -> String {
        format!("tests/{}.md", self.name)
    }

    /// The files of a bundle with this draft in it. A file of the draft takes the place of one of the same path.
    pub fn laid_over(&self, base: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
        let mut files = base.clone();
        for (path, text) in &self.files {
            files.insert(path.clone(), text.as_bytes().to_vec());
        }
        if !self.settings.is_empty() {
            let settings = files.entry("portcullis.toml".to_owned()).or_default();
            if !settings.ends_with(b"\n") {
                settings.push(b'\n');
            }
            settings.extend_from_slice(self.settings.as_bytes());
        }
        files
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_program_of_somebody_else_is_held_to_the_same_tests() {
        let spec = Spec::of_json(&json!([{"name": "issue_refund", "arguments": {}}])).unwrap();
        let request = "Only support leads may issue refunds.";
        let own = Draft::compile("refunds", request, &spec, &[]);
        let origin = Origin::Person { name: "ann".to_owned() };
        let source = "def check(action, run, principal):\n    return None\n";
        let theirs = Draft::of_program("refunds", request, &spec, &[], source, origin);
        assert_eq!((&theirs.tests, &theirs.meaning), (&own.tests, &own.meaning));
        assert_eq!(theirs.files.values().collect::<Vec<_>>(), [source]);
        assert!(own.tests.contains("=> deny") && own.tests.contains("=> allow"));
    }
}
