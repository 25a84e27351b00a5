//! What an operator does to a log: another writer's key, a key that counts no more, an end.

use portcullis_core::id::RunId;
use portcullis_proof::log::{KeyId, Leaf};
use rusqlite::params;

use super::database::{WriterRow, WriterState, insert_leaf, put_writer};
use super::error::LogError;
use super::sequencer::Round;
use super::{LABEL, Log};

impl Log {
    /// Makes a new writer's key sign from now on. The old key still signs the ends of segments that it opened, so its
    /// file stays until they have ended.
    ///
    /// # Errors
    /// Why the log cannot continue.
    pub fn rotate_writer(&mut self, label: &str) -> Result<KeyId, LogError> {
        self.round()?;
        self.enrol(label)?;
        self.round()?;
        self.current().map(|row| row.key)
    }

    /// Says in the log that nothing which a writer's key signs from here on counts. Segments that it opened stay
    /// without end in the log; if it was the current one, a new key takes over.
    ///
    /// # Errors
    /// What keeps the log from going on, and [`LogError::WriterUnknown`].
    pub fn revoke(&mut self, key: KeyId, reason: &str) -> Result<Round, LogError> {
        let writers = self.database.writers()?;
        let row = writers.into_iter().find(|row| row.key == key).ok_or(LogError::WriterUnknown(key))?;
        // What it signed before counts, so it gets its place before.
        self.round()?;
        if row.state == WriterState::Revoked {
            return self.round();
        }
        let leaf = Leaf::Revoke {
            origin: self.reader.origin()?,
            writer: key,
            reason: reason.to_owned(),
            admin: self.key.admin.id(),
        };
        let leaf = leaf
            .sign(&self.key.admin)
            .map_err(|error| LogError::LeafRefused { message: error.to_string() })?;
        // Its count may have grown in the round above.
        let counted = self.database.writers()?.into_iter().find(|row| row.key == key).unwrap_or(row);
        self.database.write(|transaction| {
            insert_leaf(transaction, &leaf, None, Some(key))?;
            put_writer(transaction, &WriterRow { state: WriterState::Revoked, ..counted })
        })?;
        if row.state == WriterState::Current {
            self.enrol(LABEL)?;
        }
        self.round()
    }

    /// Ends the log: what is due is logged, and nothing after it. Runs are still recorded, unanchored, until the
    /// store is replaced.
    ///
    /// # Errors
    /// Why the log cannot do its last round.
    pub fn freeze(&mut self, reason: &str) -> Result<Round, LogError> {
        let round = self.round()?;
        self.freeze_as_it_is(reason)?;
        Ok(round)
    }

    /// Ends the log without a last round: one that must not sign any more.
    ///
    /// # Errors
    /// When its database cannot be written.
    pub fn freeze_as_it_is(&mut self, reason: &str) -> Result<(), LogError> {
        self.database.write(|transaction| {
            transaction.execute("UPDATE tree SET frozen = ?1 WHERE frozen IS NULL", params![reason]).map(drop)
        })
    }

    fn current(&self) -> Result<WriterRow, LogError> {
        let writers = self.database.writers()?;
        writers
            .into_iter()
            .find(|row| row.state == WriterState::Current)
            .ok_or_else(|| LogError::LeafRefused { message: "no writer is enrolled".to_owned() })
    }

    /// The runs of segments that the log has and whose end it has not.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn open_runs(&self) -> Result<Vec<RunId>, LogError> {
        let open = self.database.open_segments()?;
        Ok(open.into_iter().map(|(_, logged)| RunId::from_bytes(logged.run.0)).collect())
    }
}
