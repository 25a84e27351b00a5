//! The translation between client and server, where one speaks with sessions and the other without.
//!
//! It is between the gate and the server, so what is judged is what the client says and hears. Until it is known that both
//! speak the same, messages to the server go through one task, in the order in which they were translated, so that whoever
//! hears the server never waits until it reads. Then it costs a look at a flag.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_core::event::OutcomeStatus;
use portcullis_wire::jsonrpc::{Id, Message, peek};
use portcullis_wire::mcp::replace::{Path, value_at};
use portcullis_wire::mcp::translate::{Ended, Translator, Turn, Unmatched};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::calls::Open;
use super::gate::{Gate, LineWriter};
use super::upstream;

/// By what a client comes back to a call that asks for something.
const REQUEST_STATE: Path = &["result", "requestState"];
/// Turns that wait for the way back to the client.
const BACK_MAX: usize = 64;
/// Turns that wait until the server reads.
const FORTH_MAX: usize = 256;

#[derive(Debug)]
pub(super) struct Translation {
    translator: Mutex<Translator>,
    settled: Arc<AtomicBool>,
    /// What the server is sent, until both are known to speak the same.
    forth: mpsc::Sender<Forth>,
    /// What the client is told because of its own messages.
    back: mpsc::Sender<Box<Turn>>,
    to_client: Mutex<Option<mpsc::Receiver<Box<Turn>>>>,
}

/// Lines for the server.
#[derive(Debug)]
struct Forth {
    lines: Vec<Vec<u8>>,
    /// Who waits until they are written.
    done: Option<oneshot::Sender<io::Result<()>>>,
    /// The last of them: both speak the same.
    settles: bool,
}

impl Translation {
    pub(super) fn new(unmatched: Unmatched, server: &Arc<LineWriter>) -> Self {
        let (back, to_client) = mpsc::channel(BACK_MAX);
        let (forth, lines) = mpsc::channel(FORTH_MAX);
        let settled = Arc::new(AtomicBool::new(false));
        tokio::spawn(write(Arc::clone(server), lines, Arc::clone(&settled)));
        Self {
            translator: Mutex::new(Translator::new(unmatched)),
            settled,
            forth,
            back,
            to_client: Mutex::new(Some(to_client)),
        }
    }

    fn translator(&self) -> MutexGuard<'_, Translator> {
        self.translator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the turns come that the client's messages cause. There is one reader.
    pub(super) fn turns(&self) -> Option<mpsc::Receiver<Box<Turn>>> {
        self.to_client.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// Passes on a line of the client, and waits until the server has it.
    pub(super) async fn client_says(&self, line: &[u8], server: &LineWriter) -> io::Result<()> {
        let room = match self.is_settled() {
            true => None,
            // Closed: settled since.
            false => self.forth.reserve().await.ok(),
        };
        let Some(room) = room else { return server.line(line).await };
        let (done, written) = oneshot::channel();
        let turn = {
            // Sent under the lock, so in order.
            let mut translator = self.translator();
            let mut turn = translator.client_says(line);
            let lines = match &mut turn {
                Some(turn) => std::mem::take(&mut turn.to_server),
                None => vec![line.to_vec()],
            };
            room.send(Forth { lines, done: Some(done), settles: translator.is_settled() });
            turn
        };
        written.await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
        match turn {
            Some(turn) if turn != Turn::default() => {
                self.back.send(Box::new(turn)).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
            }
            _ => Ok(()),
        }
    }

    /// Takes a turn that the client did not cause. Nobody waits until the server reads.
    fn turn(&self, take: impl FnOnce(&mut Translator) -> Option<Turn>) -> Option<Turn> {
        let mut translator = self.translator();
        let mut turn = take(&mut translator);
        let lines = turn.as_mut().map(|turn| std::mem::take(&mut turn.to_server)).unwrap_or_default();
        let settles = translator.is_settled();
        if (settles || !lines.is_empty())
            && self.forth.try_send(Forth { lines, done: None, settles }).is_err()
            && !self.is_settled()
        {
            tracing::warn!("the server does not read what it is sent, and an answer to it was dropped");
        }
        turn
    }

    /// Takes a line of the server. `None`: it passes as it is.
    pub(super) fn server_says(&self, line: &[u8]) -> Option<Turn> {
        if self.is_settled() {
            return None;
        }
        self.turn(|translator| translator.server_says(line))
    }

    /// The transport says of a request that the server did not carry it out.
    pub(super) fn refused(&self, id: &Id) {
        if !self.is_settled() {
            self.translator().refused(id);
        }
    }

    pub(super) fn lost(&self, id: &Id, refused: bool, why: &str) -> Turn {
        self.turn(|translator| Some(translator.lost(id, refused, why))).unwrap_or_default()
    }

    /// The client got `told` in place of an answer. If that keeps from it what a server asks, the server is told.
    pub(super) fn withheld(&self, answer: &[u8], told: &[u8]) {
        let state = |line| value_at(line, REQUEST_STATE).ok().flatten().map(RawValue::get);
        if !self.is_settled() && state(answer).is_some() && state(answer) != state(told) {
            self.turn(|translator| Some(translator.withheld(answer)));
        }
    }

    /// Makes a call again, and waits until the server has it.
    pub(super) async fn again(&self, line: Vec<u8>) -> io::Result<()> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let (done, written) = oneshot::channel();
        let forth = Forth { lines: vec![line], done: Some(done), settles: false };
        self.forth.send(forth).await.map_err(|_| gone())?;
        written.await.unwrap_or_else(|_| Err(gone()))
    }

