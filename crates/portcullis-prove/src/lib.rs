//! Proofs about access policies: does a new bundle let anything pass that the old one did not?
//!
//! Recorded runs show what a change would have done; a proof says what it can ever do. Cedar's symbolic compiler turns
//! each question (one action on one type of resource) into a formula, and the solver `cvc5`, a program of its own,
//! finds a request that the new policies permit and the old ones do not, or shows that there is none.
//!
//! What is proved is about the policies: all requests that fit the schema, whatever the effect reader makes of a call.
//! The rest of a bundle (limits, tools, how arguments are read) is compared part by part, since a proof about policies
//! says nothing of it: [`outside`].

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use cedar_policy::{Authorizer, PolicySet, Schema};
use cedar_policy_symcc::solver::LocalSolver;
use cedar_policy_symcc::{CedarSymCompiler, CompiledPolicySet, Env};
pub use portcullis_access::Through;
use portcullis_access::{Access, Permission};
use portcullis_core::bundle::{Bundle, Difference, Direction};
use tokio::process::Command;

/// The solver's program, as Debian's package `cvc5` installs it.
pub const SOLVER: &str = "cvc5";
/// Stack for parser and compiler, which recurse.
const STACK_BYTES: usize = 256 << 20;
/// The solver ends a question by its own clock; this is how much longer we wait for it to say so.
const GRACE: Duration = Duration::from_secs(2);
/// Longest text of a counterexample, in bytes.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// How long to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// For one question.
    pub question: Duration,
    /// For all of them.
    pub total: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { question: Duration::from_secs(10), total: Duration::from_secs(300) }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// The new policies permit nothing that the old ones did not.
    Proved {
        /// Questions that were answered: actions times types of resources.
        questions: usize,
    },
    /// They do.
    Counterexample {
        /// What became of it: it passes, or a person may let it pass where it was denied before.
        through: Through,
        /// A request that passes now and did not before, with what must be known of it.
        request: String,
        /// The new bundle's policies that let it pass.
        policies: Vec<String>,
    },
    /// It could not be found out.
    Unknown {
        /// Why.
        why: String,
    },
    /// There is no solver.
    SolverMissing {
        /// What was tried, and what to do.
        why: String,
    },
}

/// Proves that `new` permits nothing that `old` denied, or finds a request. Both bundles are loaded with their access
/// policies; `solver` is the program, [`SOLVER`] as a rule.
pub fn prove_narrowing(old: &Bundle, new: &Bundle, solver: &Path, times: Times) -> Proof {
    let mut asked = 0;
    // What a person may let pass now and nobody could before is more than was permitted, too.
    for through in [Through::Passes, Through::MayBeGranted] {
        match prove(old, new, through, solver, times) {
            Proof::Proved { questions } => asked += questions,
            other => return other,
        }
    }
    Proof::Proved { questions: asked }
}

fn prove(old: &Bundle, new: &Bundle, through: Through, solver: &Path, times: Times) -> Proof {
    let proved = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("prove".to_owned()).stack_size(STACK_BYTES);
        let work =
            || prepare(old, new, through).map_or_else(|why| why, |question| run(&question, solver, times));
        thread.spawn_scoped(scope, work).map(std::thread::ScopedJoinHandle::join)
    });
    match proved {
        Ok(Ok(proof)) => proof,
        Ok(Err(_)) => unknown("the analysis failed inside"),
        Err(error) => unknown(&format!("no thread for the analysis: {error}")),
    }
}

/// What differs outside the access policies and allows more, or may: no proof about policies covers it.
pub fn outside(old: &Bundle, new: &Bundle) -> Vec<Difference> {
    let differences = old.differences(new).into_iter();
    differences
        .filter(|found| !found.access && matches!(found.direction, Direction::Loosened | Direction::Changed))
        .collect()
}

fn unknown(why: &str) -> Proof {
    Proof::Unknown { why: why.to_owned() }
}

struct Question {
    through: Through,
    schema: Schema,
    old: PolicySet,
    new: PolicySet,
    /// Ids of the new policies in the order of the text.
    ids: Vec<String>,
}

