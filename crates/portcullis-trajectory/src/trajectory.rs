//! The memory of a run: what the user wants, where values came from, and what others wrote.
//!
//! Reading a text ([`Trajectory::read_result`]) is pure and linear in the text; recording it costs what was found in it.
//! Judging a call ([`judge`](crate::judge::judge)) does not grow with the run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use portcullis_core::bundle::AuthoritySettings;
use serde_json::Value as Json;

use crate::answer::Answer;
use crate::argument_name::ArgumentNames;
use crate::arguments::{self, Argument, Role};
use crate::kind::{CallKind, Deed};
use crate::lexicon::{Families, Lexicon};
use crate::origins::{Origins, Provenance};
use crate::passages::{Passage, Passages};
use crate::request::{self, Request, Said, Wanted};
use crate::secrets::SECRETS_MAX;
use crate::seen::{self, Record, Seen, Sentence, Source, Voice};
use crate::values::{Kind, Value};
use crate::words::stem_hash;

/// Most words of sources that were handed on to, and most sites of the user's, that are remembered.
pub const HANDED_MAX: usize = 16_384;
/// Most private values that are remembered.
pub const PRIVATE_MAX: usize = 16_384;

/// A call as it is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What its tool does.
    pub kind: Arc<CallKind>,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// Whether some of the arguments were left out for their number or depth.
    pub cut: bool,
}

impl Call {
    /// Reads the arguments of a call for which no bundle vouches.
    pub fn new(lexicon: &Lexicon, kind: impl Into<Arc<CallKind>>, json: &Json) -> Self {
        Self::read(lexicon, &ArgumentNames::default(), &AuthoritySettings::default(), kind, json)
    }

    /// Reads the arguments of a call, with whom the bundle vouches for.
    pub(crate) fn read(
        lexicon: &Lexicon,
        names: &ArgumentNames,
        authority: &AuthoritySettings,
        kind: impl Into<Arc<CallKind>>,
        json: &Json,
    ) -> Self {
        let (arguments, cut) = arguments::arguments(lexicon, names, authority, json);
        Self { kind: kind.into(), arguments, cut }
    }

    /// The values in its arguments.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.arguments.iter().flat_map(|argument| &argument.values)
    }
}

/// What the user has to do with a record of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Standing {
    named: bool,
    handed_on: bool,
}

/// What a run has seen.
#[derive(Debug, Clone)]
pub struct Trajectory {
    lexicon: Arc<Lexicon>,
    request: Request,
    operator: Request,
    origins: Origins,
    passages: Passages,
    secrets: HashSet<u64>,
    private: HashSet<u64>,
    /// Sites that the user wrote.
    sites: HashSet<u64>,
    /// Sites that were read, and those of sources that the user pointed at.
    near: HashMap<u64, Provenance>,
    /// Ids of records that the user pointed at, and handed on to: who reads by id reads the same thing.
    pointed: HashMap<u64, Standing>,
    /// What was handed on: its words, and its verbs by family.
    handed: HashSet<u64>,
    handed_families: Families,
    leaves: u64,
    /// Who is behind the page that a browser shows.
    page: Provenance,
    /// What stands beside accounts that tools gave as fields of their own: whose they are.
    filed: HashSet<u64>,
}

impl Trajectory {
    /// A run that has seen nothing.
    pub fn new(lexicon: Arc<Lexicon>) -> Self {
        Self {
            lexicon,
            request: Request::default(),
            operator: Request::default(),
            origins: Origins::default(),
            passages: Passages::default(),
            secrets: HashSet::new(),
            private: HashSet::new(),
            sites: HashSet::new(),
            near: HashMap::new(),
            pointed: HashMap::new(),
            handed: HashSet::new(),
            handed_families: Families::NONE,
            leaves: 0,
            page: Provenance::User,
            filed: HashSet::new(),
        }
    }

    /// Who is behind the page that a browser shows: the last address that it went to.
    pub fn page(&self) -> Provenance {
        self.page
    }

    /// The words it knows.
    pub fn lexicon(&self) -> &Arc<Lexicon> {
        &self.lexicon
    }

    /// What the user asked for.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The sources of values.
    pub fn origins(&self) -> &Origins {
        &self.origins
    }

    /// What others wrote.
    pub fn passages(&self) -> &Passages {
        &self.passages
    }

    /// Whether it is the hash of a credential that a tool returned.
    pub fn is_secret(&self, hash: u64) -> bool {
        self.secrets.contains(&hash)
    }

    /// Whether the user or the operator named a value.
    pub fn is_trusted(&self, value: &Value) -> bool {
        self.origins.is_trusted(value)
    }

