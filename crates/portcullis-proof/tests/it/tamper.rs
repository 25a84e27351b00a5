//! The total tamper test: every small change to an export is found. There is no list of survivors, because with
//! a trust file no byte of an export is free.

use portcullis_proof::export::SegmentState;
use portcullis_proof::{Attack, Report, Status, Trust, verify};

use crate::sample::{Builder, Export, action, check, closed, erased, resumed};

/// Applies changes to one export and keeps those that were not found.
struct Tampering {
    original: Vec<u8>,
    trust: Trust,
    tried: usize,
    survivors: Vec<String>,
}

impl Tampering {
    fn new(export: &Export) -> Tampering {
        let trust = Trust::parse(&export.trust_text()).unwrap();
        assert_eq!(verify(&*export.text, Some(&trust)).unwrap().status, Status::Valid);
        Tampering { original: export.text.clone(), trust, tried: 0, survivors: Vec::new() }
    }

    fn attempt(&mut self, what: impl Fn() -> String, text: &[u8]) {
        assert_ne!(text, self.original, "{} changes nothing", what());
        self.tried += 1;
        let report = verify(text, Some(&self.trust)).unwrap();
        if report.status != Status::Invalid || report.failure.is_none() {
            self.survivors.push(format!("{}: {:?}", what(), report.status));
        }
    }

    fn finish(self, expected: usize) {
        assert_eq!(self.survivors, Vec::<String>::new());
        assert_eq!(self.tried, expected);
    }
}

#[test]
fn every_flipped_bit_is_found() {
    // All bits of a run of one segment, whole and with erased payloads; of one with two segments, the lowest.
    let closed = closed(0x01, "what is due?");
    let less = erased(&closed, &["what is due?", "notes.txt"]);
    for (export, bits) in [(closed, 0..8), (less, 0..8), (resumed(0x02), 0..1)] {
        let mut tampering = Tampering::new(&export);
        let mut text = export.text.clone();
        for byte in 0..text.len() {
            for bit in bits.clone() {
                text[byte] ^= 1 << bit;
                tampering.attempt(|| format!("bit {bit} of byte {byte}"), &text);
                text[byte] ^= 1 << bit;
            }
        }
        tampering.finish(export.text.len() * bits.len());
    }
}

#[test]
fn every_truncation_is_found() {
    let closed = closed(0x01, "what is due?");
    for export in [erased(&closed, &["what is due?"]), closed, resumed(0x02)] {
        let mut tampering = Tampering::new(&export);
        for length in 0..export.text.len() {
            tampering.attempt(|| format!("cut to {length} bytes"), &export.text[..length]);
        }
        tampering.finish(export.text.len());
    }
}

#[test]
fn every_dropped_doubled_moved_or_foreign_line_is_found() {
    let export = resumed(0x02);
    let lines = export.lines();
    let n = lines.len();
    // A second run with as many lines, of which none but the end is the same.
    let foreign = resumed(0x03).lines();
    assert_eq!(foreign.len(), n);
    let mut tampering = Tampering::new(&export);
    for i in 0..n {
        let mut dropped = lines.clone();
        dropped.remove(i);
        tampering.attempt(|| format!("line {i} dropped"), &dropped.concat());
        for j in 0..=n {
            let mut doubled = lines.clone();
            doubled.insert(j, lines[i].clone());
            tampering.attempt(|| format!("line {i} doubled at {j}"), &doubled.concat());
        }
        for j in i + 1..n {
            let mut swapped = lines.clone();
            swapped.swap(i, j);
            tampering.attempt(|| format!("lines {i} and {j} swapped"), &swapped.concat());
        }
    }
    // Drop, double at every place, swap every pair.
    let mut expected = n + n * (n + 1) + n * (n - 1) / 2;
    for i in 0..n {
        for j in i + 1..=n {
            let mut spliced = lines.clone();
            spliced.splice(i..j, foreign[i..j].iter().cloned());
            // Nothing changed, or a whole other run: no tampering.
            if spliced == lines || spliced == foreign {
                continue;
            }
            expected += 1;
            tampering.attempt(|| format!("lines {i}..{j} of another run"), &spliced.concat());
        }
    }
    // Of all ranges, three of those without effect lie in the lines that both runs share: the payload and the end.
    assert_eq!(expected, n + n * (n + 1) + n * (n - 1) / 2 + n * (n + 1) / 2 - 6);
    tampering.finish(expected);
}

