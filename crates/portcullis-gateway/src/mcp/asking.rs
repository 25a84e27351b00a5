//! Questions to the user of an older client: a call whose verdict is `clarify` is asked about through the client itself.
//!
//! The client's host shows the form and gives the answer, so a yes is the *user's*. It is recorded as that, the words are
//! judged, and the call is judged again, once, without what asked. What an approver has to decide waits for the approver:
//! nothing here is ever asked about a call under review.
//!
//! One question is open at a time. What cannot be shown whole is not asked about, since a yes would cover what nobody saw.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portcullis_core::denial::{Denial, DenialClass};
use portcullis_core::display::{block, line};
use portcullis_core::id::ActionId;
use portcullis_session::engine::Reach;
use portcullis_wire::jsonrpc::Id;
use portcullis_wire::mcp::elicitation::{self, Answer};
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::{Mutex as Turn, oneshot};
use tokio::time::{sleep, timeout};

use super::calls::Call;
use super::gate::Gate;
use super::gated_run::GatedRunError;
use crate::api::{ProposeAction, ReportConfirmation, ReportInput, Role};
use crate::client::{Proposed, Stopped};

/// How the id of a question begins. The rest is random, so that nobody can answer what was not asked.
const PREFIX: &str = "portcullis-ask-";
/// Random bytes of it.
const ID_BYTES: usize = 16;
/// How long an answer is waited for. People take longer than clients keep a call open; the question stands in the run
/// after that, and the agent is told of it.
const ANSWER_WAITS_MAX: Duration = Duration::from_secs(120);
/// The longest question, in bytes as shown: about what fits a dialog. A longer call is not asked about.
const SHOWN_BYTES_MAX: usize = 4 << 10;
/// Columns of the arguments that are shown.
const COLUMNS: usize = 100;
/// The pause before a call that met the question of another one takes its turn, so that the other one asks first.
const OTHER_ASKS_FIRST: Duration = Duration::from_millis(100);
/// How the rules begin that say how the run stands: the question is about an earlier call.
const OF_ANOTHER_CALL: &str = "run/phase/";

/// What the client can show, and what it is asked now.
#[derive(Debug, Default)]
pub(super) struct Questions {
    shows_forms: AtomicBool,
    open: Mutex<HashMap<String, oneshot::Sender<Answer>>>,
    turn: Turn<()>,
}