    /// Whether the user wants a call. What comes only from a source that was handed on is wanted where it is not grave.
    pub fn wants(&self, call: &Call, deed: Deed, grave: bool) -> Wanted {
        let wanted = self.request.wants(&call.kind, deed, &call.arguments, |value| self.is_trusted(value));
        if wanted == Wanted::Yes {
            return Wanted::Yes;
        }
        if self.is_handed_on(call) {
            return if grave { wanted.min(Wanted::Unknown) } else { Wanted::Yes };
        }
        // Who hands on leaves open what is to be done.
        if wanted == Wanted::No && self.request.hands_on() && !self.request.forbids(&call.kind) {
            return Wanted::Unknown;
        }
        let operator = || self.operator.wants(&call.kind, deed, &call.arguments, |_| false);
        if wanted == Wanted::No && !grave && !self.operator.is_empty() && operator() == Wanted::Yes {
            return Wanted::Unknown;
        }
        wanted
    }

    /// Whether a link was put together by the agent for a site that only others named: it may carry anything there.
    pub fn is_made_for_others(&self, link: &Value) -> bool {
        let near = link.host.and_then(|site| self.near.get(&site)).copied();
        link.query
            && near.is_some_and(|near| near >= Provenance::Named)
            && self.origins.of(link.hash).is_none()
    }

    /// Whether what was handed on asks for a call: by its deed, and a thing or value.
    fn is_handed_on(&self, call: &Call) -> bool {
        if self.handed.is_empty() {
            return false;
        }
        let kind = &call.kind;
        let has = |key: &u64| self.handed.contains(key);
        let verb = kind.verbs.iter().any(has) || self.handed_families.meets(kind.families);
        let object = kind.objects.iter().any(has)
            || call.arguments.iter().any(|argument| {
                argument.values.iter().any(|value| has(&value.hash)) || argument.stems.iter().any(has)
            });
        verb && object
    }

    /// Who is behind a value of a call. A site that the user wrote is the user's in all its pages; one that was read, or
    /// that a source which the user pointed at belongs to, is named.
    pub fn provenance(&self, value: &Value) -> Provenance {
        let site = value.host.filter(|_| value.kind == Kind::Url);
        if site.is_some_and(|site| self.sites.contains(&site)) {
            return Provenance::User;
        }
        if value.vouched && !self.origins.is_trusted(value) {
            return Provenance::Bundle;
        }
        let own = match self.origins.of(value.hash) {
            Some(provenance) => provenance,
            None if self.passages.is_empty() => Provenance::Own,
            None => Provenance::Unknown,
        };
        // Someone whom the user named: *Odile* is `odile.renard@…`.
        let known = value.person.is_some_and(|person| self.request.says(person));
        let own = match own {
            Provenance::Named if known => Provenance::HandedOn,
            Provenance::Others | Provenance::Unknown if known => Provenance::Named,
            own => own,
        };
        match site.and_then(|site| self.near.get(&site)).copied() {
            // An address that was seen nowhere, at a site that was.
            Some(near) if own == Provenance::Unknown => near,
            Some(near) => own.min(near),
            None => own,
        }
    }

    /// Whether a value is an account that is in a text, while a tool has another one on file for whom a call pays, or
    /// for what.
    pub fn has_other_account(&self, call: &Call, value: &Value) -> bool {
        let told = |from| matches!(from, Provenance::HandedOn | Provenance::Named | Provenance::Others);
        value.iban && !self.filed.is_empty() && told(self.provenance(value)) && self.is_filed(call)
    }

    /// Whether a payee's name or an id of a call stands beside an account that a tool gave. The account that is paid from
    /// says nothing of whom it is paid to.
    fn is_filed(&self, call: &Call) -> bool {
        let own = |argument: &Argument| {
            let things =
                ["account", "from", "source", "debit"].map(|thing| self.lexicon.thing(stem_hash(thing)));
            argument.things.iter().any(|thing| things.contains(thing))
        };
        let mut arguments = call.arguments.iter().filter(|argument| !own(argument));
        arguments.any(|argument| {
            let named =
                argument.role == Role::Target && argument.stems.iter().any(|stem| self.filed.contains(stem));
            let mut ids = argument.values.iter().filter(|value| value.kind == Kind::Id);
            named || ids.any(|id| self.filed.contains(&id.hash))
        })
    }

    /// Whether the user named people, and none by whose name this address begins.
    pub fn names_others_than(&self, address: &Value) -> bool {
        self.request.names_people() && !address.person.is_some_and(|person| self.request.says(person))
    }

    /// Notes who is behind a site.
    fn note_site(&mut self, site: Option<u64>, provenance: Provenance) {
        let Some(site) = site else { return };
        if self.near.len() < HANDED_MAX || self.near.contains_key(&site) {
            let known = self.near.entry(site).or_insert(provenance);
            *known = provenance.min(*known);
        }
    }

