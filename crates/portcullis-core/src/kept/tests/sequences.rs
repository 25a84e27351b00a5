//! Random sequences of what two runs do to their state and to the facts that they share. Books of its own say what has
//! to come of each; at the end, the runs are folded again from their lines and payloads alone.

use std::collections::{BTreeMap, BTreeSet};

use super::super::*;
use crate::event::{Actor, EVENT_VERSION, Event, EventBody, PayloadRef};
use crate::id::{Commitment, RequestId, RunId};
use crate::label::{Label, LabelSet};
use crate::state::RunState;
use crate::time::Timestamp;

/// Sequences that are played: 240,000 operations.
const SEQUENCES: u64 = 10_000;
/// The same in the long form.
const SEQUENCES_LONG: u64 = 1_000_000;
/// Operations of a sequence.
const STEPS: usize = 24;
/// Keys that are written.
const KEYS: u64 = 3;

/// A small generator, so that a sequence is known by its number.
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// A run, with its record.
pub(super) struct World {
    pub(super) run: RunId,
    pub(super) state: RunState,
    pub(super) record: Vec<(Vec<u8>, Option<String>)>,
    seq: u64,
}

impl World {
    pub(super) fn new(run: RunId) -> Self {
        Self { run, state: RunState::new(), record: Vec::new(), seq: 0 }
    }

    pub(super) fn push(&mut self, body: EventBody) -> u64 {
        self.seq += 1;
        let words = body.aside();
        let named = words.as_ref().map(|(name, text)| {
            let payload = PayloadRef {
                commitment: Commitment::from_bytes([7; 32]),
                media_type: "application/json".into(),
                bytes: text.len() as u64,
            };
            ((*name).to_owned(), payload)
        });
        let event = Event {
            v: EVENT_VERSION,
            seq: self.seq,
            t: Timestamp::from_micros(0),
            actor: Actor::agent("ana"),
            cause: None,
            payloads: BTreeMap::from_iter(named),
            body,
        };
        self.record.push((event.to_line().unwrap(), words.map(|(_, text)| text)));
        self.state.apply(&event);
        self.seq
    }

    /// Puts, and records it whatever comes of it; the version then.
    pub(super) fn put(&mut self, asked: Put) -> Result<u64, KeptError> {
        match put(self.state.kept(), asked.clone(), self.state.labels()) {
            Ok(record) => Ok(self.push(EventBody::State(record))),
            Err(error) => {
                let record = CellRecord::refused(self.state.kept(), &asked, &error);
                self.push(EventBody::State(record));
                Err(error)
            }
        }
    }

    pub(super) fn write(
        &mut self,
        new: NewFact,
        look: &dyn Fn(KeptId) -> Standing,
    ) -> Result<KeptId, KeptError> {
        let request = new.request;
        let record = write(self.state.kept(), new, self.state.labels(), look);
        let done = self.recorded(KeptOp::Write, request, record)?;
        Ok(KeptId { run: self.run, seq: done })
    }

    fn recorded(
        &mut self,
        op: KeptOp,
        request: Option<RequestId>,
        record: Result<KeptRecord, KeptError>,
    ) -> Result<u64, KeptError> {
        match record {
            Ok(record) => Ok(self.push(EventBody::Fact(record))),
            Err(error) => {
                self.push(EventBody::Fact(KeptRecord::refused(op, request, &error)));
                Err(error)
            }
        }
    }

    /// The state as its lines and payloads alone give it.
    fn folded_again(&self) -> RunState {
        let mut state = RunState::new();
        for (line, words) in &self.record {
            let mut event = Event::from_line(line).unwrap();
            event.join(words.as_deref(), crate::aside::ERASED);
            state.apply(&event);
        }
        state
    }
}

/// A fact, as the books have it.
#[derive(Debug, Clone)]
struct Book {
    fact: KeptFact,
    /// The labels that the run had when it was written.
    seen: BTreeSet<String>,
    forgotten: bool,
}

/// Two runs, what is stored of their facts, and the books.
struct Play {
    worlds: [World; 2],
    facts: BTreeMap<KeptId, Book>,
    /// Value and version of each key of each run.
    cells: BTreeMap<(usize, String), (String, u64)>,
    /// Labels that each run has, by a rule of its own: what it saw, and what those had seen whose facts it read.
    labels: [BTreeSet<String>; 2],
}

fn names(labels: &LabelSet) -> BTreeSet<String> {
    labels.iter().map(Label::to_string).collect()
}

