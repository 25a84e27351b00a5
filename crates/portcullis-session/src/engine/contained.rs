//! What runs contained: the ticket that goes with a permit, and the report that it is needed for.
//!
//! Who runs an action contained says afterwards what was seen of it. Only that one can say so: the answer that permits
//! the action has a *ticket*, a random number, and the record has its digest. A report without the ticket, with another
//! one, or with one that was used, is refused, and that somebody tried is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use portcullis_core::action::{Action, Subject};
use portcullis_core::aside::OBSERVED;
use portcullis_core::bundle::{level_of, runs_git};
use portcullis_core::contrast::{Grounds, More, Prediction, more, more_of_connection};
use portcullis_core::event::{
    Actor, ConfigChange, ConnectionRecord, Contained, EndedRecord, Enforced, Event, EventBody,
    ObservedRecord, ObservedWhat,
};
use portcullis_core::fact::Facts;
use portcullis_core::id::{ActionId, Digest, DigestBuilder};
use portcullis_core::label::Label;
use portcullis_core::limits::{CONTAINED_ACTIONS_MAX, CONTAINED_CONNECTIONS_MAX, CONTAINED_SERVERS_MAX};
use portcullis_core::observed::{Connection, Observed};
use portcullis_core::pipeline::Decision;
use portcullis_core::profile::{Level, Profile};
use portcullis_core::state::RunState;
use portcullis_core::state::contained::Containment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::server::server_name;
use super::{Engine, JSON, Reach, Read, TextJudgement};
use crate::batch::{Batch, BatchBuilder};
use crate::env::Env;
use crate::facts::Sources;

/// Name of the evidence of a report that was refused; its digest is that of the report.
pub const REPORT_REFUSED: &str = "observed-refused";

/// The right to report what was seen of something contained: once how it ended, and connections as they happen.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Ticket(Digest);

impl Ticket {
    fn digest(&self) -> Digest {
        DigestBuilder::new("portcullis/ticket/v1").part(self.0.as_bytes()).finish()
    }

    /// The ticket as a text of hex digits, for who has to hand it to another process.
    #[must_use]
    pub fn to_text(self) -> String {
        self.0.to_string()
    }

    /// Reads such a text.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket(..)")
    }
}

/// That something is to run contained: under which profile, and the ticket for what is seen of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Contain {
    /// The profile.
    pub profile: Profile,
    /// The ticket.
    pub ticket: Ticket,
}

/// Of what something is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportedOf {
    /// An action.
    Action(ActionId),
    /// A server, by what it is known by.
    Server(String),
}

/// What was seen of something contained, as it is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Of what.
    pub of: ReportedOf,
    /// The ticket, if there was one with the report.
    pub ticket: Option<Ticket>,
    /// Digest of the profile that it ran under.
    pub profile: Digest,
    /// What was seen.
    pub what: ReportWhat,
}

/// What is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportWhat {
    /// It ended, and this is all that was seen.
    Ended(Box<Observed>),
    /// A connection, as it happens.
    Connection(Connection),
}

/// Why a report is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// There is no such thing, or it was not permitted to run contained.
    #[error("{0} was not permitted to run contained in this run, so there is nothing to report of it")]
    NotContained(String),
    /// There is no ticket with it.
    #[error("the report of {0} has no ticket; send the one that came with the permit")]
    NoTicket(String),
    /// It has the ticket of something else.
    #[error("the ticket is not that of {0}; send the one that came with its permit")]
    WrongTicket(String),
    /// The ticket was used.
    #[error("how {0} ended was reported before, and a ticket is good for one report; the first one stands")]
    TicketUsed(String),
    /// It is about another profile.
    #[error("{of} was permitted under the profile `{profile}`, and ran under another")]
    OtherProfile {
        /// What ran.
        of: String,
        /// The profile that it should have run under.
        profile: String,
    },
    /// A limit on connections.
    #[error(
        "{CONTAINED_CONNECTIONS_MAX} connections of {0} were recorded, which is the limit; further ones are counted in the report of its end"
    )]
    TooManyConnections(String),
    /// A limit on servers.
    #[error(
        "{CONTAINED_SERVERS_MAX} servers of this run were started contained, which is the limit; use a new run"
    )]
    TooManyServers,
}

/// What was read of contained actions before they ran.
#[derive(Debug, Default)]
pub(super) struct Predictions {
    /// By the action.
    known: BTreeMap<ActionId, Prediction>,
    /// Of actions that were recalled and may go ahead yet.
    proposed: BTreeMap<ActionId, Prediction>,
}

