//! The replies of recorded runs, verified as the bundle wants it.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use portcullis_contracts::verify::Status;
use portcullis_sim::replay::{self, Item, Options, ReplyRow, Source};
use serde::Serialize;
use serde_json::json;

use super::shown::{self, Sums};
use crate::bundle::{self, BundleArg};
use crate::cli::Global;
use crate::failure::Failure;
use crate::input::{STDIN, unreadable};
use crate::out::{self, Out, clean_line};

/// A verified reply of a run, for programs.
#[derive(Serialize)]
struct ReplyLine<'r> {
    record: &'static str,
    status: Status,
    #[serde(flatten)]
    row: &'r ReplyRow,
}

struct Show {
    out: Out,
    json: bool,
    sums: Sums,
    failed: Option<Failure>,
}

/// Verifies the replies of a trace or an export.
pub(super) fn run(
    path: &Path,
    bundle: &BundleArg,
    policy: Option<&str>,
    global: &Global,
) -> Result<u8, Failure> {
    let json = global.json;
    let opened = bundle.open(global)?;
    bundle::check_policy(&opened.bundle, policy)?;
    if opened.bundle.verification.is_none() {
        return Err(Failure::usage("the bundle has no `[verification]`, so it verifies no reply")
            .help("add it to `portcullis.toml`; `sources` names the tools whose results are documents"));
    }
    let source =
        if path == Path::new(STDIN) { Source::stream(io::stdin().lock()) } else { Source::file(path) };
    let source = source.map_err(|error| unreadable(path, error))?;
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let options = Options { policy: policy.map(str::to_owned), strict_tools: false };
    let mut show = Show { out: Out::new(), json, sums: Sums::default(), failed: None };
    let judged =
        replay::replay(&source, &opened.bundle, &pipeline, &options, &mut |item| match show.item(&item) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                show.failed = Some(failure);
                ControlFlow::Break(())
            }
        });
    match (judged, show.failed.take()) {
        (_, Some(failure)) => return Err(failure),
        (Err(error), None) => {
            show.out.finish()?;
            return Err(unreadable(path, error));
        }
        (Ok(_), None) => {}
    }
    match json {
        true => show.out.json(show.sums.record())?,
        false => show.out.line(format_args!("{}", show.sums.line()))?,
    }
    show.out.finish()?;
    Ok(show.sums.code())
}

impl Show {
    fn item(&mut self, item: &Item<'_>) -> Result<(), Failure> {
        match item {
            Item::Verified(row) => self.reply(row),
            Item::Unreadable { line, message } => {
                self.sums.unreadable += 1;
                if self.json {
                    let record = json!({"record": "unreadable", "line": line, "message": message});
                    return self.out.json(&record);
                }
                let notice = out::NOTICE;
                let message = clean_line(message);
                self.out.line(format_args!("{notice}unreadable{notice:#}  line {line}: {message}"))
            }
            _ => Ok(()),
        }
    }

    fn reply(&mut self, row: &ReplyRow) -> Result<(), Failure> {
        let checks = &row.verification.checks;
        self.sums.add(checks);
        if self.json {
            return self.out.json(&ReplyLine { record: "verification", status: shown::status(checks), row });
        }
        let place = format!("run {} reply {}  ", row.run, row.reply);
        let lines = shown::lines(checks, &place, false);
        lines.iter().try_for_each(|line| self.out.line(format_args!("{line}")))
    }
}
