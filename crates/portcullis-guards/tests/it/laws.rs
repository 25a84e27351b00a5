//! Law 5 over the built-in guards: a stricter bundle never gives a milder verdict on the same action in the same
//! state.

use std::collections::BTreeMap;

use portcullis_core::action::{Action, Pending, Subject};
use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Enforced, Event, EventBody, Proposed, RunOpened};
use portcullis_core::fact::Facts;
use portcullis_core::guard::Context;
use portcullis_core::id::{ActionId, Digest};
use portcullis_core::memory::LazyReading;
use portcullis_core::principal::Principal;
use portcullis_core::state::RunState;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::json;

const TYPES: [&str; 3] = ["RETRIEVE_DOCS", "SEND_EMAIL", "WRITE_FILE"];
const WORDS: [&str; 4] = ["wire", "override", "alpha", "beta"];

#[derive(Debug, Clone)]
struct Rules {
    types: Vec<&'static str>,
    steps: u32,
    side_effects: u32,
    approval: bool,
    keywords: Vec<&'static str>,
    disabled: bool,
    unknown: &'static str,
}

fn rules() -> impl Strategy<Value = Rules> {
    (
        subsequence(TYPES.to_vec(), 0..=3),
        1..6_u32,
        0..4_u32,
        any::<bool>(),
        subsequence(WORDS.to_vec(), 0..=4),
        any::<bool>(),
        select(vec!["allow", "review", "deny"]),
    )
        .prop_map(|(types, steps, side_effects, approval, keywords, disabled, unknown)| Rules {
            types,
            steps,
            side_effects,
            approval,
            keywords,
            disabled,
            unknown,
        })
}

impl Rules {
    /// The meet of two sets of rules: never milder than either. Approvals stay as they are in `self`: asking a
    /// person comes before the limit on side effects, which is checked again when the grant is claimed, so
    /// switching approvals on can turn an immediate denial into one after the grant.
    fn stricter(&self, other: &Self) -> Self {
        let rank = |word: &str| Verdict::from_name(word).unwrap();
        let keywords = WORDS.into_iter().filter(|w| self.keywords.contains(w) || other.keywords.contains(w));
        Self {
            types: self.types.iter().copied().filter(|t| other.types.contains(t)).collect(),
            steps: self.steps.min(other.steps),
            side_effects: self.side_effects.min(other.side_effects),
            approval: self.approval,
            keywords: keywords.collect(),
            disabled: self.disabled || other.disabled,
            unknown: if rank(self.unknown) >= rank(other.unknown) { self.unknown } else { other.unknown },
        }
    }

    fn bundle(&self) -> Bundle {
        let policy = format!(
            "[[policy]]\nname = 'p'\nallowed_types = {:?}\nmax_steps = {}\nmax_side_effects = {}\n\
             approval_for_side_effects = {}\nrestricted_keywords = {:?}\n",
            self.types, self.steps, self.side_effects, self.approval, self.keywords
        );
        let tools = format!(
            "[[tool]]\nname = 'read'\ntype = 'RETRIEVE_DOCS'\nside_effecting = false\n\
             [[tool]]\nname = 'send'\ntype = 'SEND_EMAIL'\nside_effecting = true\nenabled = {}\n\
             [[tool]]\nname = 'write'\ntype = 'WRITE_FILE'\nside_effecting = true\nargs = {{ text = {{ type = 'string' }} }}\n",
            !self.disabled
        );
        let main = format!("version = 1\nunknown_tools = '{}'\n", self.unknown);
        let files = [("portcullis.toml", main), ("tools/t.toml", tools), ("policies/p.toml", policy)];
        let files: BTreeMap<String, Vec<u8>> =
            files.into_iter().map(|(path, text)| (path.to_owned(), text.into_bytes())).collect();
        Bundle::load(&files).unwrap()
    }
}

/// A run that took `steps` steps, of which the first `side_effects` executed one.
fn state(steps: u32, side_effects: u32) -> RunState {
    let mut state = RunState::new();
    let mut tell = |seq: u32, body: EventBody| {
        state.apply(&Event {
            v: 1,
            seq: u64::from(seq),
            t: Timestamp::default(),
            actor: portcullis_core::event::Actor::gate(),
            cause: None,
            payloads: BTreeMap::new(),
            body,
        });
    };
    tell(
        1,
        EventBody::RunOpened(RunOpened {
            principal: Principal::named("a"),
            surface: "test".into(),
            session: None,
            policy: "p".into(),
            bundle: Digest::from_bytes([0; 32]),
            configuration: None,
            mode: portcullis_core::event::Mode::Enforce,
            place: None,
            parent: None,
        }),
    );
    for step in 1..=steps {
        let action = ActionId::from_bytes([u8::try_from(step).unwrap(); 16]);
        let side_effecting = step <= side_effects;
        let digest = Digest::from_bytes([1; 32]);
        let tool = Some("send".to_owned());
        tell(
            step * 2,
            EventBody::Proposed(Proposed {
                action,
                step,
                tool,
                server: None,
                side_effecting,
                likeness: None,
                cost_micros: 0,
                digest,
                directory: None,
                call: None,
                confidence: None,
            }),
        );
        tell(
            step * 2 + 1,
            EventBody::Enforcement {
                action: Some(action),
                enforced: Enforced::Executed,
                call: None,
                contained: None,
            },
        );
    }
    state
}

fn verdict(rules: &Rules, state: &RunState, tool: &str, text: &str) -> Verdict {
    let bundle = rules.bundle();
    let context = Context::new(&bundle, bundle.policy("p").unwrap(), state);
    let arguments = json!({ "text": text });
    let action = Action::new(ActionId::from_bytes([99; 16]), Some(tool.into()), arguments, None);
    let pending = Pending { at: Timestamp::default(), subject: Subject::Action(&action), grant: None };
    let pipeline = portcullis_session::policy::pipeline();
    let memory = pipeline.begin_memory().unwrap();
    let reading = LazyReading::of(&memory, &bundle, pending);
    pipeline.decide(&context.with_reading(&reading), &pending, &Facts::none()).verdict
}

proptest! {
    #[test]
    fn stricter_rules_never_loosen_a_verdict(
        one in rules(),
        other in rules(),
        (steps, side_effects) in (0..6_u32).prop_flat_map(|steps| (Just(steps), 0..=steps)),
        tool in select(vec!["read", "send", "write", "unheard_of"]),
        text in select(vec!["hello", "wire it", "an ALPHA male", "be\u{200b}ta"]),
    ) {
        let state = state(steps, side_effects);
        let before = verdict(&one, &state, tool, text);
        let after = verdict(&one.stricter(&other), &state, tool, text);
        prop_assert!(after >= before, "{:?} became {:?}", before, after);
    }
}