    /// Whether a call carries a private value that the user did not write.
    pub fn carries_private(&self, call: &Call) -> bool {
        !self.private.is_empty() && call.values().any(|value| self.private.contains(&value.hash))
    }

    /// Reads an input.
    pub fn read_input(&self, text: &str) -> Said {
        request::read(&self.lexicon, text)
    }

    /// The user said something.
    pub fn record_input(&mut self, said: Said) {
        self.note_said(&said, Provenance::User);
        let room = HANDED_MAX.saturating_sub(self.sites.len());
        self.sites.extend(said.values.iter().filter_map(|value| value.host).take(room));
        self.request.add(said);
    }

    /// The operator said something: what it names is trusted, but it asks for nothing.
    pub fn record_operator(&mut self, said: Said) {
        self.note_said(&said, Provenance::Bundle);
        self.operator.add(said);
    }

    fn note_said(&mut self, said: &Said, provenance: Provenance) {
        let hashes = said.values.iter().map(|value| value.hash).chain(said.numbers.iter().copied());
        hashes.for_each(|hash| self.origins.note(hash, provenance, 0));
    }

    /// Reads the result of a call.
    pub fn read_result(&self, call: &Call, text: &str) -> Seen {
        let kind = &call.kind;
        let acts = kind.changes && kind.known && kind.deed != Deed::Execute && !kind.fetches && !kind.talks;
        let source = match acts {
            true => Source::Action,
            false if kind.searches => Source::Search,
            false => Source::Reader,
        };
        seen::read(&self.lexicon, text, source)
    }

    /// A tool returned something.
    pub fn record_result(&mut self, seq: u64, call: &Call, seen: Seen) {
        self.record_answer(seq, call, seen, &Answer::default());
    }

    /// The same, with what else is known of the answer.
    pub fn record_answer(&mut self, seq: u64, call: &Call, seen: Seen, answer: &Answer<'_>) {
        let (driven, standings) = (self.is_driven(call), self.standings(call, &seen.records));
        let planted = answer.planted(&seen);
        if call.kind.fetches {
            let addresses = call.values().filter(|value| value.kind == Kind::Url);
            let page = addresses.map(|address| self.provenance(address)).max();
            self.page = page.unwrap_or(self.page);
        }
        if seen.cut {
            self.origins.forget();
            self.passages.forget();
        }
        let standing = |record: u32| {
            let at = usize::try_from(record).unwrap_or_default();
            standings.get(at).copied().unwrap_or(Standing { named: false, handed_on: false })
        };
        if !driven {
            for value in call.values() {
                self.note_site(value.host, Provenance::Named);
                // A channel or a name that was read before is the agent's own to use.
                if !value.kind.is_address() && !call.kind.changes && self.origins.of(value.hash).is_none() {
                    self.origins.note(value.hash, Provenance::Own, seq);
                }
            }
        }
        for value in &seen.values {
            let Standing { named, handed_on } = standing(value.record);
            let provenance = match value.voice {
                _ if planted.contains(&value.hash) => Provenance::Others,
                Voice::Own if answer.directory => Provenance::Bundle,
                _ if driven => Provenance::Others,
                Voice::Own => Provenance::Own,
                Voice::Carried if handed_on => Provenance::HandedOn,
                Voice::Carried if named => Provenance::Named,
                Voice::Carried => Provenance::Others,
            };
            self.origins.note(value.hash, provenance, seq);
            if value.iban && provenance == Provenance::Own {
                let beside = usize::try_from(value.record).ok().and_then(|at| seen.records.get(at));
                let room = HANDED_MAX.saturating_sub(self.filed.len());
                let words = beside.into_iter().flat_map(|record| &record.words);
                self.filed.extend(words.filter(|word| **word != value.hash).take(room));
            }
            if value.voice == Voice::Own && value.id && named && !driven && self.pointed.len() < HANDED_MAX {
                self.pointed.insert(value.hash, Standing { named, handed_on });
            }
            match provenance {
                Provenance::HandedOn => self.note_site(value.site, Provenance::HandedOn),
                Provenance::Own if handed_on => self.note_site(value.site, Provenance::HandedOn),
                Provenance::Own if named => self.note_site(value.site, Provenance::Named),
                _ => self.note_site(value.site, Provenance::Others),
            }
            if value.private && self.private.len() < PRIVATE_MAX && !self.origins.is_trusted_hash(value.hash)
            {
                self.private.insert(value.hash);
            }
        }
        // What is in a source that the user handed on is there to be used.
        if !standings.iter().any(|standing| standing.handed_on) {
            let room = SECRETS_MAX.saturating_sub(self.secrets.len());
            self.secrets.extend(seen.secrets.into_iter().take(room));
        }
        let others = |sentence: &Sentence| driven || answer.is_tainted(&sentence.range);
        self.record_sentences(seq, seen.sentences, others, standing);
    }