    /// A call is not made again.
    pub(super) fn forget(&self, call: &Id) -> Turn {
        self.turn(|translator| Some(translator.forget(call))).unwrap_or_default()
    }

    pub(super) fn due(&self, call: &Id) -> Turn {
        self.turn(|translator| Some(translator.due(call))).unwrap_or_default()
    }
}

/// Writes lines to the server until both are known to speak the same, and what has come by then.
async fn write(server: Arc<LineWriter>, mut lines: mpsc::Receiver<Forth>, settled: Arc<AtomicBool>) {
    while let Some(Forth { lines: forth, done, settles }) = lines.recv().await {
        let mut wrote = Ok(());
        for line in &forth {
            wrote = server.line(line).await;
            if wrote.is_err() {
                break;
            }
        }
        if let Some(done) = done {
            let _ = done.send(wrote);
        }
        if settles && lines.is_empty() {
            // Whoever sends from now on finds it closed, and writes by itself, after these.
            lines.close();
        }
        if lines.is_closed() && lines.is_empty() {
            settled.store(true, Ordering::Release);
        }
    }
}

impl Gate {
    /// What follows from a turn besides what the client is told by the server: requests that are not translated, losses, and
    /// calls to be made again, now or later.
    pub(super) async fn follow(self: &Arc<Self>, turn: Turn, status: OutcomeStatus, why: &str) {
        for again in turn.again {
            let gate = Arc::clone(self);
            // Beside: a person may have to be asked.
            self.spawn(async move { upstream::make_again(&gate, again).await });
        }
        for ended in &turn.ended {
            self.untranslated(ended).await;
        }
        for loss in &turn.lost {
            match &loss.why {
                Some(why) => self.give_up(&loss.id, OutcomeStatus::Error, why).await,
                None => self.give_up(&loss.id, status, why).await,
            }
        }
        if let Some((after, call)) = turn.later {
            let gate = Arc::downgrade(self);
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                if let Some(gate) = gate.upgrade() {
                    let turn = gate.to_server.due(&call);
                    let _ = gate.to_server.translation.back.send(Box::new(turn)).await;
                }
            });
        }
    }

    /// The client is told that its request is not translated. In the record, that is no word of the server.
    async fn untranslated(&self, Ended { line, status }: &Ended) {
        let Ok(Message::Response { id, .. }) = peek(line) else { return };
        if id != Id::Null {
            let Some(open) = self.calls.answered(&id) else { return };
            if let Open::Executing { action, .. } = open {
                self.report(action, *status).await;
            }
        }
        if self.to_client.line(line).await.is_err() {
            tracing::debug!("the client has gone and was not told that request {id} is not translated");
        }
    }
}
