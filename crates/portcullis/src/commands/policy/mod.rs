//! `portcullis policy`: work on a bundle's rules, a file each.

mod change;
mod compile;
mod diff;
mod differences;
mod lint;
mod promote;
mod prove;
mod recorded;
mod rollback;
mod schema;
mod suggested;
mod test;
mod written;

use crate::cli::Global;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  portcullis policy test --bundle my-bundle
  portcullis policy lint --bundle my-bundle
  portcullis policy compile request.md --bundle my-bundle
  portcullis policy promote draft --bundle my-bundle
  portcullis policy diff old-bundle new-bundle traces.jsonl";

/// Work on the rules of a bundle
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Test(test::Args),
    Lint(lint::Args),
    Compile(Box<compile::Args>),
    Promote(promote::Args),
    Rollback(rollback::Args),
    Versions(rollback::ListArgs),
    Diff(diff::Args),
    Schema(schema::Args),
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.command {
        Command::Test(args) => test::run(args, global),
        Command::Lint(args) => lint::run(args, global),
        Command::Compile(args) => compile::run(args, global),
        Command::Promote(args) => promote::run(args, global),
        Command::Rollback(args) => rollback::run(args, global),
        Command::Versions(args) => rollback::list(args, global),
        Command::Diff(args) => diff::run(args, global),
        Command::Schema(args) => schema::run(args, global),
    }
}
