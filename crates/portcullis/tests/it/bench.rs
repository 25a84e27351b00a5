//! `portcullis bench programs`: figures of the engine that is there.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// How often it is tried: where tests keep the processor busy, a worker can be late.
const ATTEMPTS: usize = 3;

#[test]
fn guard_programs_are_measured_with_one_and_with_many() {
    let portcullis = Path::new(env!("CARGO_BIN_EXE_portcullis"));
    crate::engine::put_into(portcullis.parent().unwrap());
    let run =
        || Command::new(portcullis).args(["bench", "programs", "--seconds", "1", "--json"]).output().unwrap();
    let output = (0..ATTEMPTS).map(|_| run()).find(|output| output.status.success());
    let output = output.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&run().stderr)));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["record"], "bench-programs");
    assert_eq!((report["columns"].as_u64(), report["many"].as_u64()), (Some(960), Some(100)));
    let p50 = |of: &str| report[of]["p50_ns"].as_u64().unwrap();
    assert!(p50("without") < p50("with_one") && p50("with_one") < p50("with_many"), "{report}");
}
