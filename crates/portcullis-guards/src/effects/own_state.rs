//! Keeps the gate's own tokens, keys and store from the agent that it judges.

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::effect::{Effect, Verb};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// Findings of one action; the rest adds nothing.
const FINDINGS_MAX: usize = 8;
/// The rule of what reads everything below a folder that holds the tokens.
const SWEEP: &str = "effects/own-state/sweep";
/// How another process is looked at without its memory and files.
const PROCESSES: &str = "read `status`, `cmdline` or `stat` of a process, or `/proc/self`";

/// ## What it does
/// Ends the run at a call that names the gate's own tokens or keys, or changes its store. Holds a call that goes
/// through everything below a folder that contains the tokens and keys.
///
/// ## Why it matters
/// Whoever reads the approver's token can decide in the person's place. Any file server that the gate wraps runs as the
/// same user and can read it.
///
/// ## Fires on
/// Effects on `agent.token` and `approver.token` in a folder `credentials`, on `approver.token` anywhere, and on the
/// folders `credentials` and `keys` of a folder `portcullis`, whatever is done to them (`halt`). In the state folder of
/// the daemon that records the run, wherever it is: any effect on its `credentials` and `keys`, and every write,
/// deletion and change of permissions (`halt`).
///
/// Recursive searches and copies whose root is that folder or one above it (`review`, rule `effects/own-state/sweep`):
/// `grep -r TEXT ~`, a tool `search_files` on `/home/ann`. A tool whose schema has an argument for exclusions
/// (`excludePatterns`) passes if that argument excludes the state folder. Links to that folder or to one above it, and
/// paths that lead into another process by its number, such as `/proc/4242/mem`, `environ`, `fd/3` or `cwd/x` (`review`,
/// the same rule; `halt` if they are written to).
///
/// ## Does not cover
/// Programs that read the files by themselves, symbolic links that existed before, and an approver's token that is
/// stored elsewhere under another name (`PORTCULLIS_APPROVER_TOKEN_FILE`): add its path to `secrets` of `[effects]`.
/// Sweeps in runs that no daemon recorded: only the daemon knows where its state folder is. Sweeps from a relative
/// folder if the run has no working directory. Exclusions on a command line are not read, so such a call is held even
/// with them.
///
/// ## Configuration
/// None: no bundle grants the gate's own tokens.
///
/// ## False positives
/// Files of other programs that are called `approver.token`, or `credentials/agent.token`. Searches through the whole
/// home folder: name a folder below it, exclude the state folder if the tool can, or move the state folder (`--home`).
///
/// ## References
/// OWASP ASI03, ASI10.
#[derive(Debug)]
pub struct OwnState;

static META: GuardMeta = GuardMeta {
    id: "effects/own-state",
    hooks: &[Hook::Action],
    owasp: &["ASI03", "ASI10"],
    unfaithful_to: None,
};

impl Guard<RunMemory> for OwnState {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let Subject::Action(action) = pending.subject else { return Ok(Vec::new()) };
        let mut findings: Vec<Finding> = Vec::new();
        for effect in context.effects().iter() {
            let mut finding = if names_a_secret(effect) {
                let message = format!("the call touches the gate's own tokens or keys ({effect})");
                Finding::new(META.id, Verdict::Halt, message)
            } else if changes_the_state(effect) {
                Finding::new(
                    META.id,
                    Verdict::Halt,
                    format!("the call changes the gate's own state ({effect})"),
                )
            } else if effect.is("sweeps_gate") {
                let below = "the call goes through a folder that contains the gate's own tokens";
                let (message, instead) = match effect.resource.name.starts_with("/proc") {
                    true => {
                        ("the call reaches into other processes, including the gate", PROCESSES.to_owned())
                    }
                    false => (below, narrower(context, action.tool())),
                };
                Finding::new(SWEEP, Verdict::Review, format!("{message} ({effect})")).instead(instead)
            } else {
                continue;
            };
            finding.spans.extend(effect.span.clone());
            findings.push(finding);
        }
        // The strictest first: what is left out must not decide.
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
        findings.truncate(FINDINGS_MAX);
        Ok(findings)
    }
}

fn names_a_secret(effect: &Effect) -> bool {
    effect.resource.is("gate") && effect.resource.is("secret")
}

fn changes_the_state(effect: &Effect) -> bool {
    effect.resource.is("gate") && matches!(effect.verb, Verb::Write | Verb::Delete | Verb::Configure)
}

/// How the same search is made without the gate's state.
fn narrower(context: &Context<'_>, tool: Option<&str>) -> String {
    let folder = context.run.place().and_then(|place| place.gate.as_deref()).unwrap_or_default();
    let name = folder.rsplit('/').find(|part| !part.is_empty()).unwrap_or("portcullis");
    match tool.and_then(|tool| context.bundle.registry.get(tool)).and_then(|tool| tool.exclusion_argument()) {
        Some(argument) => format!("leave the folder out: add `**/{name}/**` to the argument `{argument}`"),
        None => format!("name folders that do not hold `{folder}`"),
    }
}
