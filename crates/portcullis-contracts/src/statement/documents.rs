//! Statements about what a reply rests on: citations of documents, and quotations, numbers and facts from them.
//!
//! Much that is said of sources is more than code can tell (*every claim is supported*, *cite a peer-reviewed study*), so
//! these recognisers are strict: one word that they do not know, and the statement is judged.

use super::quantity::is_negation;
use super::reading::{Found, Reading};
use super::token::{Kind, Token};
use crate::bound::Bound;
use crate::family::Family;
use crate::verify::OPENING;

const CITE: &[&str] = &["cite", "citation"];
const DOCUMENT: &[&str] = &["document", "doc", "source", "material", "passage", "snippet", "reference"];
/// As they are written: `provided` is known, `provide` asks for something.
const KNOWN: &[&str] = &[
    "known",
    "existing",
    "exist",
    "exists",
    "real",
    "valid",
    "provided",
    "given",
    "supplied",
    "listed",
    "retrieved",
    "available",
    "found",
];
const MADE_UP: &[&str] = &[
    "unknown",
    "invent",
    "invented",
    "fabricate",
    "fabricated",
    "hallucinate",
    "hallucinated",
    "imaginary",
    "fictitious",
    "fake",
    "bogus",
    "unlisted",
    "nonexistent",
    "nonexisting",
    "unsupported",
    "ungrounded",
];
/// Words by which a statement holds at times only.
const CONDITIONS: &[&str] =
    &["if", "unless", "when", "whenever", "where", "wherever", "while", "whether", "except", "until"];
const ONLY: &[&str] = &["only", "solely", "exclusively"];

const CITES: &[&str] = &[
    "cite",
    "citation",
    "document",
    "doc",
    "source",
    "material",
    "passage",
    "snippet",
    "reference",
    "refer",
    "id",
    "identifier",
    "marker",
    "known",
    "existing",
    "exist",
    "real",
    "valid",
    "provided",
    "given",
    "supplied",
    "listed",
    "list",
    "retrieved",
    "available",
    "found",
    "only",
    "solely",
    "exclusively",
    "its",
    "their",
    "back",
    "unknown",
    "invent",
    "fabricate",
    "hallucinate",
    "imaginary",
    "fictitious",
    "fake",
    "bogus",
    "unlisted",
    "nonexistent",
    "nonexisting",
    "name",
    "point",
    "indicate",
    "state",
    "support",
    "correspond",
    "match",
    "least",
    "knowledge",
    "base",
];
const GROUNDED: &[&str] = &[
    "quotation",
    "quote",
    "number",
    "figure",
    "statistic",
    "digit",
    "fact",
    "factual",
    "factually",
    "document",
    "doc",
    "source",
    "material",
    "passage",
    "snippet",
    "reference",
    "cite",
    "citation",
    "text",
    "come",
    "stand",
    "appear",
    "occur",
    "found",
    "match",
    "taken",
    "take",
    "drawn",
    "ground",
    "support",
    "base",
    "consistent",
    "agree",
    "verbatim",
    "copied",
    "traceable",
    "backed",
    "exist",
    "stem",
    "derive",
    "correspond",
    "only",
    "solely",
    "exclusively",
    "known",
    "existing",
    "provided",
    "given",
    "supplied",
    "listed",
    "retrieved",
    "available",
    "invent",
    "fabricate",
    "hallucinate",
    "unsupported",
    "ungrounded",
    "fake",
    "bogus",
    "fictitious",
    "its",
    "their",
    "outside",
    "knowledge",
    "within",
    "inside",
    "directly",
    "word",
];

/// How something goes back to a document.
const RELATIONS: &[&str] = &[
    "come",
    "stand",
    "appear",
    "occur",
    "found",
    "match",
    "take",
    "taken",
    "drawn",
    "verbatim",
    "copied",
    "traceable",
    "exist",
    "stem",
    "derive",
    "correspond",
];
/// As they are written: what asks for something to be there.
const WANTS: &[&str] = &[
    "include", "includes", "contain", "contains", "give", "gives", "provide", "provides", "mention",
    "mentions", "show", "shows",
];

/// Whether a word is written as one of some.
fn raw(token: &Token, words: &[&str]) -> bool {
    token.is_word() && words.iter().any(|word| token.raw.eq_ignore_ascii_case(word))
}

fn any_raw(reading: &Reading, words: &[&str]) -> Option<usize> {
    reading.head().iter().position(|token| raw(token, words))
}

fn negations(reading: &Reading) -> usize {
    reading.head().iter().filter(|token| is_negation(token)).count()
}

/// Whether it speaks of what someone made up.
fn is_made_up(reading: &Reading) -> bool {
    any_raw(reading, MADE_UP).is_some()
        || reading.pair(&["make"], &["up"]).is_some()
        || reading.pair(&["made"], &["up"]).is_some()
        // `made-up`
        || reading.head().windows(3).any(
            |three| matches!(three, [made, dash, up] if made.is(&["made"]) && dash.is_mark('-') && up.is(&["up"])),
        )
}

