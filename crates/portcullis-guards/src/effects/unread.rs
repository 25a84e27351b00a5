//! Decides on arguments whose effects cannot be read.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::effect::{Effect, ResourceKind};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::principal::Attribute;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// Findings of one action; the rest adds nothing.
const FINDINGS_MAX: usize = 8;

/// ## What it does
/// Gives the verdict that the bundle chose to a call whose arguments hold SQL, a command line or code that cannot be
/// read.
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
/// Programs that are not known by name: they are read as *execute command NAME* with `known` false, on which access
/// policies decide.
///
/// ## Configuration
/// `[effects]` in `portcullis.toml`: `unknown = "review"` (the default), `"deny"` or `"allow"` for SQL and command
/// lines; `unknown_code = "deny"` (the default), `"review"` or `"allow"` for agent code.
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

    fn decide(
        &self,
        context: &Context<'_>,
        _pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let unread = context.effects().iter().filter(|effect| effect.resource.kind == ResourceKind::Unknown);
        let settings = &context.bundle.effects;
        let mut findings: Vec<Finding> = Vec::new();
        for effect in unread {
            let verdict = if is_code(effect) { settings.unknown_code } else { settings.unknown };
            if verdict > Verdict::Allow {
                findings.push(finding(effect, verdict));
            }
        }
        // The strictest first: what is left out must not decide.
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
        findings.truncate(FINDINGS_MAX);
        Ok(findings)
    }
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