    /// Keeps what a result says: `standing` says whether the user named, or handed on, the record that it is in, which
    /// does not count of what is `others`' wherever it stands.
    fn record_sentences(
        &mut self,
        seq: u64,
        sentences: Vec<Sentence>,
        others: impl Fn(&Sentence) -> bool,
        standing: impl Fn(u32) -> Standing,
    ) {
        let first = self.leaves;
        for sentence in sentences {
            let Standing { named, handed_on } = standing(sentence.record);
            let own = !others(&sentence);
            let (named, handed_on) = (named && own, handed_on && own);
            if handed_on {
                self.handed_families = self.handed_families.or(sentence.families);
                let room = HANDED_MAX.saturating_sub(self.handed.len());
                self.handed.extend(sentence.keys.iter().take(room));
            }
            self.leaves = self.leaves.max(first + u64::from(sentence.leaf) + 1);
            self.passages.add(Passage {
                leaf: first + u64::from(sentence.leaf),
                seq,
                range: sentence.range,
                keys: sentence.keys.into_boxed_slice(),
                families: sentence.families,
                posing: sentence.posing,
                asks: sentence.asks,
                claims: sentence.claims,
                named,
                handed_on,
            });
        }
    }

    /// Whether the call went where only others' text pointed: what it found is theirs, too.
    fn is_driven(&self, call: &Call) -> bool {
        call.values()
            .filter(|value| value.kind.is_address())
            .any(|value| self.provenance(value) == Provenance::Others)
    }

    /// What the user has to do with each record of a result.
    fn standings(&self, call: &Call, records: &[Record]) -> Vec<Standing> {
        let request = &self.request;
        let before = call.values().filter_map(|value| self.pointed.get(&value.hash));
        let before = before.fold(Standing { named: false, handed_on: false }, |all, one| Standing {
            named: all.named || one.named,
            handed_on: all.handed_on || one.handed_on,
        });
        let pointed = before.named
            || call.arguments.iter().any(|argument| {
                argument.values.iter().any(|value| self.is_trusted(value))
                    || (!argument.is_content() || !call.kind.changes)
                        && argument.speaks
                        && request.says_all(argument)
            });
        let about = call.kind.objects.iter().any(|object| request.says(*object));
        let own = |record: &Record, has: &dyn Fn(u64) -> bool| record.words.iter().any(|word| has(*word));
        let says = |word: u64| request.says(word) || self.origins.is_trusted_hash(word);
        let specific: Vec<bool> = records.iter().map(|record| own(record, &says)).collect();
        let any = specific.iter().skip(1).any(|specific| *specific);
        let mut found: Vec<Standing> = Vec::with_capacity(records.len());
        for (at, record) in records.iter().enumerate() {
            let parent = record.parent.and_then(|parent| found.get(usize::try_from(parent).ok()?)).copied();
            let meant = specific.get(at).copied().unwrap_or_default();
            let named = !request.is_empty() && (pointed || meant || !any && about);
            let handed_on = named && (before.handed_on || self.is_source(call, record))
                || parent.is_some_and(|parent| parent.handed_on && at > 0 && records.len() <= 2);
            found.push(Standing { named, handed_on });
        }
        found
    }

    /// Which records of a result the user handed on to.
    pub(crate) fn handed_on(&self, call: &Call, records: &[Record]) -> Vec<bool> {
        self.standings(call, records).iter().map(|standing| standing.handed_on).collect()
    }

    /// Whether the user handed on to a record.
    fn is_source(&self, call: &Call, record: &Record) -> bool {
        self.request.handings().iter().any(|handing| {
            let value = |hash: u64| {
                call.values().any(|value| value.hash == hash || value.host == Some(hash))
                    || record.words.contains(&hash)
            };
            let name = |stem: u64| {
                record.words.contains(&stem)
                    || call.arguments.iter().any(|argument| argument.stems.contains(&stem))
            };
            let source = |thing: u64| {
                call.kind.objects.contains(&thing)
                    || call.kind.described.contains(&thing)
                    || record.words.contains(&thing)
                    || call.arguments.iter().any(|argument| argument.stems.contains(&thing))
            };
            handing.means(value, name, source)
        })
    }

    /// A text that belonged to the run is not known any more.
    pub fn forget(&mut self) {
        self.origins.forget();
        self.passages.forget();
    }
}
