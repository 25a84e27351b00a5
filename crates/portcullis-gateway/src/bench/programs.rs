//! What guard programs add to a decision: one of them, and a hundred on one action.
//!
//! The program holds the columns that a query reads against what the principal's role may read: a table of [`COLUMNS`]
//! columns. A decision is that of a run in memory, with digests, events and state; with programs, it has one round trip to
//! a worker more, whatever their number. Bundles with none, with one and with a hundred take turns, so that a change in the
//! machine's speed meets all of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_core::bundle::Bundle;
use portcullis_core::event::OutcomeStatus;
use portcullis_core::pipeline::{Decision, reserved};
use portcullis_core::principal::Principal;
use portcullis_core::verdict::Verdict;
use portcullis_session::dry::DryRun;
use portcullis_session::engine::Proposal;
use portcullis_session::policy::Pipeline;
use serde::Serialize;
use serde_json::json;

use super::BenchError;
use super::distribution::{Distribution, Recorder};

/// Tables, and columns of each, that the role may read.
const TABLES: usize = 30;
const COLUMNS_OF_TABLE: usize = 32;
/// Columns of the role.
pub const COLUMNS: usize = TABLES * COLUMNS_OF_TABLE;
/// Programs of the third bundle.
pub const PROGRAMS: usize = 100;
/// Calls that are timed in each run of a bundle, before it is another's turn.
const CALLS_OF_TURN: usize = 50;
/// Calls before them, so that what the bundle needs is in the processor's caches.
const WARM_UP: usize = 5;
const POLICY: &str = "desk";
const ROLE: &str = "analyst";

/// What [`programs`] found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramsReport {
    /// Columns of the role's table.
    pub columns: usize,
    /// Decisions without programs.
    pub without: Distribution,
    /// Decisions with one program.
    pub with_one: Distribution,
    /// Programs of the third bundle.
    pub many: usize,
    /// Decisions with so many.
    pub with_many: Distribution,
    /// What one program adds, its round trip included: the difference of the medians.
    pub one_adds_ns: u64,
    /// What so many add.
    pub many_add_ns: u64,
    /// What each of them takes inside the worker, its arguments converted: what the others add to the first, over their
    /// number.
    pub each_ns: u64,
}

/// Measures for about `time`, and at least once.
///
/// # Errors
/// [`BenchError`]; [`BenchError::NoPrograms`] where the engine of guard programs is missing.
pub fn programs(time: Duration) -> Result<ProgramsReport, BenchError> {
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let mut recorders = [(0, Recorder::new()?), (1, Recorder::new()?), (PROGRAMS, Recorder::new()?)];
    let bundles = [0, 1, PROGRAMS].map(files);
    let begin = Instant::now();
    let mut loaded = Vec::new();
    for files in &bundles {
        let bundle = portcullis_session::policy::load(files).map_err(|mistakes| {
            BenchError::Bundle(mistakes.first().map_or_else(String::new, ToString::to_string))
        })?;
        loaded.push(Arc::new(bundle));
    }
    loop {
        for (bundle, (_, into)) in loaded.iter().zip(&mut recorders) {
            turn(bundle, &pipeline, into)?;
        }
        if begin.elapsed() >= time {
            break;
        }
    }
    let [without, with_one, with_many] = recorders.map(|(_, recorder)| recorder.finish());
    let one_adds_ns = with_one.p50_ns.saturating_sub(without.p50_ns);
    let many_add_ns = with_many.p50_ns.saturating_sub(without.p50_ns);
    let each_ns = many_add_ns.saturating_sub(one_adds_ns) / (PROGRAMS as u64 - 1);
    let (columns, many) = (COLUMNS, PROGRAMS);
    Ok(ProgramsReport { columns, without, with_one, many, with_many, one_adds_ns, many_add_ns, each_ns })
}

