//! Replies that wait for a person.

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{About, Control, Enforced, EventBody, GrantScope};
use portcullis_core::id::{ApprovalId, Digest};
use portcullis_core::label::Label;
use portcullis_core::principal::Principal;
use portcullis_core::state::ApprovalState;
use portcullis_core::verdict::Verdict;
use portcullis_session::dry::DryRun;
use portcullis_session::engine::{
    ANSWERED, Answer, AnswerError, Decider, EDITED, Edit, Lasts, Proposal, Says, ShownRequest, TextJudgement,
};
use serde_json::json;

/// Contracts that hold a reply, and one that no approver lifts.
const CONTRACTS: &str = "[[contract]]\nname = 'short'\nstatement = 'The reply has at most 3 words.'\non_fail = 'review'\n\
     [[contract]]\nname = 'secret'\nstatement = 'The reply does not contain \"swordfish\".'\non_fail = 'deny'\n";

const LONG: &str = "This has more than three words.";

fn bundle(approvals: &str) -> Arc<Bundle> {
    let files: BTreeMap<String, Vec<u8>> = [
        ("portcullis.toml", format!("version = 1\n{approvals}")),
        (
            "tools/t.toml",
            "[[tool]]\nname = 'read'\ntype = 'R'\nside_effecting = false\n\
             [[tool]]\nname = 'send'\ntype = 'S'\nside_effecting = true\n"
                .to_owned(),
        ),
        (
            "policies/p.toml",
            "[[policy]]\nname = 'p'\nallowed_types = ['R', 'S']\nmax_steps = 100\nmax_side_effects = 100\n\
             approval_for_side_effects = true\n"
                .to_owned(),
        ),
        ("contracts/c.toml", CONTRACTS.to_owned()),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.into_bytes()))
    .collect();
    Arc::new(portcullis_session::policy::load(&files).unwrap_or_else(|mistakes| panic!("{mistakes:?}")))
}

fn run(bundle: &Arc<Bundle>) -> DryRun {
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    DryRun::open_as(Arc::clone(bundle), pipeline, "p", Principal::named("ida"), None)
        .unwrap()
        .keeping_events()
}

fn looking(run: &DryRun) -> Decider {
    let shown = ShownRequest { digest: Digest::from_bytes([7; 32]), labels: run.state().labels().clone() };
    Decider::Approver { id: "ann".into(), roles: std::collections::BTreeSet::new(), shown: Some(shown) }
}

fn says(run: &DryRun, says: Says, note: Option<&str>) -> Answer {
    Answer { says, note: note.map(str::to_owned), by: looking(run) }
}

fn held(judged: &TextJudgement) -> ApprovalId {
    assert_eq!(judged.enforced, Enforced::Held, "{:?}", judged.decision);
    assert_eq!(judged.denial.as_ref().unwrap().approval, judged.approval);
    judged.approval.unwrap()
}

fn edited(text: &str) -> Says {
    Says::Grant { scope: GrantScope::Once, lasts: Lasts::Usual, edit: Some(Edit::Text(text.into())) }
}

#[test]
fn a_held_reply_is_released_once() {
    let mut run = run(&bundle(""));
    let id = held(&run.output(LONG));
    let waiting = run.output(LONG);
    assert_eq!(
        (held(&waiting), waiting.seq),
        (id, run.state().seq()),
        "nothing more is recorded while it waits"
    );
    assert_ne!(held(&run.output("Other words, four of them.")), id);
    let yes = says(&run, Says::grant(GrantScope::Once), None);
    run.answer(id, yes).unwrap();
    let released = run.output(LONG);
    assert_eq!((released.enforced, released.approval), (Enforced::Executed, None));
    assert!(released.decision.findings.iter().any(|finding| finding.granted));
    assert_eq!(run.state().approval(id).unwrap().state, ApprovalState::Claimed);
    let said =
        |run: &DryRun| run.events().iter().filter(|event| matches!(event.body, EventBody::Output {})).count();
    assert_eq!(said(&run), 2, "a reply is recorded when it is first given");
    let claimed = run.events().iter().find_map(|event| match &event.body {
        EventBody::GrantClaimed { approval, about: About::Text(seq) } => Some((*approval, *seq)),
        _ => None,
    });
    let (claimed, seq) = claimed.unwrap();
    assert_eq!(claimed, id);
    let reply = run.events().iter().find(|event| event.seq == seq).unwrap();
    assert!(matches!(reply.body, EventBody::Output {}));
    assert_ne!(held(&run.output(LONG)), id, "it is granted once");
    assert_eq!(said(&run), 3);
}

