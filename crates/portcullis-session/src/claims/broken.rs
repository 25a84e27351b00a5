//! Gates that are wrong on purpose, each in one way: the auditor has to find every one of them.

use std::collections::BTreeMap;

use portcullis_core::event::{Control, Event, EventBody};
use portcullis_core::freeze::FreezeScope;
use portcullis_core::grant::GrantedEffects;
use portcullis_core::id::ApprovalId;
use portcullis_core::label::LabelSet;

use super::steps::{Rng, steps};
use super::world::{Shared, World};
use super::{Ask, Gate, Order, Told, play};
use crate::engine::{Answer, Decider, Says};

/// Sequences in which a defect has to show.
const SEQUENCES: u64 = 3_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    /// A grant for one call or reply is used again.
    ClaimsTwice,
    /// A restart forgets which grants were used.
    ForgetsClaims,
    /// Its clock stands still.
    IgnoresTime,
    /// Orders to freeze are answered and not followed.
    IgnoresFreezes,
    /// The first step of a release lets everything go on.
    ReleasesAllAtOnce,
    /// A freeze of a principal stops its first run alone.
    FreezesOneRun,
    /// A restart forgets freezes.
    ForgetsFreezes,
    /// A grant covers any call of the same kind.
    IgnoresArguments,
    /// One run uses the grants of another.
    LendsGrants,
    /// What a person was shown does not matter.
    IgnoresWhatWasShown,
    /// What the run sees after a grant does not matter.
    IgnoresWhatIsSeen,
    /// A task never ends.
    IgnoresTasks,
    /// Grants outlive their bundle.
    IgnoresReloads,
    /// A yes is never taken back.
    IgnoresRevocations,
    /// A no counts as a yes.
    TakesNoForYes,
    /// Each yes counts as that of somebody else.
    CountsOnePersonTwice,
    /// The agent's own arguments go ahead, and its own words.
    IgnoresEdits,
    /// What is held goes ahead once anybody has decided anything.
    ClaimsWhatWaits,
    /// A grant is never honoured.
    HonoursNothing,
}

struct Broken<'s> {
    world: World<'s>,
    defect: Defect,
    used: BTreeMap<(usize, Ask), (String, ApprovalId)>,
    yes: u8,
}

impl Gate for Broken<'_> {
    fn ask(&mut self, run: usize, ask: Ask) -> Told {
        let meant = match (self.defect, ask) {
            (Defect::IgnoresArguments, Ask::Send(_)) => Ask::Send(0),
            (Defect::IgnoresArguments, Ask::Reply(_)) => Ask::Reply(0),
            _ => ask,
        };
        let by = if self.defect == Defect::LendsGrants && run == 1 { 0 } else { run };
        let mut told = self.world.ask(by, meant);
        match self.defect {
            Defect::IgnoresArguments if told.ahead.is_some() => told.ahead = Some(ask.content()),
            Defect::IgnoresEdits if told.ahead.is_some() => told.ahead = Some(ask.content()),
            Defect::HonoursNothing if told.claimed.is_some() => return Told::default(),
            Defect::ClaimsWhatWaits => {
                if let Some(waits) = told.waits.filter(|_| self.yes > 0) {
                    return Told { ahead: Some(ask.content()), claimed: Some(waits), waits: None };
                }
            }
            Defect::ClaimsTwice => match (&told.ahead, told.claimed) {
                (Some(content), Some(claimed)) => {
                    drop(self.used.insert((run, ask), (content.clone(), claimed)))
                }
                _ => {
                    if let Some((content, claimed)) = self.used.get(&(run, ask)).cloned() {
                        return Told { ahead: Some(content), claimed: Some(claimed), waits: None };
                    }
                }
            },
            _ => {}
        }
        told
    }

    fn labels(&self, run: usize) -> LabelSet {
        self.world.labels(run)
    }

    fn held_by(&self, run: usize, approval: ApprovalId) -> Vec<GrantedEffects> {
        self.world.held_by(run, approval)
    }

    fn answer(&mut self, run: usize, approval: ApprovalId, mut answer: Answer) -> bool {
        self.yes = self.yes.saturating_add(1);
        let labels = self.world.labels(run);
        match (self.defect, &mut answer) {
            (Defect::IgnoresRevocations, Answer { says: Says::Revoke, .. }) => return true,
            (
                Defect::TakesNoForYes,
                Answer { says: says @ Says::Refuse, by: Decider::Approver { shown, .. }, .. },
            ) => {
                *says = Says::grant(portcullis_core::event::GrantScope::Once);
                let digest = portcullis_core::id::Digest::from_bytes([7; 32]);
                *shown = Some(crate::engine::ShownRequest { digest, labels });
            }
            (
                Defect::IgnoresWhatWasShown,
                Answer { by: Decider::Approver { shown: Some(shown), .. }, .. },
            ) => {
                shown.labels = labels;
            }
            (Defect::CountsOnePersonTwice, Answer { by: Decider::Approver { id, .. }, .. }) => {
                *id = format!("{id}-{}", self.yes);
            }
            _ => {}
        }
        self.world.answer(run, approval, answer)
    }

    fn read(&mut self, run: usize, server: u8) {
        if self.defect != Defect::IgnoresWhatIsSeen {
            self.world.read(run, server);
        }
    }

    fn speak(&mut self, run: usize) {
        if self.defect != Defect::IgnoresTasks {
            self.world.speak(run);
        }
    }

    fn pass(&mut self, micros: i64) {
        if self.defect != Defect::IgnoresTime {
            self.world.pass(micros);
        }
    }

    fn order(&mut self, scope: &FreezeScope, order: Order) {
        let first_of = |name: &str| FreezeScope::Run(super::world::run_id(usize::from(name != "ida") * 2));
        match (self.defect, scope, order) {
            (Defect::IgnoresFreezes, ..) => {}
            (Defect::ReleasesAllAtOnce, _, Order::ReleaseReads) => self.world.order(scope, Order::Release),
            (Defect::FreezesOneRun, FreezeScope::Principal(name), _) => {
                self.world.order(&first_of(name), order);
            }
            _ => self.world.order(scope, order),
        }
    }

    fn reload(&mut self) {
        if self.defect != Defect::IgnoresReloads {
            self.world.reload();
        }
    }

    fn restart(&mut self) {
        let (claims, freezes) = (self.defect != Defect::ForgetsClaims, self.defect != Defect::ForgetsFreezes);
        let keeps = |event: &Event| match &event.body {
            EventBody::GrantClaimed { .. } => claims,
            EventBody::Control { control: Control::Freeze, .. } => freezes,
            _ => true,
        };
        if !freezes {
            self.world.forget_freezes();
        }
        self.world.restart_with(keeps);
    }
}

