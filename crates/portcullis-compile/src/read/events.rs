//! Approvals, and what has to come before or must not come after.

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

/// Reads that an approval is needed, and takes the words.
#[expect(clippy::too_many_lines, reason = "one list of forms, in the order in which they are looked for")]
pub(super) fn approval(look: &mut Look, tools: &Tools<'_>) -> Option<Approval> {
    if let Some(found) = verb(look, tools) {
        return Some(found);
    }
    let sign = look.find(&[
        "sign off",
        "signed off",
        "thumbs up",
        "ok|okay from|of|by",
        "human|manual review",
        "human in the loop",
        "green light",
        NOUNS,
    ]);
    let done = look.find(&[
        "been|is|are|was|be|get|gets|unless|until|once|if|have|has|explicitly explicitly? signed off",
        &format!("been|is|are|was|be|get|gets|unless|until|once|if|explicitly explicitly? {DONE}"),
    ]);
    let range = match (sign, done) {
        (Some(sign), _) => sign,
        (None, Some(done)) => {
            // `claims may only be approved by managers` where there is a tool that approves
            let own = sense(look.text(done.end - 1));
            let is_tool = tools
                .spec
                .tools
                .iter()
                .any(|tool| super::lexicon::parts(&tool.name).iter().any(|part| sense(part) == own));
            if is_tool {
                return None;
            }
            done
        }
        (None, None) => return None,
    };
    let (mut start, mut end) = (range.start, range.end);
    if look.is_any(end - 1, &["from", "of", "by"]) {
        end -= 1;
    }
    let none = look
        .find_in(start.saturating_sub(4)..start, &["no|without", "doesn't|don't|not need|require"])
        .is_some()
        && look
            .find(&["never", "can't|cannot|mustn't", "must|may not", "not|don't be?", "no"])
            .is_none_or(|found| found.start >= start.saturating_sub(4));
    let (mut by, mut vague) = (Vec::new(), None);
    let lead = look.phrase_at(end, "explicitly? by|from|of|through");
    if let Some(lead) = lead {
        let (names, after, unclear) = people::named(look, tools, lead);
        (by, vague) = (names, unclear);
        end = after.max(lead);
    } else {
        // `a manager's approval`
        let first = (0..start)
            .rev()
            .take_while(|at| {
                !look.is_any(
                    *at,
                    &[
                        "need",
                        "needs",
                        "require",
                        "requires",
                        "required",
                        "without",
                        "requiring",
                        "get",
                        "with",
                        "have",
                        "subject",
                        "to",
                        "until",
                        "after",
                        "unless",
                        "only",
                        "if",
                        "must",
                        ",",
                    ],
                )
            })
            .last();
        if let Some(first) = first {
            let named = look.slice(first..start).iter().any(|word| !ADJECTIVES.contains(&word.text.as_str()));
            if named {
                (by, vague) = people::named_in(look, first..start);
            }
            start = first;
        }
    }
    by.retain(|name| !HUMANS.contains(&name.as_str()));
    while start > 0
        && look.is_any(
            start - 1,
            &[
                "need", "needs", "require", "requires", "the", "a", "an", "prior", "explicit", "without",
                "has", "have", "must", "to", "be", "subject", "unless", "until", "get", "with", "only",
            ],
        )
        && !none
    {
        start -= 1;
    }
    look.take(start..end);
    Some(Approval { by, vague, range: start..end, none })
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

/// What comes before what.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Order {
    /// The second part is required before the first.
    Requires { judged: Range<usize>, required: Range<usize> },
    /// After the first, the second must not come.
    Excludes { earlier: Range<usize>, judged: Range<usize>, oneself: bool },
}

const NEGATIONS: &str =
    "never|not|cannot|can't|mustn't|don't|shouldn't|no|won't|isn't|aren't|nobody|none|off-limits|forbidden";