/// Brings both bundles under one schema.
fn prepare(old: &Bundle, new: &Bundle, through: Through) -> Result<Question, Proof> {
    let (old_access, old_permits) = permission(old, through)?;
    let (new_access, new_permits) = permission(new, through)?;
    if old_access.schema_text() != new_access.schema_text() {
        return Err(unknown(
            "the bundles differ in tools or attributes, so their policies speak of different things; make tools and \
             `[access] attributes` the same in both",
        ));
    }
    if old.access.role_aliases != new.access.role_aliases {
        return Err(unknown(
            "the bundles give roles different other names; make `role_aliases` the same in both",
        ));
    }
    if let Some(id) = old_permits.may_fail.first() {
        let why = format!("the old policy `{id}` computes with numbers and may fail, which denies");
        return Err(Proof::Unknown { why });
    }
    let (schema, _) = Schema::from_cedarschema_str(new_access.schema_text())
        .map_err(|error| unknown(&format!("the schema: {error}")))?;
    let parse = |permission: &Permission| -> Result<PolicySet, Proof> {
        permission.policies.parse().map_err(|error| unknown(&format!("the policies: {error}")))
    };
    Ok(Question {
        through,
        schema,
        old: parse(&old_permits)?,
        new: parse(&new_permits)?,
        ids: new_permits.ids,
    })
}

fn permission(bundle: &Bundle, through: Through) -> Result<(Access, Permission), Proof> {
    let access = Access::compile(bundle).map_err(|mistakes| {
        let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
        unknown(&format!("the access policies do not load: {first}"))
    })?;
    let permission = access.permission(bundle, through);
    Ok((access, permission))
}

fn run(question: &Question, solver: &Path, times: Times) -> Proof {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return unknown(&format!("no runtime for the solver: {error}")),
    };
    runtime.block_on(async {
        match tokio::time::timeout(times.total, ask_all(question, solver, times)).await {
            Ok(proof) => proof,
            Err(_) => unknown(&format!("not finished after {} s", times.total.as_secs())),
        }
    })
}

async fn ask_all(question: &Question, solver: &Path, times: Times) -> Proof {
    let mut command = Command::new(solver);
    let limit = format!("--tlimit-per={}", times.question.as_millis());
    command.args(["--lang", "smt", "--incremental", &limit]).stderr(Stdio::null()).kill_on_drop(true);
    let process = match LocalSolver::from_command(&mut command) {
        Ok(process) => process,
        Err(error) => {
            let why = format!(
                "the solver `{}` does not start ({}); install the package cvc5, or name the program",
                solver.display(),
                source_of(&error)
            );
            return Proof::SolverMissing { why };
        }
    };
    let mut compiler = match CedarSymCompiler::new(process) {
        Ok(compiler) => compiler,
        Err(error) => return unknown(&source_of(&error)),
    };
    let mut questions = 0;
    for env in question.schema.request_envs() {
        let what = format!("{} on {}", env.action(), env.resource());
        let compiled = |set| {
            let compiled = CompiledPolicySet::compile(set, &env, &question.schema);
            compiled.map_err(|error| unknown(&format!("{what}: {}", source_of(&error))))
        };
        let (new, old) = match (compiled(&question.new), compiled(&question.old)) {
            (Ok(new), Ok(old)) => (new, old),
            (Err(why), _) | (_, Err(why)) => return why,
        };
        let asked = compiler.check_implies_with_counterexample_opt(&new, &old);
        match tokio::time::timeout(times.question.saturating_add(GRACE), asked).await {
            Ok(Ok(None)) => questions += 1,
            Ok(Ok(Some(found))) => return counterexample(question, &found),
            Ok(Err(error)) => return unknown(&format!("{what}: {}", source_of(&error))),
            Err(_) => return unknown(&format!("{what}: no answer after {} s", times.question.as_secs())),
        }
    }
    Proof::Proved { questions }
}

/// An error with what it came from.
fn source_of(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", source_of(source)),
        None => error.to_string(),
    }
}

fn counterexample(question: &Question, found: &Env) -> Proof {
    let answer = Authorizer::new().is_authorized(&found.request, &question.new, &found.entities);
    let number = |id: String| id.strip_prefix("policy").and_then(|number| number.parse::<usize>().ok());
    let ids =
        answer.diagnostics().reason().filter_map(|id| question.ids.get(number(id.to_string())?).cloned());
    let mut policies: Vec<String> = ids.collect();
    policies.sort();
    let mut request = found.to_string();
    request.truncate(request.floor_char_boundary(REQUEST_BYTES_MAX));
    Proof::Counterexample { through: question.through, request, policies }
}

#[cfg(test)]
mod tests;
