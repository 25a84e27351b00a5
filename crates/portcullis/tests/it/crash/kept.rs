//! `kill -9` of the daemon at random points, while agents put state and keep facts.
//!
//! Each agent makes a request, under one name, until it is answered, whatever dies meanwhile, and keeps books. When all is
//! over, the store is held against these books: what was acknowledged is there, and nothing is there twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use portcullis_core::event::EventBody;
use portcullis_core::id::{RequestId, RunId};
use portcullis_core::kept::{KeptId, STATE};
use portcullis_core::principal::CredentialKind;
use portcullis_gateway::api::{
    FactAnswer, FactOperation, FactRequest, OpenRun, StateAnswer, StateOperation, StateRequest,
};
use portcullis_gateway::client::{ClientError, Run, StartOptions};
use portcullis_gateway::home::Home;
use portcullis_ledger::{FactFilter, RunFilter, SqliteReader};
use portcullis_session::env::{Env as _, SystemEnv};
use portcullis_session::kept::told;
use portcullis_session::surface::Surface as _;

use super::audit::{events, verify};
use super::is_long;
use super::world::{DAEMON, Rng, daemon, keep, signal, stop_daemon, within, write_bundle};

const AGENTS: usize = 4;
/// How long the daemon is killed again and again, and in the long form.
const KILLING: Duration = Duration::from_secs(8);
const KILLING_LONG: Duration = Duration::from_secs(600);
/// The longest pause before a kill, in milliseconds.
const PAUSE_MS_MAX: u64 = 60;
/// How long agents may take to go on after a kill, or to end.
const GO_ON_MAX: Duration = Duration::from_secs(60);
/// Every so many requests a fact is forgotten again.
const FORGET_EVERY: u64 = 5;

/// What agents were answered.
#[derive(Debug, Default)]
struct Books {
    /// Version and value of each put.
    puts: Vec<(RunId, u64, u64)>,
    facts: Vec<(KeptId, String)>,
    forgotten: BTreeSet<KeptId>,
}

#[derive(Default)]
struct World {
    books: Mutex<Books>,
    stop: AtomicBool,
    answered: AtomicU64,
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

async fn open(home: &Home, start: &StartOptions, resume: Option<RunId>) -> Run {
    let begin = Instant::now();
    loop {
        let open = OpenRun { surface: "test".into(), resume, ..OpenRun::default() };
        match Run::open(home, start.clone(), open).await {
            Ok(run) => return run,
            Err(error) => {
                let hopeless = matches!(error, ClientError::Refused { .. }) && !error.calls_for_resuming();
                assert!(!hopeless && begin.elapsed() < GO_ON_MAX, "{error}");
            }
        }
    }
}

/// An agent with its run.
struct Agent<'w> {
    world: &'w World,
    home: &'w Home,
    start: &'w StartOptions,
    run: Run,
    env: SystemEnv,
}

impl Agent<'_> {
    fn request(&mut self) -> Option<RequestId> {
        Some(RequestId::from_bytes(self.env.id()))
    }

    /// A refusal of the daemon would be a defect: everything that is asked here fits.
    async fn recovered(&mut self, error: ClientError) {
        let refused = matches!(error, ClientError::Refused { .. }) && !error.calls_for_resuming();
        assert!(!refused, "{error}");
        self.run = open(self.home, self.start, Some(self.run.id())).await;
    }

    async fn state(&mut self, operation: StateOperation) -> StateAnswer {
        let request = StateRequest { operation, call: None, request: self.request() };
        loop {
            match self.run.state(request.clone()).await {
                Ok(answer) => return answer,
                Err(error) => self.recovered(error).await,
            }
        }
    }

    async fn facts(&mut self, operation: FactOperation) -> FactAnswer {
        let request = FactRequest { operation, call: None, request: self.request() };
        loop {
            match self.run.facts(request.clone()).await {
                Ok(answer) => return answer,
                Err(error) => self.recovered(error).await,
            }
        }
    }

    async fn put(&mut self, value: u64, replaces: Option<u64>) -> u64 {
        let operation = StateOperation::Put { key: "count".into(), value: value.into(), replaces };
        let version = self.state(operation).await.keys.first().unwrap().version;
        self.world.books.lock().unwrap().puts.push((self.run.id(), version, value));
        version
    }

    async fn write(&mut self, text: String) -> KeptId {
        let (topic, replaces, scope) = (String::new(), Vec::new(), Default::default());
        let operation = FactOperation::Write { text: text.clone(), topic, replaces, scope };
        let fact = self.facts(operation).await.fact.unwrap();
        self.world.books.lock().unwrap().facts.push((fact, text));
        fact
    }

    async fn forget(&mut self, fact: KeptId) {
        self.facts(FactOperation::Forget { fact, reason: "counted".into() }).await;
        self.world.books.lock().unwrap().forgotten.insert(fact);
    }
}

async fn agent(world: &World, home: &Home, start: &StartOptions) {
    let (run, env) = (open(home, start, None).await, SystemEnv::new().unwrap());
    let mut agent = Agent { world, home, start, run, env };
    let own = agent.run.id();
    let (mut value, mut version) = (0, None);
    while !world.stop.load(Ordering::SeqCst) {
        value += 1;
        version = Some(agent.put(value, version).await);
        let fact = agent.write(format!("{own} has counted to {value}")).await;
        if value.is_multiple_of(FORGET_EVERY) {
            agent.forget(fact).await;
        }
        world.answered.fetch_add(1, Ordering::SeqCst);
    }
    // The last kill may have been a moment ago.
    while agent.run.close().await.is_err() {
        agent.run = open(home, start, Some(own)).await;
    }
}

