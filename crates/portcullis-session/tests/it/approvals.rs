//! What a yes covers: one request, its scope and its time.

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Enforced, GrantScope, GrantedEffects, OutcomeStatus};
use portcullis_core::id::{ApprovalId, Digest};
use portcullis_core::label::Label;
use portcullis_core::principal::Principal;
use portcullis_core::state::ApprovalState;
use portcullis_core::verdict::Verdict;
use portcullis_session::dry::DryRun;
use portcullis_session::engine::{
    ANSWERED, Answer, AnswerError, Decider, Edit, Judgement, Lasts, Proposal, Says, ShownRequest,
};
use serde_json::{Value, json};

const FILE_POLICY: &str = "@rule(\"outside\")\n@decision(\"review\")\nforbid (principal, action, resource is Path)\n\
                           unless { resource.inside };\n";

/// A bundle in which the tool `send` is held, and paths outside of the workspace.
fn bundle(approvals: &str) -> Arc<Bundle> {
    let files: BTreeMap<String, Vec<u8>> = [
        ("portcullis.toml", format!("version = 1\n[effects]\nworkspace = '/project'\n{approvals}")),
        (
            "tools/t.toml",
            "[[tool]]\nname = 'read'\ntype = 'R'\nside_effecting = false\n\
             [[tool]]\nname = 'send'\ntype = 'S'\nside_effecting = true\n\
             [[tool]]\nname = 'remove'\ntype = 'D'\nside_effecting = true\neffects = { path = 'path' }\n"
                .to_owned(),
        ),
        (
            "policies/p.toml",
            "[[policy]]\nname = 'p'\nallowed_types = ['R', 'S', 'D']\nmax_steps = 100000\n\
             max_side_effects = 100000\napproval_for_side_effects = true\n\
             [[policy]]\nname = 'free'\nallowed_types = ['R', 'S', 'D']\nmax_steps = 1000\nmax_side_effects = 1000\n"
                .to_owned(),
        ),
        ("access/paths.cedar", FILE_POLICY.to_owned()),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.into_bytes()))
    .collect();
    Arc::new(portcullis_session::policy::load(&files).unwrap_or_else(|mistakes| panic!("{mistakes:?}")))
}

fn run(bundle: &Arc<Bundle>, policy: &str) -> DryRun {
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let ida = Principal::named("ida");
    DryRun::open_as(Arc::clone(bundle), pipeline, policy, ida, None).unwrap().keeping_events()
}

fn send(number: u8) -> Proposal {
    Proposal { tool: Some("send".into()), arguments: json!({"to": number}), ..Proposal::default() }
}

fn remove(path: &str) -> Proposal {
    Proposal { tool: Some("remove".into()), arguments: json!({"path": path}), ..Proposal::default() }
}

/// An approver who was shown the request as it is now.
fn looking(run: &DryRun, id: &str, roles: &[&str]) -> Decider {
    let digest = Digest::from_bytes([7; 32]);
    let shown = Some(ShownRequest { digest, labels: run.state().labels().clone() });
    Decider::Approver { id: id.into(), roles: roles.iter().map(|role| (*role).to_owned()).collect(), shown }
}

fn yes(by: Decider) -> Answer {
    Answer { says: Says::grant(GrantScope::Once), note: None, by }
}

fn held(judgement: &Judgement) -> ApprovalId {
    assert_eq!(judgement.enforced, Enforced::Held, "{:?}", judgement.decision);
    judgement.approval.unwrap()
}

fn resources(names: &[&str]) -> Vec<GrantedEffects> {
    let resources = names.iter().map(|name| (*name).to_owned()).collect();
    vec![GrantedEffects { rule: "access/outside".into(), resources }]
}

#[test]
fn arguments_are_granted_as_often_as_they_are_proposed() {
    let bundle = bundle("");
    let mut run = run(&bundle, "p");
    let id = held(&run.propose(send(1)));
    let says = Says::Grant { scope: GrantScope::Arguments, lasts: Lasts::Session, edit: None };
    run.answer(id, Answer { says, ..yes(looking(&run, "ann", &[])) }).unwrap();
    for _ in 0..3 {
        let permitted = run.propose(send(1));
        assert_eq!((permitted.enforced, permitted.grant), (Enforced::Executed, Some(id)));
        run.outcome(permitted.action.id, OutcomeStatus::Ok, None);
    }
    assert_eq!(run.propose(send(2)).enforced, Enforced::Held, "other arguments are another call");
    // The longest time that the bundle lets any grant last has passed.
    run.wait(8 * 3_600 + 1);
    assert_eq!(run.propose(send(1)).enforced, Enforced::Held);
}

