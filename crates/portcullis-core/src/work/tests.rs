//! What each party may do, one rule at a time.

mod sequences;

use serde_json::{Value, json};

use self::sequences::{World, criteria};
use super::*;
use crate::bundle::WorkSettings;

const ITEM: ItemId = ItemId(1);

fn world() -> World {
    World::new(WorkSettings::default())
}

fn create(count: usize) -> Operation {
    let covers = Covers::read(&["/w/1".to_owned()], None).unwrap();
    Operation::Create {
        title: "fix the parser".into(),
        criteria: criteria(count),
        owner: Owner::User,
        covers,
    }
}

fn claim(evidence: &[ActionId]) -> Operation {
    Operation::Claim { item: ITEM, evidence: evidence.to_vec(), statement: "done".into() }
}

fn check(world: &World, came: &[Came]) -> Operation {
    let one = |came: &Came| CheckResult { came: *came, detail: "2 failed".into(), took_ms: 1 };
    let version = world.state.works().item(ITEM).map_or(0, |item| item.changed);
    Operation::Check { item: ITEM, version, results: came.iter().map(one).collect() }
}

fn reason() -> String {
    "because".into()
}

/// An item with one criterion that was claimed, and the call that was cited.
fn claimed() -> (World, ActionId) {
    let mut world = world();
    world.operate(Party::Person, create(1)).unwrap();
    world.operate(Party::Agent, Operation::Start { item: ITEM }).unwrap();
    let call = world.call(OutcomeStatus::Ok, None);
    world.operate(Party::Agent, claim(&[call])).unwrap();
    (world, call)
}

/// C1: every transition that is not drawn in the module's page is refused.
#[test]
fn c1_illegal_transitions_are_refused_and_say_what_would_be_taken() {
    let mut world = world();
    world.operate(Party::Person, create(1)).unwrap();
    let call = world.call(OutcomeStatus::Ok, None);
    let error = world.operate(Party::Agent, claim(&[call])).unwrap_err();
    assert_eq!(error.refusal, Refusal::WrongState);
    let wanted =
        "`item`: #1 is pending, and `claim` needs one that is in_progress; the next operation is `start`";
    assert_eq!(error.to_string(), wanted);
    let error = world.operate(Party::Harness, check(&world, &[Came::Pass])).unwrap_err();
    assert!(error.to_string().contains("the agent has to start it first"), "{error}");
    world.operate(Party::Agent, Operation::Start { item: ITEM }).unwrap();
    assert!(world.operate(Party::Agent, Operation::Start { item: ITEM }).is_err());
    world.operate(Party::Agent, claim(&[call])).unwrap();
    let verified = world.operate(Party::Harness, check(&world, &[Came::Pass])).unwrap();
    assert_eq!((verified.state, verified.verified), (ItemState::Verified, Some(super::Verified::Checked)));
    for operation in [
        Operation::Start { item: ITEM },
        claim(&[call]),
        Operation::AskChanges { item: ITEM, reason: reason() },
        check(&world, &[Came::Fail]),
    ] {
        let party = if operation.op() == Op::AskChanges { Party::Person } else { Party::Agent };
        let party = if operation.op() == Op::Check { Party::Harness } else { party };
        assert_eq!(world.operate(party, operation).unwrap_err().refusal, Refusal::WrongState);
    }
}

/// C2: the agent cannot verify, remove, or change what it is measured by.
#[test]
fn c2_an_agent_may_neither_decide_nor_remove_nor_move_the_goal() {
    let (mut world, _) = claimed();
    let before = world.state.works().item(ITEM).cloned();
    for operation in [
        Operation::Attest { item: ITEM, reason: reason() },
        Operation::AskChanges { item: ITEM, reason: reason() },
        Operation::Bury { item: ITEM, reason: reason() },
        Operation::Accept { item: ITEM },
        Operation::Decline { item: ITEM, reason: reason() },
        Operation::Require { item: ITEM, criteria: Vec::new(), owner: Owner::User },
        check(&world, &[Came::Pass]),
    ] {
        assert_eq!(world.operate(Party::Agent, operation).unwrap_err().refusal, Refusal::NotPermitted);
    }
    // Not after the start, and never where they are another's.
    let propose = Operation::Propose { item: ITEM, criteria: criteria(1) };
    assert_eq!(world.operate(Party::Agent, propose.clone()).unwrap_err().refusal, Refusal::WrongState);
    assert_eq!(world.state.works().item(ITEM).cloned(), before);
    let mut other = self::world();
    other.operate(Party::Person, create(1)).unwrap();
    assert_eq!(other.operate(Party::Agent, propose).unwrap_err().refusal, Refusal::NotPermitted);
}

