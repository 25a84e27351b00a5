//! Programs of drafts that somebody else wrote: a model, by the pipeline of GuardAgent, or a person. They enter the draft of
//! the same request, and are held to its questions, tests and short runs.

use std::fs;
use std::path::Path;

use portcullis_assist::guardagent::{Crew, Memory, Settings, Target, Toolbox, Workers, guard};
use portcullis_compile::cases::{self, Run as TestRun};
use portcullis_compile::draft::{Draft, Origin};
use portcullis_compile::meaning;
use portcullis_core::id::Digest;
use portcullis_core::principal::Principal;
use portcullis_core::program::{Input, Run, Told};
use portcullis_gateway::versions::sha;
use portcullis_program::pool::Pool;
use serde_json::{Value, json};

use crate::daemon::runtime;
use crate::failure::Failure;
use crate::input;
use crate::model::ModelArgs;

/// Longest program that is read; the engine takes shorter ones and says so.
const PROGRAM_BYTES_MAX: usize = 1 << 20;
/// What the model is told beside the request: the pipeline asks about one action at a time, and a draft is for all.
const ALL_ACTIONS: &str = "The output log shows one action as an example. The program judges every action of the agent, by \
    the requests alone: it compares nothing with the values of this example, and says nothing about tools that the \
    requests are not about.";

/// The draft with a program from a file.
pub(super) fn by_person(draft: &Draft, file: &Path) -> Result<Draft, Failure> {
    let source = input::text(file, PROGRAM_BYTES_MAX)?;
    let name = std::env::var("USER").ok().filter(|name| !name.is_empty());
    let origin = Origin::Person { name: name.unwrap_or_else(|| "somebody".to_owned()) };
    Ok(with(draft, &source, origin))
}

fn with(draft: &Draft, source: &str, origin: Origin) -> Draft {
    Draft::of_program(&draft.name, &draft.request, &draft.spec(), &draft.answers, source, origin)
}

/// The file in which is kept what a model was asked and said.
pub(super) fn kept(model: &ModelArgs) -> Result<&Path, Failure> {
    model.cassette().ok_or_else(|| {
        Failure::usage("what a model was asked and said is part of a draft, and needs a file")
            .help("give `--cassette FILE --record`, or the cassette of an earlier time alone")
    })
}

/// The digest of a cassette that nobody writes to any more.
pub(super) fn digest(cassette: &Path) -> Result<Digest, Failure> {
    let bytes = fs::read(cassette).map_err(|error| input::unreadable(cassette, error))?;
    sha(&bytes).parse().map_err(Failure::unreadable)
}

/// The draft with a program that a model writes for its request.
pub(super) fn by_model(draft: &Draft, model: &ModelArgs) -> Result<Draft, Failure> {
    let cassette = kept(model)?;
    let Some(opened) = model.open()? else { return Err(Failure::usage("no model is named")) };
    let source = {
        let pool = Pool::of_process().map_err(Failure::unreadable)?;
        let toolbox = Toolbox::read(&pool.toolbox().map_err(Failure::unreadable)?);
        let workers = Workers::new(pool);
        let metered = opened.metered();
        let (memory, clock) = (Memory::new(), opened.clock());
        let crew = Crew { model: &metered, workers: &workers, toolbox: &toolbox, memory: &memory, clock };
        let example = example(draft);
        let target = Target {
            requests: &draft.read_as,
            specification: &specification(draft),
            input: ALL_ACTIONS,
            output: &example.shown,
            told: &example.told,
        };
        let settings = Settings { shots: 0, ..Settings::default() };
        let outcome = runtime()?.block_on(guard(&crew, &target, &settings));
        let written = outcome.tries.last().and_then(|one| one.program.clone());
        outcome.answer.map_err(|error| Failure::no(format!("the model wrote no program: {error}")))?;
        written.ok_or_else(|| Failure::no("the model wrote no program"))?
    };
    // It is whole once nobody writes to it.
    drop(opened);
    let cassette = digest(cassette)?;
    Ok(with(draft, &source, Origin::Model { model: model.name().to_owned(), cassette }))
}

/// What the agent is, as far as anybody knows: its tools.
fn specification(draft: &Draft) -> String {
    let tools = json!(draft.tools);
    format!("An agent that calls these tools:\n{tools}")
}

/// An action: for the model, and as programs are told of it.
struct Example {
    shown: String,
    told: String,
}

/// The first call of the first test, which the first rule stops.
fn example(draft: &Draft) -> Example {
    let runs = cases::runs(&draft.rules, &draft.spec());
    let first: Option<&TestRun> = runs.first();
    let call = first.and_then(|run| run.calls.first());
    let (tool, at) = (call.map(|call| call.tool.as_str()), call.map_or(0, |call| call.at));
    let args = Value::Object(call.map(|call| call.args.clone()).unwrap_or_default());
    let mut principal = Principal::named("somebody");
    principal.roles = first.map(|run| run.caller.roles.clone()).unwrap_or_default();
    let input = Input {
        action: Told {
            tool,
            server: None,
            type_: None,
            side_effecting: false,
            risk: None,
            args: &args,
            planned: None,
            effects: Vec::new(),
            at: meaning::written(at),
        },
        run: Run {
            steps: 0,
            side_effects: 0,
            policy: "draft",
            surface: "trace",
            labels: vec!["user".to_owned()],
            request: None,
        },
        principal: (&principal).into(),
    };
    // Nothing in it can fail to be written: strings, numbers and JSON.
    let told = serde_json::to_string(&input).unwrap_or_default();
    Example { shown: json!({"tool": tool, "args": args, "roles": principal.roles}).to_string(), told }
}