/// Reads an order of two calls. `acts` says whether a stretch of words is about a tool.
pub(super) fn order(look: &Look, acts: impl Fn(Range<usize>) -> bool) -> Option<Order> {
    let all = look.len();
    let oneself = look.find(&[
        "whoever|who",
        "the person|user|one|employee who|that",
        "anyone|somebody|someone|people|those who",
        "nobody|no-one",
        "no one|user|employee|person",
        "yourself|themselves|himself|own|oneself",
    ]);
    let negative = look.find(&[NEGATIONS]);
    if let (Some(oneself), Some(negative)) = (&oneself, &negative)
        && look
            .find(&[
                "whoever",
                "who|that",
                "themselves|himself|herself|own|self|oneself|yourself",
                "you|they|they've",
            ])
            .is_some()
        && look.find(&["only", "unless", "until", "before", "after"]).is_none()
    {
        let who = look.find(&[
            "whoever",
            "person|user|one|employee|anyone|somebody|someone|people|those|agent who|that",
        ]);
        if let Some(who) = who {
            let (earlier, judged) = if who.start < negative.start {
                (who.end..negative.start, negative.end..all)
            } else {
                (who.end..all, negative.end..who.start)
            };
            if acts(earlier.clone()) && acts(judged.clone()) {
                return Some(Order::Excludes { earlier, judged, oneself: true });
            }
        }
        let _ = oneself;
        // `nobody may approve a claim that they submitted`
        if let Some(that) = look.find(&[
            "that|which|what|if|when they|he|she|it|you|they've|he's|the have|has|had?",
            "they|you|he|she have|has|had? themselves|himself?",
        ]) {
            let (judged, earlier) = (0..that.start, that.end..all);
            if acts(earlier.clone()) && acts(judged.clone()) {
                return Some(Order::Excludes { earlier, judged, oneself: true });
            }
        }
    }
    requires(look, &acts, negative.as_ref()).or_else(|| excludes(look, &acts, negative.as_ref()))
}

fn requires(
    look: &Look,
    acts: &impl Fn(Range<usize>) -> bool,
    negative: Option<&Range<usize>>,
) -> Option<Order> {
    let all = look.len();
    let both = |judged: Range<usize>, required: Range<usize>| {
        (acts(judged.clone()) && acts(required.clone())).then_some(Order::Requires { judged, required })
    };
    // `… only after …`, `… unless …`, `… until …`, `not … without …`
    let only = look.find(&["only"]);
    let joint = look.find(&[
        "only after|once|if|when|where|following",
        "unless|until|till",
        "without first? having? having?",
        "before",
        "provided|assuming that?",
        "as long as",
    ]);
    if let Some(joint) = joint {
        let word = look.text(joint.start);
        match word {
            "before" => {
                // `Before B, A`; `A before B`; `never B before A`
                if joint.start == 0 {
                    let comma = (0..all).find(|at| look.text(*at) == ",").or_else(|| {
                        look.find(&["the agent|bot|assistant", "it must|has"]).map(|found| found.start)
                    });
                    if let Some(comma) = comma
                        && let Some(found) = both(joint.end..comma, comma..all)
                    {
                        return Some(found);
                    }
                }
                if negative.is_some_and(|negative| negative.start < joint.start) {
                    if let Some(found) = both(0..joint.start, joint.end..all) {
                        return Some(found);
                    }
                } else if let Some(found) = both(joint.end..all, 0..joint.start) {
                    return Some(found);
                }
            }
            "only" => {
                // `Only after A may B`
                if joint.start == 0
                    && let Some(modal) = look.find_in(joint.end..all, &["may|can|is|are|should"])
                    && let Some(found) = both(modal.end..all, joint.end..modal.start)
                {
                    return Some(found);
                }
                if let Some(found) = both(0..joint.start, joint.end..all) {
                    return Some(found);
                }
            }
            _ => {
                if let Some(found) = both(0..joint.start, joint.end..all) {
                    return Some(found);
                }
            }
        }
    }
    // `only B if A`
    if let Some(only) = only
        && let Some(after) = look.find_in(only.end..all, &["if|when|after|once|where|provided"])
        && let Some(found) =
            both(only.end..after.start, after.end..all).or_else(|| both(0..after.start, after.end..all))
    {
        return Some(found);
    }
    // `B needs a recent A`, `B must be preceded by A`
    let needs = look.find(&["needs|requires|require|need a|an prior|previous|recent|fresh|successful|completed|earlier|preceding?", "must|has|have to? be preceded by", "needs|requires|require|need that", "must|has|have to? come|happen|be after", "must follow|have follow?"])?;
    both(0..needs.start, needs.end..all)
}

fn excludes(
    look: &Look,
    acts: &impl Fn(Range<usize>) -> bool,
    negative: Option<&Range<usize>>,
) -> Option<Order> {
    let all = look.len();
    let negative = negative?;
    let both = |earlier: Range<usize>, judged: Range<usize>| {
        (acts(earlier.clone()) && acts(judged.clone())).then_some(Order::Excludes {
            earlier,
            judged,
            oneself: false,
        })
    };
    let after = look.find(&["as soon as", "once|after|following|having|when|if"])?;
    if after.start < negative.start {
        let comma = (after.end..negative.start).rev().find(|at| look.text(*at) == ",");
        let subject = look.find_in(
            after.end + 1..negative.start,
            &["it|the must|may|can|should|can't|cannot|mustn't|shall", "the agent|bot|assistant"],
        );
        let ends = comma.or(subject.map(|subject| subject.start)).unwrap_or(negative.start);
        return both(after.end..ends, ends..all)
            .or_else(|| both(after.end..negative.start, negative.start..all));
    }
    both(after.end..all, 0..after.start)
}
