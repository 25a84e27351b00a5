//! Decides on command lines that were to run contained where that cannot be.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::bundle::{Below, CONTAIN_SOURCE, level_of, level_request, runs_git};
use portcullis_core::fact::{FactRequest, Facts};
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::profile::{Level, Profile};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Gives the verdict that the bundle chose to a command line whose profile needs a level of containment that is not
/// reached.
///
/// ## Why it matters
/// A bundle that has commands run contained may permit more than it would otherwise: whatever they do, they can do no
/// more than the profile says. Where nothing holds them to it, the same permission would be a way out.
///
/// ## Fires on
/// A call of a tool that is given a command line, if `[contain]` gives it a profile, and the machine does not reach the
/// profile's level, or the surface cannot run it contained. A profile that names hosts needs the level `namespace`.
///
/// ## Does not cover
/// Calls that no profile fits: what they touch is beyond folders and hosts, such as containers, other processes or a
/// remote repository that is named by a name. They are judged by their text alone, and not contained.
///
/// ## Configuration
/// `below` in `[contain]`: `"hold"` (the default), `"deny"`, or `"uncontained"` for nothing: such calls are judged by
/// their text, as without `[contain]`.
///
/// ## False positives
/// Each command line on a machine without containment. `portcullis doctor` says which step fails there.
///
/// ## References
/// OWASP ASI02, ASI05, LLM06.
#[derive(Debug)]
pub struct Contained;

static META: GuardMeta = GuardMeta {
    id: "effects/contained",
    hooks: &[Hook::Action],
    owasp: &["ASI02", "ASI05", "LLM06"],
    unfaithful_to: None,
};

impl Guard<RunMemory> for Contained {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn sources(&self) -> &'static [&'static str] {
        &[CONTAIN_SOURCE]
    }

    // Whatever becomes of it below, the record says which level there was.
    fn wants(&self, context: &Context<'_>, pending: &Pending<'_>) -> Vec<FactRequest> {
        let is_asked = match contained(context, pending) {
            None => false,
            Some(Ok(_)) => true,
            // Where it could be contained, what is exempt runs no hooks.
            Some(Err(_)) => runs_git(context.effects()),
        };
        is_asked.then(level_request).into_iter().collect()
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let verdict = match context.bundle.contain.below {
            Below::Uncontained => return Ok(Vec::new()),
            Below::Hold => Verdict::Review,
            Below::Deny => Verdict::Deny,
        };
        let Some(profile) = profile(context, pending) else { return Ok(Vec::new()) };
        let (level, reached) = (profile.least_level(), level_of(facts));
        if level <= reached {
            return Ok(Vec::new());
        }
        let here = match reached {
            Level::None => "nothing can be contained here".to_owned(),
            reached => format!("`{reached}` is what is reached here"),
        };
        let message = format!("the call is to run at the level `{level}` of containment, and {here}");
        let finding = Finding::new(META.id, verdict, message);
        Ok(vec![finding.instead("`portcullis doctor` says what the level needs")])
    }
}

/// The profile that the call would run under.
fn profile(context: &Context<'_>, pending: &Pending<'_>) -> Option<Profile> {
    contained(context, pending)?.ok()
}

fn contained(context: &Context<'_>, pending: &Pending<'_>) -> Option<Result<Profile, String>> {
    context.bundle.contained(context.run.place(), pending.subject.action()?, context.effects())
}
