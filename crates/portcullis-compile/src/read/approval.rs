//! That a person has to agree, and who.

use std::ops::Range;

use super::lexicon::sense;
use super::look::Look;
use super::people;
use super::tools::Tools;

/// That a person has to agree.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Approval {
    /// The role of who may.
    pub(super) by: Vec<String>,
    /// Words that do not say who.
    pub(super) vague: Option<Range<usize>>,
    /// The words.
    pub(super) range: Range<usize>,
    /// Whether it is said that none is needed.
    pub(super) none: bool,
}

const NOUNS: &str = "approval|approvals|sign-off|signoff|consent|go-ahead|authorisation|authorization|permission|confirmation|clearance|countersignature|blessing|agreement";
const DONE: &str = "approved|signed-off|confirmed|authorised|authorized|okayed|ok'd|cleared|countersigned|vetted|agreed|greenlit|rubber-stamped";
const ADJECTIVES: &[&str] = &[
    "written",
    "prior",
    "explicit",
    "manual",
    "formal",
    "additional",
    "second",
    "extra",
    "express",
    "a",
    "an",
    "the",
    "our",
    "your",
    "some",
    "any",
    "first",
    "of",
    "by",
    "from",
];
const HUMANS: &[&str] = &[
    "human",
    "person",
    "somebody",
    "someone",
    "me",
    "us",
    "operator",
    "people",
    "hand",
    "user",
    "one",
    "else",
    "colleague",
];

/// Words that no name of a role has.
const NO_NAMES: &[&str] = &[
    "be", "by", "for", "to", "they", "whenever", "while", "is", "are", "been", "more", "than", "person",
    "in", "not",
];

/// Roles that read as names.
fn plain(by: Vec<String>) -> Vec<String> {
    let fits = |name: &String| {
        let all: Vec<&str> = name.split('_').collect();
        all.len() <= 4 && !all.iter().any(|part| NO_NAMES.contains(part)) && !HUMANS.contains(&name.as_str())
    };
    by.into_iter().filter(fits).collect()
}

/// Words of an approval before which who approves may stand, and at which that ends.
const BEFORE_NAMES: &[&str] = &[
    "need",
    "needs",
    "require",
    "requires",
    "required",
    "without",
    "requiring",
    "get",
    "gets",
    "with",
    "have",
    "has",
    "subject",
    "to",
    "until",
    "till",
    "after",
    "unless",
    "only",
    "if",
    "must",
    ",",
    "for",
    "waits",
    "wait",
    "is",
    "are",
    "and",
    "goes",
    "go",
    "no",
    "not",
    "via",
    "on",
    "pending",
    "given",
    "upon",
    "(",
    ":",
];
/// Words before an approval that belong to it.
const LEADS: &[&str] = &[
    "need", "needs", "require", "requires", "the", "a", "an", "prior", "explicit", "without", "has", "have",
    "must", "to", "be", "subject", "unless", "until", "get", "gets", "with", "only", "wait", "waits", "for",
    "after", "if", "pending", "first", "is", "are",
];

/// Reads that an approval is needed, and takes the words.
pub(super) fn read(look: &mut Look, tools: &Tools<'_>) -> Option<Approval> {
    if let Some(found) = sent_to(look, tools).or_else(|| verb(look, tools)) {
        return Some(found);
    }
    let range = anchor(look, tools)?;
    let (mut start, mut end) = (range.start, range.end);
    if look.is_any(end - 1, &["from", "of", "by", "for"]) {
        end -= 1;
    }
    let none = look
        .find_in(start.saturating_sub(4)..start, &["no|without", "doesn't|don't|not need|require"])
        .is_some()
        && look
            .find(&["never", "can't|cannot|mustn't", "must|may not", "not|don't be?", "no|nothing|nobody"])
            .is_none_or(|found| found.start >= start.saturating_sub(4));
    let (mut by, mut vague) = (Vec::new(), None);
    if let Some(lead) = look.phrase_at(end, "explicitly? by|from|of|through|for") {
        let (names, after, unclear) = people::named(look, tools, lead);
        (by, vague) = (names, unclear);
        end = after.max(lead);
    } else if let Some(first) =
        (0..start).rev().take_while(|at| !look.is_any(*at, BEFORE_NAMES) && !look.is_used(*at)).last()
    {
        // `a manager's approval`
        let words = look.slice(first..start);
        let named = words.iter().any(|word| !ADJECTIVES.contains(&word.text.as_str()));
        let things = words.iter().any(|word| tools.names(word));
        if named && !things {
            (by, vague) = people::named_in(look, first..start);
        }
        start = if things { start } else { first };
    }
    by = plain(by);
    while start > 0 && look.is_any(start - 1, LEADS) && !none {
        start -= 1;
    }
    look.take(start..end);
    Some(Approval { by, vague, range: start..end, none })
}

