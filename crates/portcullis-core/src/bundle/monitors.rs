//! What the monitors of a run know of the world: concepts, patterns over them, weights. `monitors.toml`.
//!
//! ```toml
//! [weights]
//! malicious = 0.4                         # of the patterns that match, in the intent score
//!
//! [[concept]]
//! name = "conceal"
//! words = ["secretly", "without * noticing", "nobody|no-one will know"]
//!
//! [[pattern]]
//! name = "break-in"
//! family = "intrusion"
//! needs = ["enter|pick-lock", "of-another"]   # each of them; `a|b` is either; `seen:x` in a result, `earlier:x` in a
//!                                         # turn, `since:x` in a turn after a result that told of a restriction
//! unless = ["defence"]                    # then it counts a quarter
//! matches = 1                             # malicious matches that it counts for, 0 to 3
//! cues = 1                                # sensitive cues that it counts for, 0 to 3
//! risk = 0.7                              # of what is asked for
//! on = "input"                            # or "call", "result"; the first two if left out
//! violation = false                       # whether one match is a violation
//! ```
//!
//! Words are compared without regard to case, spelling tricks and endings; `*` stands for up to four words, `a|b` for
//! either, `a:` for a word with a colon after it. What a bundle says is added to what ships: words to a concept of the same name, and a pattern of the same name
//! is replaced. With `replace = true` nothing of what ships remains.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use super::diagnostic::Diagnostic;
use super::placed::name_field;
use super::toml_table::{Field, File, Table};
use crate::limits::{CONCEPT_WORDS_MAX, CONCEPTS_MAX, PATTERNS_MAX, RESULT_PATTERNS_MAX};

const BUILT_IN_NAME: &str = "monitors.toml";

/// Concepts that the monitors set themselves: what a call would do, and what has come about in the run.
pub const ACTS: [&str; 18] = [
    "act-send",
    "act-secret",
    "act-wipe",
    "act-own-rules",
    "act-trail",
    "act-beside",
    "act-change",
    "act-read",
    "address",
    "act-run",
    "act-destroy",
    "act-outside",
    "act-after-talk",
    "learned-some",
    "learned-much",
    "learned-grave",
    "asked",
    "restricted-twice",
];

/// `monitors.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct MonitorSettings {
    /// How the intent score is made.
    pub weights: Weights,
    /// Concepts by name, with their phrases.
    pub concepts: BTreeMap<String, Vec<String>>,
    /// Patterns in order.
    pub patterns: Vec<Pattern>,
}

/// Weights and thresholds of the intent score. Thresholds other than `warn` are multiplied by 1 - s/2, where s is the
/// sensitivity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// 0 to 1.
    pub sensitivity: f64,
    /// Of malicious patterns.
    pub malicious: f64,
    /// Of risky words.
    pub keywords: f64,
    /// Of the risk of what is asked for.
    pub action: f64,
    /// The score from which a warning is noted.
    pub warn: f64,
    /// The score from which the run pauses.
    pub soft: f64,
    /// The score from which the run ends.
    pub hard: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { sensitivity: 0.5, malicious: 0.4, keywords: 0.3, action: 0.3, warn: 0.2, soft: 0.4, hard: 0.7 }
    }
}

/// Concepts that together mean something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Unique name.
    pub name: String,
    /// Which harm it belongs to.
    pub family: String,
    /// Each must be there; the inner list are alternatives.
    pub needs: Vec<Vec<Need>>,
    /// Concepts of the same turn with which it counts a quarter.
    pub unless: Vec<String>,
    /// Concepts of the same turn with which it does not count.
    pub never: Vec<String>,
    /// Where it is looked for.
    pub on: Places,
    /// Malicious matches that it counts for.
    pub matches: u32,
    /// Sensitive cues that it counts for.
    pub cues: u32,
    /// Risk of what is asked for, in thousandths.
    pub risk_permille: u32,
    /// Whether a match is a violation.
    pub violation: bool,
}

/// Where a pattern is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// What the user says.
    pub input: bool,
    /// Arguments and planned text of calls, with what they would do.
    pub call: bool,
    /// Results of tools. Such a pattern counts for nothing by itself: other patterns ask for it by `seen:NAME`.
    pub result: bool,
}

/// A concept and where it must have been met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The concept.
    pub concept: String,
    /// Where.
    pub met: Met,
}

/// Where a concept was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// In what is pending.
    Here,
    /// In this or an earlier turn of the user's.
    Earlier,
    /// In the result of a tool.
    Seen,
    /// In a user turn after a result that reported a restriction.
    Since,
}

impl MonitorSettings {
    /// The file that ships.
    pub const BUILT_IN: &'static str = include_str!("monitors.toml");

