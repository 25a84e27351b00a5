//! `kill -9` of the daemon at random points, while agents ask, approvers decide and grants are used.
//!
//! Agents and approvers keep books of what they were answered. When all is over, the ledger is held against these books,
//! and against rules of its own: no grant that was acknowledged is missing, none was used more often than it allows, and
//! nothing was executed without one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use portcullis_core::event::{About, ApprovalDecision, Event, EventBody, GrantScope, OutcomeStatus};
use portcullis_core::id::{ActionId, ApprovalId, Digest, RunId};
use portcullis_core::principal::CredentialKind;
use portcullis_gateway::api::{
    ApprovalFilter, ApprovalInfo, GrantApproval, OpenRun, ProposeAction, RefuseApproval, ReportOutcome,
    RevokeApproval, Scope,
};
use portcullis_gateway::client::{Client, ClientError, Proposed, Run, StartOptions};
use portcullis_gateway::home::Home;
use portcullis_ledger::{RunFilter, SqliteReader};
use portcullis_session::surface::Surface as _;
use serde_json::json;

use super::audit::{events, verify};
use super::is_long;
use super::world::{DAEMON, Rng, daemon, keep, signal, stop_daemon, within, write_bundle_that_asks};

const AGENTS: usize = 4;
const APPROVERS: usize = 2;
/// How long the daemon is killed again and again, and in the long form.
const KILLING: Duration = Duration::from_secs(15);
const KILLING_LONG: Duration = Duration::from_secs(600);
/// The longest pause before a kill, in milliseconds.
const PAUSE_MS_MAX: u64 = 100;
/// The most executions that are waited for before a kill.
const MORE_MAX: u64 = 15;
/// How long agents may take to go on after a kill, or to end.
const GO_ON_MAX: Duration = Duration::from_secs(60);
/// How often the same call is executed before the next one is made.
const TIMES: usize = 2;
const BREATH: Duration = Duration::from_millis(2);

/// What agents and approvers were answered.
#[derive(Debug, Default)]
struct Books {
    granted: Vec<(RunId, ApprovalId, Scope)>,
    refused: Vec<(RunId, ApprovalId)>,
    revoked: Vec<(RunId, ApprovalId)>,
    executed: Vec<(RunId, ActionId)>,
}

#[derive(Default)]
struct World {
    books: Mutex<Books>,
    stop: AtomicBool,
    executed: AtomicU64,
}

impl World {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }
}

/// Ends all when the test does, in whatever way.
struct Ending<'w> {
    world: &'w World,
    home: &'w Home,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.world.stop.store(true, Ordering::SeqCst);
        if std::thread::panicking()
            && let Some(pid) = daemon(self.home)
        {
            signal(pid, "KILL");
        }
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Proposes calls until each was executed twice or refused.
async fn agent(world: &World, home: &Home, start: &StartOptions) {
    let mut run = open(home, start, None).await;
    let (mut number, mut times) = (0, 0);
    while world.goes_on() {
        let proposal = ProposeAction {
            tool: Some("note".into()),
            arguments: json!({"number": number, "text": "something"}),
            wait_ms: Some(0),
            ..ProposeAction::default()
        };
        match run.propose(proposal).await {
            Ok(Proposed::Permitted(permit)) => {
                let action = permit.action();
                world.books().executed.push((run.id(), action));
                world.executed.fetch_add(1, Ordering::SeqCst);
                run = report(run, action, home, start).await;
                times += 1;
            }
            Ok(Proposed::Stopped(stopped)) if stopped.judged.approval.is_some() => {
                tokio::time::sleep(BREATH).await;
            }
            Ok(Proposed::Stopped(_)) => times = TIMES,
            Err(_) => run = open(home, start, Some(run.id())).await,
        }
        if times == TIMES {
            (number, times) = (number + 1, 0);
        }
    }
    // The last kill may have been a moment ago.
    while run.close().await.is_err() {
        run = open(home, start, Some(run.id())).await;
    }
}

