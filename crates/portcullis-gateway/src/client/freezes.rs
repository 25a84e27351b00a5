//! Freezing and releasing runs.

use super::{Client, ClientError};
use crate::api::{FreezeAnswer, FreezeInfo, FreezeRuns, Freezes, ReleaseRuns};

impl Client {
    /// Freezes. In force when it answers.
    pub async fn freeze(&self, freeze: &FreezeRuns) -> Result<FreezeAnswer, ClientError> {
        self.post("/v1/freezes", freeze).await
    }

    /// Releases what is frozen, or the first part of it.
    pub async fn release(&self, release: &ReleaseRuns) -> Result<FreezeAnswer, ClientError> {
        self.post("/v1/freezes/release", release).await
    }

    /// The freezes that are in force, the oldest first; with `history`, all of them, the latest first.
    pub async fn freezes(&self, history: bool) -> Result<Vec<FreezeInfo>, ClientError> {
        self.get::<Freezes>(&format!("/v1/freezes?history={history}")).await.map(|freezes| freezes.freezes)
    }
}
