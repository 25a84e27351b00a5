//! The names of the files of a pack.

/// The manifest's file.
pub const MANIFEST: &str = "evidence_manifest.json";
/// The file of its signature.
pub const NOTE: &str = "evidence_manifest.note";
/// The audit log's file.
pub const AUDIT_LOG: &str = "audit_log.jsonl";
/// The record's file.
pub const EXPORT: &str = "run.export";
/// What the log says of the run is in files whose names begin so.
pub const LOG_FOLDER: &str = "log/";

/// The files of a pack in their order. Before the manifest stands what the log says of the run, below `log/`.
pub const FILES: [&str; 12] = [
    "summary_report.json",
    "summary_report.md",
    "runtime_policy.json",
    "verification_results.json",
    AUDIT_LOG,
    "failure_mode_analysis.md",
    "residual_risk_summary.md",
    "controls.json",
    "controls.md",
    EXPORT,
    MANIFEST,
    NOTE,
];
