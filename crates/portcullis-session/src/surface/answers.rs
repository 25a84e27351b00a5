//! What surfaces are told of texts, results and reports.

use portcullis_core::finding::SpanEdit;
use portcullis_core::pipeline::Decision;
use portcullis_core::verdict::Verdict;

use portcullis_guards::output::open_work;

use super::{ObservationAnswer, TextAnswer, TextEdit};
use crate::engine::{EDITED, TextJudgement};

/// What a surface is told of a result or a report.
pub(super) fn observation_answer(judged: TextJudgement, seq: u64) -> ObservationAnswer {
    ObservationAnswer {
        verdict: judged.decision.verdict,
        enforced: judged.enforced,
        denial: judged.denial,
        edits: if judged.shown.is_some() { edits_of(&judged.decision) } else { Vec::new() },
        shown: judged.shown,
        uncontained: false,
        seq,
    }
}

/// What a surface is told of a text.
pub(super) fn text_answer(judged: TextJudgement) -> TextAnswer {
    let TextJudgement { decision, enforced, shown, denial, approval, verification, seq } = judged;
    // Of words that a person gave, no stretch is one of the reply's.
    let by_stretches = shown.is_some() && !decision.findings.iter().any(|finding| finding.rule == EDITED);
    let edits = if by_stretches { edits_of(&decision) } else { Vec::new() };
    let note = decision.findings.iter().find(|finding| finding.rule == open_work::RULE);
    let note = note.map(|finding| finding.message.clone());
    TextAnswer {
        seq,
        verdict: decision.verdict,
        enforced,
        denial,
        approval,
        shown,
        edits,
        verification,
        note,
    }
}

/// The edits of a text, in its order and each once.
fn edits_of(decision: &Decision) -> Vec<TextEdit> {
    let edits = decision.findings.iter().filter(|finding| finding.verdict == Verdict::Modify);
    let mut edits: Vec<&SpanEdit> = edits.flat_map(|finding| &finding.edits).collect();
    edits.sort();
    edits.dedup();
    edits
        .into_iter()
        .map(|edit| TextEdit {
            start: edit.span.start,
            end: edit.span.end,
            replacement: edit.replacement.clone(),
        })
        .collect()
}