    /// What ships, read.
    pub fn built_in() -> Arc<Self> {
        static SETTINGS: OnceLock<Arc<MonitorSettings>> = OnceLock::new();
        Arc::clone(SETTINGS.get_or_init(|| {
            // A test holds that the file has no mistake; with one it would know nothing.
            Arc::new(parse(BUILT_IN_NAME, Self::BUILT_IN, None).0)
        }))
    }
}

impl Default for MonitorSettings {
    fn default() -> Self {
        Self::built_in().as_ref().clone()
    }
}

/// Reads `monitors.toml` of a bundle.
pub(super) fn read(path: &str, text: &str, diagnostics: &mut Vec<Diagnostic>) -> MonitorSettings {
    let (settings, mistakes) = parse(path, text, Some(&MonitorSettings::built_in()));
    diagnostics.extend(mistakes);
    settings
}

fn parse(path: &str, text: &str, base: Option<&MonitorSettings>) -> (MonitorSettings, Vec<Diagnostic>) {
    let file = File::new(path, text);
    let parsed = file.parse();
    let empty =
        || MonitorSettings { weights: Weights::default(), concepts: BTreeMap::new(), patterns: Vec::new() };
    let settings = parsed.as_ref().map(|parsed| {
        let mut table = Table::new(&file, "file", 0..0, parsed.get_ref());
        let replace = table.boolean("replace").unwrap_or(false);
        let mut settings = base.filter(|_| !replace).cloned().unwrap_or_else(empty);
        if let Some(weights) = table.table("weights") {
            settings.weights = read_weights(weights, settings.weights);
        }
        for concept in table.tables("concept") {
            read_concept(&file, concept, &mut settings);
        }
        let patterns = table.tables("pattern");
        read_patterns(&file, patterns, &mut settings);
        table.finish();
        settings
    });
    drop(parsed);
    (settings.unwrap_or_else(empty), file.finish())
}

fn read_weights(mut table: Table<'_, '_>, base: Weights) -> Weights {
    let weights = Weights {
        sensitivity: table.fraction("sensitivity").unwrap_or(base.sensitivity),
        malicious: table.fraction("malicious").unwrap_or(base.malicious),
        keywords: table.fraction("keywords").unwrap_or(base.keywords),
        action: table.fraction("action").unwrap_or(base.action),
        warn: table.fraction("warn").unwrap_or(base.warn),
        soft: table.fraction("soft").unwrap_or(base.soft),
        hard: table.fraction("hard").unwrap_or(base.hard),
    };
    table.finish();
    weights
}

fn read_concept(file: &File<'_>, mut table: Table<'_, '_>, settings: &mut MonitorSettings) {
    let name = name_field(file, &mut table, "name");
    let words = table.strings("words");
    if words.is_none() {
        table.missing("words");
    }
    table.finish();
    let (Some(name), Some(words)) = (name, words) else { return };
    if ACTS.contains(&name.value.as_str()) {
        let message =
            format!("the concept `{}` is reserved: monitors set it from the effects of a call", name.value);
        file.report(file.at(name.span.clone(), message).help("choose another name"));
    }
    for word in words.iter().filter(|word| !word.value.chars().any(char::is_alphanumeric)) {
        file.report(file.at(word.span.clone(), format!("`{}` contains no word", word.value)));
    }
    let known = settings.concepts.entry(name.value).or_default();
    known.extend(words.into_iter().map(|word| word.value));
    if known.len() > CONCEPT_WORDS_MAX || settings.concepts.len() > CONCEPTS_MAX - ACTS.len() {
        let message = format!("more than {CONCEPT_WORDS_MAX} words in a concept, or {CONCEPTS_MAX} concepts");
        file.report(file.at(name.span, message));
    }
}