/// Reports an outcome until it is taken. It was taken before where the answer was lost with the daemon.
async fn report(mut run: Run, action: ActionId, home: &Home, start: &StartOptions) -> Run {
    let outcome = ReportOutcome::of(action, OutcomeStatus::Ok, None);
    loop {
        match run.outcome(outcome.clone()).await {
            Err(error) if error.code().is_none() || error.calls_for_resuming() => {
                run = open(home, start, Some(run.id())).await;
            }
            _ => return run,
        }
    }
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

/// Decides about everything that waits: mostly yes, once; and what cannot be decided now is left for the next look.
async fn approver(world: &World, home: &Home, mut rng: Rng) {
    let client = Client::new(home.clone(), CredentialKind::Approver);
    while world.goes_on() {
        let waiting = client.approvals(ApprovalFilter::Pending).await.unwrap_or_default();
        for listed in waiting {
            let id = listed.approval.to_string();
            if let Ok(shown) = client.approval(&id).await {
                decide(world, &client, &shown, rng.below(10)).await;
            }
        }
        tokio::time::sleep(BREATH).await;
    }
}

async fn decide(world: &World, client: &Client, shown: &ApprovalInfo, chance: u64) {
    let (id, key) = (shown.approval.to_string(), (shown.run, shown.approval));
    if chance == 0 {
        if client.refuse(&id, &RefuseApproval::default()).await.is_ok() {
            world.books().refused.push(key);
        }
        return;
    }
    let scope = if chance <= 3 { Scope::Arguments } else { Scope::Once };
    let grant = GrantApproval { scope, ..GrantApproval::of(shown) };
    if client.grant(&id, &grant).await.is_ok() {
        world.books().granted.push((key.0, key.1, scope));
        if (2..=3).contains(&chance) && client.revoke(&id, &RevokeApproval::default()).await.is_ok() {
            world.books().revoked.push(key);
        }
    }
}

/// Kills the daemon for as long as that takes, each time after something was executed; how often.
fn kill_again_and_again(world: &World, home: &Home, rng: &mut Rng) -> u64 {
    let (begin, killing) = (Instant::now(), if is_long() { KILLING_LONG } else { KILLING });
    let mut kills = 0;
    while begin.elapsed() < killing {
        let before = world.executed.load(Ordering::SeqCst);
        let more = rng.below(MORE_MAX);
        let goes_on = || (world.executed.load(Ordering::SeqCst) > before + more).then_some(());
        // One in four kills meets what the last one left: recovery, start-up, runs being taken up again.
        if rng.below(4) != 0 {
            assert!(within(GO_ON_MAX, goes_on).is_some(), "nothing goes on after kill {kills}");
        }
        std::thread::sleep(Duration::from_millis(rng.below(PAUSE_MS_MAX)));
        kills += u64::from(daemon(home).is_some_and(|pid| signal(pid, "KILL")));
    }
    kills
}

/// A request for approval as the events of its run tell it.
#[derive(Debug, Default)]
struct Told {
    call: Option<Digest>,
    /// The decisions, with the numbers of their events.
    decided: Vec<(u64, ApprovalDecision)>,
    once: bool,
    claims: Vec<(u64, ActionId)>,
}

impl Told {
    fn at(&self, decision: ApprovalDecision) -> Option<u64> {
        self.decided.iter().find(|(_, one)| *one == decision).map(|(seq, _)| *seq)
    }

    /// Granted before each use, for this call, not more often than once where it says so, and not after an end.
    fn check(&self, id: ApprovalId, calls: &BTreeMap<ActionId, Digest>) {
        let grants = self.decided.iter().filter(|(_, one)| *one == ApprovalDecision::Granted).count();
        assert!(grants <= 1, "{id} was granted {grants} times");
        assert!(!self.once || self.claims.len() <= 1, "{id} was used twice: {self:?}");
        for (seq, action) in &self.claims {
            let granted = self.at(ApprovalDecision::Granted);
            assert!(granted.is_some_and(|granted| granted < *seq), "{id} was used before it was granted");
            assert_eq!(calls.get(action).copied(), self.call, "{id} was used by another call");
            for end in [ApprovalDecision::Refused, ApprovalDecision::Revoked, ApprovalDecision::Expired] {
                assert!(self.at(end).is_none_or(|end| *seq < end), "{id} was used after its end: {self:?}");
            }
        }
    }
}

/// What the record of a run says of requests, and that each action that went ahead used a grant.
fn told(events: &BTreeMap<u64, Event>) -> BTreeMap<ApprovalId, Told> {
    let (mut told, mut calls) = (BTreeMap::<ApprovalId, Told>::new(), BTreeMap::new());
    let (mut claimed, mut ahead) = (BTreeSet::new(), BTreeSet::new());
    for (seq, event) in events {
        match &event.body {
            EventBody::Proposed(proposed) => drop(calls.insert(proposed.action, proposed.digest)),
            EventBody::ApprovalRequested { approval, about: About::Action(action), .. } => {
                told.entry(*approval).or_default().call = calls.get(action).copied();
            }
            EventBody::ApprovalDecided { approval, decision, scope, .. } => {
                let one = told.entry(*approval).or_default();
                one.decided.push((*seq, *decision));
                one.once |= *scope == Some(GrantScope::Once);
            }
            EventBody::GrantClaimed { approval, about: About::Action(action) } => {
                told.entry(*approval).or_default().claims.push((*seq, *action));
                claimed.insert(*action);
            }
            EventBody::Enforcement { action: Some(action), enforced, .. } if enforced.proceeds() => {
                assert!(claimed.contains(action), "{action} went ahead without a claim");
                assert!(ahead.insert(*action), "{action} went ahead twice: {:#?}", story(events, *action));
            }
            _ => {}
        }
    }
    told.iter().for_each(|(id, one)| one.check(*id, &calls));
    told
}

/// The events of an action.
fn story(events: &BTreeMap<u64, Event>, action: ActionId) -> Vec<&Event> {
    events.values().filter(|event| event.body.action() == Some(action)).collect()
}

/// Holds the ledger against the books; how many claims it has.
fn audit(home: &Home, books: &Books) -> usize {
    let reader = SqliteReader::open(&home.ledger()).unwrap();
    assert_eq!(reader.integrity_check().unwrap().problems, Vec::<String>::new());
    let mut all = BTreeMap::new();
    for run in reader.runs(&RunFilter::default()).unwrap() {
        verify(&reader, run.run);
        let of_run = told(&events(&reader, run.run));
        all.extend(of_run.into_iter().map(|(id, told)| ((run.run, id), told)));
    }
    let at =
        |run: &RunId, id: &ApprovalId| all.get(&(*run, *id)).expect("an approval of the books is missing");
    for (run, id, scope) in &books.granted {
        assert!(at(run, id).at(ApprovalDecision::Granted).is_some(), "the grant of {id} is lost");
        assert_eq!(at(run, id).once, *scope == Scope::Once, "{id} has another scope");
    }
    for (run, id) in &books.refused {
        assert!(at(run, id).at(ApprovalDecision::Refused).is_some(), "the refusal of {id} is lost");
    }
    for (run, id) in &books.revoked {
        assert!(at(run, id).at(ApprovalDecision::Revoked).is_some(), "the revocation of {id} is lost");
    }
    let claims = || all.iter().flat_map(|((run, _), told)| told.claims.iter().map(|(_, one)| (*run, *one)));
    let (claimed, mut executed) = (claims().collect::<BTreeSet<_>>(), BTreeSet::new());
    for one in &books.executed {
        assert!(executed.insert(one), "{} was executed twice", one.1);
        assert!(claimed.contains(one), "{} was executed, and its grant is not recorded", one.1);
    }
    claims().count()
}

#[test]
fn no_grant_is_lost_or_used_twice_whenever_the_daemon_is_killed() {
    let (begin, mut rng) = (Instant::now(), Rng::seeded());
    println!("seed {}; again with PORTCULLIS_TEST_SEED={}", rng.seed(), rng.seed());
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let (bundle, program) = (folder.path().join("bundle"), folder.path().join(DAEMON));
    write_bundle_that_asks(&bundle);
    keep(env!("CARGO_BIN_EXE_portcullis").as_ref(), &program);
    let home = Home::at(&folder.path().join("home")).unwrap();
    let start =
        StartOptions { program: Some(program), bundle: Some(bundle), credential: CredentialKind::Agent };
    let world = World::default();
    let kills = std::thread::scope(|scope| {
        let agents: Vec<_> =
            (0..AGENTS).map(|_| scope.spawn(|| block_on(agent(&world, &home, &start)))).collect();
        for _ in 0..APPROVERS {
            let rng = Rng::of(rng.below(u64::MAX));
            scope.spawn(|| block_on(approver(&world, &home, rng)));
        }
        let ending = Ending { world: &world, home: &home };
        let kills = kill_again_and_again(&world, &home, &mut rng);
        drop(ending);
        agents.into_iter().for_each(|agent| agent.join().unwrap());
        kills
    });
    stop_daemon(&home);
    let books = world.books();
    let claims = audit(&home, &books);
    let (granted, executed) = (books.granted.len(), books.executed.len());
    println!(
        "{kills} kills in {:.1?}: {granted} grants, {} refusals and {} revocations acknowledged, {claims} claims, {executed} executed",
        begin.elapsed(),
        books.refused.len(),
        books.revoked.len(),
    );
    // Else the test shows nothing.
    let enough = granted as u64 > kills && executed as u64 > kills && !books.revoked.is_empty();
    assert!(kills >= 5 && enough, "too little happened");
}
