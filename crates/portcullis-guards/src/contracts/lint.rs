//! Contracts that are probably not meant as they stand.

use portcullis_contracts::Need;
use portcullis_core::bundle::{Bundle, ContractJudge, Diagnostic, Lint};

use super::{GateContract, GateContracts};

/// Surfaces that this project has. Clients of the HTTP API may name others.
const SURFACES: [&str; 5] = ["hook", "http", "mcp", "simulator", "trace"];

/// The lints of a bundle's contracts, in their order.
pub fn lint(bundle: &Bundle) -> Vec<Lint> {
    let Some(contracts) = GateContracts::of(bundle) else { return Vec::new() };
    let placed = contracts.all.iter().zip(bundle.contracts_with_places());
    placed
        .flat_map(|(one, (_, place))| {
            of_decider(bundle, one, place).into_iter().chain(of_surfaces(one, place))
        })
        .collect()
}

/// Who decides: nobody can, or code does and a judge is named in vain.
fn of_decider(bundle: &Bundle, one: &GateContract, place: &Diagnostic) -> Option<Lint> {
    let (name, family) = (&one.settings.name, one.contract.family());
    let missing = family.and_then(|family| family.needs().iter().find(|need| !is_known(bundle, one, **need)));
    let is_judged = one.settings.judge != ContractJudge::Nobody;
    match (family, missing) {
        (None, _) if !is_judged => Some(found(
            "unread-contract",
            place,
            format!("`{name}` cannot be checked by code and has no judge: it fails on every text"),
            "say it in other words (try `portcullis contract explain`), or add `judge = true` or `program`",
        )),
        (Some(_), Some(need)) if !is_judged => Some(found(
            "unread-contract",
            place,
            format!(
                "`{name}` needs {need}, which are not known here, and has no judge: it fails on every text"
            ),
            match need {
                Need::Documents => "add `[verification]`, which says what documents are, or add a judge",
                _ => "say it in other words, or add `judge = true` or `program`",
            },
        )),
        (Some(_), None) if is_judged => Some(found(
            "idle-judge",
            place,
            format!("`{name}` is checked by code: its judge is not asked"),
            "remove `judge` or `program`",
        )),
        _ => None,
    }
}

/// Whether the gate has what a checker needs beside the text.
fn is_known(bundle: &Bundle, one: &GateContract, need: Need) -> bool {
    let about_replies = one.settings.tools.is_empty();
    match need {
        Need::Prompt => about_replies,
        Need::Documents => about_replies && bundle.verification.is_some(),
        Need::HighRisk => true,
        Need::Names => false,
    }
}

fn of_surfaces(one: &GateContract, place: &Diagnostic) -> Vec<Lint> {
    let unknown = one.settings.surfaces.iter().filter(|surface| !SURFACES.contains(&surface.as_str()));
    let lint = |surface: &String| {
        let message =
            format!("`{}` is about the surface `{surface}`, which only a client can name", one.settings.name);
        found("unknown-surface", place, message, "the gate's own are hook, http, mcp, simulator and trace")
    };
    unknown.map(lint).collect()
}

fn found(name: &'static str, place: &Diagnostic, message: String, help: &str) -> Lint {
    let diagnostic = Diagnostic { message, ..place.clone() }.help(help);
    Lint { name, diagnostic }
}
