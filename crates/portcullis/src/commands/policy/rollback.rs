//! `portcullis policy rollback` and `portcullis policy versions`: what was in force, and how it is put back.

use std::path::{Path, PathBuf};

use portcullis_gateway::versions::{self, Closed, Version, Versions, changes_between};
use serde_json::json;

use super::change::{self, Change, ChangeArgs};
use crate::bundle;
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line, short};

const EXAMPLES: &str = "\
Examples:
  portcullis policy rollback --bundle mine --check
  portcullis policy rollback --bundle mine --widen \"denied ordinary refunds\"
  portcullis policy rollback --bundle mine --to 4

Puts the files of a version back, as a new version: the one before what is in force, or the one that --to names. What \
is taken out by it may allow more, which needs a person, as with `policy promote`. Versions are those that `policy \
promote` and the console wrote; in a folder that git manages, git keeps them.

Exit codes: 0 rolled back, 1 refused, 2 a person has to decide, 3 unreadable.";

const LISTED: &str = "\
Examples:
  portcullis policy versions --bundle mine
  portcullis policy versions --bundle mine --json";

/// Put an earlier version of a bundle back
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The version, as `policy versions` numbers them
    #[arg(long, value_name = "VERSION")]
    to: Option<u64>,
    #[command(flatten)]
    change: ChangeArgs,
}

/// List the versions of a bundle: when, who, what, and its digest
#[derive(Debug, clap::Args)]
#[command(after_help = LISTED)]
pub(super) struct ListArgs {
    /// Folder of the bundle; the one that the state folder is served with if left out
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
}

fn by_git(root: &Path) -> Failure {
    Failure::no(format!("git manages the folder (`{}`), and keeps its versions", root.display()))
        .help("put the files of a commit back with `git restore --source COMMIT -- FOLDER`, or undo one with `git revert COMMIT`")
}

pub(super) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let folder = args.change.folder(global)?;
    if let Some(Closed::Git(root)) = versions::closed(&folder) {
        return Err(by_git(&root));
    }
    let old = change::open(&folder)?;
    let kept = Versions::of(&global.home()?);
    let all = kept.list(Some(&folder)).map_err(Failure::unreadable)?;
    let now = old.bundle.digest().to_string();
    let version = chosen(&all, args.to, &now)?;
    let files = kept.files(version).map_err(Failure::unreadable)?;
    // Files that are never written to stay as they are.
    let changes = changes_between(&old.files, &files);
    let mut after = old.files.clone();
    for (path, text) in &changes {
        match text {
            Some(text) => drop(after.insert(path.clone(), text.clone().into_bytes())),
            None => drop(after.remove(path)),
        }
    }
    let mut out = Out::new();
    if changes.is_empty() {
        out.line(format_args!("the bundle has the files of version {} already", version.number))?;
        out.finish()?;
        return Ok(exit::YES);
    }
    let new = bundle::load_files(&folder, after)?;
    let widening = change::widening(&old.bundle, &new.bundle);
    if !global.json {
        change::show(&mut out, &old.bundle, &new.bundle, &widening)?;
    }
    let change = Change {
        verb: format!("puts version {} back into", version.number),
        what: format!("version {} put back", version.number),
        provenance: json!({"version": version.number, "at": version.at, "by": version.by, "what": version.what}),
        changes: &changes,
        old: &old,
        files: &new.files,
        widening: &widening,
    };
    let done = args.change.make(&mut out, &change, &folder, global)?;
    let code = if global.json {
        let digests = (old.bundle.digest(), new.bundle.digest());
        out.json(&change::record(&done, "rolled back", digests, &widening))?;
        change::code(&done)
    } else {
        let did = format!("version {} put back", version.number);
        change::told(&mut out, &done, (&did, new.bundle.digest()), &folder)?
    };
    out.finish()?;
    Ok(code)
}

/// The version that is named, or the one before what is in force.
fn chosen<'v>(all: &'v [Version], named: Option<u64>, now: &str) -> Result<&'v Version, Failure> {
    let found = match named {
        Some(number) => all.iter().find(|version| version.number == number),
        None => all.iter().find(|version| version.digest != now),
    };
    found.ok_or_else(|| {
        let message = match named {
            Some(number) => format!("the bundle has no version {number}"),
            None => "no other version of the bundle is kept".to_owned(),
        };
        Failure::no(message).help("see `portcullis policy versions`")
    })
}

pub(super) fn list(args: &ListArgs, global: &Global) -> Result<u8, Failure> {
    let folder = change::folder(args.bundle.as_deref(), global)?;
    let now = change::open(&folder)?.bundle.digest().to_string();
    let all = Versions::of(&global.home()?).list(Some(&folder)).map_err(Failure::unreadable)?;
    let mut out = Out::new();
    // The same files may have been in force before: the latest of them is what is in force.
    let in_force = all.iter().find(|version| version.digest == now).map(|version| version.number);
    for version in &all {
        shown(&mut out, version, in_force == Some(version.number), global)?;
    }
    if all.is_empty() && !global.json {
        match versions::closed(&folder) {
            Some(Closed::Git(_)) => {
                out.line(format_args!("git manages the folder, and keeps its versions: see `git log`"))?
            }
            _ => out.line(format_args!(
                "no version is kept: neither `policy promote` nor the console changed this bundle"
            ))?,
        }
    } else if in_force.is_none() && !global.json {
        let notice = out::NOTICE;
        out.line(format_args!(
            "{notice}what lies in the folder now is none of them{notice:#}: bundle {now}"
        ))?;
    }
    out.finish()?;
    Ok(exit::YES)
}

fn shown(out: &mut Out, version: &Version, in_force: bool, global: &Global) -> Result<(), Failure> {
    let Version { number, at, by, what, digest, record, .. } = version;
    if global.json {
        return out.json(&json!({
            "record": "version", "number": number, "at": at, "by": by, "what": what, "bundle": digest,
            "recorded_in": record, "in_force": in_force,
        }));
    }
    let style = if in_force { out::GOOD } else { out::FAINT };
    let mark = if in_force { "  in force" } else { "" };
    let at = at.get(..19).unwrap_or(at);
    let by = by.as_deref().map_or_else(|| "-".to_owned(), |by| clean_line(by).into_owned());
    let told = record.as_ref().map_or_else(String::new, |run| format!(" (run {})", short(run)));
    out.line(format_args!(
        "{number:>4}  {style}{digest}{style:#}  {at}  {by}  {}{told}{mark}",
        clean_line(what)
    ))
}
