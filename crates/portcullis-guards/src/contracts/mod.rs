//! The contracts of a bundle, ready to be held against texts.
//!
//! [`ContractCompiler`] reads the statements when the bundle loads; statements that cannot hold together keep it from
//! loading. [`HeldText`] holds a text against those that are about it: what code can check is checked there, and what a
//! judge or a model says about the rest is the answer of a source of facts ([`SOURCE`], [`answer`]).

pub mod answer;
mod held;
mod lint;

use portcullis_contracts::{Checker, Conflict, Contract, Family, Need, Priority, conflicts, explain};
use portcullis_core::action::Subject;
use portcullis_core::bundle::{Bundle, Compiled, Compiler, ContractJudge, ContractSettings, Diagnostic};
use portcullis_core::label::Label;

pub use self::held::{Failed, HeldText, Outcome, Standing};
pub use self::lint::lint;

/// The source of facts that asks judges and models.
pub const SOURCE: &str = "contracts";

/// A contract of a bundle with the checker of its statement.
#[derive(Debug)]
pub struct GateContract {
    /// What the bundle says of it.
    pub settings: ContractSettings,
    /// The statement as it was read; its id is the contract's name.
    pub contract: Contract,
}

/// All contracts of a bundle.
#[derive(Debug)]
pub struct GateContracts {
    all: Vec<GateContract>,
    /// Whether a judge or a model is named anywhere.
    asks: bool,
}

impl GateContracts {
    /// Those of a bundle, or `None` if it has none.
    pub fn of(bundle: &Bundle) -> Option<&Self> {
        // Most bundles have none, and are not searched.
        (!bundle.contracts.is_empty()).then(|| bundle.compiled::<Self>())?
    }

    /// Those that are about what is said or seen in a run that is connected by this surface.
    pub fn about(&self, bundle: &Bundle, surface: &str, subject: &Subject<'_>) -> Vec<&GateContract> {
        self.all.iter().filter(|contract| contract.is_about(bundle, surface, subject)).collect()
    }

    /// Those of these names, or `None` if one of them is unknown.
    pub fn named(&self, names: &[String]) -> Option<Vec<&GateContract>> {
        let named = |name: &String| self.all.iter().find(|contract| contract.settings.name == *name);
        names.iter().map(named).collect()
    }

    /// Whether a judge or a model may have to be asked.
    pub fn asks(&self) -> bool {
        self.asks
    }
}

impl GateContract {
    /// Whether its checker looks at this beside the text.
    pub fn needs(&self, need: Need) -> bool {
        self.contract.family().is_some_and(|family| match family {
            Family::RepeatRequest { request: None } => need == Need::Prompt,
            family => family.needs().contains(&need),
        })
    }

    fn is_about(&self, bundle: &Bundle, surface: &str, subject: &Subject<'_>) -> bool {
        let ContractSettings { surfaces, tools, .. } = &self.settings;
        if !surfaces.is_empty() && !surfaces.iter().any(|named| named == surface) {
            return false;
        }
        match subject {
            Subject::Output { .. } => tools.is_empty(),
            Subject::Observation { label: Label::Tool(tool), .. } => {
                let known = bundle.registry.get(tool);
                let is = |name: &String| {
                    name == tool || known.is_some_and(|known| *name == known.name || *name == known.id)
                };
                tools.iter().any(is)
            }
            _ => false,
        }
    }

    /// Whether there is a text that both are about.
    fn meets(&self, other: &Self) -> bool {
        let shared = |a: &[String], b: &[String]| a.iter().any(|name| b.contains(name));
        let (a, b) = (&self.settings, &other.settings);
        let surfaces = a.surfaces.is_empty() || b.surfaces.is_empty() || shared(&a.surfaces, &b.surfaces);
        surfaces && (a.tools.is_empty() && b.tools.is_empty() || shared(&a.tools, &b.tools))
    }
}

/// Reads the contracts of a bundle when it is loaded.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContractCompiler;

impl Compiler for ContractCompiler {
    fn compile(&self, bundle: &Bundle) -> Result<Option<Compiled>, Vec<Diagnostic>> {
        if bundle.contracts.is_empty() {
            return Ok(None);
        }
        let all: Vec<GateContract> = bundle.contracts.iter().map(compiled).collect();
        let statements: Vec<Contract> = all.iter().map(|one| one.contract.clone()).collect();
        let mistakes: Vec<Diagnostic> = conflicts(&statements, None)
            .into_iter()
            .filter_map(|conflict| diagnostic(bundle, &all, &conflict))
            .collect();
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let asks = |one: &GateContract| {
            one.settings.judge != ContractJudge::Nobody || one.settings.strategy.is_some()
        };
        let asks = all.iter().any(asks);
        Ok(Some(Compiled::new(GateContracts { all, asks })))
    }
}

fn compiled(settings: &ContractSettings) -> GateContract {
    let checker: Checker = explain(&settings.statement).checker;
    let (id, statement) = (settings.name.clone(), settings.statement.clone());
    let contract = Contract { id, statement, checker, priority: Priority::MEDIUM };
    GateContract { settings: settings.clone(), contract }
}

/// A conflict as a mistake at the last of its contracts, or `None` if no text has to keep all of them.
fn diagnostic(bundle: &Bundle, all: &[GateContract], conflict: &Conflict) -> Option<Diagnostic> {
    let placed = all.iter().zip(bundle.contracts_with_places()).map(|(one, (_, place))| (one, place));
    let members: Vec<(&GateContract, &Diagnostic)> =
        placed.filter(|(one, _)| conflict.contracts.contains(&one.contract.id)).collect();
    let meet = members.iter().all(|(one, _)| members.iter().all(|(other, _)| one.meets(other)));
    let ((last, place), others) = members.split_last().filter(|_| meet)?;
    let quoted = |one: &GateContract| format!("`{}` (\"{}\")", one.settings.name, one.settings.statement);
    let others: Vec<String> = others
        .iter()
        .map(|(one, place)| format!("{} at {}:{}:{}", quoted(one), place.file, place.line, place.column))
        .collect();
    let mut diagnostic = (*place).clone();
    diagnostic.message = match others.is_empty() {
        true => format!("{} can never hold: {}", quoted(last), conflict.reason),
        false => {
            format!(
                "{} cannot hold together with {}: {}",
                quoted(last),
                others.join(" and "),
                conflict.reason
            )
        }
    };
    Some(diagnostic.help("change or remove one of them, or give them other `surfaces` or `tools`"))
}