impl Predictions {
    /// Takes an event into account that is now part of the run.
    pub(super) fn learn(&mut self, event: &Event, prediction: Option<Prediction>, state: &RunState) {
        match &event.body {
            EventBody::Proposed(proposed) => {
                if self.proposed.len() >= CONTAINED_ACTIONS_MAX {
                    self.proposed.retain(|action, _| state.open_action(*action).is_some());
                }
                self.proposed.extend(prediction.map(|prediction| (proposed.action, prediction)));
            }
            EventBody::Enforcement { action: Some(action), contained, .. } => {
                let prediction = prediction.or_else(|| self.proposed.remove(action));
                if contained.is_none() {
                    return;
                }
                if self.known.len() >= CONTAINED_ACTIONS_MAX {
                    self.known.retain(|action, _| state.contained().action(*action).is_some());
                }
                self.known.insert(*action, prediction.unwrap_or_else(Prediction::unread));
            }
            _ => {}
        }
    }
}

impl Engine {
    /// The profile that the bundle gives an action which goes ahead, where the level is reached, and what is predicted of
    /// it. What was let pass is
    /// what observing leaves as it is.
    pub(super) fn profile_by_bundle(
        &self,
        action: &Action,
        read: &Read<'_>,
        decision: &Decision,
        enforced: Enforced,
        facts: &Facts,
    ) -> Option<(Profile, Prediction)> {
        let place = self.state.place();
        let (profile, prediction) = match (enforced, &decision.modified) {
            (Enforced::Executed, _) => {
                let effects = read.effects.get();
                (self.bundle.contained(place, action, effects)?, Prediction::of(effects))
            }
            (Enforced::Replaced, Some(arguments)) => {
                let edited = action.with_arguments(arguments.clone());
                let effects = self.pipeline.effects(&self.bundle, &self.state, &edited);
                (self.bundle.contained(place, &edited, effects.get())?, Prediction::of(effects.get()))
            }
            _ => return None,
        };
        let profile = profile.ok().filter(|profile| profile.least_level() <= level_of(facts))?;
        Some((profile, prediction))
    }

    /// Whether an action goes ahead as it is, because the bundle says so, where other command lines of git are contained:
    /// then git has to start nothing of the project by itself. The hooks of what a person let be pushed are part of that.
    pub(super) fn is_left_without_hooks(
        &self,
        action: &Action,
        read: &Read<'_>,
        enforced: Enforced,
        facts: &Facts,
    ) -> bool {
        let is_left =
            || matches!(self.bundle.contained(self.state.place(), action, read.effects.get()), Some(Err(_)));
        let can_contain = enforced == Enforced::Executed && level_of(facts) > Level::None;
        can_contain && runs_git(read.effects.get()) && is_left()
    }

    /// Gives a ticket for something that is to run under a profile.
    pub(super) fn contain(batch: &mut BatchBuilder<'_>, profile: Profile) -> (Contain, Contained) {
        let ticket = Ticket(Digest::from_bytes(batch.random()));
        let contained = Contained::under(&profile, ticket.digest());
        (Contain { profile, ticket }, contained)
    }

    /// A server is started contained. `server` is the command that starts it.
    ///
    /// # Errors
    /// Too many servers of the run are contained already.
    pub fn contain_server(
        &self,
        env: &mut dyn Env,
        server: &str,
        profile: Profile,
    ) -> Result<(Batch, Contain), ReportError> {
        let server = server_name(server);
        if !self.state.contained().takes_server(&server) {
            return Err(ReportError::TooManyServers);
        }
        let mut batch = self.builder(env);
        let (contain, contained) = Self::contain(&mut batch, profile);
        let change = ConfigChange::ServerContained { server, contained };
        batch.push(Actor::gate(), None, EventBody::Config(change));
        Ok((batch.finish(), contain))
    }