impl Questions {
    /// The client introduced itself.
    pub(super) fn introduced(&self, shows_forms: bool) {
        self.shows_forms.store(shows_forms, Ordering::Relaxed);
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Answer>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a response answers a question of the gate, which the server knows nothing of. An answer that cannot be
    /// read, or is an error, is none.
    pub(super) fn answered(&self, id: &Id, result: Option<&RawValue>) -> bool {
        let Id::String(id) = id else { return false };
        let Some(waiting) = self.open().remove(id.as_ref()) else { return is_question(id) };
        let read = result.map(elicitation::read_answer);
        if let Some(Err(error)) = &read {
            tracing::warn!("the client's answer to a question cannot be read: {error}");
        }
        // Nobody waits for it any more: then it comes too late.
        let _ = waiting.send(read.and_then(Result::ok).unwrap_or(Answer::Nothing));
        true
    }
}

/// Whether an id is one of the gate's: a late answer does not reach the server either.
fn is_question(id: &str) -> bool {
    id.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.len() == 2 * ID_BYTES && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// A question that the client was asked. Dropped unanswered, it is withdrawn.
struct Asked {
    gate: Arc<Gate>,
    id: String,
}

impl Drop for Asked {
    fn drop(&mut self) {
        let waited_for = self.gate.questions.open().remove(&self.id).is_some();
        // Without a runtime the gate is ending, and so is the client's end.
        if !waited_for || Handle::try_current().is_err() {
            return;
        }
        let (gate, id) = (Arc::clone(&self.gate), self.id.clone());
        self.gate.spawn(async move {
            let line = elicitation::withdraw(&id, "the question is no longer waited for");
            if gate.to_client.line(&line).await.is_err() {
                tracing::debug!("the client has gone and was not told that a question is withdrawn");
            }
        });
    }
}

/// Has the user asked, where the verdict on a call is a question and the client can put it. What comes of the call then.
pub(super) async fn clarified(
    gate: &Arc<Gate>,
    call: &Call,
    proposal: ProposeAction,
    mut proposed: Proposed,
) -> Result<Proposed, GatedRunError> {
    let questions = &gate.questions;
    if !questions.shows_forms.load(Ordering::Relaxed) || !gate.asks_in_requests() || call.with_result_type {
        return Ok(proposed);
    }
    let Some(stopped) = question(&proposed) else { return Ok(proposed) };
    let others = stopped.denial.rule.starts_with(OF_ANOTHER_CALL);
    if others {
        sleep(OTHER_ASKS_FIRST).await;
    }
    let _turn = questions.turn.lock().await;
    if others {
        proposed = gate.run.propose(proposal.clone()).await?;
    }
    let Some(stopped) = question(&proposed) else { return Ok(proposed) };
    let Some(action) = stopped.denial.action.filter(|_| !stopped.denial.rule.starts_with(OF_ANOTHER_CALL))
    else {
        return Ok(proposed);
    };
    match ask(gate, &proposal, &stopped.denial).await {
        Some(Answer::Yes(words)) => {
            let text = words.unwrap_or_else(|| "yes".to_owned());
            match confirm(gate, action, text).await? {
                None => gate.run.propose(proposal).await,
                Some(why) => Ok(told(proposed, &why)),
            }
        }
        Some(Answer::No(words)) => {
            let said = said_no(gate, words.unwrap_or_else(|| "no".to_owned())).await?;
            Ok(told(proposed, &said))
        }
        Some(Answer::Nothing) | None => Ok(proposed),
    }
}

/// A proposal that is stopped by a question to the user.
fn question(proposed: &Proposed) -> Option<&Stopped> {
    match proposed {
        Proposed::Stopped(stopped) => {
            Some(stopped).filter(|stopped| stopped.denial.class == DenialClass::ClarificationNeeded)
        }
        Proposed::Permitted(_) => None,
    }
}

/// Puts the question. `None` where it cannot be shown whole, the client has gone, or nobody answered in time.
async fn ask(gate: &Arc<Gate>, proposal: &ProposeAction, denial: &Denial) -> Option<Answer> {
    let message = shown(gate, proposal, denial);
    if message.len() > SHOWN_BYTES_MAX {
        tracing::warn!("the user is not asked about a call of {} bytes as shown", message.len());
        return None;
    }
    let mut random = [0; ID_BYTES];
    getrandom::fill(&mut random).ok()?;
    let id = format!("{PREFIX}{}", ActionId::from_bytes(random));
    let (answer, answered) = oneshot::channel();
    gate.questions.open().insert(id.clone(), answer);
    let asked = Asked { gate: Arc::clone(gate), id };
    gate.to_client.line(&elicitation::ask(&asked.id, &message)).await.ok()?;
    timeout(ANSWER_WAITS_MAX, answered).await.ok()?.ok()
}

/// What the user sees: the call, and what is asked about it. Texts of others cannot pass for the gate's.
fn shown(gate: &Gate, proposal: &ProposeAction, denial: &Denial) -> String {
    let tool = proposal.tool.as_deref().unwrap_or_default();
    let mut text = format!(
        "Portcullis asks before the agent's call of `{}` (server: {}) goes ahead.\n\n{}\n\narguments\n  {}\n",
        line(tool),
        line(gate.command()),
        block(&denial.message, 0, COLUMNS),
        block(&format!("{:#}", proposal.arguments), 2, COLUMNS),
    );
    if let Some(carried) = &proposal.continuation {
        text.push_str(&format!("answers to the server\n  {}\n", block(&format!("{carried:#}"), 2, COLUMNS)));
    }
    text
}

/// Records the yes. `Some` says why the call is not judged again.
async fn confirm(gate: &Gate, action: ActionId, text: String) -> Result<Option<String>, GatedRunError> {
    match gate.run.confirm(ReportConfirmation { action, text }).await {
        Ok(judged) if judged.enforced.proceeds() => Ok(None),
        Ok(judged) => Ok(Some(format!("the user's answer is withheld by `{}`", judged.verdict))),
        Err(error) if error.is_not_asked() => {
            Ok(Some("the user's answer came after the run went on".to_owned()))
        }
        Err(error) => Err(error),
    }
}

/// Records the no, and says what the agent is told of it.
async fn said_no(gate: &Gate, words: String) -> Result<String, GatedRunError> {
    let input = ReportInput { text: words.clone(), role: Role::User, reach: Reach::Withhold };
    let judged = gate.run.input(input).await?;
    Ok(match judged.enforced.proceeds() {
        true => format!("the user did not confirm the call, and said: {words}"),
        false => "the user did not confirm the call".to_owned(),
    })
}

/// The same stop, with what came of the question.
fn told(proposed: Proposed, what: &str) -> Proposed {
    match proposed {
        Proposed::Stopped(mut stopped) => {
            stopped.denial.message = format!("{}; {what}", stopped.denial.message);
            Proposed::Stopped(stopped)
        }
        permitted @ Proposed::Permitted(_) => permitted,
    }
}
