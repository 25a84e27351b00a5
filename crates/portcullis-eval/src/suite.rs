//! What a suite is given and what can go wrong.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use serde::de::DeserializeOwned;

use crate::data::{self, Data, DataError};
use crate::predictions::Predictions;

/// One evaluation: data, what judges it, and where to tell.
pub struct Job<'a> {
    /// The records.
    pub data: Data,
    /// The policy that is evaluated.
    pub bundle: Arc<Bundle>,
    /// Where predictions go.
    pub predictions: Predictions,
    /// Told how many bytes of the data were dealt with.
    pub progress: &'a mut dyn FnMut(u64),
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("data", &self.data).field("bundle", &self.bundle.digest()).finish()
    }
}

/// Gives every record of the data to `judge`, in order: none where it is not one of the set.
///
/// # Errors
/// The data cannot be read, or what `judge` returns.
pub(crate) fn each_record<R: DeserializeOwned>(
    job: &mut Job<'_>,
    mut judge: impl FnMut(&mut Job<'_>, Option<R>) -> Result<(), EvalError>,
) -> Result<(), EvalError> {
    let mut bytes = 0;
    for path in job.data.files.clone() {
        for value in data::records(&path)? {
            judge(job, value.ok().and_then(|value| serde_json::from_value(value).ok()))?;
        }
        bytes += std::fs::metadata(&path).map_or(0, |meta| meta.len());
        (job.progress)(bytes);
    }
    Ok(())
}

/// What `make` makes of every record of the data, in order, and how many were not of the set.
///
/// # Errors
/// The data cannot be read, or what `make` returns.
pub(crate) fn read<R: DeserializeOwned, T>(
    data: &Data,
    mut make: impl FnMut(R) -> Result<T, EvalError>,
) -> Result<(Vec<T>, usize), EvalError> {
    let (mut made, mut unread) = (Vec::new(), 0);
    for path in &data.files {
        for value in data::records(path)? {
            match value.ok().and_then(|value| serde_json::from_value(value).ok()) {
                Some(record) => made.push(make(record)?),
                None => unread += 1,
            }
        }
    }
    Ok((made, unread))
}

/// Why an evaluation did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The data cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Predictions cannot be written.
    #[error("cannot write the predictions: {0}")]
    Predictions(#[source] io::Error),
    /// What belongs to the data is not there.
    #[error("cannot find {what}: a folder or file `{wanted}` in or near `{}`", near.display())]
    Companion {
        /// What it is.
        what: &'static str,
        /// What it is called.
        wanted: &'static str,
        /// Where it was looked for.
        near: PathBuf,
    },
    /// A model that the suite asks gives no answer, and would give none to the next question.
    #[error(transparent)]
    Model(portcullis_assist::ModelError),
    /// A strategy of repair cannot be used.
    #[error(transparent)]
    Strategy(#[from] portcullis_assist::SettingsError),
    /// Work that waits cannot be started.
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    /// The suite has no such arm.
    #[error("the suite `{suite}` has no arm {arm}")]
    Arm {
        /// The option.
        arm: &'static str,
        /// The suite.
        suite: &'static str,
    },
    /// What belongs to the data is of another form.
    #[error("`{}` is not of the form it should be: {why}", path.display())]
    Form {
        /// Where.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Recorded runs cannot be judged.
    #[error(transparent)]
    Replay(portcullis_sim::replay::ReplayError),
    /// A name that was given is nowhere in the data.
    #[error("nothing in the data is called `{name}`; there are {known}")]
    UnknownName {
        /// The name.
        name: String,
        /// What there is.
        known: String,
    },
    /// Demonstrations cannot be read.
    #[error(transparent)]
    Demonstrations(#[from] portcullis_assist::guardagent::DemonstrationError),
    /// The bundle cannot judge this suite.
    #[error("the bundle cannot judge this suite: {0}")]
    Bundle(String),
}
