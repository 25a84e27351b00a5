//! `portcullis approvals grant`: how far a yes reaches, and what it rests on.

use std::path::{Path, PathBuf};

use portcullis_core::id::Digest;
use portcullis_core::time::Timestamp;
use portcullis_gateway::api::{
    ApprovalInfo, ApprovalPhase, GrantApproval, GrantApprovals, Lasting, Scope, ShownApproval,
};
use serde_json::Value;

use super::show::{decided, granted, show};
use crate::ask::{can_ask, says_yes};
use crate::cli::Global;
use crate::commands::completions::approval_ids;
use crate::daemon::Daemon;
use crate::exit;
use crate::failure::Failure;
use crate::out::{Out, short};
use portcullis_gateway::request_text::SHOWN_DIGITS_MIN;

pub(super) const EXAMPLES: &str = "\
Examples:
  portcullis approvals grant 3f81c2
  portcullis approvals grant 3f81c2 --shown 0d2f61c9a4be --effects --task
  portcullis approvals grant 3f81c2 --shown 0d2f61c9a4be \\
      --pattern 'path /srv/app/*' --until 2027-01-31T18:00:00Z
  portcullis approvals grant 3f81c2 --shown 0d2f61c9a4be --edit call.json
  portcullis approvals grant 3f81c2:0d2f61c9a4be 71b09e:c41d88a0b7f2

Several requests are granted once each, by their ids with the digests that `show` ends with; what changed meanwhile is skipped. `--edit` lets a call go ahead with the arguments in the file, or a reply with its words; they are judged again.";

#[derive(Debug, clap::Args)]
pub(super) struct GrantArgs {
    /// The approvals, or the starts of their ids; several as ID:DIGEST
    #[arg(add = approval_ids(), required = true)]
    ids: Vec<String>,
    /// What was looked at: the digest at the end of `show`, or the start of it
    #[arg(long, value_name = "DIGEST")]
    shown: Option<String>,
    /// This call with these arguments, as often as it is made
    #[arg(long, group = "scope")]
    arguments: bool,
    /// Every call of the tool
    #[arg(long, group = "scope")]
    tool: bool,
    /// What holds this call: the same rules against the same resources
    #[arg(long, group = "scope")]
    effects: bool,
    /// The same rules against all resources that fit; may be repeated
    #[arg(long, group = "scope", value_name = "PATTERN")]
    pattern: Vec<String>,
    /// Until the user speaks again
    #[arg(long, group = "lasts")]
    task: bool,
    /// Until the run ends
    #[arg(long, group = "lasts")]
    session: bool,
    /// Until then, such as 2027-01-31T18:00:00Z
    #[arg(long, group = "lasts", value_name = "TIME")]
    until: Option<String>,
    /// With the arguments in this file, or the words of a reply, instead of the agent's
    #[arg(long, value_name = "FILE", conflicts_with = "scope")]
    edit: Option<PathBuf>,
    /// A note for the record
    #[arg(long, value_name = "TEXT")]
    pub(super) note: Option<String>,
}

pub(super) fn grant(
    out: &mut Out,
    daemon: &Daemon,
    args: &GrantArgs,
    global: &Global,
) -> Result<u8, Failure> {
    let [id] = args.ids.as_slice() else { return grant_together(out, daemon, args, global) };
    let (id, with_id) = match id.split_once(':') {
        Some((id, shown)) => (id, Some(shown)),
        None => (id.as_str(), None),
    };
    let seen = daemon.ask(|client| client.approval(id))?;
    let mut grant = args.grant()?;
    if let Some(file) = &args.edit {
        read_edit(&mut grant, &seen, file)?;
    }
    let Some(shown) = looked_at(out, &seen, args.shown.as_deref().or(with_id), global)? else {
        return Ok(exit::NO);
    };
    grant.shown = Some(shown);
    let approval = daemon.ask(|client| client.grant(id, &grant))?;
    decided(out, &approval, global)?;
    Ok(exit::YES)
}