/// One run of a bundle.
fn turn(bundle: &Arc<Bundle>, pipeline: &Arc<Pipeline>, into: &mut Recorder) -> Result<(), BenchError> {
    let mut principal = Principal::named("ann");
    principal.roles = vec![ROLE.to_owned()];
    let run = DryRun::open_as(Arc::clone(bundle), Arc::clone(pipeline), POLICY, principal, None);
    let mut run = run.map_err(|error| BenchError::Bundle(error.to_string()))?;
    for number in 0..WARM_UP + CALLS_OF_TURN {
        let proposal = query(number);
        let begin = Instant::now();
        let judged = run.propose(proposal);
        let took = begin.elapsed();
        if judged.decision.verdict != Verdict::Allow {
            return Err(refused(&judged.decision));
        }
        run.outcome(judged.action.id, OutcomeStatus::Ok, None);
        if number >= WARM_UP {
            into.add(took);
        }
    }
    Ok(())
}

fn refused(decision: &Decision) -> BenchError {
    match decision.headline() {
        Some(finding) if finding.rule == reserved::FACT_MISSING => {
            BenchError::NoPrograms(finding.message.clone())
        }
        _ => BenchError::NotAllowed(decision.verdict.to_string()),
    }
}

/// A query of three columns of two tables.
fn query(number: usize) -> Proposal {
    let (table, column) = (number % TABLES, number % (COLUMNS_OF_TABLE - 1));
    let (other, next) = ((table + 1) % TABLES, column + 1);
    let sql = format!(
        "SELECT a.column_{column}, a.column_{next}, b.column_{next} FROM table_{table} a \
         JOIN table_{other} b ON a.column_{column} = b.column_{column} WHERE a.column_{next} > {number}"
    );
    Proposal { tool: Some("query".to_owned()), arguments: json!({"sql": sql}), ..Proposal::default() }
}

fn files(programs: usize) -> BTreeMap<String, Vec<u8>> {
    let main = format!("version = 1\nunknown_tools = \"deny\"\npolicy = \"{POLICY}\"\n");
    let tools = "[[tool]]\nname = \"query\"\ntype = \"RUN_SQL\"\nside_effecting = false\neffects = { sql = \"sql\" }\n";
    let policy = format!(
        "[[policy]]\nname = \"{POLICY}\"\nallowed_types = [\"RUN_SQL\"]\nmax_steps = 1000000\nmax_side_effects = 0\n"
    );
    let mut tables = String::new();
    for table in 0..TABLES {
        // Writing to a string does not fail.
        let _ = writeln!(tables, "[[table]]\nname = \"table_{table}\"\ncolumns = [{}]\n", names());
    }
    let fixed = [
        ("portcullis.toml".to_owned(), main),
        ("tools/desk.toml".to_owned(), tools.to_owned()),
        ("policies/desk.toml".to_owned(), policy),
        ("tables/all.toml".to_owned(), tables),
    ];
    let programs =
        (0..programs).map(|number| (format!("programs/columns-{number:03}.star"), program(number)));
    fixed.into_iter().chain(programs).map(|(path, text)| (path, text.into_bytes())).collect()
}

fn names() -> String {
    let names: Vec<String> = (0..COLUMNS_OF_TABLE).map(|column| format!("\"column_{column}\"")).collect();
    names.join(", ")
}

/// Who may read which column. Each program says it a little differently, so that none is another's.
fn program(number: usize) -> String {
    let mut text =
        format!("\"\"\"Who may read which column: {number}.\"\"\"\n\nROLES = {{\n    \"{ROLE}\": {{\n");
    for table in 0..TABLES {
        let _ = writeln!(text, "        \"table_{table}\": [{}],", names());
    }
    text.push_str("    },\n}\n\n");
    text.push_str(
        "def check(action, run, principal):\n    needed = columns(action)\n    for role in principal.roles:\n        \
         if not check_access(ROLES.get(role, {}), needed):\n            return None\n    \
         return deny(\"not for your role\", check_access({}, needed))\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_the_columns_of_the_table() {
        let text = program(7);
        assert_eq!(text.matches("\"column_").count(), COLUMNS);
        assert_eq!(COLUMNS, 960);
        assert_ne!(text, program(8));
    }
}
