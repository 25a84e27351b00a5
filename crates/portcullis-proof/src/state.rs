//! What may happen to an action, and in which order.
//!
//! A chain of hashes proves that nothing was changed; it does not prove that what was written makes sense. This
//! state machine does: it is the law "no effect without a verdict" checked over the evidence.
//!
//! ```text
//! proposed -> verdict -> enforcement (held, withheld) -> verdict -> ...     as often as the gate judges again
//!                     -> enforcement (executed, replaced, let-pass, asked)  once
//!                                              -> outcome                   once; `unknown` may be followed by the real one
//!                                              -> observed                  if it was contained: how it ended once, and connections
//! ```

use std::collections::HashMap;

use crate::chain::Id;
use crate::event::{Body, Event};
use crate::kept::{Cells, Facts};
use crate::work::Items;

/// The most actions of one run that are followed.
pub const ACTIONS_MAX: usize = 1 << 20;

/// The most approvals of one run that are followed.
pub const APPROVALS_MAX: usize = 1 << 20;

/// The most connections of one contained action that are recorded.
pub const CONNECTIONS_MAX: u32 = 4096;

/// Why an event does not fit the events before it.
#[derive(Debug, PartialEq, Eq)]
pub enum StateError {
    /// The run is not one that a gate keeps.
    Violation(String),
    /// The run has more than the verifier follows.
    TooMany(&'static str, usize),
}

impl From<String> for StateError {
    fn from(message: String) -> StateError {
        StateError::Violation(message)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ActionState {
    Proposed,
    /// Judged; whether the latest verdict lets it proceed, or wants a person asked.
    Judged {
        proceeds: bool,
        review: bool,
    },
    /// It went ahead: executed, replaced or let pass. Or it was left to the client's prompt and may have.
    Released,
    /// Its outcome was recorded as unknown.
    Unknown,
    /// Its outcome is known.
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ApprovalState {
    Requested,
    Granted { once: bool },
    Claimed,
    Closed,
}

/// The actions and approvals of a run so far.
#[derive(Debug, Default)]
pub struct Trajectory {
    actions: HashMap<Id, ActionState>,
    approvals: HashMap<Id, ApprovalState>,
    /// What was observed of the actions that went ahead contained.
    contained: HashMap<Id, Observed>,
    items: Items,
    cells: Cells,
    facts: Facts,
}

/// What was observed of a contained action so far.
#[derive(Debug, Default)]
struct Observed {
    ended: bool,
    connections: u32,
}

impl Trajectory {
    /// Of this run, before its first event.
    #[must_use]
    pub fn of(run: Id) -> Trajectory {
        Trajectory { facts: Facts::of(run), ..Trajectory::default() }
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn apply(&mut self, event: &Event<'_>) -> Result<(), StateError> {
        let body = &event.body;
        match event.kind.as_ref() {
            "proposed" => self.propose(id(body, "action")?),
            "verdict" if body.has("action") => self.judge(id(body, "action")?, body.text("verdict")?),
            "verdict" => proceeds(body.text("verdict")?).map(drop),
            "enforcement" if body.has("action") => self.enforce(body),
            "enforcement" => known("enforced", body.text("enforced")?, &ENFORCED),
            "outcome" => self.conclude(id(body, "action")?, body.text("status")?),
            "observed" => self.observe(body),
            "work" => self.items.apply(event),
            "state" => self.cells.apply(event),
            "fact" => self.facts.apply(event),
            "approval-requested" => {
                self.subject(body, event.seq)?;
                self.request(id(body, "approval")?)
            }
            "approval-decided" => self.decide(body),
            "grant-claimed" => {
                self.subject(body, event.seq)?;
                self.claim(id(body, "approval")?)
            }
            _ => Ok(()),
        }
    }

    /// The number of actions that went ahead and have no outcome yet.
    #[must_use]
    pub fn without_outcome(&self) -> u64 {
        self.actions.values().filter(|state| **state == ActionState::Released).count() as u64
    }

    fn propose(&mut self, action: Id) -> Result<(), StateError> {
        if self.actions.contains_key(&action) {
            return violation(format!("action `{action}` is proposed a second time"));
        }
        if self.actions.len() == ACTIONS_MAX {
            return Err(StateError::TooMany("actions", ACTIONS_MAX));
        }
        self.actions.insert(action, ActionState::Proposed);
        Ok(())
    }

    fn action(&mut self, action: Id) -> Result<&mut ActionState, StateError> {
        self.actions
            .get_mut(&action)
            .ok_or_else(|| StateError::Violation(format!("action `{action}` was never proposed")))
    }

    fn judge(&mut self, action: Id, verdict: &str) -> Result<(), StateError> {
        let proceeds = proceeds(verdict)?;
        let state = self.action(action)?;
        match state {
            ActionState::Proposed | ActionState::Judged { .. } => {
                *state = ActionState::Judged { proceeds, review: verdict == "review" };
                Ok(())
            }
            _ => violation(format!("action `{action}` is judged after it went ahead")),
        }
    }

    fn enforce(&mut self, body: &Body<'_>) -> Result<(), StateError> {
        let (action, enforced) = (id(body, "action")?, body.text("enforced")?);
        known("enforced", enforced, &ENFORCED)?;
        let state = self.action(action)?;
        let ActionState::Judged { proceeds, review } = *state else {
            return violation(match state {
                ActionState::Proposed => format!("action `{action}` is `{enforced}` before any verdict"),
                _ => format!("action `{action}` is `{enforced}` after it went ahead"),
            });
        };
        match enforced {
            "executed" | "replaced" if !proceeds => {
                violation(format!("action `{action}` is `{enforced}` against its latest verdict"))
            }
            "asked" if !review => {
                violation(format!("action `{action}` is `asked` against its latest verdict"))
            }
            "asked" => {
                *state = ActionState::Released;
                Ok(())
            }
            "executed" | "replaced" | "let-pass" => {
                *state = ActionState::Released;
                if body.has("contained") {
                    self.contained.insert(action, Observed::default());
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What was seen of something contained. Of a server, which is no action, only that it has a name.
    fn observe(&mut self, body: &Body<'_>) -> Result<(), StateError> {
        let (ended, connection) = (body.has("ended"), body.has("connection"));
        if ended == connection {
            return violation("`observed` has not one of `body.ended` and `body.connection`".to_owned());
        }
        if !body.has("action") {
            return Ok(body.text("server").map(drop)?);
        }
        let action = id(body, "action")?;
        self.action(action)?;
        let Some(observed) = self.contained.get_mut(&action) else {
            return violation(format!("action `{action}` is observed, but never went ahead contained"));
        };
        if connection {
            observed.connections += 1;
            if observed.connections > CONNECTIONS_MAX {
                return violation(format!("action `{action}` has more than {CONNECTIONS_MAX} connections"));
            }
        } else if std::mem::replace(&mut observed.ended, true) {
            return violation(format!("action `{action}` is observed to end a second time"));
        }
        Ok(())
    }

    fn conclude(&mut self, action: Id, status: &str) -> Result<(), StateError> {
        known("status", status, &["ok", "error", "timeout", "not-executed", "input-required", "unknown"])?;
        let state = self.action(action)?;
        match (*state, status) {
            (ActionState::Released, "unknown") => *state = ActionState::Unknown,
            (ActionState::Unknown, "unknown") | (ActionState::Done, _) => {
                return violation(format!("action `{action}` has a second outcome, `{status}`"));
            }
            (ActionState::Released | ActionState::Unknown, _) => *state = ActionState::Done,
            (ActionState::Proposed | ActionState::Judged { .. }, _) => {
                return violation(format!(
                    "action `{action}` has an outcome, `{status}`, but never went ahead"
                ));
            }
        }
        Ok(())
    }

    /// What an approval is about: an action that was proposed, or else the text of an event before.
    fn subject(&mut self, body: &Body<'_>, seq: u64) -> Result<(), StateError> {
        if body.has("action") {
            return self.action(id(body, "action")?).map(drop);
        }
        match body.number("text")? {
            text if (1..seq).contains(&text) => Ok(()),
            text => violation(format!("`body.text` is {text}, which is no event before")),
        }
    }

    fn request(&mut self, approval: Id) -> Result<(), StateError> {
        if self.approvals.contains_key(&approval) {
            return violation(format!("approval `{approval}` is requested a second time"));
        }
        self.set_approval(approval, ApprovalState::Requested)
    }

    fn decide(&mut self, body: &Body<'_>) -> Result<(), StateError> {
        let approval = id(body, "approval")?;
        let decision = body.text("decision")?;
        known("decision", decision, &DECISIONS)?;
        let before = self.approvals.get(&approval);
        match decision {
            // What says something of a request has one before it.
            "endorsed" | "answered" if before != Some(&ApprovalState::Requested) => {
                return violation(format!("approval `{approval}` is `{decision}` but does not wait"));
            }
            "endorsed" => return Ok(()),
            "revoked" if !matches!(before, Some(ApprovalState::Granted { .. })) => {
                return violation(format!("approval `{approval}` is `revoked` but was not granted"));
            }
            _ => {}
        }
        if self.approvals.get(&approval) == Some(&ApprovalState::Claimed) && decision == "granted" {
            return violation(format!("approval `{approval}` is granted again after it was claimed"));
        }
        // A grant without a stated scope is the narrowest one.
        let once = !body.has("scope") || body.text("scope") == Ok("once");
        let state =
            if decision == "granted" { ApprovalState::Granted { once } } else { ApprovalState::Closed };
        self.set_approval(approval, state)
    }

    fn set_approval(&mut self, approval: Id, state: ApprovalState) -> Result<(), StateError> {
        if self.approvals.len() == APPROVALS_MAX && !self.approvals.contains_key(&approval) {
            return Err(StateError::TooMany("approvals", APPROVALS_MAX));
        }
        self.approvals.insert(approval, state);
        Ok(())
    }

    fn claim(&mut self, approval: Id) -> Result<(), StateError> {
        match self.approvals.get_mut(&approval) {
            Some(ApprovalState::Granted { once: false }) => Ok(()),
            Some(state @ ApprovalState::Granted { once: true }) => {
                *state = ApprovalState::Claimed;
                Ok(())
            }
            Some(ApprovalState::Claimed) => {
                violation(format!("approval `{approval}` is claimed a second time"))
            }
            _ => violation(format!("approval `{approval}` is claimed but was not granted")),
        }
    }
}

const DECISIONS: [&str; 6] = ["granted", "endorsed", "refused", "answered", "revoked", "expired"];
const ENFORCED: [&str; 6] = ["executed", "withheld", "held", "replaced", "let-pass", "asked"];

fn violation<T>(message: String) -> Result<T, StateError> {
    Err(StateError::Violation(message))
}

fn id(body: &Body<'_>, name: &str) -> Result<Id, String> {
    let text = body.text(name)?;
    text.parse().map_err(|error| format!("`body.{name}` is `{text}`: {error}"))
}

fn known(name: &str, word: &str, words: &[&str]) -> Result<(), StateError> {
    if words.contains(&word) {
        return Ok(());
    }
    violation(format!("`body.{name}` is `{word}`, expected one of {}", words.join(", ")))
}

/// Whether a verdict lets an action go ahead.
fn proceeds(verdict: &str) -> Result<bool, StateError> {
    known("verdict", verdict, &["allow", "warn", "modify", "clarify", "pause", "review", "deny", "halt"])?;
    Ok(matches!(verdict, "allow" | "warn" | "modify"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Hex;

    /// Applies events written as `kind key=value ...`, where a value of one character stands for an id.
    fn run(events: &[&str]) -> Result<(), String> {
        let mut trajectory = Trajectory::default();
        for (seq, text) in (1..).zip(events) {
            let mut words = text.split(' ');
            let kind = words.next().unwrap();
            let members: Vec<String> = words
                .map(|word| word.split_once('=').unwrap())
                .map(
                    |(key, value)| {
                        if value.len() == 1 { (key, value.repeat(32)) } else { (key, value.to_owned()) }
                    },
                )
                .map(|(key, value)| format!("\"{key}\":\"{value}\""))
                .collect();
            let line = format!(
                r#"{{"v":1,"seq":{seq},"t":"","kind":"{kind}","actor":"a","cause":null,"payloads":{{}},"body":{{{}}}}}"#,
                members.join(",")
            );
            trajectory.apply(&Event::from_line(line.as_bytes()).unwrap()).map_err(|error| match error {
                StateError::Violation(message) => format!("{seq}: {message}"),
                StateError::TooMany(..) => panic!("{error:?}"),
            })?;
        }
        Ok(())
    }

    #[test]
    fn what_a_gate_writes_of_contained_actions_is_accepted() {
        let runs: [&[&str]; 2] = [
            &[
                "proposed action=a",
                "verdict action=a verdict=allow",
                "enforcement action=a enforced=executed contained=yes",
                "observed action=a connection=yes",
                "outcome action=a status=ok",
                "observed action=a ended=yes",
                "verdict verdict=warn",
                "observed action=a connection=yes",
            ],
            &["observed server=files connection=yes", "observed server=files ended=yes"],
        ];
        for events in runs {
            assert_eq!(run(events), Ok(()), "{events:?}");
        }
    }

    #[test]
    fn what_a_gate_writes_is_accepted() {
        let runs: [&[&str]; 9] = [
            &[
                "proposed action=a",
                "verdict action=a verdict=allow",
                "enforcement action=a enforced=executed",
                "outcome action=a status=ok",
            ],
            &[
                "proposed action=a",
                "verdict action=a verdict=modify",
                "enforcement action=a enforced=replaced",
                "outcome action=a status=unknown",
                "outcome action=a status=ok",
            ],
            &[
                "proposed action=a",
                "verdict action=a verdict=deny",
                "enforcement action=a enforced=let-pass",
                "outcome action=a status=error",
            ],
            &[
                "proposed action=a",
                "verdict action=a verdict=review",
                "enforcement action=a enforced=held",
                "approval-requested action=a approval=c",
                "approval-decided approval=c decision=granted scope=once",
                "grant-claimed action=a approval=c",
                "verdict action=a verdict=allow",
                "enforcement action=a enforced=executed",
                "outcome action=a status=ok",
            ],
            &[
                "proposed action=a",
                "proposed action=b",
                "approval-decided approval=c decision=granted scope=tool",
                "grant-claimed action=a approval=c",
                "grant-claimed action=b approval=c",
            ],
            &[
                "proposed action=a",
                "verdict action=a verdict=review",
                "enforcement action=a enforced=asked",
                "outcome action=a status=ok",
            ],
            &[
                "proposed action=a",
                "approval-requested action=a approval=c",
                "approval-decided approval=c decision=endorsed",
                "approval-decided approval=c decision=granted scope=arguments",
                "grant-claimed action=a approval=c",
                "approval-decided approval=c decision=revoked",
            ],
            &[
                "proposed action=a",
                "approval-requested action=a approval=c",
                "approval-decided approval=c decision=answered",
            ],
            &["verdict verdict=deny", "enforcement enforced=withheld", "observation action=a"],
        ];
        for events in runs {
            assert_eq!(run(events), Ok(()), "{events:?}");
        }
    }

    #[test]
    fn what_no_gate_writes_is_refused() {
        let allowed = ["proposed action=a", "verdict action=a verdict=allow"];
        let executed = [allowed[0], allowed[1], "enforcement action=a enforced=executed"];
        let done = [executed[0], executed[1], executed[2], "outcome action=a status=ok"];
        let cases: [(&[&str], &[&str], &str); 22] = [
            (&[], &["verdict action=a verdict=allow"], "never proposed"),
            (&[], &["enforcement action=a enforced=executed"], "never proposed"),
            (&[], &["outcome action=a status=ok"], "never proposed"),
            (&[], &["approval-requested action=a approval=c"], "never proposed"),
            (&allowed, &["proposed action=a"], "a second time"),
            (&["proposed action=a"], &["enforcement action=a enforced=held"], "before any verdict"),
            (
                &["proposed action=a", "verdict action=a verdict=deny"],
                &["enforcement action=a enforced=executed"],
                "against its latest verdict",
            ),
            (
                &allowed,
                &["verdict action=a verdict=deny", "enforcement action=a enforced=replaced"],
                "against its latest verdict",
            ),
            (&allowed, &["enforcement action=a enforced=asked"], "against its latest verdict"),
            (&allowed, &["outcome action=a status=ok"], "never went ahead"),
            (&executed, &["enforcement action=a enforced=executed"], "after it went ahead"),
            (&executed, &["verdict action=a verdict=deny"], "after it went ahead"),
            (&done, &["outcome action=a status=ok"], "second outcome"),
            (
                &executed,
                &["outcome action=a status=unknown", "outcome action=a status=unknown"],
                "second outcome",
            ),
            (&allowed, &["grant-claimed action=a approval=c"], "not granted"),
            (
                &allowed,
                &["approval-decided approval=c decision=refused", "grant-claimed action=a approval=c"],
                "not granted",
            ),
            (
                &allowed,
                &[
                    "approval-decided approval=c decision=granted",
                    "grant-claimed action=a approval=c",
                    "grant-claimed action=a approval=c",
                ],
                "claimed a second time",
            ),
            (
                &allowed,
                &[
                    "approval-decided approval=c decision=granted",
                    "grant-claimed action=a approval=c",
                    "approval-decided approval=c decision=granted",
                ],
                "granted again",
            ),
            (&allowed, &["verdict action=a verdict=permit"], "expected one of allow, warn"),
            (&allowed, &["proposed action=xyz"], "`body.action` is `xyz`"),
            (&[], &["verdict verdict=permit"], "expected one of allow, warn"),
            (&[], &["enforcement enforced=eaten"], "expected one of executed, withheld"),
        ];
        refused(&cases);
    }

    #[test]
    fn what_was_not_contained_is_not_observed() {
        let allowed = ["proposed action=a", "verdict action=a verdict=allow"];
        let contained = [allowed[0], allowed[1], "enforcement action=a enforced=executed contained=yes"];
        let withheld = ["proposed action=a", "verdict action=a verdict=deny"];
        let held = [withheld[0], withheld[1], "enforcement action=a enforced=withheld contained=yes"];
        let asked = ["proposed action=a", "verdict action=a verdict=review"];
        let asked = [asked[0], asked[1], "enforcement action=a enforced=asked contained=yes"];
        let ended = "observed action=a ended=yes";
        let cases: [(&[&str], &[&str], &str); 10] = [
            (&[], &[ended], "never proposed"),
            (&allowed, &[ended], "never went ahead contained"),
            (&allowed, &["enforcement action=a enforced=executed", ended], "never went ahead contained"),
            (&held, &[ended], "never went ahead contained"),
            (&asked, &["observed action=a connection=yes"], "never went ahead contained"),
            (&contained, &[ended, ended], "a second time"),
            (&contained, &["observed action=a"], "not one of"),
            (&contained, &["observed action=a ended=yes connection=yes"], "not one of"),
            (&contained, &["observed ended=yes"], "`body.server` is missing"),
            (&contained, &["observed action=xyz ended=yes"], "`body.action` is `xyz`"),
        ];
        refused(&cases);
        let connections = vec!["observed action=a connection=yes"; CONNECTIONS_MAX as usize];
        assert_eq!(run(&[&contained[..], &connections].concat()), Ok(()));
        let error = run(&[&contained[..], &connections, &connections[..1]].concat()).unwrap_err();
        assert!(error.contains("more than 4096 connections"), "{error}");
    }

    #[test]
    fn a_decision_that_does_not_follow_is_refused() {
        let requested = ["proposed action=a", "approval-requested action=a approval=c"];
        let granted = [requested[0], requested[1], "approval-decided approval=c decision=granted scope=once"];
        let cases: [(&[&str], &[&str], &str); 6] = [
            (&["proposed action=a"], &["approval-decided approval=c decision=endorsed"], "does not wait"),
            (&granted, &["approval-decided approval=c decision=endorsed"], "does not wait"),
            (&granted, &["approval-decided approval=c decision=answered"], "does not wait"),
            (&requested, &["approval-decided approval=c decision=revoked"], "was not granted"),
            (
                &granted,
                &["grant-claimed action=a approval=c", "approval-decided approval=c decision=revoked"],
                "was not granted",
            ),
            (
                &requested,
                &["approval-decided approval=c decision=endorsed", "grant-claimed action=a approval=c"],
                "not granted",
            ),
        ];
        refused(&cases);
    }

    /// Runs of which the last event contradicts those before it.
    fn refused(cases: &[(&[&str], &[&str], &str)]) {
        for (before, after, message) in cases {
            assert_eq!(run(before), Ok(()));
            let error = run(&[*before, *after].concat()).unwrap_err();
            assert!(error.contains(message), "{after:?} gave {error:?}");
            assert!(error.starts_with(&format!("{}:", before.len() + after.len())), "{error}");
        }
    }

    /// A trajectory of as many actions and approvals as are followed, ids counting from 0.
    fn full() -> Trajectory {
        let id = |number: usize| Hex((number as u128).to_be_bytes());
        Trajectory {
            actions: (0..ACTIONS_MAX).map(|number| (id(number), ActionState::Released)).collect(),
            contained: HashMap::new(),
            items: Items::default(),
            cells: Cells::default(),
            facts: Facts::default(),
            approvals: (0..APPROVALS_MAX).map(|number| (id(number), ApprovalState::Requested)).collect(),
        }
    }

    #[test]
    fn so_many_actions_and_approvals_are_followed() {
        let mut trajectory = full();
        let (known, more) = (Hex([0; 16]), Hex([0xff; 16]));
        assert_eq!(trajectory.propose(more), Err(StateError::TooMany("actions", ACTIONS_MAX)));
        assert_eq!(trajectory.request(more), Err(StateError::TooMany("approvals", APPROVALS_MAX)));
        assert_eq!(trajectory.set_approval(known, ApprovalState::Closed), Ok(()));
        // What is followed goes on.
        assert_eq!(trajectory.without_outcome(), ACTIONS_MAX as u64);
        assert_eq!(trajectory.conclude(known, "ok"), Ok(()));
        assert_eq!(trajectory.conclude(Hex(1u128.to_be_bytes()), "unknown"), Ok(()));
        assert_eq!(trajectory.without_outcome(), ACTIONS_MAX as u64 - 2);
    }
}
