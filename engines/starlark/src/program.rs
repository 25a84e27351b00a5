//! One program: read once, run for each action.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use starlark::environment::{FrozenModule, Globals, Module};
use starlark::eval::{Evaluator, FileLoader};
use starlark::syntax::{AstModule, Dialect};
use starlark::values::function::FUNCTION_TYPE;
use starlark::values::{OwnedFrozenValue, Value};

use crate::convert::{cut, objections, structure};
use crate::frames::{Mistake, Objection};

/// Calls and turns of loops of one run of a program. The gate's deadline holds whatever they do.
const STEPS_MAX: u64 = 3_000_000;
/// Bytes of values of one run of a program.
const HEAP_BYTES_MAX: usize = 32 << 20;
/// Calls within calls.
const CALLS_MAX: usize = 64;
/// The function that answers.
const CHECK: &str = "check";
/// What it is given.
const TOLD: [&str; PARAMETERS] = ["action", "run", "principal"];
const PARAMETERS: usize = 3;

/// A program that was read.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    check: OwnedFrozenValue,
}

/// What all programs are told of one action. They share the values, which none of them can change.
#[derive(Debug)]
pub(crate) struct Told([OwnedFrozenValue; PARAMETERS]);

impl Told {
    /// Of what the gate sent. Linear in it.
    pub(crate) fn of(sent: &Json) -> Result<Self, String> {
        let none = Map::new();
        let told = Module::with_temp_heap(|module| {
            let heap = module.frozen_heap();
            for name in TOLD {
                let fields = sent.get(name).and_then(Json::as_object).unwrap_or(&none);
                module.set(name, structure(fields, heap).to_value());
            }
            module.freeze().map_err(|error| format!("{error:?}"))
        })?;
        let [action, run, principal] = TOLD.map(|name| told.get(name).map_err(|error| error.to_string()));
        Ok(Self([action?, run?, principal?]))
    }
}

/// Modules that were read, by the name under which they are loaded.
pub(crate) type Modules = BTreeMap<String, FrozenModule>;

/// The folder of modules in a bundle.
const MODULES: &str = "modules/";

/// Finds what `load` names among the modules of the set. It reads no file.
#[derive(Debug)]
struct Loads<'a>(&'a Modules);

impl FileLoader for Loads<'_> {
    fn load(&self, path: &str) -> starlark::Result<FrozenModule> {
        self.0
            .get(path)
            .cloned()
            .ok_or_else(|| starlark::Error::new_other(NoModule(path.chars().take(MODULE_SHOWN).collect())))
    }
}

/// Characters of the name of a missing module in its message.
const MODULE_SHOWN: usize = 80;

#[derive(Debug)]
struct NoModule(String);

impl std::fmt::Display for NoModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "there is no module `{}` in `modules/`; a module may load those whose names sort before its own",
            self.0
        )
    }
}

impl std::error::Error for NoModule {}

/// Functions are all that a program has besides the language's own and the modules of its bundle.
fn dialect() -> Dialect {
    Dialect {
        enable_load: true,
        enable_keyword_only_arguments: true,
        enable_top_level_stmt: true,
        enable_f_strings: true,
        ..Dialect::Standard
    }
}

impl Program {
    /// Reads a program and runs its top level.
    pub(crate) fn load(
        name: &str,
        file: &str,
        source: String,
        (globals, modules): (&Globals, &Modules),
    ) -> Result<Self, Mistake> {
        let length = source.len();
        let module = evaluated(file, source, (globals, modules), |module| check_signature(module, length))?;
        let missing =
            |error: anyhow::Error| Mistake { start: length, end: length, message: error.to_string() };
        let check = module.get(CHECK).map_err(missing)?;
        Ok(Self { name: name.to_owned(), check })
    }

    /// What it says of an action.
    pub(crate) fn check(&self, Told(told): &Told) -> Result<Vec<Objection>, String> {
        Module::with_temp_heap(|module| {
            let heap = module.heap();
            let check = heap.access_owned_frozen_value(&self.check);
            let given = told.each_ref().map(|value| heap.access_owned_frozen_value(value));
            let mut evaluator = Evaluator::new(&module);
            limit(&mut evaluator).map_err(|error| why(&error))?;
            let answer = evaluator.eval_function(check, &given, &[]).map_err(|error| why(&error))?;
            objections(&self.name, answer)
        })
    }
}