/// Grants several requests, each as its digest says that it was shown.
fn grant_together(out: &mut Out, daemon: &Daemon, args: &GrantArgs, global: &Global) -> Result<u8, Failure> {
    let grant = args.grant()?;
    if args.shown.is_some()
        || args.edit.is_some()
        || grant != (GrantApproval { note: grant.note.clone(), ..GrantApproval::default() })
    {
        return Err(Failure::usage("several requests are granted once each, as ID:DIGEST")
            .help("grant them one by one to let a grant reach further"));
    }
    let mut approvals = Vec::with_capacity(args.ids.len());
    for named in &args.ids {
        let Some((id, given)) = named.split_once(':') else {
            return Err(Failure::usage(format!("`{named}` does not name what was looked at"))
                .help("give each as ID:DIGEST, with the digest that `portcullis approvals show` ends with"));
        };
        let seen = daemon.ask(|client| client.approval(id))?;
        let shown = same_as_shown(&seen, given)?;
        approvals.push(ShownApproval { approval: seen.approval.to_string(), shown });
    }
    let request = GrantApprovals { approvals, note: args.note.clone() };
    let done = daemon.ask(|client| client.grant_together(&request))?;
    granted(out, &done, global)?;
    Ok(if done.skipped.is_empty() { exit::YES } else { exit::NO })
}

impl GrantArgs {
    /// The grant that the options describe, of nothing that was looked at yet.
    fn grant(&self) -> Result<GrantApproval, Failure> {
        let scope = match self {
            Self { arguments: true, .. } => Scope::Arguments,
            Self { tool: true, .. } => Scope::Tool,
            Self { effects: true, .. } => Scope::Effects,
            Self { pattern, .. } if !pattern.is_empty() => Scope::Pattern,
            _ => Scope::Once,
        };
        let lasts = match self {
            Self { task: true, .. } => Some(Lasting::Task),
            Self { session: true, .. } => Some(Lasting::Session),
            _ => None,
        };
        let until = self.until.as_deref().map(|text| {
            text.parse::<Timestamp>().map_err(|error| {
                Failure::usage(format!("--until: {error}")).help("write it as 2027-01-31T18:00:00Z, in UTC")
            })
        });
        Ok(GrantApproval {
            scope,
            patterns: self.pattern.clone(),
            lasts,
            until: until.transpose()?,
            arguments: None,
            text: None,
            shown: None,
            note: self.note.clone(),
        })
    }
}

/// Puts what a file says in place of the arguments of the call, or of the reply.
fn read_edit(grant: &mut GrantApproval, seen: &ApprovalInfo, file: &Path) -> Result<(), Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::unreadable(format!("cannot read `{}`: {error}", file.display())))?;
    if seen.action.is_none() {
        // The line break that ends a file is none of the reply.
        grant.text = Some(text.strip_suffix('\n').unwrap_or(&text).to_owned());
        return Ok(());
    }
    let arguments: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::unreadable(format!("`{}` is not JSON: {error}", file.display())))?;
    grant.arguments = Some(arguments);
    Ok(())
}

/// The digest of what the person looked at: the one that is given, or that of the request that is shown now, if the
/// person says yes to it. None where the person says no.
fn looked_at(
    out: &mut Out,
    seen: &ApprovalInfo,
    given: Option<&str>,
    global: &Global,
) -> Result<Option<Digest>, Failure> {
    let shown = digest_of(seen)?;
    if let Some(given) = given {
        return same_as_shown(seen, given).map(Some);
    }
    if seen.state != ApprovalPhase::Pending {
        // The daemon says what is the matter with it.
        return Ok(Some(shown));
    }
    if !can_ask(global) {
        let id = short(&seen.approval);
        return Err(Failure::usage(
            "a grant must name what was reviewed, and standard input is not a terminal",
        )
        .help(format!("give `--shown` with the digest that `portcullis approvals show {id}` ends with")));
    }
    show(out, seen, global)?;
    let what = if seen.action.is_some() { "call" } else { "reply" };
    Ok(says_yes(out, &format!("Let this {what} go ahead?"))?.then_some(shown))
}

/// The digest of what a request shows, if it is the one that was given, or begins so.
fn same_as_shown(seen: &ApprovalInfo, given: &str) -> Result<Digest, Failure> {
    let shown = digest_of(seen)?;
    if given.len() >= SHOWN_DIGITS_MIN && shown.to_string().starts_with(given) {
        return Ok(shown);
    }
    let id = short(&seen.approval);
    Err(Failure::no(format!(
        "`{given}` is not what approval {id} shows now: the run went on since, or there are fewer than {SHOWN_DIGITS_MIN} digits"
    ))
    .help(format!("review it again: portcullis approvals show {id}")))
}

fn digest_of(seen: &ApprovalInfo) -> Result<Digest, Failure> {
    seen.shown.ok_or_else(|| {
        Failure::unreadable("the daemon shows no digest of the request: it is older than this command")
            .help("stop it and start it again: portcullis serve")
    })
}
