//! What the checks say, for people and for programs.

use portcullis_contracts::verify::{Check, CheckResult, Document, Settings, Status};
use serde::Serialize;
use serde_json::Value;

use crate::exit;
use crate::out::{self, clean_line, count};

/// A reply that was verified.
#[derive(Debug, Serialize)]
pub(super) struct Verified {
    record: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Value>,
    status: Status,
    pub(super) checks: Vec<CheckResult>,
}

impl Verified {
    pub(super) fn of(
        key: Option<Value>,
        reply: &str,
        prompt: Option<&str>,
        documents: Option<&[Document]>,
        settings: &Settings,
    ) -> Self {
        let checks = super::checks_of(reply, prompt, documents, settings);
        Self { record: "verification", key, status: status(&checks), checks }
    }

    /// A line a check, or a line a check that fails.
    pub(super) fn lines(&self, place: &str, only_failed: bool) -> Vec<String> {
        lines(&self.checks, place, only_failed)
    }
}

/// FAIL where one fails, else PASS where one passes.
pub(super) fn status(checks: &[CheckResult]) -> Status {
    let has = |status| checks.iter().any(|result| result.status == status);
    match (has(Status::Fail), has(Status::Pass)) {
        (true, _) => Status::Fail,
        (false, true) => Status::Pass,
        (false, false) => Status::NotApplicable,
    }
}

/// A line a check, or a line a check that fails.
pub(crate) fn lines(checks: &[CheckResult], place: &str, only_failed: bool) -> Vec<String> {
    let shown = checks.iter().filter(|result| !only_failed || result.status == Status::Fail);
    shown.map(|result| line(result, place)).collect()
}

fn line(result: &CheckResult, place: &str) -> String {
    /// Columns of the name of a check.
    const WIDTH: usize = 19;
    let (style, word) = match result.status {
        Status::Pass => (out::GOOD, "pass"),
        Status::Fail => (out::BAD, "FAIL"),
        Status::NotApplicable => (out::NOTICE, "n/a"),
    };
    let named: Vec<String> = result.named.iter().map(|name| format!("`{}`", clean_line(name))).collect();
    let named = match (named.is_empty(), result.check) {
        (true, _) => String::new(),
        (false, Check::FactConsistency) => format!("; missing: {}", named.join(", ")),
        (false, _) => format!(": {}", named.join(", ")),
    };
    let name = result.check.name();
    format!("{style}{word:<4}{style:#}  {place}{name:<WIDTH$}  {}{named}", clean_line(&result.explanation))
}

/// What all replies come to.
#[derive(Debug, Default, Serialize)]
pub(super) struct Sums {
    record: &'static str,
    pub(super) replies: usize,
    /// Replies of which a check fails.
    failed: usize,
    pass: usize,
    fail: usize,
    not_applicable: usize,
    pub(super) unreadable: usize,
}

impl Sums {
    pub(super) fn add(&mut self, checks: &[CheckResult]) {
        let number = |wanted| checks.iter().filter(|result| result.status == wanted).count();
        self.record = "summary";
        self.replies += 1;
        self.failed += usize::from(number(Status::Fail) > 0);
        self.pass += number(Status::Pass);
        self.fail += number(Status::Fail);
        self.not_applicable += number(Status::NotApplicable);
    }

    /// The same as a record, of no reply too.
    pub(super) fn record(&mut self) -> &Self {
        self.record = "summary";
        self
    }

    pub(super) fn line(&self) -> String {
        let strong = out::STRONG;
        let checks = count(self.pass + self.fail + self.not_applicable, "check", "checks");
        let (pass, fail, left) = (self.pass, self.fail, self.not_applicable);
        let verb =
            |number: usize, one: &'static str, many: &'static str| if number == 1 { one } else { many };
        let mut line = format!(
            "{strong}{checks}{strong:#}: {pass} {}, {fail} {}, {left} {}",
            verb(pass, "passes", "pass"),
            verb(fail, "fails", "fail"),
            verb(left, "does not apply", "do not apply")
        );
        if self.replies != 1 {
            line.push_str(&format!(
                "; {} of {} failed",
                self.failed,
                count(self.replies, "reply", "replies")
            ));
        }
        if self.unreadable > 0 {
            let records = count(self.unreadable, "record", "records");
            line.push_str(&format!(", {records} could not be read"));
        }
        line
    }

    /// What could not be read weighs less than a failure and more than what cannot be told.
    pub(super) fn code(&self) -> u8 {
        if self.fail > 0 {
            exit::NO
        } else if self.unreadable > 0 {
            exit::UNREADABLE
        } else if self.pass == 0 {
            exit::INCOMPLETE
        } else {
            exit::YES
        }
    }
}
