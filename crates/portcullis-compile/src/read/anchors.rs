//! Anchors: words of a clause that say what kind of statement it is, whatever else stands in it. They forbid, narrow,
//! oblige, allow, or are beside the point.

use std::ops::Range;

use super::look::Look;
use super::quantity;
use super::tools::Tools;

/// Words that forbid.
pub(super) const NEGATIVE: &[&str] = &[
    "never|not|cannot|can't|mustn't|don't|doesn't|won't|shouldn't|isn't|aren't|mayn't|nobody|none|no|nothing|forbidden|prohibited|banned|ban|block|blocks|deny|denies|refuse|refused|reject|rejected|stop|stops|prevent|disallow|disallowed|off-limits|taboo|blocked|denied|frozen|bounces|bounce|nope|verboten|no-go|freeze|frozen|neither",
    "no one",
    "off limits",
    "keep out of",
    "hands off",
    "out of bounds",
    "stay away from|out",
];
/// Words of permissions that look like prohibitions.
const FREE: &[&str] = &[
    "not restricted|limited|affected|covered|concerned",
    "isn't|aren't restricted|limited|affected|covered|concerned",
    "no restrictions|restriction|limits|limit|constraints|objections|effect|problem|change",
    "without limit|limits|restriction|restrictions",
    "unrestricted|unlimited|anytime|unaffected|exempt|exempted|untouched",
    "any time",
    "no matter who|when",
    "doesn't|don't matter|count|care|mind|apply",
    "not an|a problem",
    "don't|doesn't|won't|needn't block|stop|prevent|hinder|delay anything|anybody|anyone|it|this|that|us|them|the?",
    "at will",
    "whatever you|they|it like|likes|want|wants",
    "as many|much|often",
    "out of scope",
    "left alone",
    "stays|stay|remains|remain as is|it|they|before is|are|was|were?",
    "goes|go on as usual|normal|before",
    "no questions asked?",
    "anyone|anybody|everyone|everybody|everything|anything|all can|may|is|are",
    "do what|whatever you|they like|want",
    "knock yourself|yourselves out",
    "be my guest",
    "no such? limit|limits|rule|rules|restriction|restrictions|cap",
    "isn't|aren't|not included|meant|in scope?",
    "business as usual",
    "a different|another matter|story|thing",
    "leave that|those|them|it|these alone|be|out?",
    "free rein|hand",
];
/// Words that allow.
const ALLOWED: &[&str] = &[
    "may|can|ok|okay|fine|allowed|permitted|free|welcome|unproblematic|stays|stay|remain|remains|acceptable|override|legit",
    "go ahead",
    "goes through",
    "all right",
    "is|are possible",
];
/// Words that oblige.
const MUST: &[&str] = &[
    "must|shall|should|mandatory|required|compulsory",
    "has|have to|got",
    "needs|need to?",
    "requires|require",
    "is|are required",
    "make|be sure|certain",
    "got to",
    "ensure",
    "always",
];
/// Words that narrow.
const ONLY: &[&str] = &[
    "only|solely|exclusively|nowhere",
    "nothing|nobody|noone|none|no-one else",
    "no one else",
    "no others|other",
    "anywhere|anything|anyone|anybody|everything|everyone|everybody else",
    "limited|restricted|reserved|confined to|for",
    "outside the? following",
    "stay|stays|stick|sticks within|inside|to|in|between|under|below",
    "remain|remains|kept within|inside",
];
/// Phrases that add nothing.
const ASIDES: &[&str] = &[
    "no matter in|what|which|who|how|when which|what? folder|directory|way|reason|place?",
    "in whatever|whichever",
    "for any|whatever reason",
    "at all",
    "under any|no circumstances",
    "as well",
    "as usual",
    "on its|their own",
    "in any case",
    "let it|them|the agent|bot?",
    "regardless of",
    "full stop",
    "no exception|exceptions",
    "no ifs",
    "and|or? that|this? includes|including|even the|our? admins|admin|everyone|everybody|on-call|management|ops|oncall|owners",
    "admins|admin|on-call|oncall|management included|too",
    "not even",
    "hard|flat|big|clear|absolute no",
    "please|pls|plz|thanks|thx",
    "for everyone|everybody|anyone",
    "what so ever",
    "whatsoever|ever|period",
    "make sure",
    "upper or lower case",
    "can|could we|you please?",
    "i want|need|would like",
    "so far",
    "by the way",
    "in one|a go",
    "in a single go",
    "no joke|kidding|question",
    "of course",
    "i guess|suppose",
    "hi|hello|dear|hey all|team|everyone|folks|everybody?",
    "cheers|regards|ta",
    "once|again and for all",
    "from now on",
    "as of now|today|immediately",
    "effective immediately",
];
/// Words with which a reason begins. What follows is why, and not what.
const REASONS: &[&str] = &[
    "because|cos|cause|cuz",
    "so that",
    "so nobody|no|we|it|they|you|that",
    "in order to",
    "since we|it|they|that|this|there|nobody|last|he|she|the|our|people",
    "as we|they|it|this|that|there|nobody",
    "to avoid|prevent|protect|keep|make|save",
    "reason|why|background|context is|being|:",
    "due to",
    "that's what|how|why|the|our|because|where|when",
    "that|this is what|how|why",
    "we had|got|have|saw|were|are",
    "they|it had|have|has already? a|its|their own",
    "after last|tuesday's|monday's|friday's|wednesday's|thursday's|yesterday's|the|that|this|our incident|outage|audit|week's|mess|accident|breach|disaster",
    "they know",
    "people were|are",
    "i think|guess|know|believe",
];

