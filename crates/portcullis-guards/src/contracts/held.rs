//! A text held against the contracts that are about it, repaired as far as code can, and with what judges and models
//! say about it. Pure: the answers of judges are handed in.

use std::collections::BTreeMap;

use portcullis_contracts::limits::MAX_REPLY_BYTES;
use portcullis_contracts::{
    Check, Context, Contract, Edit, Reading, Repair, Span, Verdict, difference, repair_within,
};
use portcullis_core::bundle::{ContractJudge, OnFail};

use super::GateContract;
use super::answer::{Asked, ContractAnswer, ContractQuestion, Rewritten, Said};

/// Bytes that checkers and candidates of a repair may read: a tenth of a second of work.
const REPAIR_BYTES_READ_MAX: usize = 32 << 20;

/// A text with the contracts that are about it, and what code says of each.
#[derive(Debug)]
pub struct HeldText<'a> {
    contracts: Vec<&'a GateContract>,
    text: &'a str,
    context: Context<'a>,
    /// One for each contract, or `None` where a judge has to decide.
    checks: Vec<Option<Check>>,
}

/// How a contract stands on a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It holds.
    Holds,
    /// It does not: why, and where.
    Broken(String, Vec<Span>),
    /// Nobody could tell, and why. This is not compliance.
    Undecided(String),
}

/// A contract that does not hold on a text.
#[derive(Debug)]
pub struct Failed<'a> {
    /// The contract.
    pub contract: &'a GateContract,
    /// How it stands.
    pub standing: Standing,
    /// Where a repair is wanted: how it was repaired, or why it was not.
    pub repair: Option<Result<String, String>>,
}

/// What becomes of a text.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// What does not hold, in the order of the contracts.
    pub failed: Vec<Failed<'a>>,
    /// What makes the repaired text of it; none where nothing is repaired.
    pub edits: Vec<Edit>,
}

impl<'a> HeldText<'a> {
    /// Checks a text by code.
    pub fn of(contracts: Vec<&'a GateContract>, text: &'a str, context: Context<'a>) -> Self {
        let reading = Reading::new(text);
        let check = |one: &&GateContract| {
            (!one.contract.is_judged(&context)).then(|| reading.check(&one.contract, context))
        };
        let checks = contracts.iter().map(check).collect();
        Self { contracts, text, context, checks }
    }

    fn checked(&self) -> impl Iterator<Item = (&'a GateContract, Option<&Check>)> {
        self.contracts.iter().copied().zip(self.checks.iter().map(Option::as_ref))
    }

