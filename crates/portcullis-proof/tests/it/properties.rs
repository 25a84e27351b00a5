//! Whatever a gate writes verifies; whatever is done to it afterwards never verifies and never panics.

use portcullis_proof::Status;
use portcullis_proof::export::SegmentState;
use proptest::prelude::*;

use crate::sample::{Builder, Export, action, check};

/// What happens to one action; the segment may end in between.
#[derive(Debug, Clone)]
struct Act {
    verdict: usize,
    observe: bool,
    status: usize,
    payload: Vec<u8>,
    new_segment: bool,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let payload = prop::collection::vec(any::<u8>(), 0..40);
    let act = (0..8usize, any::<bool>(), 0..6usize, payload, prop::bool::weighted(0.2)).prop_map(
        |(verdict, observe, status, payload, new_segment)| Act {
            verdict,
            observe,
            status,
            payload,
            new_segment,
        },
    );
    prop::collection::vec(act, 0..20)
}

fn export(acts: &[Act]) -> Export {
    const VERDICTS: [&str; 8] = ["allow", "warn", "modify", "clarify", "pause", "review", "deny", "halt"];
    const STATUSES: [&str; 6] = ["ok", "error", "timeout", "not-executed", "input-required", "unknown"];
    let mut builder = Builder::new(0x07);
    builder.segment(0, "writer");
    builder.event("run-opened", "{}");
    for (act, number) in acts.iter().zip(1u8..) {
        builder.event_with("proposed", &action(number, ""), "application/octet-stream", &act.payload);
        builder.event("verdict", &action(number, &format!(r#","verdict":"{}""#, VERDICTS[act.verdict])));
        let enforced = match act.verdict {
            0 | 1 => "executed",
            2 => "replaced",
            _ if act.observe => "let-pass",
            _ => "withheld",
        };
        builder.event("enforcement", &action(number, &format!(r#","enforced":"{enforced}""#)));
        if act.new_segment {
            builder.close(SegmentState::Abandoned);
            builder.segment(number, "next writer");
        }
        if enforced != "withheld" {
            builder.event("outcome", &action(number, &format!(r#","status":"{}""#, STATUSES[act.status])));
        }
    }
    builder.close(SegmentState::Closed);
    builder.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_valid_run_verifies(acts in acts()) {
        let export = export(&acts);
        let report = check(&export.text, Some(&export.trust_text()));
        prop_assert_eq!(report.status, Status::Valid, "{}", report);
        prop_assert_eq!(check(&export.text, None).status, Status::Incomplete);
    }

    #[test]
    fn no_random_change_survives(
        acts in acts(),
        at in any::<prop::sample::Index>(),
        cut in 0..4usize,
        insert in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let export = export(&acts);
        let mut text = export.text.clone();
        let from = at.index(text.len());
        let to = (from + cut).min(text.len());
        text.splice(from..to, insert);
        prop_assume!(text != export.text);
        let report = check(&text, Some(&export.trust_text()));
        prop_assert_eq!(report.status, Status::Invalid);
        prop_assert!(report.failure.is_some() && !report.to_string().is_empty());
    }

    #[test]
    fn any_bytes_are_answered(text in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert_eq!(check(&text, None).status, Status::Invalid);
    }
}