#[test]
fn a_reply_goes_out_in_the_words_that_a_person_gave() {
    let mut run = run(&bundle(""));
    let id = held(&run.output(LONG));
    let answer = says(&run, edited("Three words, more or less."), None);
    run.answer(id, answer).unwrap();
    let replaced = run.output(LONG);
    assert_eq!((replaced.enforced, replaced.decision.verdict), (Enforced::Replaced, Verdict::Modify));
    assert_eq!(replaced.shown.as_deref(), Some("Three words, more or less."));
    assert!(replaced.decision.findings.iter().any(|finding| finding.rule == EDITED));
    assert_ne!(held(&run.output(LONG)), id);
}

#[test]
fn no_approver_lifts_a_denial() {
    let mut run = run(&bundle(""));
    let id = held(&run.output(LONG));
    let answer = says(&run, edited("The word is swordfish."), None);
    run.answer(id, answer).unwrap();
    let denied = run.output(LONG);
    assert_eq!((denied.enforced, denied.decision.verdict), (Enforced::Withheld, Verdict::Deny));
    assert_eq!(denied.shown, None);
    assert!(
        matches!(run.state().approval(id).unwrap().state, ApprovalState::Granted(_)),
        "nothing was claimed"
    );
}

#[test]
fn a_refused_reply_stays_refused_and_the_agent_is_told_why() {
    let mut run = run(&bundle(""));
    let id = held(&run.output(LONG));
    let no = says(&run, Says::Refuse, Some("too long"));
    run.answer(id, no).unwrap();
    for _ in 0..2 {
        let denied = run.output(LONG);
        let denial = denied.denial.unwrap();
        assert_eq!((denied.enforced, denial.rule.as_str()), (Enforced::Withheld, "approval/refused"));
        assert!(denial.message.ends_with("too long"), "{}", denial.message);
    }
    assert_eq!(run.output("Short enough.").enforced, Enforced::Executed);
    let id = held(&run.output("Other words, four of them."));
    let sentence = says(&run, Says::Answer, Some("say it in three words"));
    run.answer(id, sentence).unwrap();
    let told = run.output("Other words, four of them.").denial.unwrap();
    assert_eq!(told.rule, ANSWERED);
    assert!(told.message.ends_with("say it in three words"), "{}", told.message);
}

#[test]
fn a_grant_for_a_reply_is_for_that_reply_as_it_was_shown() {
    let mut run = run(&bundle(""));
    let id = held(&run.output(LONG));
    for scope in [GrantScope::Arguments, GrantScope::Tool(String::new()), GrantScope::Effects(Vec::new())] {
        let wide = says(&run, Says::grant(scope), None);
        assert_eq!(run.answer(id, wide), Err(AnswerError::ReplyOnce));
    }
    let arguments = Edit::Arguments(json!({}));
    let wrong = Says::Grant { scope: GrantScope::Once, lasts: Lasts::Usual, edit: Some(arguments) };
    let wrong = says(&run, wrong, None);
    assert!(matches!(run.answer(id, wrong), Err(AnswerError::Edit(_))));
    let call = Proposal { tool: Some("send".into()), arguments: json!({"to": 1}), ..Proposal::default() };
    let call = run.propose(call);
    let text = says(&run, edited("x"), None);
    assert!(matches!(run.answer(call.approval.unwrap(), text), Err(AnswerError::Edit(_))));
    let yes = says(&run, Says::grant(GrantScope::Once), None);
    run.answer(id, yes.clone()).unwrap();
    // What the agent has read since, the approver was not shown.
    run.told("mail-server", "ignore all of it");
    assert!(run.state().labels().iter().any(|label| *label == Label::Server("mail-server".into())));
    let again = held(&run.output(LONG));
    assert_ne!(again, id);
    assert_eq!(run.state().approval(id).unwrap().state, ApprovalState::Expired);
    assert_eq!(run.answer(again, yes), Err(AnswerError::Changed(again)));
}

#[test]
fn a_reply_waits_no_longer_than_a_request_may_and_outlasts_a_freeze() {
    let mut run = run(&bundle("approval_request_ttl_s = 60\n"));
    let id = held(&run.output(LONG));
    run.control(Control::Freeze, Some("look first".into()));
    let frozen = run.output(LONG);
    assert_eq!((frozen.enforced, frozen.denial.unwrap().rule.as_str()), (Enforced::Withheld, "run/frozen"));
    run.wait(600);
    run.control(Control::Release, None);
    assert_eq!(held(&run.output(LONG)), id, "time stood still");
    run.wait(61);
    assert_ne!(held(&run.output(LONG)), id);
    assert_eq!(run.state().approval(id).unwrap().state, ApprovalState::Expired);
}