/// What *made up* leaves over.
fn made_up(reading: &Reading) -> Vec<usize> {
    let up = |at: &usize| reading.head().get(*at).is_some_and(|token| token.is(&["made", "make", "up"]));
    (0..reading.head).filter(|at| is_made_up(reading) && up(at)).collect()
}

/// Whether it speaks of the knowledge base, which is all known documents.
fn says_base(reading: &Reading) -> bool {
    reading.pair(&["knowledge"], &["base"]).is_some()
}

/// Whether documents are said to be known: *known documents*, *documents that were provided*, *documents in the list*.
fn says_known(reading: &Reading) -> bool {
    let head = reading.head();
    (0..head.len()).filter(|&at| head.get(at).is_some_and(|token| token.is(DOCUMENT))).any(|at| {
        let known = |at: usize| head.get(at).is_some_and(|token| raw(token, KNOWN));
        let between = |token: &&Token| {
            token.is(&[
                "that", "which", "you", "we", "i", "on", "in", "of", "from", "the", "a", "our", "your", "id",
            ]) || raw(token, &["are", "is", "were", "was", "been", "have", "has", "do", "does", "cited"])
                || is_negation(token)
        };
        let skipped = head.iter().skip(at + 1).take_while(between).count();
        let after = at + 1 + skipped;
        let listed = head.get(after).is_some_and(|token| raw(token, &["list"]))
            || head.get(after).is_some_and(|token| token.is(&["knowledge"]));
        at.checked_sub(1).is_some_and(known) || known(after) || listed
    })
}

/// Whether the statement is about the citations there are, not about having one: *every citation must …*.
fn is_of_citations(reading: &Reading) -> bool {
    let Some(cited) = any_raw(reading, &["citation", "citations", "cited"]) else { return false };
    let before = reading.head().iter().take(cited);
    let leads = |token: &Token| {
        token.is(DOCUMENT)
            || raw(token, &["every", "each", "all", "any", "the", "of", "that", "which", "are", "is", "its"])
    };
    before.into_iter().all(leads)
}

/// Whether *only* says which documents may be cited.
fn says_only(reading: &Reading) -> bool {
    let head = reading.head();
    let near = |at: usize| {
        head.get(at).is_some_and(|token| token.is(CITE) || token.is(DOCUMENT) || raw(token, KNOWN))
    };
    (0..head.len())
        .filter(|&at| head.get(at).is_some_and(|token| token.is(ONLY)))
        .any(|at| near(at + 1) || near(at + 2) || at.checked_sub(1).is_some_and(near))
}

/// Whether it speaks of citing documents.
fn is_about_citing(reading: &Reading) -> bool {
    let documents = reading.has(DOCUMENT) || says_base(reading);
    let noun = any_raw(reading, &["citation", "citations"]).is_some();
    let verb = any_raw(reading, &["cite", "cites", "citing"]).is_some()
        || reading.pair(&["be", "are", "is"], &["cite"]).is_some()
        || is_of_citations(reading);
    let refers = reading.has(&["document", "doc", "source"])
        && any_raw(reading, &["reference", "references", "refer", "refers"]).is_some();
    let gives = reading.has(&["source"])
        && reading.has(&["give", "include", "provide", "name", "state", "indicate", "show"]);
    let elsewhere = reading.has(&["number", "figure", "statistic", "digit", "fact", "quote", "quotation"]);
    !elsewhere && (noun || verb && documents || refers || gives || documents && is_made_up(reading))
}

/// Whether all documents are meant: *cite all known documents*.
fn says_all(reading: &Reading) -> bool {
    let head = reading.head();
    let all = |token: &Token| raw(token, &["all", "every", "each", "both"]);
    let between = |token: &&Token| raw(token, &["of", "the", "these", "your"]) || raw(token, KNOWN);
    (0..head.len()).filter(|&at| head.get(at).is_some_and(all)).any(|at| {
        let skipped = head.iter().skip(at + 1).take_while(between).count();
        head.get(at + 1 + skipped).is_some_and(|token| token.is(DOCUMENT))
    })
}

/// Citations: that there are some, that they name known documents.
pub(super) fn cites(reading: &Reading) -> Option<Found> {
    if !is_about_citing(reading) {
        return None;
    }
    let (present, known) = demand(reading)?;
    let shape = |token: &Token| matches!(&token.kind, Kind::Literal(text) if text.starts_with(OPENING) && text.ends_with(']'));
    let shapes = (0..reading.head).filter(|&at| reading.head().get(at).is_some_and(shape));
    let counted = reading.quantities.iter().flat_map(|quantity| quantity.start..quantity.end);
    let mut found = Found::new(Family::Cites { present, known }, CITES)
        .using(shapes)
        .using(counted)
        .using(made_up(reading))
        .strictly();
    let several = |bound: Bound, is_explicit: bool| {
        bound != Bound::at_least(1) && (bound != Bound::exactly(1) || is_explicit)
    };
    let counts = reading.quantities.iter().any(|quantity| several(quantity.bound, quantity.is_explicit));
    if counts || present && says_all(reading) {
        found.obstacle = Some("how many documents are cited is not checked, only whether one is".to_owned());
    } else {
        found.obstacle = on_a_condition(reading);
    }
    let may = any_raw(reading, &["may", "can"]).is_some();
    if !present && says_only(reading) && negations(reading) == 0 && !is_of_citations(reading) && !may {
        found = found
            .note("`only` is read as a bound on what is cited; that something is cited is another statement");
    }
    Some(found)
}

