//! The translation between client and server, where one speaks with sessions and the other without.
//!
//! It is between the gate and the server, so what is judged is what the client says and hears. Until it is known what both
//! speak, messages are written under its lock, in the order in which they were translated; once both speak the same, it
//! costs a look at a flag.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_core::event::OutcomeStatus;
use portcullis_wire::jsonrpc::Id;
use portcullis_wire::mcp::translate::{Translator, Turn, Unmatched};
use tokio::sync::mpsc;

use super::gate::{Gate, LineWriter};

/// Turns that wait for the way back to the client.
const BACK_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Translation {
    translator: tokio::sync::Mutex<Translator>,
    settled: AtomicBool,
    /// What the client is told because of its own messages.
    back: mpsc::Sender<Box<Turn>>,
    to_client: Mutex<Option<mpsc::Receiver<Box<Turn>>>>,
}

impl Translation {
    pub(super) fn new(unmatched: Unmatched) -> Self {
        let (back, to_client) = mpsc::channel(BACK_MAX);
        Self {
            translator: tokio::sync::Mutex::new(Translator::new(unmatched)),
            settled: AtomicBool::new(false),
            back,
            to_client: Mutex::new(Some(to_client)),
        }
    }

    /// Where the turns come that the client's messages cause. There is one reader.
    pub(super) fn turns(&self) -> Option<mpsc::Receiver<Box<Turn>>> {
        self.to_client.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// Takes a turn, and writes what it sends to the server. `None`: the message stays as it is.
    async fn turn(
        &self,
        server: &LineWriter,
        take: impl FnOnce(&mut Translator) -> Option<Turn>,
        as_it_is: Option<&[u8]>,
    ) -> io::Result<Option<Turn>> {
        let mut translator = self.translator.lock().await;
        let in_order = !translator.is_decided();
        let mut turn = take(&mut translator);
        self.settled.store(translator.is_settled(), Ordering::Release);
        let translator = in_order.then_some(translator);
        let lines = turn.as_mut().map(|turn| std::mem::take(&mut turn.to_server)).unwrap_or_default();
        for line in &lines {
            server.line(line).await?;
        }
        if let (None, Some(line)) = (&turn, as_it_is) {
            server.line(line).await?;
        }
        drop(translator);
        Ok(turn)
    }

    /// Passes on a line of the client.
    pub(super) async fn client_says(&self, line: &[u8], server: &LineWriter) -> io::Result<()> {
        if self.is_settled() {
            return server.line(line).await;
        }
        let turn = self.turn(server, |translator| translator.client_says(line), Some(line)).await?;
        match turn {
            Some(turn) if turn == Turn::default() => Ok(()),
            Some(turn) => self.back.send(Box::new(turn)).await.map_err(|_| io::ErrorKind::BrokenPipe.into()),
            None => Ok(()),
        }
    }

    /// Takes a line of the server.
    pub(super) async fn server_says(&self, line: &[u8], server: &LineWriter) -> Option<Turn> {
        if self.is_settled() {
            return None;
        }
        let turn = self.turn(server, |translator| translator.server_says(line), None).await;
        turn.unwrap_or_else(|error| {
            tracing::debug!("the server no longer reads: {error}");
            Some(Turn::default())
        })
    }

    /// The transport says of a request that the server did not carry it out.
    pub(super) async fn refused(&self, id: &Id) {
        if !self.is_settled() {
            self.translator.lock().await.refused(id);
        }
    }

    pub(super) async fn lost(&self, id: &Id, refused: bool, why: &str, server: &LineWriter) -> Turn {
        let turn = self.turn(server, |translator| Some(translator.lost(id, refused, why)), None).await;
        turn.ok().flatten().unwrap_or_default()
    }

    pub(super) async fn due(&self, call: &Id, server: &LineWriter) -> Turn {
        let turn = self.turn(server, |translator| Some(translator.due(call)), None).await;
        turn.ok().flatten().unwrap_or_default()
    }
}

impl Gate {
    /// What follows from a turn besides what the client is told: losses, and calls to go on with later.
    pub(super) async fn follow(self: &Arc<Self>, turn: &Turn, status: OutcomeStatus, why: &str) {
        for loss in &turn.lost {
            match &loss.why {
                Some(why) => self.give_up(&loss.id, OutcomeStatus::Error, why).await,
                None => self.give_up(&loss.id, status, why).await,
            }
        }
        if let Some((after, call)) = turn.later.clone() {
            let gate = Arc::downgrade(self);
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                if let Some(gate) = gate.upgrade() {
                    let turn = gate.to_server.due(&call).await;
                    let _ = gate.to_server.translation.back.send(Box::new(turn)).await;
                }
            });
        }
    }
}
