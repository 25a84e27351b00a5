//! Calls that the user is asked about, and says yes to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Enforced, GrantScope};
use portcullis_core::id::{ApprovalId, Digest};
use portcullis_core::label::Label;
use portcullis_core::principal::Principal;
use portcullis_core::state::Phase;
use portcullis_core::verdict::Verdict;
use portcullis_session::dry::DryRun;
use portcullis_session::engine::{Answer, Decider, Judgement, Lasts, Proposal, Says, ShownRequest};

use serde_json::json;

/// Sending is asked about, and removing as well; removing has to be granted besides.
const ACCESS: &str = "permit (principal, action, resource);\n\
     @decision(\"clarify\") @rule(\"ask\") @reason(\"is this the right one?\")\n\
     forbid (principal, action in Action::\"call\", resource)\n\
     when { resource == Tool::\"send\" || resource == Tool::\"remove\" };\n\
     @decision(\"review\") @rule(\"hold\")\n\
     forbid (principal, action in Action::\"call\", resource == Tool::\"remove\");\n";

fn run() -> DryRun {
    let tool = |name: &str| format!("[[tool]]\nname = '{name}'\ntype = 'T'\nside_effecting = true\n");
    let policy = "[[policy]]\nname = 'p'\nallowed_types = ['T']\nmax_steps = 100\nmax_side_effects = 100\n";
    let files: BTreeMap<String, Vec<u8>> = [
        ("portcullis.toml", "version = 1\n".to_owned()),
        ("tools/t.toml", tool("send") + &tool("remove") + &tool("other")),
        ("policies/p.toml", policy.to_owned()),
        ("access/a.cedar", ACCESS.to_owned()),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.into_bytes()))
    .collect();
    let bundle: Bundle =
        portcullis_session::policy::load(&files).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let run = DryRun::open_as(Arc::new(bundle), pipeline, "p", Principal::named("ida"), None);
    run.unwrap().keeping_events()
}

fn call(tool: &str, to: u32) -> Proposal {
    Proposal { tool: Some(tool.to_owned()), arguments: json!({"to": to}), ..Proposal::default() }
}

fn judged(judgement: &Judgement) -> (Verdict, Enforced) {
    (judgement.decision.verdict, judgement.enforced)
}

fn grant(run: &mut DryRun, id: ApprovalId) {
    let shown = ShownRequest { digest: Digest::from_bytes([7; 32]), labels: run.state().labels().clone() };
    let by = Decider::Approver { id: "ann".into(), roles: BTreeSet::new(), shown: Some(shown) };
    let says = Says::Grant { scope: GrantScope::Once, lasts: Lasts::Usual, edit: None };
    run.answer(id, Answer { says, note: None, by }).unwrap();
}

const ASKED: (Verdict, Enforced) = (Verdict::Clarify, Enforced::Withheld);

#[test]
fn a_call_goes_ahead_once_when_the_user_said_yes_to_it() {
    let mut run = run();
    let asked = run.propose(call("send", 1));
    assert_eq!(judged(&asked), ASKED);
    assert_eq!(asked.denial.as_ref().unwrap().message, "is this the right one?: is this the right one?");
    assert!(run.confirm(asked.action.id, "yes").is_some());
    assert_eq!(*run.state().phase(), Phase::Running);
    let goes = run.propose(call("send", 1));
    assert_eq!(judged(&goes), (Verdict::Warn, Enforced::Executed));
    assert!(goes.decision.findings.iter().any(|finding| finding.rule == "access/ask" && finding.confirmed));
    assert_eq!(judged(&run.propose(call("send", 1))), ASKED, "once");
    assert!(run.confirm(asked.action.id, "yes").is_none(), "of an earlier question");
}

#[test]
fn a_yes_is_for_one_call_and_until_the_user_says_something_else() {
    let mut run = run();
    let asked = run.propose(call("send", 1));
    run.confirm(asked.action.id, "yes").unwrap();
    assert_eq!(judged(&run.propose(call("send", 2))), ASKED, "another call");
    run.input("never mind", Label::User);
    assert_eq!(judged(&run.propose(call("send", 1))), ASKED, "the user said something else");
    // An answer that confirms nothing, as surfaces report it that cannot tell.
    run.input("yes", Label::User);
    assert_eq!(judged(&run.propose(call("send", 1))), ASKED);
}

#[test]
fn a_yes_of_the_user_is_no_grant() {
    let mut run = run();
    let held = run.propose(call("remove", 1));
    assert_eq!(judged(&held), (Verdict::Review, Enforced::Held));
    assert!(run.confirm(held.action.id, "yes").is_none(), "nobody asked the user");
    grant(&mut run, held.approval.unwrap());
    // Granted, the question remains. Each is answered by whom it is for.
    let asked = run.propose(call("remove", 1));
    assert_eq!(judged(&asked), ASKED);
    run.confirm(asked.action.id, "yes").unwrap();
    let other = run.propose(call("remove", 2));
    assert_eq!(
        judged(&other),
        (Verdict::Review, Enforced::Held),
        "the yes was for the other call, and no grant"
    );
}

#[test]
fn a_call_that_is_granted_and_confirmed_goes_ahead() {
    let mut run = run();
    run.input("remove the old one", Label::User);
    let held = run.propose(call("remove", 1)).approval.unwrap();
    grant(&mut run, held);
    let asked = run.propose(call("remove", 1));
    assert_eq!(judged(&asked), ASKED);
    run.confirm(asked.action.id, "yes").unwrap();
    assert_eq!(judged(&run.propose(call("remove", 1))), (Verdict::Warn, Enforced::Executed));
    assert_eq!(
        judged(&run.propose(call("remove", 1))),
        (Verdict::Review, Enforced::Held),
        "each was for once"
    );
}

#[test]
fn only_the_call_that_was_asked_about_is_confirmed() {
    let mut run = run();
    let asked = run.propose(call("send", 1));
    let other = run.propose(call("other", 1));
    assert_eq!(other.denial.unwrap().rule, "run/phase/clarifying");
    assert!(run.confirm(other.action.id, "yes").is_none(), "the question is about the other call");
    let met = run.propose(call("send", 2));
    assert_eq!(judged(&met), ASKED);
    assert!(run.confirm(asked.action.id, "yes").is_none(), "a later call was asked about");
    assert!(run.confirm(met.action.id, "yes").is_some());
    assert!(run.propose(call("send", 2)).enforced.proceeds());
}
