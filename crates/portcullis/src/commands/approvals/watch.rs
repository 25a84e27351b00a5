//! `portcullis approvals watch`: each request as it comes and, at a terminal, the decision about it.

mod prompt;

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use portcullis_core::display::{line, start_of};
use portcullis_core::id::ApprovalId;
use portcullis_gateway::api::{
    AnswerApproval, ApprovalFilter, ApprovalInfo, GrantApproval, QueuedInfo, RefuseApproval,
};
use portcullis_gateway::client::ClientError;

use self::prompt::Prompt;
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
    let deciding = asks.then(|| Deciding { daemon, global, prompt: Prompt::open() });
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
            let stops = match &deciding {
                Some(deciding) => matches!(deciding.about(out, request, list.approvals.len())?, Next::Stop),
                None => false,
            };
            if stops || watching.once {
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

/// A person at a terminal who decides what waits.
struct Deciding<'a> {
    daemon: &'a Daemon,
    global: &'a Global,
    prompt: Prompt,
}

impl Deciding<'_> {
    /// Asks for the decision on a request that is on the screen. What changed meanwhile is shown and asked about again.
    /// `waiting` requests wait, with it.
    fn about(&self, out: &mut Out, mut request: ApprovalInfo, waiting: usize) -> Result<Next, Failure> {
        let id = request.approval.to_string();
        let mut others = Others { about: request.approval, said: waiting.saturating_sub(1) };
        loop {
            let question = "[g]rant once  [r]efuse  [a]nswer the agent  [s]kip  [q]uit: ";
            let Some(key) = self.prompt.ask(question, || others.news(self.daemon))? else {
                return Ok(Next::Stop);
            };
            let answered = match key.as_str() {
                "g" => {
                    let mut grant = GrantApproval::of(&request);
                    if request.wanted.as_ref().is_some_and(|wanted| wanted.note) {
                        grant.note = self.words("Why (for the record; required): ")?;
                    }
                    self.daemon.try_ask(|client| client.grant(&id, &grant))
                }
                "r" => {
                    let refusal =
                        RefuseApproval { note: self.words("Why (the agent is told; may be empty): ")? };
                    self.daemon.try_ask(|client| client.refuse(&id, &refusal))
                }
                "a" => {
                    let Some(note) = self.words("What the agent is told: ")? else { continue };
                    let answer = AnswerApproval { note };
                    self.daemon.try_ask(|client| client.answer(&id, &answer))
                }
                "s" | "" => return Ok(Next::Go),
                "q" => return Ok(Next::Stop),
                _ => continue,
            };
            match answered {
                Ok(approval) => {
                    decided(out, &approval, self.global)?;
                    out.flush()?;
                    return Ok(Next::Go);
                }
                Err(error @ ClientError::Refused { status: 400..500, .. }) => {
                    anstream::eprintln!("{}", line(&error.to_string()));
                    request = self.daemon.ask(|client| client.approval(&id))?;
                    show(out, &request, self.global)?;
                    out.flush()?;
                }
                Err(error) => return Err(told(&error)),
            }
        }
    }

    /// Words of the person; none where there are none.
    fn words(&self, question: &str) -> Result<Option<String>, Failure> {
        Ok(self.prompt.ask(question, || None)?.filter(|words| !words.is_empty()))
    }
}

/// What waits beside the request that a person is asked about.
struct Others {
    about: ApprovalId,
    /// How many the person knows of.
    said: usize,
}

impl Others {
    /// Whether more wait than before, in a sentence. A daemon that is gone is told of when the decision is sent.
    fn news(&mut self, daemon: &Daemon) -> Option<String> {
        let list = daemon.try_ask(|client| client.list_approvals(ApprovalFilter::Pending)).ok()?;
        if !list.approvals.iter().any(|request| request.approval == self.about) {
            return None;
        }
        let others = list.approvals.len() - 1;
        let before = std::mem::replace(&mut self.said, others);
        (others > before).then(|| match others {
            1 => "1 more request waits".to_owned(),
            others => format!("{others} more requests wait"),
        })
    }
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
    match shown {
        Ok(status) if status.success() => {}
        Ok(status) => anstream::eprintln!("no desktop notification: notify-send failed ({status})"),
        Err(error) => anstream::eprintln!("no desktop notification: cannot start notify-send: {error}"),
    }
}