    /// Contracts that a judge has to decide, and that name one.
    pub fn judged(&self) -> impl Iterator<Item = &'a GateContract> {
        let open = self.checked().filter(|(_, check)| check.is_none()).map(|(contract, _)| contract);
        open.filter(|contract| contract.settings.judge != ContractJudge::Nobody)
    }

    /// Contracts that code knows to be kept.
    pub fn kept(&self) -> impl Iterator<Item = &'a GateContract> {
        self.checked().filter(|(_, check)| check.is_some_and(Check::holds)).map(|(contract, _)| contract)
    }

    /// Contracts that code knows to be broken, and that want a repair.
    fn to_repair(&self) -> impl Iterator<Item = &'a GateContract> {
        let broken = self.checked().filter(|(_, check)| check.is_some_and(|check| !check.holds()));
        broken.map(|(contract, _)| contract).filter(|contract| contract.settings.on_fail == OnFail::Repair)
    }

    /// What judges and models have to be asked, if anything.
    pub fn question(&self) -> Option<ContractQuestion> {
        let judged: Vec<&GateContract> = self.judged().collect();
        let rewrites = |contract: &GateContract| contract.settings.strategy.is_some();
        let (mut changes, mut rewritten) = (false, judged.iter().any(|contract| rewrites(contract)));
        for contract in self.to_repair() {
            changes = true;
            rewritten |= rewrites(contract);
        }
        if rewritten || (changes && !judged.is_empty()) {
            return Some(ContractQuestion::Repair(Asked::of(&self.contracts)));
        }
        (!judged.is_empty()).then(|| ContractQuestion::Judge(Asked::of(&judged)))
    }

    /// The text as code repairs it, or `None` if there is nothing to repair, or nothing that code can.
    pub fn repaired_by_code(&self) -> Option<Repair> {
        self.to_repair().next()?;
        let wanted = |(contract, check): &(&GateContract, Option<&Check>)| {
            check.is_some_and(|check| check.holds() || contract.settings.on_fail == OnFail::Repair)
        };
        let set: Vec<Contract> =
            self.checked().filter(wanted).map(|(contract, _)| contract.contract.clone()).collect();
        let repair = repair_within(&set, self.text, self.context, REPAIR_BYTES_READ_MAX);
        (repair.text != self.text).then_some(repair)
    }

    /// How each contract stands, with what judges said of those that code leaves open.
    pub fn standings(&self, judged: &Result<BTreeMap<String, Said>, String>) -> Vec<Standing> {
        let standing = |(contract, check): (&GateContract, Option<&Check>)| match check {
            Some(Check { verdict: Verdict::Pass, .. }) => Standing::Holds,
            Some(Check { verdict: Verdict::Fail, explanation, spans }) => {
                Standing::Broken(explanation.clone(), spans.clone())
            }
            Some(Check { verdict: Verdict::NotApplicable, explanation, .. }) => {
                Standing::Undecided(explanation.clone())
            }
            None => self.as_judged(contract, judged),
        };
        self.checked().map(standing).collect()
    }

    fn as_judged(
        &self,
        contract: &GateContract,
        judged: &Result<BTreeMap<String, Said>, String>,
    ) -> Standing {
        if contract.settings.judge == ContractJudge::Nobody {
            let lacks = contract.contract.family().and_then(|family| self.context.lacks(family));
            return Standing::Undecided(match lacks {
                Some(need) => format!("code needs {need}, which are not known, and no judge is named"),
                None => "code cannot check it, and no judge is named".to_owned(),
            });
        }
        match judged.as_ref().map(|judged| judged.get(&contract.settings.name)) {
            Ok(Some(Said { holds: Some(true), .. })) => Standing::Holds,
            Ok(Some(Said { holds: Some(false), why })) => {
                Standing::Broken(format!("{why} (the judge)"), Vec::new())
            }
            Ok(Some(Said { holds: None, why })) => Standing::Undecided(why.clone()),
            Ok(None) => Standing::Undecided("the judge left it out".to_owned()),
            Err(why) => Standing::Undecided(format!("the judge gave no answer: {why}")),
        }
    }

    /// What becomes of the text with this answer to its [question](Self::question), or why there is none.
    pub fn outcome(&self, answer: Result<ContractAnswer, String>) -> Outcome<'a> {
        let (judged, rewritten, failed) = match answer {
            Ok(ContractAnswer { judged, rewritten, failed }) => (Ok(judged), rewritten, failed),
            Err(why) => (Err(why.clone()), None, Some(why)),
        };
        let first = self.standings(&judged);
        if first.iter().all(|standing| *standing == Standing::Holds) {
            return Outcome { failed: Vec::new(), edits: Vec::new() };
        }
        let repair = self.repaired_by_code();
        let now = match &repair {
            Some(repair) => self.again(&repair.text).standings(&judged),
            None => first.clone(),
        };
        let wants = |at: usize| {
            self.contracts.get(at).is_some_and(|contract| contract.settings.on_fail == OnFail::Repair)
        };
        let is_left = |(at, standing): (usize, &Standing)| wants(at) && *standing != Standing::Holds;
        let left = now.iter().enumerate().any(is_left);
        let verified = rewritten
            .filter(|_| left)
            .map(|rewritten| self.refused(&rewritten, &now).map_or(Ok(rewritten.text), Err));
        let why_not = match &verified {
            Some(Err(why)) => Some(why.clone()),
            _ => failed,
        };
        let by_model = verified.and_then(Result::ok);
        let is_repaired = |at: usize| by_model.is_some() || now.get(at) == Some(&Standing::Holds);
        let mut edits = Vec::new();
        let mut found = Vec::new();
        for (at, (standing, contract)) in first.into_iter().zip(&self.contracts).enumerate() {
            if standing == Standing::Holds {
                continue;
            }
            let outcome = || match is_repaired(at) {
                true if by_model.is_some() => Ok("rewritten by the model".to_owned()),
                true => Ok(steps(repair.as_ref(), contract)),
                false => Err(self.why_left(contract, &standing, repair.as_ref(), why_not.as_deref())),
            };
            let repair_outcome = wants(at).then(outcome);
            if matches!(repair_outcome, Some(Ok(_))) && edits.is_empty() {
                let text = by_model.as_deref().or(repair.as_ref().map(|repair| repair.text.as_str()));
                edits = text.map(|text| difference(self.text, text).0).unwrap_or_default();
            }
            found.push(Failed { contract, standing, repair: repair_outcome });
        }
        Outcome { failed: found, edits }
    }

    /// The same contracts on another text.
    fn again<'t>(&'t self, text: &'t str) -> HeldText<'t> {
        HeldText::of(self.contracts.clone(), text, self.context)
    }

    /// Why a rewrite cannot be taken: it is held against everything that held before, and all that has to be repaired.
    fn refused(&self, rewritten: &Rewritten, now: &[Standing]) -> Option<String> {
        if rewritten.text.trim().is_empty() || rewritten.text.len() > MAX_REPLY_BYTES {
            return Some("the model's rewrite is empty or too long".to_owned());
        }
        let held = self.again(&rewritten.text);
        let after = held.standings(&Ok(rewritten.judged.clone()));
        let broken = self.contracts.iter().zip(now.iter().zip(&after)).find(|(contract, (before, after))| {
            let has_to_hold = **before == Standing::Holds || contract.settings.on_fail == OnFail::Repair;
            has_to_hold && **after != Standing::Holds
        });
        broken.map(|(contract, _)| format!("the model's rewrite does not keep `{}`", contract.settings.name))
    }

    fn why_left(
        &self,
        contract: &GateContract,
        standing: &Standing,
        repair: Option<&Repair>,
        why_not: Option<&str>,
    ) -> String {
        if let (Some(why), true) = (why_not, contract.settings.strategy.is_some()) {
            return why.to_owned();
        }
        if matches!(standing, Standing::Undecided(_)) {
            return "what is undecided is not repaired".to_owned();
        }
        let name = &contract.settings.name;
        let left = repair.and_then(|repair| repair.unrepaired.iter().find(|left| left.contract == *name));
        let by_code = contract.contract.family().and_then(portcullis_contracts::no_repair);
        match (left, by_code) {
            (Some(left), _) => left.reason.clone(),
            (None, Some(why)) => why.to_owned(),
            (None, None) => "code found no change that keeps all contracts".to_owned(),
        }
    }
}

/// What code did for a contract.
fn steps(repair: Option<&Repair>, contract: &GateContract) -> String {
    let steps = repair.map(|repair| repair.steps.as_slice()).unwrap_or_default();
    let own: Vec<&str> = steps
        .iter()
        .filter(|step| step.contract == contract.settings.name)
        .map(|step| step.what.as_str())
        .collect();
    match own.is_empty() {
        true => "repaired together with others".to_owned(),
        false => own.join("; "),
    }
}