    /// Records what was seen of something contained, and judges it beside what was predicted. It has happened, so nothing
    /// is kept back here; the result of an action whose report was judged is, where the bundle asks for that.
    ///
    /// # Errors
    /// The report is refused: record [`Self::report_refused`] then.
    pub fn observed(
        &self,
        env: &mut dyn Env,
        report: Report,
        sources: &dyn Sources,
    ) -> Result<(Batch, TextJudgement), ReportError> {
        let containment = self.check_report(&report)?;
        let Report { of, what, .. } = report;
        let (action, server) = match of {
            ReportedOf::Action(action) => (Some(action), None),
            ReportedOf::Server(server) => (None, Some(server_name(&server))),
        };
        let prediction = action.and_then(|action| self.predictions.known.get(&action));
        // Nothing is read of a server, nor of arguments that were erased.
        let prediction = prediction.cloned().unwrap_or_else(Prediction::unread);
        let files = match &what {
            ReportWhat::Ended(observed) => Some(observed.clone()),
            ReportWhat::Connection(_) => None,
        };
        let (what, payload, more) = match what {
            ReportWhat::Ended(observed) => self.ended(&prediction, *observed),
            ReportWhat::Connection(connection) => {
                let payload = serde_json::to_vec(&connection).unwrap_or_default();
                let record = ObservedWhat::Connection(ConnectionRecord::of(&connection));
                (record, payload, more_of_connection(&prediction, &connection))
            }
        };
        let Contained { profile, digest, .. } = containment.contained.clone();
        let label = match (&containment.tool, &server) {
            (Some(tool), _) => Label::Tool(tool.clone()),
            (None, Some(server)) => Label::Server(server.clone()),
            (None, None) => Label::Unknown,
        };
        let mut batch = self.builder(env);
        let body = EventBody::Observed(ObservedRecord { action, server, profile, digest, what });
        let since = Some(containment.since);
        let seen = batch.push_with(Actor::gate(), since, body, [Some((OBSERVED, JSON, payload))]);
        let subject = Subject::Contained { action, label: &label, more: &more };
        let judgement = self.judge_text(&mut batch, subject, seen, Reach::Tell, sources);
        if let (Some(action), Some(files)) = (action, &files) {
            self.push_stale(&mut batch, action, Some(files), seen);
        }
        Ok((batch.finish(), judgement))
    }

    /// Somebody reported what nobody may: with which ticket and of what, its digest says.
    pub fn report_refused(&self, env: &mut dyn Env, report: &Report) -> Batch {
        let mut batch = self.builder(env);
        let of = match &report.of {
            ReportedOf::Action(action) => action.to_string(),
            ReportedOf::Server(server) => server.clone(),
        };
        let what = match &report.what {
            ReportWhat::Ended(observed) => serde_json::to_vec(observed),
            ReportWhat::Connection(connection) => serde_json::to_vec(connection),
        };
        let digest = DigestBuilder::new("portcullis/report/v1")
            .part(of.as_bytes())
            .part(report.profile.as_bytes())
            .part(&what.unwrap_or_default())
            .finish();
        let cause = self.containment(&report.of).map(|containment| containment.since);
        let body = EventBody::Evidence { name: REPORT_REFUSED.to_owned(), digest };
        batch.push(Actor::gate(), cause, body);
        batch.finish()
    }

    fn containment(&self, of: &ReportedOf) -> Option<&Containment> {
        match of {
            ReportedOf::Action(action) => self.state.contained().action(*action),
            ReportedOf::Server(server) => self.state.contained().server(&server_name(server)),
        }
    }

    fn check_report(&self, report: &Report) -> Result<&Containment, ReportError> {
        let of = match &report.of {
            ReportedOf::Action(action) => format!("action {action}"),
            ReportedOf::Server(_) => "the server".to_owned(),
        };
        let Some(containment) = self.containment(&report.of) else {
            return Err(ReportError::NotContained(of));
        };
        let Some(ticket) = &report.ticket else { return Err(ReportError::NoTicket(of)) };
        if ticket.digest() != containment.contained.ticket {
            return Err(ReportError::WrongTicket(of));
        }
        match &report.what {
            ReportWhat::Ended(_) if containment.ended => return Err(ReportError::TicketUsed(of)),
            ReportWhat::Connection(_) if containment.connections >= CONTAINED_CONNECTIONS_MAX => {
                return Err(ReportError::TooManyConnections(of));
            }
            ReportWhat::Ended(_) | ReportWhat::Connection(_) => {}
        }
        if report.profile != containment.contained.digest {
            let profile = containment.contained.profile.clone();
            return Err(ReportError::OtherProfile { of, profile });
        }
        Ok(containment)
    }

    /// The numbers of a report, its payload, and what of it is more than was predicted.
    fn ended(&self, prediction: &Prediction, observed: Observed) -> (ObservedWhat, Vec<u8>, Vec<More>) {
        let place = Grounds::of(self.state.place());
        let effects = &self.bundle.effects;
        let grounds = Grounds {
            workspace: place.workspace.or(effects.workspace.as_deref()),
            home: place.home.or(effects.home.as_deref()),
        };
        let path = |name: &str| self.pipeline.path(&self.bundle, &self.state, name);
        let more = more(prediction, &observed, grounds, &path);
        let matters: BTreeSet<&str> = more.iter().map(|more| more.what.as_str()).collect();
        let counts = observed.counts();
        // A host stands in `more` with its port.
        let hosts: BTreeSet<&str> =
            matters.iter().filter_map(|what| what.rsplit_once(':')).map(|(host, _)| host).collect();
        let (kept, cut) = observed.cut(&|name| matters.contains(name) || hosts.contains(name));
        let payload = serde_json::to_vec(&kept).unwrap_or_default();
        (ObservedWhat::Ended(EndedRecord::of(&kept, counts, cut)), payload, more)
    }
}
