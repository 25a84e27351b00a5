//! `portcullis approvals watch`: each request as it comes and, at a terminal, the decision about it.

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use portcullis_core::display::{line, start_of};
use portcullis_core::id::ApprovalId;
use portcullis_gateway::api::{AnswerApproval, ApprovalInfo, GrantApproval, QueuedInfo, RefuseApproval};
use portcullis_gateway::client::ClientError;

use super::show::{decided, show, waiting, what};
use crate::cli::Global;
use crate::daemon::{Daemon, told};
use crate::failure::Failure;
use crate::out::{Out, short};

/// How often the daemon is asked that does not wait by itself.
const EVERY: Duration = Duration::from_millis(500);
/// Characters of a tool's name in a notification.
const TOOL_CHARS: usize = 60;

/// How to watch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watching {
    /// Stop after the first request.
    pub(super) once: bool,
    /// Show a notification on the desktop for each.
    pub(super) notify: bool,
}

/// What the person at the terminal wants next.
enum Next {
    Go,
    Stop,
}

/// Shows each request that comes, until the command is ended or its credential refused. A daemon that is gone is waited
/// for: who watches would otherwise miss what comes after it is back.
pub(super) fn watch(
    out: &mut Out,
    daemon: &Daemon,
    watching: Watching,
    global: &Global,
) -> Result<(), Failure> {
    let asks = !global.json && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut known: Option<BTreeSet<ApprovalId>> = None;
    let (mut away, mut version, mut queued) = (false, None, None);
    loop {
        let list = match daemon.try_ask(|client| client.next_approvals(version)) {
            Ok(list) => list,
            Err(error @ ClientError::Refused { status: 400..500, .. }) => return Err(told(&error)),
            Err(error) => {
                if !std::mem::replace(&mut away, true) {
                    anstream::eprintln!("waiting for the daemon: {}", line(&error.to_string()));
                }
                std::thread::sleep(EVERY);
                continue;
            }
        };
        version = list.version;
        if std::mem::take(&mut away) {
            anstream::eprintln!("the daemon is back");
        }
        say_queued(&mut queued, list.queued);
        // At a terminal, what waits already is decided as well.
        let already = || list.approvals.iter().filter(|_| !asks).map(|request| request.approval).collect();
        let known = known.get_or_insert_with(already);
        for request in list.approvals.iter().rev() {
            if !known.insert(request.approval) {
                continue;
            }
            let id = request.approval.to_string();
            let Ok(request) = daemon.try_ask(|client| client.approval(&id)) else {
                // It is looked at again; if it is gone by then, so is the question.
                known.remove(&request.approval);
                version = None;
                break;
            };
            show(out, &request, global)?;
            out.flush()?;
            if watching.notify {
                notify(&request);
            }
            if asks && matches!(ask(out, daemon, request, global)?, Next::Stop) || watching.once {
                return Ok(());
            }
        }
        // The daemon waits for the next list, unless it is to be asked again or is of an earlier release.
        if version.is_none() {
            std::thread::sleep(EVERY);
        }
    }
}

/// Says once how many requests are queued, and again when that changes.
fn say_queued(before: &mut Option<QueuedInfo>, now: Option<QueuedInfo>) {
    if let Some(queued) = now.as_ref().filter(|_| *before != now) {
        anstream::eprintln!("{}", waiting(queued));
    }
    *before = now;
}

/// Asks for the decision on a request that is on the screen. What changed meanwhile is shown and asked about again.
fn ask(out: &mut Out, daemon: &Daemon, mut request: ApprovalInfo, global: &Global) -> Result<Next, Failure> {
    let id = request.approval.to_string();
    loop {
        let Some(key) = read("[g]rant once  [r]efuse  [a]nswer the agent  [s]kip  [q]uit: ")? else {
            return Ok(Next::Stop);
        };
        let answered = match key.as_str() {
            "g" => {
                let mut grant = GrantApproval::of(&request);
                if request.wanted.as_ref().is_some_and(|wanted| wanted.note) {
                    grant.note = read("Why (for the record; required): ")?.filter(|note| !note.is_empty());
                }
                daemon.try_ask(|client| client.grant(&id, &grant))
            }
            "r" => {
                let note = read("Why (the agent is told; may be empty): ")?.filter(|note| !note.is_empty());
                let refusal = RefuseApproval { note };
                daemon.try_ask(|client| client.refuse(&id, &refusal))
            }
            "a" => {
                let Some(note) = read("What the agent is told: ")?.filter(|note| !note.is_empty()) else {
                    continue;
                };
                let answer = AnswerApproval { note };
                daemon.try_ask(|client| client.answer(&id, &answer))
            }
            "s" | "" => return Ok(Next::Go),
            "q" => return Ok(Next::Stop),
            _ => continue,
        };
        match answered {
            Ok(approval) => {
                decided(out, &approval, global)?;
                out.flush()?;
                return Ok(Next::Go);
            }
            Err(error @ ClientError::Refused { status: 400..500, .. }) => {
                anstream::eprintln!("{}", line(&error.to_string()));
                request = daemon.ask(|client| client.approval(&id))?;
                show(out, &request, global)?;
                out.flush()?;
            }
            Err(error) => return Err(told(&error)),
        }
    }
}

/// A line from the terminal; none where there are no more.
fn read(prompt: &str) -> Result<Option<String>, Failure> {
    let mut asks = std::io::stderr();
    write!(asks, "{prompt}")?;
    asks.flush()?;
    let mut answer = String::new();
    let bytes = std::io::stdin().read_line(&mut answer)?;
    Ok((bytes > 0).then(|| answer.trim().to_owned()))
}

/// Shows a notification, if the desktop has a program for that. It names the tool and the id, and nothing that the agent
/// wrote besides: what is decided is looked at here.
fn notify(request: &ApprovalInfo) {
    let text = format!("{} waits ({})", start_of(what(request), TOOL_CHARS), short(&request.approval));
    let shown = Command::new("notify-send")
        .args(["--app-name=portcullis", "--", "Approval needed", &text])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if let Err(error) = shown {
        anstream::eprintln!("no desktop notification: cannot start notify-send: {error}");
    }
}