/// What kind of statement a clause is.
#[derive(Debug, Clone, Default)]
pub(super) struct Mood {
    /// It forbids, and where.
    pub(super) bans: Option<Range<usize>>,
    /// It narrows, and where.
    pub(super) only: Option<Range<usize>>,
    /// It obliges, and where.
    pub(super) must: Option<Range<usize>>,
    /// It allows.
    pub(super) allows: bool,
    /// It says that something is free.
    pub(super) free: bool,
}

/// Takes what is beside the point: politeness, and reasons up to the end of the clause.
pub(super) fn asides(look: &mut Look, tools: &Tools<'_>) -> bool {
    let no = look.find(&["hard|flat|big|clear|absolute no"]).is_some();
    for phrase in ASIDES {
        while let Some(found) = look.find_left(&[phrase]) {
            look.take(found);
        }
    }
    remarks(look, tools);
    // `configure the agent so that …`: what follows is what is asked for.
    if let Some(so) = look.find_left(&["so that"])
        && look.find_in(0..so.start, &["configure|set|setup|arrange|adjust|change|make|see"]).is_some()
        && so.start < 8
    {
        look.take(0..so.end);
    }
    // A reason stands at the end, or before the comma of a statement.
    while let Some(found) = look.find_left(REASONS) {
        let end = (found.end..look.len()).find(|at| look.is_any(*at, &[",", ";", ")", ":"]));
        let end = if found.start == 0 { end.unwrap_or(found.end) } else { end.unwrap_or(look.len()) };
        look.take(found.start..end.max(found.end));
    }
    no
}

/// Words with which a remark begins that stands after a statement.
const REMARKS: &[&str] =
    &["it", "they", "we", "he", "she", "it's", "they're", "we're", "we've", "they've", "i", "i've", "i'm"];
/// Verbs of a remark in parentheses.
const FINITE: &[&str] =
    &["is", "are", "was", "were", "would", "could", "had", "has", "have", "will", "keeps", "keep"];
/// Words that are about whom or when a rule is: no remark has them.
const NARROWING: &[&str] = &[
    "unless",
    "except",
    "excluding",
    "if",
    "when",
    "whenever",
    "once",
    "until",
    "till",
    "before",
    "after",
    "first",
    "where",
    "without",
    "besides",
    "otherwise",
    "else",
    "instead",
    "nor",
    "same",
    "other",
    "role",
    "roles",
    "per",
    "each",
    "every",
];