/// The words that say that there is an approval.
fn anchor(look: &Look, tools: &Tools<'_>) -> Option<Range<usize>> {
    let names = |at: usize| look.words.get(at).is_some_and(|word| tools.names(word));
    let sign = look.find_left(&[
        "sign|signs|signing|signed off",
        "my|our|your|their ok|okay|nod|go",
        "thumbs up",
        "hold|held|park|parked for",
        "ok|okay|nod from|of|by",
        "human|manual review|approval|check",
        "human in the loop",
        "human eyes",
        "second|another pair of eyes",
        "second|another person|human|set of eyes",
        "four eyes",
        "four-eyes",
        "green light",
        "a human|person",
        NOUNS,
    ]);
    // `checked consent` where there is a tool that does so
    if let Some(sign) = sign
        && !sign.clone().any(names)
    {
        return Some(sign);
    }
    let done = look.find_left(&[
        "been|is|are|was|be|get|gets|unless|until|once|if|have|has|explicitly explicitly? signed off",
        &format!("been|is|are|was|be|get|gets|unless|until|once|if|explicitly explicitly? {DONE}"),
    ])?;
    // `claims may only be approved by managers` where there is a tool that approves
    let own = sense(look.text(done.end - 1));
    let is_tool = tools
        .spec
        .tools
        .iter()
        .any(|tool| super::lexicon::parts(&tool.name).iter().any(|part| sense(part) == own));
    (!is_tool).then_some(done)
}

/// `goes to the cfo for approval`, `waits for a dba to click approve`
fn sent_to(look: &mut Look, tools: &Tools<'_>) -> Option<Approval> {
    let to = look.find_left(&[
        "go|goes|sent|routed|handed|passed|escalate|escalated|forward|forwarded to|past|through|via",
        "wait|waits|held|hold|holds|park|parked|pause|pauses for|until|till|on",
        "has|have|needs|need to? wait|pass|go|be for|until|through|past|by",
        "run|runs it? past|by",
    ])?;
    let ends = look.find_in(
        to.end..look.len().min(to.end + 8),
        &[
            "for|to their|his|her|a|an|final|written|manual|explicit|click|give|press|get? approval|approve|sign-off|signoff|review|ok|okay|confirmation|consent|clearance|confirm|go-ahead|authorisation",
            "for|to sign off",
            "has|have|gives|says|clicks|must|can? approves|approved|signs|agrees|confirms|confirmed|ok|okay|yes|approve",
            "signs|has signed off? it?",
            "first|beforehand",
        ],
    );
    let until = ends.as_ref().map_or(look.len(), |ends| ends.start);
    let stop = (to.end..until)
        .find(|at| look.is_any(*at, &[",", ";", ".", ":", "before", "if", "first"]) || look.is_used(*at))
        .unwrap_or(until);
    let human = look.slice(to.end..stop).iter().any(|word| HUMANS.contains(&word.text.as_str()));
    if ends.is_none() && !human || stop == to.end || stop > to.end + 6 {
        return None;
    }
    let words = look.slice(to.end..stop);
    if !human && words.iter().any(|word| tools.names(word)) {
        return None;
    }
    let (mut by, vague) = people::named_in(look, to.end..stop);
    by = plain(by);
    if human {
        by.clear();
    }
    let end = ends.map_or(stop, |ends| ends.end).max(stop);
    look.take(to.start..end);
    Some(Approval { by, vague, range: to.start..end, none: false })
}

/// `a manager must approve …`, `ask me first`
fn verb(look: &mut Look, tools: &Tools<'_>) -> Option<Approval> {
    if let Some(ask) = look.find(&[
        "ask|asks|check with? me|us|somebody|someone|a first|before?",
        "ask|asks|check|checks|consult|consults with? a|an|the?",
        "wait|waits for|until a|an|the",
        "has to be|get confirmed by",
    ]) {
        let (by, end, vague) = people::named(look, tools, ask.end);
        let me = look.slice(ask.clone()).iter().any(|word| HUMANS.contains(&word.text.as_str()));
        let human = look.is_any(ask.end, HUMANS);
        if me || human || !by.is_empty() && !look.slice(ask.end..end).iter().any(|word| tools.names(word)) {
            let end = if me { ask.end } else { end.max(ask.end + 1) };
            look.take(ask.start..end);
            let by = by.into_iter().filter(|name| !me && !HUMANS.contains(&name.as_str())).collect();
            return Some(Approval { by, vague, range: ask.start..end, none: false });
        }
    }
    let must = look.find(&[
        "must|should|shall first? approve|confirm|authorise|authorize|okay|ok|countersign|vet",
        "has|have|needs|need to first? approve|confirm|authorise|authorize|okay|ok|vet|countersign|sign",
        "must|should|shall|has|have to? sign off",
    ])?;
    let (start, _) = (0..must.start)
        .rev()
        .take_while(|at| !look.is_any(*at, &[",", "unless", "until", "before", "and"]))
        .last()
        .map_or((must.start, 0), |at| (at, 0));
    let (by, vague) = people::named_in(look, start..must.start);
    let human = look.slice(start..must.start).iter().any(|word| HUMANS.contains(&word.text.as_str()));
    if by.is_empty() && !human && vague.is_none() {
        return None;
    }
    look.take(start..must.end + usize::from(look.is_any(must.end, &["off"])));
    let by = by.into_iter().filter(|name| !HUMANS.contains(&name.as_str())).collect();
    Some(Approval { by, vague, range: start..must.end, none: false })
}