#[test]
fn what_an_agent_proposes_waits_for_a_person() {
    let mut world = world();
    let made = world.operate(Party::Agent, create(2)).unwrap();
    assert_eq!((made.criteria.len(), made.proposed.len(), made.owner), (0, 2, None));
    let error = world.operate(Party::Agent, Operation::Start { item: ITEM }).unwrap_err();
    assert_eq!(error.refusal, Refusal::WaitsForPerson);
    let accepted = world.operate(Party::Person, Operation::Accept { item: ITEM }).unwrap();
    assert_eq!((accepted.criteria.len(), accepted.owner), (2, Some(Owner::Person)));
    let started = world.operate(Party::Agent, Operation::Start { item: ITEM }).unwrap();
    assert_eq!(started.frozen, Some(digest_of_criteria(&criteria(2), &started.covers, None)));

    let settings = WorkSettings { accept_agent_criteria: true, ..WorkSettings::default() };
    let made = World::new(settings).operate(Party::Agent, create(2)).unwrap();
    assert_eq!((made.criteria.len(), made.owner), (2, Some(Owner::Policy)));
    // What sends a request waits for a person all the same.
    let url = json!([{"type": "http_status", "url": "https://example.org/?key=s3cret", "status": 200}]);
    let criteria = Criterion::read_all("criteria", &url).unwrap();
    let reach =
        Operation::Create { title: "x".into(), criteria, owner: Owner::User, covers: Covers::default() };
    let made = World::new(settings).operate(Party::Agent, reach).unwrap();
    assert_eq!((made.criteria.len(), made.proposed.len(), made.owner), (0, 1, None));
}

#[test]
fn without_criteria_only_a_person_says_that_it_is_done() {
    let mut world = world();
    world.operate(Party::Agent, create(0)).unwrap();
    world.operate(Party::Agent, Operation::Start { item: ITEM }).unwrap();
    let call = world.call(OutcomeStatus::Ok, None);
    world.operate(Party::Agent, claim(&[call])).unwrap();
    assert!(world.operate(Party::Harness, check(&world, &[])).is_err());
    let done = world.operate(Party::Person, Operation::Attest { item: ITEM, reason: reason() }).unwrap();
    assert_eq!((done.state, done.verified), (ItemState::Verified, Some(super::Verified::Attested)));
}

/// C3: evidence is a call of this run that succeeded.
#[test]
fn c3_only_calls_of_this_run_that_succeeded_are_evidence() {
    let mut world = world();
    world.operate(Party::Person, create(1)).unwrap();
    world.operate(Party::Agent, Operation::Start { item: ITEM }).unwrap();
    let (good, failed) = (world.call(OutcomeStatus::Ok, None), world.call(OutcomeStatus::Error, None));
    let unknown = ActionId::from_bytes([0xee; 16]);
    for evidence in [&[][..], &[unknown], &[good, failed], &[good, good]] {
        let error = world.operate(Party::Agent, claim(evidence)).unwrap_err();
        assert_eq!(error.refusal, Refusal::NoEvidence, "{error}");
    }
    let taken = world.operate(Party::Agent, claim(&[good])).unwrap();
    let call = world.state.works().call(good).unwrap();
    assert_eq!(taken.evidence.first().map(|one| one.digest), Some(call.digest(good)));
}

/// C5: what is written afterwards makes evidence stale, before and after it is cited.
#[test]
fn c5_evidence_is_stale_once_what_it_covers_is_written() {
    let (mut world, first) = claimed();
    world.call(OutcomeStatus::Ok, Some(2));
    assert_eq!(world.state.works().item(ITEM).unwrap().stale(), None, "another file");
    world.call(OutcomeStatus::Ok, Some(1));
    assert!(world.state.works().item(ITEM).unwrap().stale().is_some());
    let turned_down = world.operate(Party::Harness, check(&world, &[Came::Pass])).unwrap();
    assert_eq!(turned_down.state, ItemState::InProgress, "passing does not help stale evidence");
    let error = world.operate(Party::Agent, claim(&[first])).unwrap_err();
    assert_eq!(error.refusal, Refusal::OldEvidence);
    let again = world.call(OutcomeStatus::Ok, None);
    world.operate(Party::Agent, claim(&[again])).unwrap();
    let done = world.operate(Party::Harness, check(&world, &[Came::Pass])).unwrap();
    assert_eq!(done.state, ItemState::Verified);
    world.call(OutcomeStatus::Error, Some(1));
    let item = world.state.works().item(ITEM).unwrap();
    assert!(item.state == ItemState::Verified && item.stale().is_some(), "done, and no longer shown to be");
}