/// Reads a module, and gives the name under which it is loaded.
pub(crate) fn module(
    file: &str,
    source: String,
    given: (&Globals, &Modules),
) -> Result<(String, FrozenModule), Mistake> {
    let name = file.strip_prefix(MODULES).unwrap_or(file).to_owned();
    Ok((name, evaluated(file, source, given, |_| Ok(()))?))
}

/// Runs the top level of a source.
fn evaluated(
    file: &str,
    source: String,
    (globals, modules): (&Globals, &Modules),
    check: impl FnOnce(&Module<'_>) -> Result<(), Mistake>,
) -> Result<FrozenModule, Mistake> {
    let length = source.len();
    let mistake = |error: starlark::Error| mistake(&error, length);
    let ast = AstModule::parse(file, source, &dialect()).map_err(mistake)?;
    let loads = Loads(modules);
    Module::with_temp_heap(|module| {
        {
            let mut evaluator = Evaluator::new(&module);
            evaluator.set_loader(&loads);
            limit(&mut evaluator).map_err(mistake)?;
            evaluator.eval_module(ast, globals).map_err(mistake)?;
        }
        check(&module)?;
        module.freeze().map_err(|error| Mistake { start: 0, end: 0, message: format!("{error:?}") })
    })
}

fn limit(evaluator: &mut Evaluator<'_, '_, '_>) -> starlark::Result<()> {
    evaluator.set_max_tick_count(STEPS_MAX).map_err(starlark::Error::new_other)?;
    evaluator.set_max_heap_size(HEAP_BYTES_MAX).map_err(starlark::Error::new_other)?;
    evaluator.set_max_callstack_size(CALLS_MAX).map_err(starlark::Error::new_other)
}

/// There has to be `def check(action, run, principal)`.
fn check_signature(module: &Module<'_>, length: usize) -> Result<(), Mistake> {
    let missing = |message: &str| Mistake { start: length, end: length, message: message.to_owned() };
    let Some(check) = module.get(CHECK) else {
        return Err(missing("there is no `check`; a program has `def check(action, run, principal):`"));
    };
    if check.get_type() != FUNCTION_TYPE {
        return Err(missing("`check` is no function; write `def check(action, run, principal):`"));
    }
    match parameters(check) {
        Some(PARAMETERS) | None => Ok(()),
        Some(_) => Err(missing("`check` takes other things than `(action, run, principal)`")),
    }
}

/// How many parameters a function has, where it says so.
fn parameters(function: Value<'_>) -> Option<usize> {
    use starlark::docs::DocItem;
    use starlark::docs::DocMember;
    match function.documentation() {
        DocItem::Member(DocMember::Function(doc)) => {
            Some(doc.params.pos_only.len() + doc.params.pos_or_named.len())
        }
        _ => None,
    }
}

/// An error while a program is read, with its bytes.
fn mistake(error: &starlark::Error, length: usize) -> Mistake {
    let span = error.span().map(|span| (span.span.begin().get(), span.span.end().get()));
    let (start, end) = span.map_or((0, 0), |(start, end)| (start as usize, end as usize));
    Mistake { start: start.min(length), end: end.min(length), message: plain(error) }
}

/// An error while a program runs, with its line.
fn why(error: &starlark::Error) -> String {
    match error.span() {
        Some(span) => {
            let at = span.resolve_span().begin;
            format!("{}:{}: {}", at.line + 1, at.column + 1, plain(error))
        }
        None => plain(error),
    }
}

/// The message on one line, in the form of the gate's own.
fn plain(error: &starlark::Error) -> String {
    let text = error.without_diagnostic().to_string();
    let text = text.replace("Variable `", "there is nothing called `").replace("` not found", "`");
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = cut(line.trim()).trim_end_matches('.');
    let mut chars = line.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => "it failed".to_owned(),
    }
}
