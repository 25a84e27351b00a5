//! What is particular about a call, and whether a passage has it: the explanation of a call by what others wrote.

use crate::acts::Act;
use crate::arguments::{Argument, Role};
use crate::kind::Deed;
use crate::lexicon::Families;
use crate::origins::Provenance;
use crate::passages::Passage;
use crate::posing::Posing;
use crate::request::Wanted;
use crate::table::Consequence;
use crate::trajectory::{Call, Trajectory};
use crate::values::Kind;

/// What is particular about a call: what the user did not say.
pub(crate) struct Particulars {
    /// Values of what it is done to, or with.
    values: Vec<u64>,
    /// Of these, addresses.
    addresses: Vec<u64>,
    /// Values in its texts.
    content_values: Vec<u64>,
    /// Of these, links: anyone who reads the text is sent there.
    links: Vec<u64>,
    /// Numbers.
    numbers: Vec<u64>,
    /// Words of what it is done to: one list an argument.
    words: Vec<Vec<u64>>,
    /// Words of its texts.
    content: Vec<u64>,
    /// Things in the tool's name and in the names of its arguments.
    things: Vec<u64>,
    /// Names of protections that it lowers.
    lowers: Vec<u64>,
    /// Words of the names of those whom it reaches: one list an argument.
    names: Vec<Vec<u64>>,
    /// Values and numbers outside of its texts that stand only in what others wrote.
    told: Vec<u64>,
    /// The tool's verbs.
    verbs: Vec<u64>,
    families: Families,
}

/// What a passage and a call have in common.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fit {
    values: usize,
    /// Of these, addresses.
    pub(crate) addresses: usize,
    /// Of so many.
    addresses_of: usize,
    content_values: usize,
    /// Of these, links.
    pub(crate) links: usize,
    /// Names of those whom it reaches.
    pub(crate) names: usize,
    numbers: usize,
    /// Arguments all of whose words are in the passage.
    whole: usize,
    /// Words of arguments.
    words: usize,
    things: usize,
    /// Words of the names of protections that it lowers.
    lowers: usize,
    pub(crate) verb: bool,
    content: usize,
    /// Of so many words.
    content_of: usize,
    pub(crate) asks: bool,
    pub(crate) posing: Posing,
}

impl Fit {
    pub(crate) fn explains(&self, act: Act, wanted: Wanted, known: bool) -> bool {
        // What says nothing of where the call goes does not explain it.
        if self.addresses_of > 0 && self.addresses == 0 && act.deed != Deed::Change {
            return false;
        }
        let about = self.verb || self.things > 0;
        let more = self.values + self.content_values + self.numbers + self.words;
        // Of something grave any particular counts that the user has not said.
        if act.consequence == Consequence::Grave {
            return about || more + self.lowers > 0;
        }
        let dictated = self.content_of >= 4 && self.content * 5 >= self.content_of * 3;
        let posing = self.posing > Posing::No;
        // Of a tool of which nobody knows what it does, only who asks for it explains it.
        if !known && !act.runs && !self.asks && !posing {
            return false;
        }
        match act.runs {
            // Of commands every text about software has some words.
            true => self.addresses > 0 || (dictated || self.values > 0) && (self.asks || posing),
            // Something ordinary that others only speak of is not what they want done.
            false
                if wanted < Wanted::No
                    && act.deed == Deed::Change
                    && !self.asks
                    && !posing
                    && self.values + self.numbers == 0 =>
            {
                false
            }
            false => {
                self.values > 0 && (about || more > 1 || self.asks)
                    || self.numbers > 0 && (about || self.words > 0)
                    || self.whole > 0 && about
                    || self.verb && self.things > 1
                    || self.content_values > 0 && (self.asks || about)
                    || dictated && (self.asks || self.verb)
            }
        }
    }

    pub(crate) fn score(&self) -> usize {
        let when = |holds: bool, points: usize| if holds { points } else { 0 };
        self.values * 6
            + self.content_values * 3
            + self.numbers * 3
            + self.whole * 3
            + self.words
            + self.things * 2
            + when(self.verb, 3)
            + when(self.asks, 2)
            + when(self.content_of >= 4, 4 * self.content / self.content_of.max(1))
    }
}

/// A key with more passages is no particular.
const COMMON: u32 = 24;
/// Most words of someone's name.
const NAME_WORDS_MAX: usize = 3;
/// Most words of an argument that a claim may settle: a grade, a stage.
const CLAIMED_WORDS_MAX: usize = 2;
/// Most words of a call's texts that are looked up.
const CONTENT_WORDS: usize = 16;