/// C9: what was turned down is not claimed again with the same evidence.
#[test]
fn c9_a_claim_that_was_turned_down_needs_new_evidence() {
    let (mut world, first) = claimed();
    let error = {
        world.operate(Party::Harness, check(&world, &[Came::Fail])).unwrap();
        world.operate(Party::Agent, claim(&[first])).unwrap_err()
    };
    assert_eq!(error.refusal, Refusal::OldEvidence);
    let second = world.call(OutcomeStatus::Ok, None);
    world.operate(Party::Agent, claim(&[first, second])).unwrap();
}

#[test]
fn fail_error_and_timeout_are_different_things() {
    for (came, state, attempts) in [
        (Came::Fail, ItemState::InProgress, 0),
        (Came::Error, ItemState::Claimed, 1),
        (Came::Timeout, ItemState::Claimed, 1),
    ] {
        let (mut world, _) = claimed();
        let item = world.operate(Party::Harness, check(&world, &[came])).unwrap();
        assert_eq!((item.state, item.attempts), (state, attempts), "{came:?}");
    }
}

#[test]
fn beyond_a_limit_an_item_waits_for_a_person() {
    let settings = WorkSettings { attempts: 1, revisions: 0, steps: 3, accept_agent_criteria: false };
    let start = |came: Option<Came>, steps: usize| {
        let mut world = World::new(settings);
        world.operate(Party::Person, create(1)).unwrap();
        world.operate(Party::Agent, Operation::Start { item: ITEM }).unwrap();
        let call = (0..steps).map(|_| world.call(OutcomeStatus::Ok, None)).last().unwrap();
        world.operate(Party::Agent, claim(&[call])).unwrap();
        if let Some(came) = came {
            world.operate(Party::Harness, check(&world, &[came])).unwrap();
        }
        world
    };
    for (came, steps) in [(Some(Came::Error), 1), (Some(Came::Fail), 1), (None, 4)] {
        let mut world = start(came, steps);
        let item = world.state.works().item(ITEM).unwrap().clone();
        assert!(item.waits && item.state == ItemState::Claimed, "{came:?} {item:?}");
        let error = world.operate(Party::Harness, check(&world, &[Came::Pass])).unwrap_err();
        assert_eq!(error.refusal, Refusal::WaitsForPerson);
        let back =
            world.operate(Party::Person, Operation::AskChanges { item: ITEM, reason: reason() }).unwrap();
        assert_eq!((back.state, back.waits, back.revisions), (ItemState::InProgress, false, 0));
    }
}

#[test]
fn results_of_another_claim_are_refused() {
    let (mut world, _) = claimed();
    let old = check(&world, &[Came::Pass]);
    world.operate(Party::Person, Operation::AskChanges { item: ITEM, reason: reason() }).unwrap();
    let call = world.call(OutcomeStatus::Ok, None);
    world.operate(Party::Agent, claim(&[call])).unwrap();
    assert_eq!(world.operate(Party::Harness, old).unwrap_err().refusal, Refusal::Changed);
}

