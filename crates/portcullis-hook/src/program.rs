//! From start to end.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::arguments::Options;
use crate::event::{Answered, ReportHookEvent};
use crate::exchange::{self, NoAnswer};
use crate::folder::state_folder;
use crate::hand_over::{HandOver, hand_over};
use crate::limit::{ANSWER_MAX, INPUT_BYTES_MAX, WHOLE_MAX, within};
use crate::place;

/// How much longer than the daemon may take its answer is waited for.
const ON_THE_WAY: Duration = Duration::from_secs(1);

/// Answers the event on standard input.
#[must_use]
pub fn main() -> ExitCode {
    let begun = Instant::now();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let tried = match Options::read(&arguments) {
        Some(options) => within(WHOLE_MAX, move || try_daemon(&options, begun + ANSWER_MAX + ON_THE_WAY)),
        None => Ok(Err(HandOver { input: None, sent: false })),
    };
    ExitCode::from(match tried {
        Ok(Ok(answered)) | Err(answered) => answered.say(),
        Ok(Err(event)) => hand_over(&arguments, event, begun.elapsed()),
    })
}

/// The answer of the daemon that runs, or what is to be handed over.
fn try_daemon(options: &Options, until: Instant) -> Result<Answered, HandOver> {
    let mut input = Vec::new();
    if let Err(error) = io::stdin().lock().take(INPUT_BYTES_MAX as u64 + 1).read_to_end(&mut input) {
        return Ok(Answered::blocked(format!("the hook input cannot be read: {error}")));
    }
    let tried = match request(&input, options) {
        Some((home, body)) => exchange::ask(&home, &body, until),
        None => Err(NoAnswer::Unsent),
    };
    tried.map_err(|failed| HandOver { input: Some(input), sent: failed == NoAnswer::Sent })
}

/// The fields of an event that are looked at here.
#[derive(Deserialize)]
struct Directory<'a> {
    #[serde(borrow, default)]
    cwd: Option<Cow<'a, str>>,
    /// Where Cursor works, which names no directory in every event.
    #[serde(default)]
    workspace_roots: Option<Vec<String>>,
}

/// The state folder of the daemon to ask, and what to send it; `None` for an event that the whole program should see.
fn request(input: &[u8], options: &Options) -> Option<(PathBuf, Vec<u8>)> {
    if input.len() > INPUT_BYTES_MAX {
        return None;
    }
    let input = std::str::from_utf8(input).ok()?;
    let home = std::path::absolute(state_folder(options.home.as_deref())?).ok()?;
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user_home = folder("HOME");
    let project = match place::project_variable(options.agent.as_deref()).and_then(folder) {
        Some(project) => Some(project),
        None => {
            let Directory { cwd, workspace_roots } = serde_json::from_str(input).ok()?;
            let cwd = cwd.filter(|cwd| !cwd.is_empty()).map(|cwd| PathBuf::from(cwd.as_ref()));
            cwd.or_else(|| workspace_roots?.into_iter().next().map(PathBuf::from))
        }
    };
    let bundle = match &options.bundle {
        Some(bundle) => Some(std::fs::canonicalize(bundle).ok()?.to_str()?.to_owned()),
        None => None,
    };
    let event = ReportHookEvent {
        input: Cow::Borrowed(input),
        agent: options.agent.clone(),
        bundle,
        policy: options.policy.clone(),
        ask: options.ask,
        defer: options.defer,
        uncontained: options.uncontained,
        workspace: place::workspace(project.as_deref(), user_home.as_deref()),
        home: user_home.as_deref().and_then(|home: &Path| place::absolute(home)),
    };
    Some((home, serde_json::to_vec(&event).ok()?))
}