impl Play {
    fn new() -> Self {
        Self {
            worlds: [1, 2].map(|byte| World::new(RunId::from_bytes([byte; 16]))),
            facts: BTreeMap::new(),
            cells: BTreeMap::new(),
            labels: [BTreeSet::new(), BTreeSet::new()],
        }
    }

    fn standing(&self) -> impl Fn(KeptId) -> Standing + use<> {
        let facts: BTreeMap<KeptId, bool> =
            self.facts.iter().map(|(id, book)| (*id, book.forgotten)).collect();
        move |id| match facts.get(&id) {
            None => Standing::Unknown,
            Some(true) => Standing::Forgotten,
            Some(false) => Standing::Held,
        }
    }

    /// A fact, mostly one that is there.
    fn any_fact(&self, rng: &mut Rng) -> KeptId {
        let at = rng.below(self.facts.len() as u64 + 1);
        let known = self.facts.keys().nth(usize::try_from(at).unwrap());
        known.copied().unwrap_or(KeptId { run: RunId::from_bytes([9; 16]), seq: 1 })
    }

    fn see(&mut self, who: usize, rng: &mut Rng) {
        let label = format!("tool:t{}", rng.below(3));
        let body = EventBody::Observation { action: None, label: label.parse().unwrap(), tainted: None };
        self.worlds[who].push(body);
        self.labels[who].insert(label);
    }

    fn put(&mut self, who: usize, rng: &mut Rng) -> Result<String, String> {
        let key = format!("k{}", rng.below(KEYS));
        let (value, known) = (rng.below(1_000).to_string(), self.cells.get(&(who, key.clone())).cloned());
        let version = known.as_ref().map(|(_, version)| *version);
        let replaces = match rng.below(4) {
            0 => Some(rng.below(8)),
            1 => None,
            _ => version,
        };
        let asked = Put { key: key.clone(), value: value.clone(), replaces, request: None };
        let came = self.worlds[who].put(asked);
        match came {
            Ok(_) if replaces != version => Err(format!("{replaces:?} replaced {version:?}")),
            Ok(new) => {
                if version.is_some_and(|version| new <= version) {
                    return Err(format!("version {new} follows {version:?}"));
                }
                self.cells.insert((who, key), (value, new));
                Ok(if version.is_some() { "put again" } else { "put" }.to_owned())
            }
            Err(error) if replaces == version => Err(format!("refused, and it fits: {error}")),
            Err(error) => {
                let named = version.is_none_or(|version| error.to_string().contains(&version.to_string()));
                if !named {
                    return Err(format!("the current version is not named: {error}"));
                }
                Ok(format!("put refused {:?}", error.refusal))
            }
        }
    }

    fn write(&mut self, who: usize, rng: &mut Rng) -> Result<String, String> {
        let replaces: BTreeSet<KeptId> = (0..rng.below(3)).map(|_| self.any_fact(rng)).collect();
        let replaces: Vec<KeptId> = replaces.into_iter().collect();
        let look = self.standing();
        let fits = replaces.iter().all(|id| look(*id) == Standing::Held);
        let text = format!("fact {}", rng.below(100));
        let new = NewFact { text: text.clone(), replaces: replaces.clone(), ..NewFact::default() };
        match self.worlds[who].write(new, &look) {
            Ok(_) if !fits => Err(format!("replaces {replaces:?}")),
            Ok(id) => {
                let (line, words) = self.worlds[who].record.last().unwrap();
                let mut event = Event::from_line(line).unwrap();
                event.join(words.as_deref(), crate::aside::ERASED);
                let EventBody::Fact(record) = &event.body else { return Err("no fact".into()) };
                let fact = record.established(id).ok_or("its record holds no fact")?;
                if fact.text != text || record.replaces != replaces {
                    return Err("the record has another fact, or other links".into());
                }
                let seen = self.labels[who].clone();
                if self.facts.insert(id, Book { fact, seen, forgotten: false }).is_some() {
                    return Err(format!("{id} was used before"));
                }
                Ok(if replaces.is_empty() { "write" } else { "write replacing" }.to_owned())
            }
            Err(_) if fits => Err("refused, and it fits".into()),
            Err(error) => Ok(format!("write refused {:?}", error.refusal)),
        }
    }

