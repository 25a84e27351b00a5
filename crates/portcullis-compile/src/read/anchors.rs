//! Anchors: words of a clause that say what kind of statement it is, whatever else stands in it. They forbid, narrow,
//! oblige, allow, or are beside the point.

use std::ops::Range;

use super::look::Look;

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
    "nothing|nobody|noone|none|no-one|nowhere else",
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
pub(super) fn asides(look: &mut Look) -> bool {
    let no = look.find(&["hard|flat|big|clear|absolute no"]).is_some();
    for phrase in ASIDES {
        while let Some(found) = look.find_left(&[phrase]) {
            look.take(found);
        }
    }
    // A reason stands at the end, or before the comma of a statement.
    while let Some(found) = look.find_left(REASONS) {
        let end = (found.end..look.len()).find(|at| look.is_any(*at, &[",", ";", ")", ":"]));
        let end = if found.start == 0 { end.unwrap_or(found.end) } else { end.unwrap_or(look.len()) };
        look.take(found.start..end.max(found.end));
    }
    no
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

/// Whether a word is one of an anchor, and so has no content of its own.
pub(super) fn is_anchor(text: &str) -> bool {
    let lists = [NEGATIVE, FREE, ALLOWED, MUST, ONLY];
    lists.iter().any(|list| {
        list.iter().any(|phrase| phrase.split([' ', '|']).any(|word| word.trim_end_matches('?') == text))
    })
}