impl Particulars {
    pub(crate) fn of(run: &Trajectory, call: &Call, act: Act) -> Self {
        let runs = act.runs;
        let request = run.request();
        let mut own = Self {
            values: Vec::new(),
            addresses: Vec::new(),
            content_values: Vec::new(),
            links: Vec::new(),
            numbers: Vec::new(),
            words: Vec::new(),
            content: Vec::new(),
            things: call.kind.objects.clone(),
            lowers: Vec::new(),
            names: Vec::new(),
            told: Vec::new(),
            verbs: call.kind.verbs.clone(),
            families: call.kind.families.or(if runs { act.families(run.lexicon()) } else { Families::NONE }),
        };
        // Of whom a message goes to an id is the address: `recipient_id: ida.k17`.
        let reaches = matches!(act.deed, Deed::Send | Deed::Grant | Deed::Pay) && !runs;
        for argument in &call.arguments {
            let content = argument.is_content() && !runs;
            let recipient = reaches && argument.role == Role::Target;
            own.add_values(run, argument, content, recipient);
            let told = |hash: &&u64| !run.origins().is_trusted_hash(**hash);
            own.numbers.extend(argument.numbers.iter().filter(told));
            if !content {
                let only_told = |hash: &&u64| run.origins().of(**hash) > Some(Provenance::HandedOn);
                own.told.extend(argument.numbers.iter().filter(only_told));
            }
            let said = argument.stems.iter().all(|stem| request.says(*stem));
            if content || runs {
                own.content.extend(argument.stems.iter().filter(|stem| !request.says(**stem)));
            } else if !argument.stems.is_empty() && !said {
                let named = argument.values.iter().any(|value| value.kind == Kind::Quoted);
                if reaches && named && argument.stems.len() <= NAME_WORDS_MAX {
                    own.names.push(argument.stems.clone());
                }
                own.words.push(argument.stems.clone());
            }
            own.lowers.extend(&argument.signs.lowers);
            if argument.grave {
                own.things.extend(
                    argument
                        .things
                        .iter()
                        .filter(|thing| !own.things.contains(thing))
                        .copied()
                        .collect::<Vec<_>>(),
                );
            }
        }
        if runs {
            own.verbs.extend(act.verbs());
        }
        own.content.truncate(CONTENT_WORDS * 2);
        own
    }

    /// Adds the values in an argument that only others told.
    fn add_values(&mut self, run: &Trajectory, argument: &Argument, content: bool, recipient: bool) {
        for value in &argument.values {
            let provenance = run.provenance(value);
            if provenance <= Provenance::Bundle {
                continue;
            }
            if !content && provenance > Provenance::HandedOn {
                self.told.push(value.hash);
            }
            // A name is told by its words.
            if value.kind == Kind::Quoted {
                continue;
            }
            if !content && (value.kind.is_address() || recipient && value.kind == Kind::Id) {
                self.addresses.push(value.hash);
                self.addresses.extend(value.host);
            }
            if content && value.kind == Kind::Url {
                self.links.push(value.hash);
            }
            if content { &mut self.content_values } else { &mut self.values }.push(value.hash);
        }
    }

    pub(crate) fn lookups(&self) -> impl Iterator<Item = u64> + '_ {
        self.values
            .iter()
            .chain(&self.content_values)
            .chain(&self.numbers)
            .chain(self.words.iter().flatten())
            .chain(&self.things)
            .chain(&self.lowers)
            .chain(&self.verbs)
            .chain(self.content.iter().take(CONTENT_WORDS))
            .copied()
    }

    /// Whether a passage claims that something has been settled, and has a value that occurs nowhere else.
    pub(crate) fn is_claimed(&self, run: &Trajectory, passage: &Passage) -> bool {
        let whole = |words: &Vec<u64>| {
            words.len() <= CLAIMED_WORDS_MAX && words.iter().all(|word| passage.has(*word))
        };
        passage.claims
            && !passage.handed_on
            && !run.request().speaks_of_settled()
            && (self.told.iter().any(|value| passage.has(*value)) || self.words.iter().any(whole))
    }

    /// What the passage of this number has of it, its neighbours helping.
    pub(crate) fn fit(&self, run: &Trajectory, number: u32) -> Fit {
        let passages = run.passages();
        let window: Vec<&Passage> = passages.window(number).collect();
        let has = |key: &u64| window.iter().any(|passage| passage.has(*key));
        let rare = |key: &&u64| passages.count(**key) <= COMMON;
        let families = window.iter().fold(Families::NONE, |all, passage| all.or(passage.families));
        let count = |keys: &[u64]| keys.iter().filter(|key| has(key)).count();
        Fit {
            values: count(&self.values),
            addresses: count(&self.addresses),
            addresses_of: self.addresses.len(),
            content_values: count(&self.content_values),
            links: count(&self.links),
            names: self.names.iter().filter(|words| words.iter().all(&has)).count(),
            numbers: count(&self.numbers),
            whole: self.words.iter().filter(|words| words.iter().all(&has)).count(),
            words: self.words.iter().flatten().filter(rare).filter(|key| has(key)).count(),
            things: count(&self.things),
            lowers: count(&self.lowers),
            verb: self.verbs.iter().any(&has) || families.meets(self.families),
            content: count(&self.content),
            content_of: self.content.len(),
            asks: window.iter().any(|passage| passage.asks),
            posing: window.iter().map(|passage| passage.posing).max().unwrap_or_default(),
        }
    }
}
