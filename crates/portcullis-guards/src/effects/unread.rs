//! Decides on arguments whose effects cannot be read.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::bundle::{CONTAIN_SOURCE, level_of, level_request};
use portcullis_core::effect::{Effect, ResourceKind};
use portcullis_core::fact::{FactRequest, Facts};
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::principal::Attribute;
use portcullis_core::profile::{Network, Profile};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// Findings of one action; the rest adds nothing.
const FINDINGS_MAX: usize = 8;

/// ## What it does
/// Gives the verdict that the bundle chose to a call whose arguments hold SQL, a command line or code that cannot be
/// read, or has a command line run contained instead.
///
/// ## Why it matters
/// Policies about effects say nothing about effects that could not be read. Text that a parser does not understand is
/// where a bypass would hide.
///
/// ## Fires on
/// Text that does not parse, that is nested deeper or longer than the parsers go, and constructs whose effect is
/// decided only when they run: a program name from a variable, `eval` of an output, an unknown wrapper.
///
/// ## Does not cover
/// What a contained command does within its profile: that is what it may do.
///
/// Programs that are not known by name: they are read as *execute command NAME* with `known` false, on which access
/// policies decide.
///
/// ## Configuration
/// `[effects]` in `portcullis.toml`: `unknown = "review"` (the default), `"deny"`, `"allow"` or `"contain"` for SQL and
/// command lines; `unknown_code = "deny"` (the default), `"review"`, `"allow"` or `"contain"` for agent code.
///
/// `"contain"` raises nothing where the call will run contained: `[contain]` gives it a profile, the surface runs command
/// lines under one, and the machine reaches the level. It holds the call for a person where that is not so, as for tools
/// that run no command line; and where the call would also reach a host, since what cannot be read could send what it
/// reads.
///
/// ## False positives
/// SQL of a dialect that the bundle does not name (`dialect`). Arguments that were taken for SQL, a command or code
/// because of their name but are none: declare the tool's `effects`.
///
/// ## References
/// OWASP ASI02, ASI05, LLM06.
#[derive(Debug)]
pub struct Unread;

static META: GuardMeta = GuardMeta {
    id: "effects/unread",
    hooks: &[Hook::Action],
    owasp: &["ASI02", "ASI05", "LLM06"],
    unfaithful_to: None,
};

impl Guard<RunMemory> for Unread {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn sources(&self) -> &'static [&'static str] {
        &[CONTAIN_SOURCE]
    }

    fn wants(&self, context: &Context<'_>, pending: &Pending<'_>) -> Vec<FactRequest> {
        let settings = &context.bundle.effects;
        let contains = settings.contain_unknown || settings.contain_unknown_code;
        match contains && unread(context).next().is_some() && containable(context, pending).is_some() {
            true => vec![level_request()],
            false => Vec::new(),
        }
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let settings = &context.bundle.effects;
        let is_contained =
            || containable(context, pending).is_some_and(|profile| profile.least_level() <= level_of(facts));
        let mut findings: Vec<Finding> = Vec::new();
        for effect in unread(context) {
            let (verdict, contain) = match is_code(effect) {
                true => (settings.unknown_code, settings.contain_unknown_code),
                false => (settings.unknown, settings.contain_unknown),
            };
            if verdict > Verdict::Allow && !(contain && is_contained()) {
                findings.push(finding(effect, verdict));
            }
        }
        // The strictest first: what is left out must not decide.
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
        findings.truncate(FINDINGS_MAX);
        Ok(findings)
    }
}

fn unread<'a>(context: &Context<'a>) -> impl Iterator<Item = &'a Effect> {
    context.effects().iter().filter(|effect| effect.resource.kind == ResourceKind::Unknown)
}

/// The profile of a command line that reaches no host.
fn containable(context: &Context<'_>, pending: &Pending<'_>) -> Option<Profile> {
    let place = context.run.place();
    let profile = context.bundle.contained(place, pending.subject.action()?, context.effects())?.ok()?;
    (!matches!(profile.network, Network::Hosts(_))).then_some(profile)
}

fn is_code(effect: &Effect) -> bool {
    effect.resource.name == "code" || effect.resource.name.starts_with("code ")
}

fn finding(effect: &Effect, verdict: Verdict) -> Finding {
    let what = &effect.resource.name;
    let message = match effect.resource.attributes.get("why") {
        Some(Attribute::Text(why)) => format!("the effects of the call cannot be determined ({what}): {why}"),
        _ => format!("the effects of the call cannot be determined ({what})"),
    };
    let mut finding = Finding::new(META.id, verdict, message)
        .instead("write the call in a simpler form, without constructs that are only resolved at run time");
    finding.spans.extend(effect.span.clone());
    finding
}