/// The first sequence after which the auditor says this of a gate with a defect.
fn found(defect: Defect, why: &str, shared: &[Shared]) -> Option<u64> {
    (0..SEQUENCES).find(|number| {
        let mut rng = Rng::of(1, *number);
        let quorum = if rng.below(4) == 0 { 2 } else { 1 };
        let steps = steps(&mut rng);
        let world = World::new(&shared[quorum - 1]);
        let mut gate = Broken { world, defect, used: BTreeMap::new(), yes: 0 };
        play(&mut gate, &steps, quorum).is_err_and(|found| found == why)
    })
}

#[test]
fn every_defect_is_found() {
    let shared: Vec<Shared> = (1..=2).map(Shared::new).collect();
    for (defect, why) in [
        (Defect::ClaimsTwice, "a second claim"),
        (Defect::ForgetsClaims, "a second claim"),
        (Defect::IgnoresTime, "a claim after its time"),
        (Defect::IgnoresFreezes, "it went ahead under a freeze"),
        (Defect::ReleasesAllAtOnce, "it went ahead under a freeze"),
        (Defect::FreezesOneRun, "it went ahead under a freeze"),
        (Defect::ForgetsFreezes, "it went ahead under a freeze"),
        (Defect::IgnoresArguments, "a claim by another call"),
        (Defect::LendsGrants, "a claim by another run"),
        (Defect::IgnoresWhatWasShown, "a yes to something else than was shown"),
        (Defect::IgnoresWhatIsSeen, "a claim after the run had seen more"),
        (Defect::IgnoresTasks, "a claim after its task"),
        (Defect::IgnoresReloads, "a claim under another bundle"),
        (Defect::IgnoresRevocations, "a claim after a revocation"),
        (Defect::TakesNoForYes, "it went ahead after a refusal"),
        (Defect::CountsOnePersonTwice, "a person agreed twice"),
        (Defect::IgnoresEdits, "it went ahead with something else than was granted"),
        (Defect::ClaimsWhatWaits, "a claim without a grant"),
        (Defect::HonoursNothing, "a grant that holds was not honoured"),
    ] {
        let found = found(defect, why, &shared);
        println!("{defect:?}: {why}, in sequence {found:?}");
        assert!(found.is_some(), "{defect:?} was not found");
    }
}