    fn read(&mut self, who: usize, rng: &mut Rng) -> Result<String, String> {
        let asked: BTreeSet<KeptId> = (0..1 + rng.below(3)).map(|_| self.any_fact(rng)).collect();
        let books = asked.iter().filter_map(|id| self.facts.get(id)).filter(|book| !book.forgotten);
        let books: Vec<Book> = books.cloned().collect();
        if books.is_empty() {
            return Ok("read nothing".into());
        }
        let facts: Vec<KeptFact> = books.iter().map(|book| book.fact.clone()).collect();
        self.worlds[who].push(EventBody::Fact(read(&facts)));
        self.labels[who].extend(books.into_iter().flat_map(|book| book.seen));
        Ok("read".into())
    }

    fn forget(&mut self, who: usize, rng: &mut Rng) -> Result<String, String> {
        let id = self.any_fact(rng);
        let standing = self.standing()(id);
        let world = &mut self.worlds[who];
        let record = forget(world.state.kept(), id, "because".into(), None, standing);
        match world.recorded(KeptOp::Forget, None, record) {
            Ok(_) if standing != Standing::Held => Err(format!("{standing:?} was forgotten")),
            Ok(_) => {
                if !world.state.kept().forgot(id) {
                    return Err("forgotten, and the run does not know".into());
                }
                if let Some(book) = self.facts.get_mut(&id) {
                    book.forgotten = true;
                }
                Ok("forget".into())
            }
            Err(error) if standing == Standing::Held => Err(format!("refused, and it is there: {error}")),
            Err(error) => Ok(format!("forget refused {:?}", error.refusal)),
        }
    }

    /// Whether the runs are as the books say.
    fn check(&self, state: &RunState, who: usize) -> Result<(), String> {
        let kept = state.kept();
        let cells: BTreeMap<(usize, String), (String, u64)> = kept
            .cells()
            .map(|cell| ((who, cell.key.clone()), (cell.value.clone().unwrap_or_default(), cell.version)))
            .collect();
        let booked: BTreeMap<_, _> = self
            .cells
            .iter()
            .filter(|((of, _), _)| *of == who)
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        if cells != booked {
            return Err(format!("cells {cells:?}, books {booked:?}"));
        }
        if names(state.labels()) != self.labels[who] {
            return Err(format!("labels {:?}, books {:?}", state.labels(), self.labels[who]));
        }
        let run = self.worlds[who].run;
        let written = self.facts.keys().filter(|id| id.run == run);
        if written.clone().count() != kept.facts_written()
            || !written.into_iter().all(|id| kept.wrote(id.seq))
        {
            return Err("the run does not know which facts it wrote".into());
        }
        Ok(())
    }
}

fn play(number: u64, seen: &mut BTreeSet<String>) -> Result<(), String> {
    let (mut rng, mut play) = (Rng(number), Play::new());
    for _ in 0..STEPS {
        let who = usize::try_from(rng.below(2)).unwrap();
        let came = match rng.below(10) {
            0 => {
                play.see(who, &mut rng);
                "see".to_owned()
            }
            1..5 => play.put(who, &mut rng)?,
            5 | 6 => play.write(who, &mut rng)?,
            7 | 8 => play.read(who, &mut rng)?,
            _ => play.forget(who, &mut rng)?,
        };
        seen.insert(came);
        // Every step of some sequences, the end of all.
        if number.is_multiple_of(16) {
            play.check(&play.worlds[who].state, who)?;
        }
    }
    for who in 0..2 {
        let again = play.worlds[who].folded_again();
        play.check(&again, who).map_err(|error| format!("folded again: {error}"))?;
    }
    Ok(())
}

#[test]
fn no_sequence_loses_a_value_or_a_label_and_the_record_explains_it() {
    let long = std::env::var_os("PORTCULLIS_TEST_LONG").is_some();
    let sequences = if long { SEQUENCES_LONG } else { SEQUENCES };
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let some = |first: u64| {
        let mut seen = BTreeSet::new();
        for number in (first..sequences).step_by(usize::try_from(threads).unwrap()) {
            if let Err(error) = play(number, &mut seen) {
                panic!("sequence {number}: {error}");
            }
        }
        seen
    };
    let seen: BTreeSet<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || some(first))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    // All of it was reached, or the test says little.
    for wanted in [
        "see",
        "put",
        "put again",
        "put refused Stale",
        "write",
        "write replacing",
        "write refused Unknown",
        "write refused Forgotten",
        "read",
        "read nothing",
        "forget",
        "forget refused Unknown",
        "forget refused Forgotten",
    ] {
        assert!(seen.contains(wanted), "never reached: {wanted}; reached: {seen:?}");
    }
}
