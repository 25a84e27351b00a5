//! `portcullis policy schema`: what access policies may speak of.

use serde_json::json;

use crate::bundle::BundleArg;
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::Out;

const EXAMPLES: &str = "\
Examples:
  portcullis policy schema --bundle my-bundle > portcullis.cedarschema

The schema is made from the registry, the declared attributes of principals and the vocabulary of effects. Policies \
are validated against it when the bundle loads; editors use it to complete and to check.";

/// Print the Cedar schema that access policies are validated against
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    bundle: BundleArg,
}

pub(super) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let opened = args.bundle.open(global)?;
    let schema = portcullis_access::schema_text(&opened.bundle);
    let mut out = Out::new();
    if global.json {
        out.json(&json!({
            "schema": schema, "bundle": opened.bundle.digest(), "bundle_folder": opened.folder(),
        }))?;
    } else {
        out.line(format_args!("{}", schema.trim_end()))?;
    }
    out.finish()?;
    Ok(exit::YES)
}
