//! The freeze of a run as a fold over its events.

use std::collections::BTreeMap;

use portcullis_core::action::Action;
use portcullis_core::event::{
    About, Actor, ApprovalDecision, Control, EVENT_VERSION, Event, EventBody, GrantScope, Lasting, Mode,
    RunOpened,
};
use portcullis_core::freeze::Frozen;
use portcullis_core::id::{ActionId, ApprovalId, Digest};
use portcullis_core::label::LabelSet;
use portcullis_core::principal::Principal;
use portcullis_core::state::{Phase, RunState};
use portcullis_core::time::Timestamp;
use proptest::prelude::*;
use serde_json::json;

const TTL_MICROS: u64 = 100;
const DIGEST: Digest = Digest::from_bytes([3; 32]);
const APPROVAL: ApprovalId = ApprovalId::from_bytes([4; 16]);
const ACTION: ActionId = ActionId::from_bytes([5; 16]);

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(i64::try_from(micros).unwrap())
}

/// A run that is told what happens at which time.
struct Story(RunState);

impl Story {
    fn new() -> Self {
        let mut story = Self(RunState::new());
        story.tell(
            0,
            EventBody::RunOpened(RunOpened {
                principal: Principal::named("ida"),
                surface: "test".into(),
                session: None,
                policy: "p".into(),
                bundle: DIGEST,
                configuration: None,
                mode: Mode::Enforce,
                place: None,
                parent: None,
            }),
        );
        story
    }

    fn tell(&mut self, micros: u64, body: EventBody) {
        let event = Event {
            v: EVENT_VERSION,
            seq: self.0.seq() + 1,
            t: at(micros),
            actor: Actor::approver("ann"),
            cause: None,
            payloads: BTreeMap::new(),
            body,
        };
        // What is folded is what is stored.
        self.0.apply(&Event::from_line(&event.to_line().unwrap()).unwrap());
    }

    fn control(&mut self, micros: u64, control: Control) {
        self.tell(micros, EventBody::Control { control, note: Some("odd".into()) });
    }

    fn ask(&mut self, micros: u64) {
        let (approval, action) = (APPROVAL, ACTION);
        self.tell(
            micros,
            EventBody::ApprovalRequested {
                approval,
                about: About::Action(action),
                digest: DIGEST,
                tool: "send".into(),
                effects: None,
                patterns: false,
            },
        );
    }

    fn grant(&mut self, micros: u64) {
        self.tell(
            micros,
            EventBody::ApprovalDecided {
                approval: APPROVAL,
                decision: ApprovalDecision::Granted,
                scope: Some(GrantScope::Once),
                lasting: Lasting::default(),
                shown: None,
                labels: LabelSet::default(),
                note: None,
            },
        );
    }

    fn holds(&self, micros: u64) -> bool {
        let call = Action::new(ACTION, Some("send".into()), json!({}), None);
        self.0.grant_for(&call, DIGEST, at(micros), TTL_MICROS).is_some()
    }
}

#[test]
fn a_freeze_leaves_the_phase_as_it_is_and_is_released_in_two_steps() {
    let mut story = Story::new();
    let stops = |story: &Story| story.0.freeze().map(|freeze| freeze.stops);
    for phase in [Control::Pause, Control::Resume, Control::Halt] {
        story.control(1, phase);
        let before = story.0.phase().clone();
        story.control(2, Control::Freeze);
        assert_eq!((stops(&story), story.0.progress().frozen), (Some(Frozen::Everything), stops(&story)));
        assert_eq!(story.0.freeze().unwrap().note.as_deref(), Some("odd"));
        story.control(3, Control::ReleaseReads);
        assert_eq!((stops(&story), story.0.phase()), (Some(Frozen::SideEffects), &before));
        story.control(4, Control::Freeze);
        assert_eq!(
            story.0.freeze().map(|freeze| (freeze.stops, freeze.since)),
            Some((Frozen::Everything, at(2)))
        );
        story.control(5, Control::Release);
        assert_eq!((story.0.freeze(), story.0.phase()), (None, &before));
    }
    // Phases change while it is frozen, and releasing lifts none.
    story.control(6, Control::Freeze);
    story.control(7, Control::Resume);
    story.control(8, Control::Pause);
    story.control(9, Control::Release);
    assert_eq!(*story.0.phase(), Phase::Paused { by_person: true });
    story.control(10, Control::ReleaseReads);
    assert_eq!(story.0.freeze(), None, "what is not frozen is not released");
}

#[test]
fn a_grant_lasts_as_long_as_it_had_left() {
    let mut story = Story::new();
    story.ask(10);
    story.grant(20);
    story.control(80, Control::Freeze);
    assert!(story.holds(80) && story.holds(1_000_000), "its time does not run");
    story.control(5_000, Control::ReleaseReads);
    assert!(story.holds(1_000_000), "nor while a part is frozen");
    story.control(10_000, Control::Release);
    assert!(story.holds(10_040), "60 of 100 were over");
    assert!(!story.holds(10_041));
}

#[test]
fn a_request_waits_on_while_the_run_is_frozen() {
    let mut story = Story::new();
    story.ask(10);
    assert_eq!(story.0.lapses_at(APPROVAL, at(20), TTL_MICROS), Some(at(110)));
    story.control(60, Control::Freeze);
    assert_eq!(story.0.lapses_at(APPROVAL, at(9_000), TTL_MICROS), None);
    story.control(1_060, Control::Release);
    assert_eq!(story.0.lapses_at(APPROVAL, at(1_061), TTL_MICROS), Some(at(1_110)));
    let approval = story.0.approval(APPROVAL).unwrap();
    assert_eq!(story.0.waited_micros(approval, at(1_110)), 100);
    // One that had lapsed before stays lapsed.
    story.control(2_000, Control::Freeze);
    assert_eq!(story.0.lapses_at(APPROVAL, at(9_000), TTL_MICROS), Some(at(1_110)));
}

proptest! {
    /// Against the obvious slow model: a grant counts the moments at which the run is not frozen.
    #[test]
    fn a_grant_counts_the_time_that_the_run_is_not_frozen(
        steps in prop::collection::vec((0..3_usize, 0..60_u64), 1..40),
        granted_at in 0..20_usize,
    ) {
        let mut story = Story::new();
        let (mut now, mut frozen, mut counted) = (0, false, None);
        for (number, (what, wait)) in steps.into_iter().enumerate() {
            now += wait;
            if let Some(counted) = &mut counted {
                *counted += if frozen { 0 } else { wait };
                prop_assert_eq!(story.holds(now), *counted <= TTL_MICROS, "at {}", now);
            }
            if number == granted_at {
                story.ask(now);
                story.grant(now);
                counted = Some(0);
            }
            story.control(now, [Control::Freeze, Control::ReleaseReads, Control::Release][what]);
            frozen = match what {
                0 => true,
                1 => frozen,
                _ => false,
            };
        }
    }
}
