//! `portcullis policy lint`: what stands in a bundle and is probably not meant.

use annotate_snippets::Level;
use portcullis_core::bundle::{Bundle, Lint};
use serde_json::json;

use crate::bundle::{BundleArg, Opened};
use crate::cli::Global;
use crate::exit;
use crate::failure::{Failure, render};
use crate::out::{self, Out, count};

const EXAMPLES: &str = "\
Examples:
  portcullis policy lint --bundle my-bundle
  portcullis policy lint --bundle my-bundle --allow unconfirmed-tool

Finds rules that never decide, that decide more than is likely meant, and that contradict each other, in runtime \
policies, tools and access policies. Mistakes, such as a misspelt field, keep a bundle from loading and are not lints.

Exit codes: 0 nothing found, 1 something found, 3 the bundle does not load.";

/// Find rules that are probably not meant
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    bundle: BundleArg,
    /// Leave lints of this name out
    #[arg(long, value_name = "NAME")]
    allow: Vec<String>,
}

pub(super) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let opened = args.bundle.open(global)?;
    let mut lints = all(&opened.bundle);
    lints.retain(|lint| !args.allow.iter().any(|name| name == lint.name));
    let mut out = Out::new();
    for lint in &lints {
        show(&mut out, lint, &opened, global)?;
    }
    if global.json {
        out.json(&json!({"record": "summary", "lints": lints.len(), "bundle_folder": opened.folder()}))?;
    } else {
        let style = if lints.is_empty() { out::GOOD } else { out::NOTICE };
        out.line(format_args!("{style}{}{style:#}", count(lints.len(), "lint", "lints")))?;
    }
    out.finish()?;
    Ok(if lints.is_empty() { exit::YES } else { exit::NO })
}

/// All lints of a bundle.
pub(super) fn all(bundle: &Bundle) -> Vec<Lint> {
    let mut lints = bundle.lint();
    lints.extend(portcullis_access::lint(bundle));
    lints.extend(portcullis_guards::contracts::lint(bundle));
    lints
}

fn show(out: &mut Out, lint: &Lint, opened: &Opened, global: &Global) -> Result<(), Failure> {
    let Lint { name, diagnostic } = lint;
    if global.json {
        return out.json(&json!({
            "record": "lint", "name": name, "file": opened.path(&diagnostic.file), "line": diagnostic.line,
            "column": diagnostic.column, "message": diagnostic.message, "help": diagnostic.help,
        }));
    }
    let source = opened.files.get(&diagnostic.file).map(|bytes| String::from_utf8_lossy(bytes));
    let mut named = diagnostic.clone();
    named.message = format!("{} [{name}]", diagnostic.message);
    let path = opened.path(&diagnostic.file);
    let shown = render(Level::WARNING, &named, &path, source.as_deref().unwrap_or_default());
    out.line(format_args!("{shown}\n"))
}