#[test]
fn criteria_are_read_strictly_and_mistakes_name_their_field() {
    let digest = "ab".repeat(32);
    let good = json!([
        {"type": "command_exit_zero", "command": ["cargo", "test"], "timeout_seconds": 60,
         "pinned": [{"path": "tests/a.rs", "sha256": digest}, {"path": "Cargo.toml", "commit": "ab".repeat(20)}]},
        {"type": "file_hash", "path": "a", "sha256": digest},
        {"type": "json_path", "path": "a.json", "pointer": "/version", "equals": [1, {"a": null}]},
        {"type": "git_diff_touches", "since": "main", "paths": ["src"]},
        {"type": "sql_returns", "path": "a.db", "query": "select 1", "rows": [[1]]},
        {"type": "http_status", "url": "https://example.org/health?a=b", "status": 204, "redirects": 2,
         "private": true, "timeout_seconds": 5},
        {"type": "pr_exists", "forge": "gitea", "url": "http://127.0.0.1:3000/api/v1", "private": true,
         "owner": "o", "repo": "r.x", "branch": "fork:fix"},
        {"type": "pr_merged", "forge": "github", "url": "https://api.github.com", "owner": "o", "repo": "r",
         "number": 7, "into": "release"},
        {"type": "contract", "statement": "at most 120 words", "path": "README.md"},
        {"type": "contract", "statement": "no commas", "reply": true},
    ]);
    let read = Criterion::read_all("criteria", &good).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), good);
    let again: Vec<Criterion> = serde_json::from_value(good).unwrap();
    assert_eq!(again, read);

    let http = |url: &str| json!([{"type": "http_status", "url": url, "status": 200}]);
    let request = |more: Value| {
        let mut request = json!({"type": "pr_merged", "forge": "github", "url": "https://h", "owner": "o"});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([request])
    };
    let cases: [(Value, &str); 24] = [
        (http("ftp://h/"), "`criteria[0].url`: must be a URL that begins with"),
        (http("https:///x"), "`criteria[0].url`: must be a URL that begins with"),
        (http("https://h/ x"), "`criteria[0].url`: must be a URL that begins with"),
        (http("https://me:pw@h/"), "`criteria[0].url`: must have no user"),
        (http("https://h/#part"), "`criteria[0].url`: must have no user"),
        (
            json!([{"type": "http_status", "url": "http://h", "status": 42}]),
            "`criteria[0].status`: must be a whole",
        ),
        (request(json!({"repo": "../r", "number": 1})), "`criteria[0].repo`: has letters"),
        (request(json!({"repo": "r"})), "`criteria[0].number`: give one of"),
        (request(json!({"repo": "r", "number": 1, "branch": "b"})), "`criteria[0].number`: give one of"),
        (json!([{"type": "contract", "statement": "no commas"}]), "`criteria[0].path`: give one of"),
        (
            json!([{"type": "contract", "statement": "no commas", "path": "a", "reply": true}]),
            "`criteria[0].path`: give one of",
        ),
        (json!({}), "`criteria`: must be a list"),
        (json!([{"type": "vibes"}]), "`criteria[0].type`: `vibes` is no type of criterion"),
        (json!([{"type": "file_exists"}]), "`criteria[0].path`: is missing"),
        (json!([{"type": "file_exists", "path": ""}]), "`criteria[0].path`: is empty"),
        (json!([{"type": "file_exists", "path": 3}]), "`criteria[0].path`: must be a text"),
        (json!([{"type": "file_exists", "path": "a", "paht": "b"}]), "`criteria[0].paht`: is not a field"),
        (json!([{"type": "command_exit_zero", "command": "true"}]), "`criteria[0].command`: must be a list"),
        (json!([{"type": "command_exit_zero", "command": []}]), "`criteria[0].command`: must have 1 to"),
        (json!([{"type": "file_hash", "path": "a", "sha256": "x"}]), "`criteria[0].sha256`: must be 64"),
        (json!([{"type": "git_commit_exists", "commit": "--all"}]), "`criteria[0].commit`: must be the name"),
        (
            json!([{"type": "file_exists", "path": "a", "pinned": [{"path": "b"}]}]),
            "`criteria[0].pinned[0].sha256`: a file is pinned by one of",
        ),
        (
            json!([{"type": "git_clean", "pinned": [{"path": "b", "commit": "main"}]}]),
            "`criteria[0].pinned[0].commit`: must be the full name",
        ),
        (json!(vec![json!({"type": "file_exists", "path": "a"}); 33]), "`criteria`: has more than 32"),
    ];
    for (value, wanted) in cases {
        let error = Criterion::read_all("criteria", &value).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error}, wanted {wanted}");
    }
}

#[test]
fn what_is_written_bears_on_what_is_covered() {
    use crate::effect::{Effect, Effects, Resource, ResourceKind, Verb};
    let written = |name: &str| {
        let mut effects = Effects::none();
        let path = Resource::new(ResourceKind::Path, name).with("resolved", true);
        effects.push(Effect::new(Verb::Write, path));
        Written::of(&effects)
    };
    let covers = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Covers::read(&names, Some("/w")).unwrap()
    };
    let touches = |name: &str, covers: &Covers| written(name).touches(covers, Some("/w"));
    let all = covers(&[]);
    assert!(touches("/w/src/a.rs", &all) && !touches("/tmp/a", &all) && !touches("/wide/a", &all));
    assert!(!touches("/w/.git/index", &all) && !touches("/w/x/target/debug/a", &all));
    assert!(touches("/w/.github/a", &all) && touches("/", &all) && touches("a*", &all));
    let some = covers(&["src", "/etc/app.conf", "table users"]);
    assert!(touches("/w/src/x/a.rs", &some) && !touches("/w/srcs/a.rs", &some));
    assert!(touches("/w/src/../src/a", &some) && touches("/etc/app.conf", &some) && touches("/etc", &some));
    assert!(Written::anything().touches(&some, Some("/w")));
    assert!(!Written::of(&Effects::none()).touches(&all, Some("/w")));
    let relative = Covers::read(&["src".to_owned()], None).unwrap_err();
    assert_eq!(relative.field, "covers[0]");
}