/// Takes remarks: `…, they eat the cluster`, `(it would end the study)`. A remark is a clause of its own that has no word of
/// a tool, no anchor, no number, and nothing that narrows.
fn remarks(look: &mut Look, tools: &Tools<'_>) {
    for start in 0..look.len() {
        let in_parentheses = look.is_any(start, &["("]);
        let ends: &[&str] = if in_parentheses { &[")"] } else { &["(", ";", ":"] };
        let end = (start + 1..look.len()).find(|at| look.is_any(*at, ends)).unwrap_or(look.len());
        let inner = start + 1..end;
        let is_clause = match in_parentheses {
            true => inner.clone().any(|at| look.is_any(at, FINITE)),
            false => {
                let first = start + 1 + usize::from(look.is_any(start + 1, &["then", "and", "so"]));
                let subject = look.is_any(first, REMARKS)
                    || look.is_any(first, &["the", "our", "their"])
                        && inner.clone().any(|at| look.is_any(at, FINITE));
                start > 0 && look.is_any(start, &[",", "–", "—"]) && subject
            }
        } || is_gloss(look, start, end);
        let says_nothing = inner.clone().all(|at| {
            let Some(word) = look.words.get(at).filter(|_| !look.is_used(at)) else { return true };
            let text = word.text.as_str();
            let anchors = is_anchor_alone(text) && !FINITE.contains(&text);
            let known = tools.knows_anywhere(word) || tools.is_value(word);
            !word.quoted
                && !anchors
                && (!known || super::lexicon::is_filler(text))
                && (!NARROWING.contains(&text) || text == "after" && at + 1 == end)
                && quantity::number(look, at).is_none()
        });
        if is_clause && says_nothing && inner.len() > 1 {
            look.take(start..end + usize::from(in_parentheses));
        }
    }
}

/// `at bank.example (the client)`: parentheses that say who an address is.
fn is_gloss(look: &Look, start: usize, end: usize) -> bool {
    let before = look.text(start.wrapping_sub(1));
    look.is_any(start, &["("])
        && end - start <= 4
        && before.contains(['.', '@', '/'])
        && look.is_any(start + 1, &["the", "our", "a", "an", "their"])
}

/// What kind of statement it is, by words that no other reader took.
pub(super) fn mood(look: &Look) -> Mood {
    let free = look.find_left(FREE);
    let outside = |range: &Range<usize>| {
        free.as_ref().is_none_or(|free| range.end <= free.start || range.start >= free.end)
    };
    let all = |phrases: &[&str]| {
        (0..look.len()).find_map(|at| {
            let found = look.find_in(at..look.len(), phrases)?;
            (found.start == at && !look.is_used(at) && outside(&found)).then_some(found)
        })
    };
    let only = all(ONLY);
    let narrowed = |range: &Range<usize>| {
        only.as_ref().is_some_and(|only| range.start >= only.start && range.end <= only.end)
    };
    let bans = all(NEGATIVE).filter(|range| !narrowed(range));
    Mood {
        bans,
        must: all(MUST),
        allows: all(ALLOWED).is_some() || free.is_some(),
        free: free.is_some(),
        only,
    }
}

/// Words of the longest anchor.
const ANCHOR_WORDS_MAX: usize = 8;

/// Whether a word stands in an anchor, and so has no content of its own.
pub(super) fn is_anchored(look: &Look, at: usize) -> bool {
    let lists = [NEGATIVE, FREE, ALLOWED, MUST, ONLY];
    let within = |phrase: &str| {
        let starts = at.saturating_sub(ANCHOR_WORDS_MAX)..=at;
        starts.into_iter().any(|start| look.phrase_at(start, phrase).is_some_and(|end| at < end))
    };
    lists.iter().any(|list| list.iter().any(|phrase| within(phrase)))
}

/// Whether a word is an anchor by itself, and not only in a phrase.
fn is_anchor_alone(text: &str) -> bool {
    let lists = [NEGATIVE, FREE, ALLOWED, MUST, ONLY];
    let alone = |phrase: &str| !phrase.contains(' ') && phrase.split('|').any(|word| word == text);
    lists.iter().any(|list| list.iter().any(|phrase| alone(phrase)))
}
