//! What programs and engines say, as findings.

use portcullis_core::fact::{FactAnswer, FactRequest, Facts};
use portcullis_core::finding::Finding;
use portcullis_core::guard::GuardFailure;
use portcullis_core::program::{Answer, Objection, Says};
use portcullis_core::verdict::Verdict;

/// The recorded answer to a question. `whom` was asked: `the programs`.
pub(super) fn answer(facts: &Facts, question: &FactRequest, whom: &str) -> Result<Answer, GuardFailure> {
    match facts.get(question) {
        Some(FactAnswer::Known(answer)) => serde_json::from_value(answer.clone())
            .map_err(|_| GuardFailure(format!("the answer of {whom} is not of its form"))),
        Some(FactAnswer::Failed(why)) => Err(GuardFailure(why.clone())),
        None => Err(GuardFailure(format!("nobody asked {whom}"))),
    }
}

/// An objection of somebody, such as `` the program `refunds` ``, under the rule `RULE/NAME`.
pub(super) fn finding((rule, name): (&str, &str), who: &str, objection: &Objection) -> Finding {
    let verdict = match objection.says {
        Says::Deny => Verdict::Deny,
        Says::Hold => Verdict::Review,
    };
    let reasons = match objection.reasons.as_slice() {
        [] => "it gives no reason".to_owned(),
        reasons => reasons.join("; "),
    };
    let message = format!("{who} objects: {reasons}");
    Finding::new(format!("{rule}/{name}"), verdict, message).against(objection.denied.clone())
}
