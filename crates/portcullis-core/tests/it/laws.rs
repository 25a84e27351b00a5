//! Totality, the join, and what becomes of guards that fail.

use portcullis_core::fact::{FactAnswer, FactRequest, Facts};
use portcullis_core::finding::{Finding, Span, SpanEdit};
use portcullis_core::limits::FINDINGS_MAX;
use portcullis_core::pipeline::reserved;
use portcullis_core::verdict::Verdict;
use proptest::prelude::*;
use serde_json::json;

use crate::{Does, MadeUp, decide};

fn finding() -> impl Strategy<Value = Finding> {
    (0..Verdict::ALL.len(), 0..4_u8)
        .prop_map(|(verdict, rule)| Finding::new(format!("test/{rule}"), Verdict::ALL[verdict], "found"))
}

fn guard() -> impl Strategy<Value = MadeUp> {
    let request = FactRequest { source: "nobody".into(), question: "what?".into() };
    prop_oneof![
        6 => prop::collection::vec(finding(), 0..4).prop_map(|findings| MadeUp(Does::Find(findings))),
        1 => Just(MadeUp(Does::Fail)),
        1 => Just(MadeUp(Does::Need(request))),
    ]
}

proptest! {
    /// Law 4: order changes cost, not outcome.
    #[test]
    fn the_order_of_guards_does_not_change_the_verdict(
        (guards, shuffled) in prop::collection::vec(guard(), 0..8)
            .prop_flat_map(|guards| (Just(guards.clone()), Just(guards).prop_shuffle()))
    ) {
        let facts = Facts::none();
        let verdict = decide(&guards, json!({}), &facts).verdict;
        prop_assert_eq!(verdict, decide(&shuffled, json!({}), &facts).verdict);
    }

    /// Law 5: adding a guard never loosens.
    #[test]
    fn one_more_guard_never_loosens(guards in prop::collection::vec(guard(), 0..8), more in guard()) {
        let facts = Facts::none();
        let before = decide(&guards, json!({}), &facts).verdict;
        let mut guards = guards;
        guards.push(more);
        let after = decide(&guards, json!({}), &facts).verdict;
        prop_assert!(after >= before);
    }

    /// Law 1: same inputs, same decision; and the verdict is the strictest finding.
    #[test]
    fn the_decision_is_a_function_of_its_inputs(guards in prop::collection::vec(guard(), 0..8)) {
        let facts = Facts::none();
        let decision = decide(&guards, json!({}), &facts);
        prop_assert_eq!(&decision, &decide(&guards, json!({}), &facts));
        let strictest = decision.findings.iter().map(|finding| finding.verdict).max().unwrap_or_default();
        prop_assert_eq!(decision.verdict, strictest);
        if let Some(headline) = decision.headline() {
            let first = decision.findings.iter().find(|finding| finding.verdict == decision.verdict);
            prop_assert_eq!(Some(headline), first);
        }
    }
}

/// Law 3: whatever goes wrong in a guard is a denial with a reserved reason.
#[test]
fn a_guard_that_fails_or_panics_or_lacks_a_fact_denies() {
    let request = FactRequest { source: "clock".into(), question: "hour?".into() };
    let need = MadeUp(Does::Need(request.clone()));
    let none = Facts::none();
    for (guard, rule) in [
        (MadeUp(Does::Fail), reserved::GUARD_FAILED),
        (MadeUp(Does::Panic), reserved::GUARD_PANICKED),
        (need.clone(), reserved::FACT_MISSING),
    ] {
        let decision = decide(&[guard], json!({}), &none);
        assert_eq!((decision.verdict, decision.headline().unwrap().rule.as_ref()), (Verdict::Deny, rule));
    }
    let mut failed = Facts::none();
    failed.insert(request.clone(), FactAnswer::Failed("no clock".into()));
    let decision = decide(std::slice::from_ref(&need), json!({}), &failed);
    assert!(decision.headline().unwrap().message.ends_with("no clock"));
    let mut known = Facts::none();
    known.insert(request, FactAnswer::Known(json!(12)));
    assert_eq!(decide(&[need], json!({}), &known).verdict, Verdict::Allow);
}

fn edit(start: usize, end: usize, replacement: &str) -> MadeUp {
    let span = Span { pointer: "/arguments/text".into(), start, end };
    let edit = SpanEdit { span, replacement: replacement.into() };
    MadeUp(Does::Find(vec![Finding::new("test/edit", Verdict::Modify, "replaced").edit(edit)]))
}

#[test]
fn edits_of_several_guards_are_joined_and_a_conflict_denies() {
    let arguments = json!({"text": "card 4111, pin 99"});
    let none = Facts::none();
    let joined = decide(&[edit(5, 9, "[card]"), edit(15, 17, "[pin]")], arguments.clone(), &none);
    assert_eq!(joined.verdict, Verdict::Modify);
    assert_eq!(joined.modified, Some(json!({"text": "card [card], pin [pin]"})));
    let conflict = decide(&[edit(5, 9, "a"), edit(7, 12, "b")], arguments.clone(), &none);
    assert_eq!(conflict.verdict, Verdict::Deny);
    assert_eq!(conflict.headline().unwrap().rule, reserved::EDIT_CONFLICT);
    let stricter = MadeUp(Does::Find(vec![Finding::new("test/no", Verdict::Deny, "no")]));
    assert_eq!(decide(&[edit(5, 9, "a"), stricter], arguments, &none).modified, None);
}

/// Law 6: the findings are bounded, and the headline is never the one that is dropped.
#[test]
fn findings_are_bounded_and_the_headline_is_kept() {
    let mut findings = vec![Finding::new("test/warn", Verdict::Warn, "warned"); FINDINGS_MAX * 2];
    findings.push(Finding::new("test/deny", Verdict::Deny, "denied"));
    let decision = decide(&[MadeUp(Does::Find(findings))], json!({}), &Facts::none());
    assert_eq!(decision.findings.len(), FINDINGS_MAX);
    assert_eq!(decision.headline().unwrap().rule, "test/deny");
}