#[test]
fn a_grant_for_a_task_ends_when_the_user_speaks() {
    let bundle = bundle("");
    let mut run = run(&bundle, "p");
    run.input("send it", Label::User);
    let id = held(&run.propose(send(1)));
    let says = Says::Grant { scope: GrantScope::Arguments, lasts: Lasts::Task, edit: None };
    run.answer(id, Answer { says, ..yes(looking(&run, "ann", &[])) }).unwrap();
    let permitted = run.propose(send(1));
    assert_eq!(permitted.enforced, Enforced::Executed);
    run.outcome(permitted.action.id, OutcomeStatus::Ok, None);
    run.input("now something else", Label::User);
    assert_eq!(run.propose(send(1)).enforced, Enforced::Held);
}

#[test]
fn a_grant_lasts_until_its_time_and_no_longer_than_the_bundle_lets_it() {
    let bundle = bundle("[approvals]\ngrant_max_s = 1000\n");
    let mut run = run(&bundle, "p");
    let id = held(&run.propose(send(1)));
    let until = |seconds: i64, run: &DryRun| {
        let now = run.events().last().unwrap().t.as_micros();
        let lasts = Lasts::Until(portcullis_core::time::Timestamp::from_micros(now + seconds * 1_000_000));
        let says = Says::Grant { scope: GrantScope::Once, lasts, edit: None };
        Answer { says, ..yes(looking(run, "ann", &[])) }
    };
    let (long, past) = (until(2_000, &run), until(-1, &run));
    assert_eq!(run.answer(id, long), Err(AnswerError::TooLong(1000)));
    assert_eq!(run.answer(id, past), Err(AnswerError::Ended));
    let soon = until(950, &run);
    run.answer(id, soon).unwrap();
    run.wait(940);
    assert_eq!(run.propose(send(1)).enforced, Enforced::Executed, "longer than the usual 900 s");
}

