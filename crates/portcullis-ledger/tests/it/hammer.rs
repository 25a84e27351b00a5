//! The hammer with a small goal: not for its figures, but because all of it is verified.

use std::time::Duration;

use portcullis_ledger::hammer::{HammerOptions, hammer};

#[test]
fn what_many_write_at_once_is_durable_proven_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let options = HammerOptions {
        folder: folder.path().join("ledger"),
        writers: 64,
        readers: 16,
        goal: 20_000,
        time_max: Duration::from_secs(240),
    };
    let mut told = 0;
    let report = hammer(&options, &mut |progress| told = progress.verified).unwrap();
    assert!(report.passed, "{report:#?}");
    assert_eq!((report.problems.len(), report.close_to_proof.count), (0, report.reads.runs));
    assert!(report.events >= 20_000 && report.reads.events >= report.events, "{report:#?}");
    assert!(
        report.reads.leaves > 0 && report.reads.checkpoints > 0 && told == report.reads.runs,
        "{report:#?}"
    );
    // A store that is there is not hammered.
    assert!(hammer(&options, &mut |_| ()).unwrap_err().to_string().contains("has a store already"));
}