#[test]
fn every_dropped_doubled_or_moved_line_of_an_export_with_erased_payloads_is_found() {
    let export = erased(&closed(0x01, "what is due?"), &["what is due?", "notes.txt"]);
    let lines = export.lines();
    let n = lines.len();
    let mut tampering = Tampering::new(&export);
    for i in 0..n {
        let mut dropped = lines.clone();
        dropped.remove(i);
        tampering.attempt(|| format!("line {i} dropped"), &dropped.concat());
        for j in 0..=n {
            let mut doubled = lines.clone();
            doubled.insert(j, lines[i].clone());
            tampering.attempt(|| format!("line {i} doubled at {j}"), &doubled.concat());
        }
        for j in i + 1..n {
            let mut swapped = lines.clone();
            swapped.swap(i, j);
            tampering.attempt(|| format!("lines {i} and {j} swapped"), &swapped.concat());
        }
    }
    tampering.finish(n + n * (n + 1) + n * (n - 1) / 2);
}

#[test]
fn a_chain_computed_again_meets_the_trust_file() {
    let forge = |forged: u8| {
        let mut builder = Builder::new(0x01);
        builder.segment(0x51, "writer-1");
        for seq in 1..=8u8 {
            let body = if seq == forged { r#"{"name":"forged"}"# } else { r#"{"name":"true"}"# };
            builder.event(if seq == 1 { "run-opened" } else { "evidence" }, body);
        }
        builder.close(portcullis_proof::export::SegmentState::Closed);
        builder.finish()
    };
    let original = forge(0);
    // Someone who looked in after events 3 and 6, and at the end.
    let mut trust = original.trust_at(3);
    for count in [6, 9] {
        trust.push_str(original.trust_at(count).lines().last().unwrap());
        trust.push('\n');
    }
    assert_eq!(check(&original.text, Some(&trust)).status, Status::Valid);
    for forged in 1..=8 {
        let Report { failure, anchored, .. } = check(&forge(forged).text, Some(&trust));
        let failure = failure.unwrap();
        let (held, broke) = match forged {
            1..=3 => (None, 3),
            4..=6 => (Some(3), 6),
            _ => (Some(6), 9),
        };
        assert_eq!((failure.attack, failure.seq, anchored), (Attack::ChainRewritten, Some(broke), held));
        assert!(failure.message.contains(&format!("rewritten after event {}", held.unwrap_or(0))));
    }
}

#[test]
fn events_after_the_last_trusted_head_are_not_vouched_for() {
    let build = |body: &str| {
        let mut builder = Builder::new(0x01);
        builder.segment(0x51, "writer-1");
        builder.event("run-opened", "{}");
        builder.event("proposed", &action(0xa1, ""));
        builder.event("evidence", body);
        builder.close(portcullis_proof::export::SegmentState::Closed);
        builder.finish()
    };
    let trust = build("{}").trust_at(2);
    let report = check(&build(r#"{"name":"forged"}"#).text, Some(&trust));
    assert_eq!((report.status, report.anchored), (Status::Incomplete, Some(2)));
}

/// Longer than what is read ahead at a time, so that its lines are read on several threads and in several goes.
#[test]
fn a_long_run_is_judged_where_it_was_touched() {
    let mut run = Builder::new(0x0f);
    run.segment(1, "writer");
    run.event("run-opened", "{}");
    for number in 0..9_000 {
        run.event("observation", &format!(r#"{{"text":"{number:0100}"}}"#));
    }
    run.close(SegmentState::Closed);
    let export = run.finish();
    assert!(export.text.len() > 2 << 20);
    let trust = Trust::parse(&export.trust_text()).unwrap();
    assert_eq!(verify(&*export.text, Some(&trust)).unwrap().status, Status::Valid);
    let lines = export.lines();
    for number in [2, 3, 1_000, 3_500, 4_001, 6_000, 9_001] {
        let byte: usize = lines[..number].iter().map(Vec::len).sum();
        let place = |text: &[u8]| {
            let failure = verify(text, Some(&trust)).unwrap().failure.unwrap();
            (failure.attack, failure.line, failure.byte)
        };
        let mut touched = export.text.clone();
        touched[byte + lines[number].len() - 5] ^= 1;
        assert_eq!(place(&touched), (Attack::EventAltered, number as u64 + 1, byte as u64));
        let mut without = lines.clone();
        without.remove(number);
        assert_eq!(place(&without.concat()), (Attack::EventMissing, number as u64 + 1, byte as u64));
    }
}
