//! The fold over events.

use std::collections::BTreeMap;

use portcullis_core::event::{
    Actor, ClosedState, ConfigChange, Control, EVENT_VERSION, Enforced, Event, EventBody, Mode,
    OutcomeStatus, Proposed, RunOpened, VerdictRecord,
};
use portcullis_core::finding::Finding;
use portcullis_core::id::{ActionId, Digest};
use portcullis_core::label::Label;
use portcullis_core::principal::Principal;
use portcullis_core::state::{Phase, RunState};
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;

struct Story {
    state: RunState,
    seq: u64,
}

impl Story {
    fn new(mode: Mode) -> Self {
        let mut story = Self { state: RunState::new(), seq: 0 };
        story.tell(EventBody::RunOpened(RunOpened {
            principal: Principal::named("a"),
            surface: "test".into(),
            session: None,
            policy: "p".into(),
            bundle: Digest::from_bytes([0; 32]),
            configuration: None,
            mode,
            place: None,
            parent: None,
        }));
        story
    }

    fn tell(&mut self, body: EventBody) {
        self.seq += 1;
        let event = Event {
            v: EVENT_VERSION,
            seq: self.seq,
            t: Timestamp::from_micros(1),
            actor: Actor::gate(),
            cause: None,
            payloads: BTreeMap::new(),
            body,
        };
        // What is folded is what is stored.
        let event = Event::from_line(&event.to_line().unwrap()).unwrap();
        self.state.apply(&event);
    }

    fn action(&mut self, number: u8, side_effecting: bool) -> ActionId {
        let action = ActionId::from_bytes([number; 16]);
        self.tell(EventBody::Proposed(Proposed {
            action,
            step: u32::from(number),
            tool: Some("t".into()),
            server: None,
            side_effecting,
            likeness: None,
            cost_micros: 0,
            digest: Digest::from_bytes([number; 32]),
            directory: None,
            call: None,
            confidence: None,
        }));
        action
    }

    fn verdict(&mut self, action: ActionId, verdict: Verdict) {
        let mut finding = Finding::new("test/rule", verdict, "because");
        finding.question = Some("which one?".into());
        self.tell(EventBody::Verdict(VerdictRecord {
            action: Some(action),
            verdict,
            policy_action: verdict.policy_action(),
            escalation: verdict.escalation(),
            rule: Some("test/rule".into()),
            reason: Some("because".into()),
            findings: vec![finding],
            bundle: Digest::from_bytes([0; 32]),
            policy: "p".into(),
            facts: Vec::new(),
            grant: None,
            marks: Vec::new(),
        }));
    }

    fn enforce(&mut self, action: ActionId, enforced: Enforced) {
        self.tell(EventBody::Enforcement { action: Some(action), enforced, call: None, contained: None });
    }

    fn outcome(&mut self, action: ActionId, status: OutcomeStatus) {
        self.tell(EventBody::Outcome { action, status });
    }
}

#[test]
fn only_what_executes_is_a_side_effect() {
    let mut story = Story::new(Mode::Enforce);
    for (number, enforced, status, expected) in [
        (1, Enforced::Executed, Some(OutcomeStatus::Ok), 1),
        (2, Enforced::Withheld, None, 1),
        (3, Enforced::Held, None, 1),
        (4, Enforced::Executed, Some(OutcomeStatus::Error), 2),
        (5, Enforced::Executed, Some(OutcomeStatus::NotExecuted), 2),
        (6, Enforced::Executed, Some(OutcomeStatus::InputRequired), 3),
        (7, Enforced::LetPass, Some(OutcomeStatus::Timeout), 4),
        (8, Enforced::Replaced, Some(OutcomeStatus::Unknown), 5),
        (9, Enforced::Executed, None, 6),
    ] {
        let action = story.action(number, true);
        story.enforce(action, enforced);
        if let Some(status) = status {
            story.outcome(action, status);
        }
        assert_eq!(story.state.side_effects(), expected, "action {number}");
    }
    let read = story.action(10, false);
    story.enforce(read, Enforced::Executed);
    assert_eq!((story.state.side_effects(), story.state.steps(), story.state.executing()), (6, 10, 2));
    // Of an unknown outcome the truth may still be told, once.
    story.outcome(ActionId::from_bytes([8; 16]), OutcomeStatus::NotExecuted);
    assert_eq!(story.state.side_effects(), 5);
    story.outcome(ActionId::from_bytes([8; 16]), OutcomeStatus::Ok);
    assert_eq!(story.state.side_effects(), 5);
    // An outcome that is told twice counts once.
    story.outcome(ActionId::from_bytes([9; 16]), OutcomeStatus::NotExecuted);
    story.outcome(ActionId::from_bytes([9; 16]), OutcomeStatus::NotExecuted);
    assert_eq!(story.state.side_effects(), 4);
}