fn read_patterns(file: &File<'_>, tables: Vec<Table<'_, '_>>, settings: &mut MonitorSettings) {
    let mut names = BTreeSet::new();
    for mut table in tables {
        let span = table.span.clone();
        let name = name_field(file, &mut table, "name");
        let family = name_field(file, &mut table, "family");
        let needs = table.strings("needs");
        if needs.is_none() {
            table.missing("needs");
        }
        let unless = concepts(file, table.strings("unless"), settings);
        let never = concepts(file, table.strings("never"), settings);
        let place = |input, call, result| Places { input, call, result };
        let places = [
            ("input", place(true, false, false)),
            ("call", place(false, true, false)),
            ("result", place(false, false, true)),
        ];
        let on = table.word("on", &places).unwrap_or(place(true, true, false));
        let mut count = |field: &'static str, default| table.integer(field, 0).unwrap_or(default);
        let (matches, cues) = (count("matches", 0).min(3), count("cues", 0).min(3));
        let risk = table.fraction("risk").unwrap_or(0.0);
        let violation = table.boolean("violation").unwrap_or(false);
        table.finish();
        let needs: Vec<Vec<Need>> =
            needs.unwrap_or_default().iter().map(|need| alternatives(file, need, settings)).collect();
        let (Some(name), Some(family)) = (name, family) else { continue };
        if !names.insert(name.value.clone()) {
            file.report(
                file.at(name.span.clone(), format!("the pattern name `{}` is used twice", name.value)),
            );
        }
        if !needs.iter().flatten().any(|need| need.met == Met::Here) {
            file.report(
                file.at(span, "a pattern needs a concept for the pending action, not only for earlier ones"),
            );
        }
        let pattern = Pattern {
            name: name.value,
            family: family.value,
            needs,
            unless,
            never,
            on,
            matches,
            cues,
            // At most 1000, so the cast cannot cut anything off.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
            risk_permille: (risk * 1_000.0).round() as u32,
            violation,
        };
        match settings.patterns.iter_mut().find(|known| known.name == pattern.name) {
            Some(known) => *known = pattern,
            None => settings.patterns.push(pattern),
        }
        let of_results = settings.patterns.iter().filter(|pattern| pattern.on.result).count();
        if settings.patterns.len() > PATTERNS_MAX || of_results > RESULT_PATTERNS_MAX {
            let message =
                format!("more than {PATTERNS_MAX} patterns, or {RESULT_PATTERNS_MAX} result patterns");
            file.report(file.at(name.span, message));
            return;
        }
    }
}

fn concepts(file: &File<'_>, names: Option<Vec<Field<String>>>, settings: &MonitorSettings) -> Vec<String> {
    let names = names.unwrap_or_default();
    for name in names.iter().filter(|name| !settings.concepts.contains_key(&name.value)) {
        unknown(file, name, &name.value, settings);
    }
    names.into_iter().map(|name| name.value).collect()
}

fn alternatives(file: &File<'_>, need: &Field<String>, settings: &MonitorSettings) -> Vec<Need> {
    let each = need.value.split('|').map(|part| {
        let (met, name) = match part.split_once(':') {
            Some(("earlier", name)) => (Met::Earlier, name),
            Some(("seen", name)) => (Met::Seen, name),
            Some(("since", name)) => (Met::Since, name),
            _ => (Met::Here, part),
        };
        let result = |pattern: &Pattern| pattern.on.result && pattern.name == name;
        let read_before = met == Met::Seen && settings.patterns.iter().any(result);
        if !settings.concepts.contains_key(name) && !ACTS.contains(&name) && !read_before {
            unknown(file, need, name, settings);
        }
        Need { concept: name.to_owned(), met }
    });
    each.collect()
}

fn unknown(file: &File<'_>, at: &Field<String>, name: &str, settings: &MonitorSettings) {
    let known = settings.concepts.keys().map(String::as_str).chain(ACTS);
    let diagnostic = file.at(at.span.clone(), format!("there is no concept `{name}`"));
    file.report(diagnostic.did_you_mean(name, known));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ships_has_no_mistake() {
        let (settings, mistakes) = parse(BUILT_IN_NAME, MonitorSettings::BUILT_IN, None);
        assert!(mistakes.is_empty(), "{mistakes:#?}");
        assert!(settings.concepts.len() > 20 && settings.patterns.len() > 20);
    }

    #[test]
    fn a_bundle_adds_and_replaces() {
        let text = "[weights]\nsensitivity = 1\n[[concept]]\nname = 'conceal'\nwords = ['sub rosa']\n\
                    [[pattern]]\nname = 'mine'\nfamily = 'x'\nneeds = ['conceal']\nmatches = 2\nrisk = 0.5\n";
        let mut mistakes = Vec::new();
        let settings = read("monitors.toml", text, &mut mistakes);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        assert!(settings.concepts["conceal"].iter().any(|word| word == "sub rosa"));
        assert_eq!(settings.patterns.len(), MonitorSettings::built_in().patterns.len() + 1);
        let alone = read("monitors.toml", &format!("replace = true\n{text}"), &mut mistakes);
        assert_eq!((alone.patterns.len(), alone.concepts.len()), (1, 1));
        assert_eq!(alone.patterns[0].risk_permille, 500);
    }

    #[test]
    fn mistakes_have_their_place_and_the_nearest_name() {
        let text = "[[pattern]]\nname = 'a'\nfamily = 'x'\nneeds = ['conceel']\nmatchs = 1\n";
        let mut mistakes = Vec::new();
        read("monitors.toml", text, &mut mistakes);
        let shown: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "monitors.toml:5:1: unknown field `matchs` in the pattern (did you mean `matches`?)",
                "monitors.toml:4:10: there is no concept `conceel` (did you mean `conceal`?)",
            ]
        );
    }
}