#[test]
fn a_pattern_covers_what_was_read_completely_and_stays_here() {
    let bundle = bundle("");
    let mut run = run(&bundle, "free");
    let id = held(&run.propose(remove("/srv/app/a")));
    let pattern = |names: &[&str], run: &DryRun| {
        let says = Says::grant(GrantScope::Pattern(resources(names)));
        Answer { says, ..yes(looking(run, "ann", &[])) }
    };
    for (names, why) in [
        (&["path /srv/other/*"][..], "does not cover"),
        (&["path /*"], "must name a folder"),
        (&["path /srv/app/*", "recipient *"], "paths, tables and columns only"),
    ] {
        let answer = pattern(names, &run);
        let error = run.answer(id, answer).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let answer = pattern(&["path /srv/app/*"], &run);
    run.answer(id, answer).unwrap();
    for path in ["/srv/app/a", "/srv/app/b/c"] {
        let permitted = run.propose(remove(path));
        assert_eq!((permitted.enforced, permitted.grant), (Enforced::Executed, Some(id)), "{path}");
        run.outcome(permitted.action.id, OutcomeStatus::Ok, None);
    }
    for path in ["/srv/app", "/srv/apps/a", "/srv/app/../x", "/srv/app/$X", "/etc/x"] {
        assert_eq!(run.propose(remove(path)).enforced, Enforced::Held, "{path}");
    }
}

#[test]
fn the_same_or_more_than_was_refused_is_denied_without_asking() {
    let bundle = bundle("");
    let mut run = run(&bundle, "free");
    let id = held(&run.propose(remove("/srv/app/data")));
    let no = Answer { says: Says::Refuse, note: Some("never".into()), ..yes(looking(&run, "ann", &[])) };
    run.answer(id, no).unwrap();
    for path in ["/srv/app/data", "/srv/app", "/srv", "/srv/app/./data/"] {
        let denied = run.propose(remove(path));
        assert_eq!(denied.decision.verdict, Verdict::Deny, "{path}");
        assert_eq!(denied.denial.as_ref().unwrap().rule, "approval/refused", "{path}");
        assert!(denied.denial.unwrap().message.ends_with(": never"), "{path}");
    }
    for path in ["/srv/app/data/part", "/srv/app/other", "/srv/apps"] {
        assert_eq!(run.propose(remove(path)).enforced, Enforced::Held, "{path}: a person is asked");
    }
    assert_eq!(
        run.propose(remove("/project/x")).enforced,
        Enforced::Executed,
        "what nobody holds is not compared"
    );
}

#[test]
fn an_answer_reaches_the_agent_and_decides_nothing() {
    let bundle = bundle("");
    let mut run = run(&bundle, "p");
    let id = held(&run.propose(send(1)));
    let silent = Answer { says: Says::Answer, ..yes(looking(&run, "ann", &[])) };
    assert_eq!(run.answer(id, silent.clone()), Err(AnswerError::NoNote));
    run.answer(id, Answer { note: Some("use the staging list".into()), ..silent }).unwrap();
    let told = run.propose(send(1));
    let denial = told.denial.unwrap();
    assert_eq!((told.enforced, denial.rule.as_str()), (Enforced::Withheld, ANSWERED));
    assert!(denial.message.ends_with("use the staging list"), "{}", denial.message);
    let again = held(&run.propose(send(1)));
    assert_ne!(again, id, "the same call is a new question");
}

#[test]
fn a_call_goes_ahead_with_the_arguments_that_a_person_gave() {
    let bundle = bundle("");
    let mut run = run(&bundle, "p");
    let id = held(&run.propose(send(1)));
    let edited = |arguments: Value, scope: GrantScope| Says::Grant {
        scope,
        lasts: Lasts::Usual,
        edit: Some(Edit::Arguments(arguments)),
    };
    let by = looking(&run, "ann", &[]);
    for (says, why) in [
        (edited(json!([1]), GrantScope::Once), "arguments are an object"),
        (edited(json!({"to": 2}), GrantScope::Arguments), "once only"),
        (
            edited(json!({"key": format!("AKIA{}", "ABCDEFGH23456789")}), GrantScope::Once),
            "contains a secret",
        ),
    ] {
        let error = run.answer(id, Answer { says, ..yes(by.clone()) }).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let says = edited(json!({"to": 2}), GrantScope::Once);
    run.answer(id, Answer { says, ..yes(by) }).unwrap();
    let replaced = run.propose(send(1));
    assert_eq!(replaced.enforced, Enforced::Replaced);
    assert_eq!(replaced.decision.modified, Some(json!({"to": 2})));
    assert_eq!(replaced.decision.verdict, Verdict::Modify);
    run.outcome(replaced.action.id, OutcomeStatus::Ok, None);
    assert_eq!(run.propose(send(1)).enforced, Enforced::Held, "once");
}

#[test]
fn what_a_person_gave_is_judged_like_everything_else() {
    let bundle = bundle("");
    let mut run = run(&bundle, "free");
    let id = held(&run.propose(remove("/srv/a")));
    let edit = Some(Edit::Arguments(json!({"path": "/etc/passwd", "recursive": true})));
    let says = Says::Grant { scope: GrantScope::Once, lasts: Lasts::Usual, edit };
    run.answer(id, Answer { says, ..yes(looking(&run, "ann", &[])) }).unwrap();
    // The person's grant answers what holds the call, and the guards have judged the new arguments.
    let judged = run.propose(remove("/srv/a"));
    let about: Vec<&String> =
        judged.decision.findings.iter().flat_map(|finding| &finding.resources).collect();
    assert_eq!(about, ["path /etc/passwd"], "{:?}", judged.decision);
}

/// A person turned a call into one that nothing would hold: the agent's own is not granted by that.
#[test]
fn a_grant_of_changed_arguments_never_covers_those_of_the_agent() {
    let bundle = bundle("");
    let mut run = run(&bundle, "free");
    let id = held(&run.propose(remove("/srv/a")));
    let edit = Some(Edit::Arguments(json!({"path": "/project/a"})));
    let says = Says::Grant { scope: GrantScope::Once, lasts: Lasts::Usual, edit };
    run.answer(id, Answer { says, ..yes(looking(&run, "ann", &[])) }).unwrap();
    let replaced = run.propose(remove("/srv/a"));
    assert_eq!((replaced.enforced, replaced.grant), (Enforced::Replaced, Some(id)));
    assert_eq!(replaced.decision.modified, Some(json!({"path": "/project/a"})));
    run.outcome(replaced.action.id, OutcomeStatus::Ok, None);
    assert_eq!(run.state().approval(id).unwrap().state, ApprovalState::Claimed);
    assert_ne!(held(&run.propose(remove("/srv/a"))), id);
}

#[test]
fn a_revoked_grant_covers_nothing() {
    let bundle = bundle("");
    let mut run = run(&bundle, "p");
    let id = held(&run.propose(send(1)));
    let revoke = |run: &DryRun| Answer { says: Says::Revoke, ..yes(looking(run, "bob", &[])) };
    let early = revoke(&run);
    assert_eq!(run.answer(id, early), Err(AnswerError::NotGranted(id)));
    let grant = yes(looking(&run, "ann", &[]));
    run.answer(id, grant).unwrap();
    let late = revoke(&run);
    run.answer(id, late).unwrap();
    let again = held(&run.propose(send(1)));
    assert_ne!(again, id);
    let twice = revoke(&run);
    assert_eq!(run.answer(id, twice), Err(AnswerError::NotGranted(id)));
}

#[test]
fn the_bundle_says_who_may_grant() {
    let bundle = bundle(
        "[approvals]\nfour_eyes = true\n[[approvals.rule]]\ntools = ['send']\nroles = ['lead']\n\
         require_note = true\nescalate_after_s = 60\nescalate_to = ['boss']\n",
    );
    let mut run = run(&bundle, "p");
    let id = held(&run.propose(send(1)));
    let with_note = |by: Decider| Answer { note: Some("ok".into()), ..yes(by) };
    let lead = looking(&run, "ann", &["lead"]);
    assert_eq!(run.answer(id, yes(lead.clone())), Err(AnswerError::NoNote));
    let own = with_note(looking(&run, "ida", &["lead"]));
    assert_eq!(run.answer(id, own), Err(AnswerError::OwnRequest(id)));
    let boss = with_note(looking(&run, "eve", &["boss"]));
    let error = run.answer(id, boss.clone()).unwrap_err();
    assert_eq!(error.to_string(), format!("approval {id} can only be granted by role `lead`"));
    run.wait(61);
    run.answer(id, boss).unwrap();
    assert_eq!(run.propose(send(1)).enforced, Enforced::Executed);
    // A rule of another tool does not apply, but what holds for all does.
    let other = held(&run.propose(remove("/project/x")));
    let own = yes(looking(&run, "ida", &[]));
    assert_eq!(run.answer(other, own), Err(AnswerError::OwnRequest(other)));
    let anybody = yes(looking(&run, "bob", &[]));
    run.answer(other, anybody).unwrap();
}

#[test]
fn several_people_agree_to_the_same_thing() {
    let bundle = bundle("[approvals]\nquorum = 2\n");
    let mut run = run(&bundle, "p");
    let id = held(&run.propose(send(1)));
    let first = looking(&run, "ann", &[]);
    run.answer(id, yes(first.clone())).unwrap();
    assert_eq!(run.state().approval(id).unwrap().state, ApprovalState::Pending);
    assert_eq!(run.propose(send(1)).enforced, Enforced::Held);
    assert_eq!(run.answer(id, yes(first)), Err(AnswerError::AlreadyEndorsed(id, 1)));
    let wide =
        Answer { says: Says::grant(GrantScope::Tool("send".into())), ..yes(looking(&run, "bob", &[])) };
    assert!(matches!(run.answer(id, wide), Err(AnswerError::Pattern(_))));
    // The run reads something: what the first one agreed to is no longer what is asked.
    run.input("a note", Label::Operator);
    let second = yes(looking(&run, "bob", &[]));
    run.answer(id, second).unwrap();
    assert_eq!(run.propose(send(1)).enforced, Enforced::Held);
    let third = yes(looking(&run, "cleo", &[]));
    run.answer(id, third).unwrap();
    assert_eq!(run.propose(send(1)).enforced, Enforced::Executed);
}
