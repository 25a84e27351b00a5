//! Compares what something contained did with what was predicted of it.

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::contrast::{More, MoreKind};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::limits::FINDING_RESOURCES_MAX;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// Names that a message shows; the finding has the others.
const SHOWN_MAX: usize = 3;
/// Characters of a name in a message.
const NAME_CHARS_MAX: usize = 160;

/// ## What it does
/// Compares what a contained call, or a contained server, was seen to do with the effects that were read of it before it
/// ran, and reports what is more than that, where it matters.
///
/// ## Why it matters
/// A script, a build or an installed package can do something else than the command line says. The profile keeps it from
/// what is out of bounds; this says that it tried, and what it did within them that nobody expected.
///
/// ## Fires on
/// The rule names the kind. Files that were made, changed or deleted and that no effect named: outside of the workspace, of
/// folders for temporary files and of the caches of package managers (`contain/more/outside`); in the workspace, files
/// that something obeys or runs later, such as git's hooks and the settings of agents (`contain/more/control`); secrets
/// and the gate's own files (`contain/more/secret`). Hosts that no effect named: those that were reached, where the text
/// of the call says all that it does, and those that were refused (`contain/more/host`). Refused attempts at secrets, at
/// files that something obeys, and at metadata services (`contain/more/attempt`). Protected files that were put back
/// (`contain/more/protected`). Limits that were reached (`contain/more/limit`).
///
/// It is judged when it is reported. That cannot be undone, so all that is kept back is the result of the call, with
/// `more = "review"` or `"deny"`. It counts against the tool: the first report raises the tool risk of its next calls
/// ([`escalation/table`](escalation-table.md)) to 0.35, and a second one, or one that was judged stricter than `warn`, to
/// 0.7, until the user speaks or a person resumes the run.
///
/// ## Does not cover
/// What was not seen: which level sees what is in [contained commands](../contain.md). Files that are read. Builds in
/// `target`, `node_modules` and similar folders, whatever is written there. Hosts that the profile names, for a call that
/// runs programs of its own.
///
/// ## Configuration
/// `more` in `[contain]`: `"warn"` (the default), `"review"` or `"deny"`. Which paths are secret: `secrets` in `[effects]`.
///
/// ## False positives
/// Tools that keep state in the home folder outside of caches, where the profile lets them: name the folder in the
/// command, or give the tool another one with an environment variable. Package managers that set git's hooks up
/// (`husky`): protected files are put back, and this says so.
///
/// ## References
/// OWASP ASI02, ASI05, ASI10, LLM03.
#[derive(Debug)]
pub struct MoreThanPredicted;

static META: GuardMeta = GuardMeta {
    id: "contain/more",
    hooks: &[Hook::Observation],
    owasp: &["ASI02", "ASI05", "ASI10", "LLM03"],
    unfaithful_to: Some(Unfaithful::Task),
};

impl Guard<RunMemory> for MoreThanPredicted {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        match pending.subject {
            Subject::Contained { more, .. } => Ok(findings(more, context.bundle.contain.more.verdict())),
            Subject::Observation { action: Some(action), .. } => {
                let containment = context.run.contained().action(action);
                let judged = containment.filter(|containment| containment.judged > Verdict::Warn);
                Ok(judged.map(|judged| result(judged.judged, judged.reported)).into_iter().collect())
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// What is more than was predicted, a finding for each kind.
fn findings(more: &[More], verdict: Verdict) -> Vec<Finding> {
    let kinds = MoreKind::ALL.into_iter();
    let of = |kind: MoreKind| more.iter().filter(move |more| more.kind == kind);
    kinds
        .filter(|kind| of(*kind).next().is_some())
        .map(|kind| {
            let count = of(kind).count();
            let shown: Vec<String> = of(kind).take(SHOWN_MAX).map(shown).collect();
            let rest = match count.saturating_sub(SHOWN_MAX) {
                0 => String::new(),
                rest => format!(" and {rest} more"),
            };
            let message =
                format!("it did what was not predicted ({}): {}{rest}", means(kind), shown.join(", "));
            let resources = of(kind).filter_map(resource).take(FINDING_RESOURCES_MAX);
            Finding::new(format!("{}/{}", META.id, kind.as_str()), verdict, message).against(resources)
        })
        .collect()
}

fn shown(more: &More) -> String {
    let name: String = more.what.chars().take(NAME_CHARS_MAX).collect();
    let name = if name.len() < more.what.len() { format!("{name}…") } else { name };
    match more.kind {
        MoreKind::Limit => format!("{} {name}", more.how),
        _ => format!("{} `{name}`", more.how),
    }
}

/// What is touched, as findings name it.
fn resource(more: &More) -> Option<String> {
    match more.kind {
        MoreKind::Limit => None,
        MoreKind::Host => Some(format!("host {}", more.what)),
        _ if more.what.starts_with('/') => Some(format!("path {}", more.what)),
        _ => Some(format!("host {}", more.what)),
    }
}

fn means(kind: MoreKind) -> &'static str {
    match kind {
        MoreKind::Outside => "files outside of the workspace",
        MoreKind::Control => "files that are obeyed or run later",
        MoreKind::Secret => "secrets",
        MoreKind::Host => "hosts",
        MoreKind::Attempt => "attempts that were refused",
        MoreKind::Protected => "protected files",
        MoreKind::Limit => "limits of its profile",
    }
}

/// The result of a call whose report was judged.
fn result(verdict: Verdict, reported: Option<u64>) -> Finding {
    let message = match reported {
        Some(event) => format!("the call did what was not predicted: see event {event}"),
        None => "the call did what was not predicted".to_owned(),
    };
    let mut finding = Finding::new(META.id, verdict, message);
    finding.evidence.extend(reported);
    finding.instead("ask the user, and say in the command what it is to touch")
}