/// Kills the daemon for as long as that takes, each time after something was answered; how often.
fn kill_again_and_again(world: &World, home: &Home, rng: &mut Rng) -> u64 {
    let (begin, killing) = (Instant::now(), if is_long() { KILLING_LONG } else { KILLING });
    let mut kills = 0;
    while begin.elapsed() < killing {
        let before = world.answered.load(Ordering::SeqCst);
        let goes_on = || (world.answered.load(Ordering::SeqCst) > before).then_some(());
        // One in four kills meets what the last one left: recovery, start-up, runs being taken up again.
        if rng.below(4) != 0 {
            assert!(within(GO_ON_MAX, goes_on).is_some(), "nothing goes on after kill {kills}");
        }
        std::thread::sleep(Duration::from_millis(rng.below(PAUSE_MS_MAX)));
        kills += u64::from(daemon(home).is_some_and(|pid| signal(pid, "KILL")));
    }
    kills
}

/// The values that were put in a run, by their versions.
fn puts(reader: &SqliteReader, run: RunId) -> BTreeMap<u64, u64> {
    let put = |(seq, mut event): (u64, portcullis_core::event::Event)| {
        let words = event.payloads.get(STATE).map(|payload| payload.commitment)?;
        let words = reader.payload(run, words).unwrap().unwrap();
        event.join(std::str::from_utf8(words.bytes()).ok(), "erased");
        match event.body {
            EventBody::State(record) => {
                assert_eq!(record.refused, None, "{}", record.words.why);
                Some((seq, record.words.after?.parse().unwrap()))
            }
            _ => None,
        }
    };
    events(reader, run).into_iter().filter_map(put).collect()
}

/// Holds the store against the books.
fn audit(home: &Home, books: &Books) {
    let reader = SqliteReader::open(&home.ledger()).unwrap();
    assert_eq!(reader.integrity_check().unwrap().problems, Vec::<String>::new());
    let mut all = BTreeMap::new();
    for run in reader.runs(&RunFilter::default()).unwrap() {
        verify(&reader, run.run);
        let values = puts(&reader, run.run);
        let counted: Vec<u64> = values.values().copied().collect();
        let expected: Vec<u64> = (1..=values.len() as u64).collect();
        assert_eq!(counted, expected, "run {}: a value is missing or there twice", run.run);
        all.insert(run.run, values);
    }
    for (run, version, value) in &books.puts {
        assert_eq!(all[run].get(version), Some(value), "a put of run {run} is lost");
    }
    let (mut facts, mut before) = (BTreeMap::new(), None);
    loop {
        let filter = FactFilter { gone: true, limit: 1_000, before, ..FactFilter::default() };
        let rows = reader.facts(&filter).unwrap();
        let Some(last) = rows.last() else { break };
        before = Some(last.number);
        for row in &rows {
            let told = told(&reader, row).unwrap().expect("an indexed fact is in no record");
            let text = told.text.clone().unwrap();
            assert!(facts.insert(text, told).is_none(), "fact {} is there twice", row.id);
        }
    }
    for (id, text) in &books.facts {
        let told = facts.get(text).unwrap_or_else(|| panic!("fact {id} is lost"));
        assert_eq!(told.fact, *id, "it has another name");
        assert!(told.forgotten.is_some() || !books.forgotten.contains(id), "fact {id} is not forgotten");
    }
}

#[test]
fn state_and_facts_outlive_every_death_of_the_daemon_and_nothing_is_kept_twice() {
    let (begin, mut rng) = (Instant::now(), Rng::seeded());
    println!("seed {}; again with PORTCULLIS_TEST_SEED={}", rng.seed(), rng.seed());
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let (bundle, program) = (folder.path().join("bundle"), folder.path().join(DAEMON));
    write_bundle(&bundle);
    keep(env!("CARGO_BIN_EXE_portcullis").as_ref(), &program);
    let home = Home::at(&folder.path().join("home")).unwrap();
    let start =
        StartOptions { program: Some(program), bundle: Some(bundle), credential: CredentialKind::Agent };
    let world = World::default();
    let kills = std::thread::scope(|scope| {
        let agents: Vec<_> =
            (0..AGENTS).map(|_| scope.spawn(|| block_on(agent(&world, &home, &start)))).collect();
        let kills = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            kill_again_and_again(&world, &home, &mut rng)
        }));
        world.stop.store(true, Ordering::SeqCst);
        agents.into_iter().for_each(|agent| agent.join().unwrap());
        kills.unwrap()
    });
    stop_daemon(&home);
    let books = world.books.lock().unwrap();
    audit(&home, &books);
    println!(
        "{kills} kills in {:.1?}: {} puts and {} facts acknowledged, {} of them forgotten",
        begin.elapsed(),
        books.puts.len(),
        books.facts.len(),
        books.forgotten.len()
    );
    // Else the test shows nothing.
    assert!(
        kills >= 5 && books.facts.len() as u64 > kills && !books.forgotten.is_empty(),
        "too little happened"
    );
}
