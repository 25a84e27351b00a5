//! `portcullis policy test`: a bundle's Markdown tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_access::{Access, PolicyInfo};
use portcullis_core::bundle::Bundle;
use portcullis_core::limits::BUNDLE_FILE_BYTES_MAX;
use portcullis_core::verdict::Verdict;
use portcullis_guards::output::contract;
use portcullis_session::cases::{CaseFile, Report, run_file};
use portcullis_session::policy::Pipeline;
use serde_json::json;

use crate::bundle::{BundleArg, Opened};
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line, count};

const EXAMPLES: &str = "\
Examples:
  portcullis policy test
  portcullis policy test --bundle my-bundle
  portcullis policy test --bundle my-bundle new-rule.md

A test is a Markdown file; each block marked `run` is one run, each line a step with the verdict it must get:
  ```run
  policy \"Strict Compliance Policy\"
  call send_email {\"recipient\": \"bob@example.com\", \"subject\": \"x\", \"body\": \"y\"} => deny runtime-policy/tool-type
  ```
The files in the bundle's `tests/` are run unless others are given.
Exit codes: 0 all passed, 1 something failed, 2 there was nothing to run.";

/// Run the Markdown tests of a bundle
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    bundle: BundleArg,
    /// Test files to run instead of those in the bundle's `tests/`
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The sums over all files.
#[derive(Default)]
struct Sums {
    files: usize,
    passed: usize,
    failed: usize,
    allowed: usize,
    rules: BTreeMap<String, usize>,
    policies: BTreeSet<String>,
}

pub(super) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let opened = args.bundle.open(global)?;
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let mut sums = Sums::default();
    let mut out = Out::new();
    for (path, text) in texts(&opened, &args.files)? {
        sums.files += 1;
        let report = match CaseFile::parse(&text) {
            Ok(file) => run_file(&file, &opened.files, &pipeline),
            Err(error) => {
                sums.failed += 1;
                failure(&mut out, global, &path, error.line, "", &error.message)?;
                continue;
            }
        };
        for mismatch in &report.mismatches {
            failure(&mut out, global, &path, mismatch.line, &mismatch.case, &mismatch.message)?;
        }
        sums.add(report);
    }
    sums.show(&mut out, global, &pipeline, &opened)?;
    out.finish()?;
    Ok(match (sums.failed, sums.passed) {
        (0, 0) => exit::INCOMPLETE,
        (0, _) => exit::YES,
        _ => exit::NO,
    })
}

/// The test files with the paths to show.
fn texts(opened: &Opened, files: &[PathBuf]) -> Result<Vec<(String, String)>, Failure> {
    if files.is_empty() {
        let tests = &opened.bundle.tests;
        return Ok(tests.iter().map(|(file, text)| (opened.path(file), text.clone())).collect());
    }
    files.iter().map(|path| Ok((path.display().to_string(), read(path)?))).collect()
}

fn read(path: &Path) -> Result<String, Failure> {
    let failed = |why: String| Failure::unreadable(format!("cannot read `{}`: {why}", path.display()));
    let size = fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if size > BUNDLE_FILE_BYTES_MAX as u64 {
        return Err(failed(format!("it has {size} bytes; the limit is {BUNDLE_FILE_BYTES_MAX}")));
    }
    fs::read_to_string(path).map_err(|error| failed(error.to_string()))
}

fn failure(
    out: &mut Out,
    global: &Global,
    path: &str,
    line: usize,
    case: &str,
    message: &str,
) -> Result<(), Failure> {
    if global.json {
        let failure =
            json!({"record": "failure", "file": path, "line": line, "case": case, "message": message});
        return out.json(&failure);
    }
    let bad = out::BAD;
    let place = if line == 0 { path.to_owned() } else { format!("{path}:{line}") };
    let case = if case.is_empty() { String::new() } else { format!(" [{}]", clean_line(case)) };
    out.line(format_args!("{bad}FAIL{bad:#} {}{case}: {}", clean_line(&place), clean_line(message)))
}

impl Sums {
    fn add(&mut self, report: Report) {
        self.passed += report.passed;
        self.failed += report.failed.len();
        self.allowed += report.allowed;
        for (rule, times) in report.rules {
            *self.rules.entry(rule).or_default() += times;
        }
        self.policies.extend(report.policies);
    }

    /// The guards of whose rules none was the reason of any verdict. One that the bundle gives nothing to judge by is not
    /// among them.
    fn silent<'p>(&self, pipeline: &'p Pipeline, bundle: &Bundle) -> Vec<&'p str> {
        let idle = |guard: &str| guard == contract::RULE && bundle.contracts.is_empty();
        let spoke = |guard: &str| {
            // A guard's rules begin with its name; a reason of the gate itself is `gate/` and the name.
            let reserved = format!("gate/{}", guard.replace('/', "-"));
            let of_guard = |rule: &String| {
                let rest = rule.strip_prefix(guard);
                *rule == reserved || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            self.rules.keys().any(of_guard)
        };
        pipeline.guards().map(|guard| guard.meta().id).filter(|guard| !spoke(guard) && !idle(guard)).collect()
    }

    /// The access policies that no test shows deciding. One that plainly permits leaves no trace in a decision, so
    /// these are those that forbid, hold or warn.
    fn unshown(&self, opened: &Opened) -> Vec<String> {
        let Some(access) = opened.bundle.compiled::<Access>() else { return Vec::new() };
        let speaks = |policy: &PolicyInfo<'_>| policy.decision > Verdict::Allow;
        let unshown = access.policies().filter(|policy| speaks(policy) && !self.policies.contains(policy.id));
        unshown
            .map(|policy| format!("{} ({}:{})", policy.id, opened.path(policy.file), policy.line))
            .collect()
    }

    fn show(
        &self,
        out: &mut Out,
        global: &Global,
        pipeline: &Pipeline,
        opened: &Opened,
    ) -> Result<(), Failure> {
        let silent = self.silent(pipeline, &opened.bundle);
        let unshown = self.unshown(opened);
        if global.json {
            return out.json(&json!({
                "record": "summary", "files": self.files, "passed": self.passed, "failed": self.failed,
                "allowed": self.allowed, "rules": self.rules, "silent_guards": silent,
                "silent_policies": unshown, "bundle_folder": opened.folder(),
            }));
        }
        let style = if self.failed == 0 { out::GOOD } else { out::BAD };
        let files = count(self.files, "file", "files");
        out.line(format_args!("{style}{} passed, {} failed{style:#} in {files}", self.passed, self.failed))?;
        if self.passed + self.failed == 0 {
            return out
                .line(format_args!("there are no tests; put Markdown files into the bundle's `tests/`"));
        }
        out.line(format_args!("  {:>4}  allowed", self.allowed))?;
        for (rule, times) in &self.rules {
            out.line(format_args!("  {times:>4}  {rule}"))?;
        }
        if !silent.is_empty() {
            out.line(format_args!("  no test shows: {}", silent.join(", ")))?;
        }
        for policy in unshown {
            out.line(format_args!("  no test shows the access policy {}", clean_line(&policy)))?;
        }
        Ok(())
    }
}