#[test]
fn clarify_waits_for_the_user_and_pause_for_the_user_or_a_person() {
    for (verdict, phase) in [
        (Verdict::Clarify, Phase::Clarifying { question: "which one?".into() }),
        (Verdict::Pause, Phase::Paused { by_person: false }),
    ] {
        let mut story = Story::new(Mode::Enforce);
        let action = story.action(1, false);
        story.verdict(action, verdict);
        assert_eq!(*story.state.phase(), phase);
        story.tell(EventBody::Input { label: Label::Operator });
        assert_eq!(*story.state.phase(), phase, "the operator is not the user");
        story.tell(EventBody::Input { label: Label::User });
        assert_eq!(*story.state.phase(), Phase::Running);
        let action = story.action(2, false);
        story.verdict(action, verdict);
        story.tell(EventBody::Control { control: Control::Resume, note: None });
        assert_eq!(*story.state.phase(), Phase::Running);
    }
}

#[test]
fn halt_ends_the_run_until_a_person_resumes_it() {
    let mut story = Story::new(Mode::Enforce);
    let action = story.action(1, false);
    story.verdict(action, Verdict::Halt);
    story.tell(EventBody::Input { label: Label::User });
    assert_eq!(*story.state.phase(), Phase::Halted);
    story.tell(EventBody::Control { control: Control::Resume, note: None });
    assert_eq!(*story.state.phase(), Phase::Running);
    story.tell(EventBody::RunClosed { state: ClosedState::Closed, count: 6, successor: None });
    assert_eq!(*story.state.phase(), Phase::Closed(ClosedState::Closed));
}

#[test]
fn closing_and_continuing_lifts_nothing() {
    let mut story = Story::new(Mode::Enforce);
    story.tell(EventBody::Control { control: Control::Halt, note: None });
    story.tell(EventBody::RunClosed { state: ClosedState::Abandoned, count: 3, successor: None });
    let resumed = ConfigChange::Resumed { parent: ClosedState::Abandoned };
    story.tell(EventBody::Config(resumed));
    assert_eq!(*story.state.phase(), Phase::Halted);
}

#[test]
fn what_a_person_paused_only_a_person_resumes() {
    let mut story = Story::new(Mode::Enforce);
    story.tell(EventBody::Control { control: Control::Pause, note: None });
    story.tell(EventBody::Input { label: Label::User });
    assert_eq!(*story.state.phase(), Phase::Paused { by_person: true });
    story.tell(EventBody::Control { control: Control::Resume, note: None });
    assert_eq!(*story.state.phase(), Phase::Running);
}

#[test]
fn in_observe_mode_nothing_stops() {
    for verdict in [Verdict::Clarify, Verdict::Pause, Verdict::Halt] {
        let mut story = Story::new(Mode::Observe);
        let action = story.action(1, false);
        story.verdict(action, verdict);
        assert_eq!(*story.state.phase(), Phase::Running);
    }
}

#[test]
fn denials_of_the_same_action_are_counted_until_it_is_allowed() {
    let mut story = Story::new(Mode::Enforce);
    let digest = Digest::from_bytes([1; 32]);
    for expected in 1..4 {
        let action = story.action(1, false);
        story.verdict(action, Verdict::Deny);
        story.enforce(action, Enforced::Withheld);
        assert_eq!(story.state.denials(digest), expected);
    }
    let action = story.action(1, false);
    story.verdict(action, Verdict::Allow);
    assert_eq!(story.state.denials(digest), 0);
}