/// Whether a citation is demanded, and whether citations have to be of known documents, or `None` for other statements.
fn demand(reading: &Reading) -> Option<(bool, bool)> {
    let (negations, made_up) = (negations(reading), is_made_up(reading));
    let of_citations = is_of_citations(reading);
    let valid = of_citations && any_raw(reading, &["real", "valid", "known", "existing", "exist"]).is_some();
    let known = says_known(reading) || says_base(reading) || valid;
    // `without a citation`, `without citing`
    let without = reading.head().windows(3).any(|three| {
        matches!(three, [first, rest @ ..] if first.is(&["without"]) && rest.iter().any(|token| token.is(CITE)))
    });
    let others = reading.pair(&["other"], &["than"]).is_some() && known;
    match negations {
        0 if made_up => None,
        0 if known && (of_citations || says_only(reading)) => Some((false, true)),
        0 => Some((true, known)),
        1 if made_up || others => Some((false, true)),
        2 if without => Some((true, known)),
        2 if known => Some((false, true)),
        _ => None,
    }
}

/// What a statement about sources speaks of.
#[derive(Clone, Copy)]
struct Subject {
    quotations: bool,
    numbers: bool,
    facts: bool,
    /// The reply is said to be grounded, as a whole where nothing else is named.
    ground: bool,
}

impl Subject {
    fn of(reading: &Reading) -> Self {
        Self {
            quotations: reading.has(&["quote", "quotation"]),
            numbers: reading.has(&["number", "figure", "statistic", "digit"]),
            facts: reading.has(&["fact", "factual", "factually"]),
            ground: reading.has(&["ground", "support", "backed"])
                || reading.has(&["base"]) && !says_base(reading),
        }
    }

    const fn is_whole(self) -> bool {
        !(self.quotations || self.numbers || self.facts)
    }
}

/// Whether all of it has to come from the documents; to have some of it is another statement.
fn is_bound(reading: &Reading, subject: Subject) -> bool {
    let negations = negations(reading);
    let object = reading.has(DOCUMENT) || reading.has(CITE) || says_base(reading);
    let only = reading.has(ONLY);
    let agrees = reading.has(&["consistent", "agree"]);
    let relates = subject.ground
        || agrees
        || reading.has(RELATIONS)
        || (negations > 0 || only) && reading.has(&["from", "in"]);
    let wants = any_raw(reading, WANTS).is_some() && negations == 0
        || reading.has(&["use"]) && negations == 0 && !only
        || reading.pair(&["number"], &["of"]).is_some();
    let apart = reading.pair(&["other"], &["than"]).is_some() || reading.has(&["outside"]);
    if wants || subject.is_whole() && !(subject.ground || agrees) {
        return false;
    }
    match negations {
        0 => object && relates && !is_made_up(reading),
        // What is made up of facts is more than their terms can tell.
        1 => {
            is_made_up(reading) && (subject.quotations || subject.numbers) && !subject.facts
                || object && relates && apart
        }
        2 => object && relates && !subject.is_whole(),
        _ => false,
    }
}

/// Quotations, numbers and facts from the documents that are cited.
pub(super) fn grounded(reading: &Reading) -> Option<Found> {
    let subject = Subject::of(reading);
    let excluded = reading.has(&["mark", "bracket"]) || !reading.quantities.is_empty();
    if excluded || !is_bound(reading, subject) {
        return None;
    }
    let Subject { quotations, numbers, facts, ground } = subject;
    let whole = subject.is_whole();
    let family = match whole && ground {
        true => Family::Grounded { quotations: true, numbers: true, facts: false },
        false => Family::Grounded { quotations, numbers, facts: facts || whole },
    };
    let proxy = matches!(family, Family::Grounded { facts: true, .. });
    let mut found = Found::new(family, GROUNDED).using(made_up(reading)).strictly();
    found.obstacle = on_a_condition(reading);
    if whole && ground {
        found = found.note("only quotations and numbers are looked up");
    }
    if proxy {
        found = found
            .note("facts are not understood: the key terms of the prompt are looked for in what is cited");
    }
    if !reading.has(CITE) {
        found = found.note("the documents are read as those that the reply cites");
    }
    Some(found)
}

fn on_a_condition(reading: &Reading) -> Option<String> {
    reading.has(CONDITIONS).then(|| "it holds only under a condition, which code cannot check".to_owned())
}
